"""Which candidates mean the same: SQL by what it returns, solutions by their last number.

Failures of every kind share the cluster -1. Were each a cluster of its own, failures would be the
most diverse answers of all and be chosen first.
"""

import json
import re
import subprocess
import sys
from collections.abc import Hashable, Sequence
from decimal import Decimal
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Self

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError

_GRACE_S = 2.0  # for a busy machine, before a query that does not stop is killed
_WHOLE = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)"
_NUMBER = re.compile(rf"(?:(?<![\w.)\]])[-−])?(?:{_WHOLE}(?:\.[0-9]+)?|(?<!\w)\.[0-9]+)")


def sql_clusters(
    sqls: Sequence[str],
    path: str | Path,
    timeout_s: float = 1.0,
    max_rows: int = 10_000,
) -> Int[np.ndarray, " n"]:
    """Cluster queries by the rows they return from the SQLite file at `path`.

    Two results are equal when they hold the same rows, each as often; the order of columns counts,
    their names do not, and numbers are compared at 9 significant digits.

    The queries are taken for hostile. They run in a process of its own on a file opened read-only;
    one SELECT is let through, without ATTACH, PRAGMA or anything that writes or touches another
    file. Values are held to 1 MB, rows to 100 columns, memory to 1 GB (but on Windows), time and
    number of rows to the arguments.

    Parameters
    ----------
    sqls
        One query each.
    path
        The database; nothing is written there or beside it.
    timeout_s
        Seconds for each query. One that SQLite cannot interrupt is killed 2 s later.
    max_rows
        A result with more rows is a failure.

    Returns
    -------
    Numbers from 0 in order of first appearance, -1 for a query that failed, took too long or gave
    too many rows.

    Raises
    ------
    InputError
        If `path` is not a readable SQLite database.
    """
    with _Sandbox(path, timeout_s, max_rows) as sandbox:
        digests = {sql: sandbox.digest(sql) for sql in dict.fromkeys(sqls)}
    return _numbered([digests[sql] for sql in sqls])


class _Sandbox:
    """The process that runs the queries; a new one when a query had to be killed."""

    def __init__(self, path: str | Path, timeout_s: float, max_rows: int) -> None:
        self._path, self._timeout_s = Path(path), timeout_s
        script = Path(__file__).with_name("_sql_sandbox.py")
        self._command = [
            sys.executable,
            "-I",
            str(script),
            str(path),
            str(timeout_s),
            str(max_rows),
        ]

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def digest(self, sql: str) -> str | None:
        """What the query returns, None when it fails in any way."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(sql) + "\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=self._timeout_s + _GRACE_S)
        except (Empty, BrokenPipeError):
            answer = ""
        if not answer:  # too long, or it took the process down
            self._stop()
            self._start()
            return None
        return json.loads(answer)

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answers: SimpleQueue[str] = SimpleQueue()
        Thread(target=self._listen, args=(self._process, self._answers), daemon=True).start()
        problem = json.loads(self._answers.get() or '"it cannot be opened"')
        if problem is not None:
            self._stop()
            found = problem if self._path.exists() else "no such file"
            raise InputError("not a readable SQLite database", where=str(self._path), found=found)

    def _stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    @staticmethod
    def _listen(process: "subprocess.Popen[str]", answers: "SimpleQueue[str]") -> None:
        """Pass on lines; an empty one when the process has ended."""
        assert process.stdout is not None
        for line in process.stdout:
            answers.put(line)
        answers.put("")


def number_clusters(texts: Sequence[str]) -> Int[np.ndarray, " n"]:
    """Cluster texts by the value of their last number: "1,234.50" is 1234.5.

    Returns
    -------
    Numbers from 0 in order of first appearance, -1 for a text without a number.
    """
    return _numbered([last_number(text) for text in texts])


def last_number(text: str) -> Decimal | None:
    """The last number in a text, exactly; None where there is none.

    A sign counts where no word, number or bracket stands before it: the 3 of "10-3" is positive.
    """
    found = None
    for match in _NUMBER.finditer(text):
        found = match.group()
    return None if found is None else Decimal(found.replace(",", "").replace("−", "-"))


def one_hot(clusters: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n c"]:
    """One column for each cluster that occurs, in ascending order; -1 is a cluster like others."""
    return (clusters[:, None] == np.unique(clusters)).astype(float)


def _numbered(keys: Sequence[Hashable | None]) -> Int[np.ndarray, " n"]:
    ids: dict[Hashable, int] = {}
    return np.array([-1 if k is None else ids.setdefault(k, len(ids)) for k in keys], dtype=int)
