"""Runs hostile SELECTs in a process of its own: ``python _sql_sandbox.py FILE SECONDS ROWS``.

Reads one JSON string (a query) a line and answers with one JSON line: the digest of the rows it
returns, or null. `clusters` starts it and kills it when a query does not come back. It imports the
standard library alone, so that it starts at once.
"""

import json
import sqlite3
import sys
import time
from collections.abc import Hashable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_FORBIDDEN = {"load_extension", "readfile", "writefile", "edit"}
_MEMORY = 2**30


def serve(path: str, timeout_s: float, max_rows: int) -> None:
    """Answer queries from stdin until it ends."""
    with suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        connection = _open(path)
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error as error:
        _answer(str(error))
        return
    _answer(None)
    for line in sys.stdin:
        _answer(_digest(connection, json.loads(line), timeout_s, max_rows))


def _answer(value: str | None) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _open(path: str) -> sqlite3.Connection:
    uri = f"{Path(path).absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.set_authorizer(_authorize)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, 100)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


def _authorize(action: int, _: str | None, name: str | None, *__: str | None) -> int:
    """Permit reading; SQLite gives a function's name as the second argument."""
    permitted = action in _ALLOWED or (
        action == sqlite3.SQLITE_FUNCTION and (name or "").lower() not in _FORBIDDEN
    )
    return sqlite3.SQLITE_OK if permitted else sqlite3.SQLITE_DENY


def _digest(
    connection: sqlite3.Connection, sql: str, timeout_s: float, max_rows: int
) -> str | None:
    """Digest of the multiset of rows, None on failure. One row is in memory at a time."""
    deadline = time.monotonic() + timeout_s
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 1000)
    rows: list[bytes] = []
    try:
        cursor = connection.execute(sql)
        if cursor.description is None:
            return None  # a comment, or nothing at all
        for row in cursor:
            if len(rows) == max_rows or time.monotonic() > deadline:
                return None
            text = repr([_canonical(value) for value in row])
            rows.append(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError):
        return None  # Warning: two statements; ValueError: a null character in the text
    return blake2b(b"".join(sorted(rows)), digest_size=16).hexdigest()


def _canonical(value: Any) -> Hashable:
    """Numbers at 9 significant digits, whole ones as integers."""
    if not isinstance(value, float):
        return value
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    rounded = float(format(value, ".9g"))
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e9 else rounded


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
