"""Right answers that the user has: GSM8K's numbers and AMBROSIA's readings, by row number.

Neither data set is in any package; both are read from where the user keeps them. The candidates
for a row carry its number, counted from 0, as `prompt_id`.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Int

from armillary import InputError
from armillary.files import read_jsonl

from .clusters import last_number, number_clusters, sql_clusters


@dataclass(frozen=True)
class Gold:
    """What is right for one prompt: one number, or one query for each reading."""

    question: str
    answers: tuple[str, ...]
    database: Path | None = None  # of the queries; None: the answers are numbers

    def clusters(self, texts: Sequence[str]) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " a"]]:
        """Clusters of `texts` and those of the different answers, in one numbering."""
        every = [*self.answers, *texts]
        if self.database is None:
            found = number_clusters(every)
        else:
            found = sql_clusters(every, self.database)
        targets = np.unique(found[: len(self.answers)])
        return found[len(self.answers) :], targets[targets >= 0]


@cache
def read_gsm8k(path: Path) -> dict[str, Gold]:
    """Problems of GSM8K (Cobbe et al. 2021, arXiv 2110.14168): the number after ``####``.

    Raises
    ------
    InputError
        Naming the line, if `question` or `answer` is missing or the answer has no number.
    """
    found = {}
    for line, row in read_jsonl(path):
        question, answer = row.get("question"), row.get("answer")
        where = f"{path}:{line}"
        if not isinstance(question, str) or not isinstance(answer, str):
            raise InputError("expected the texts question and answer", where=where)
        number = last_number(answer.rpartition("####")[2])
        if number is None:
            raise InputError("no number after ####", where=where, found=repr(answer[-40:]))
        found[str(len(found))] = Gold(question, (str(number),))
    return found


@cache
def read_ambrosia(path: Path) -> dict[str, Gold]:
    """Questions of AMBROSIA (Saparina & Lapata 2024, arXiv 2406.19073) with a query per reading.

    The columns used are `question`, `gold_queries` (blank lines between) and `db_file` (relative
    to the table's folder or to the one above it).

    Raises
    ------
    InputError
        Naming the row, if a column or a database is missing.
    """
    found = {}
    before = csv.field_size_limit(2**31 - 1)  # the table holds dumps of databases
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            for number, row in enumerate(rows):
                where = f"{path}: row {number}"
                values = [row.get(name) for name in ("question", "gold_queries", "db_file")]
                if not all(values):
                    raise InputError("expected question, gold_queries and db_file", where=where)
                question, queries, database = map(str, values)
                split = re.split(r"\n\s*\n(?=\s*(?:select|with)\b)", queries, flags=re.IGNORECASE)
                places = [path.parent / database, path.parent.parent / database]
                place = next((p for p in places if p.is_file()), None)
                if place is None:
                    raise InputError("no such database", where=where, found=database)
                found[str(number)] = Gold(question, tuple(q.strip() for q in split), place)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"not a CSV table: {error}", where=str(path)) from error
    finally:
        csv.field_size_limit(before)
    return found
