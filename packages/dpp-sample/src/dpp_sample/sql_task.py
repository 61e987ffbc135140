"""Ambiguous questions over the wine table, with an exact language model of their SQL answers.

Each question has 2 to 4 readings: where AND and OR attach, what a negation covers, what "high" is
measured against. The model behind a question is a `Grammar`: it strongly prefers one reading,
writes one query in four with a wrong filter, and varies the surface (case, alias, ORDER BY, LIMIT,
semicolon). The form is that of AMBROSIA (Saparina & Lapata 2024, arXiv 2406.19073).
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from sklearn.datasets import load_wine

from armillary import InputError

from .clusters import sql_clusters
from .grammar import Grammar

PRIOR = (0.8, 0.14, 0.05, 0.01)  # of the readings in order, cut to as many as there are
WRONG = 0.25  # share of queries with one wrong filter

# A question and the conditions of its readings, over filters: A the cultivar, B and C thresholds
# of two columns, M above the mean of all, MA and MC above the mean of those with A or C.
_KINDS = (
    (
        "Which wines are of cultivar {a} or have {x} above {u} and {y} below {v}?",
        ("( A OR B ) AND C", "A OR B AND C", "( A ) <> ( B ) AND C", "( A ) <> ( B AND C )"),
    ),
    (
        "Which wines are not of cultivar {a} with {x} above {u} and {y} below {v}?",
        (
            "NOT A AND B AND C",
            "NOT ( A AND B ) AND C",
            "NOT ( A AND B AND C )",
            "NOT A AND NOT B AND C",
        ),
    ),
    (
        "Which wines of cultivar {a} with {y} below {v} have high {x}?",
        ("A AND C AND M", "A AND C", "A AND C AND MA", "A AND C AND MC"),
    ),
)
_COLUMNS = ("alcohol", "malic_acid", "magnesium", "flavanoids", "color_intensity", "hue", "proline")
_KEYWORDS = {"SELECT", "FROM", "AS", "WHERE", "AND", "OR", "NOT", "ORDER", "BY", "DESC", "LIMIT"}


@dataclass(frozen=True)
class Question:
    """An ambiguous question, its readings and the model that answers it."""

    text: str
    readings: tuple[str, ...]  # one query each, the most probable first
    grammar: Grammar

    def clusters(
        self, sqls: Sequence[str], database: str | Path
    ) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " r"]]:
        """Clusters of `sqls` by execution and those of the readings, in one numbering."""
        both = sql_clusters([*self.readings, *sqls], database)
        return both[len(self.readings) :], both[: len(self.readings)]


def ambiguous_sql(n: int = 30, *, seed: int = 0) -> list[Question]:
    """Questions of three kinds in turn, with 2, 3 and 4 readings in turn.

    Parameters
    ----------
    n
        Number of questions.
    seed
        Of the columns and thresholds, which are drawn until all readings return different rows.
    """
    if n < 1:
        raise InputError("n", found=n, expected="at least 1")
    rng = np.random.default_rng(seed)
    with closing(sqlite3.connect(":memory:")) as connection:
        _fill(connection)
        return [_question(i % 3, 2 + i // 3 % 3, connection, rng) for i in range(n)]


def wine_database(path: str | Path) -> Path:
    """Write scikit-learn's wine table, 178 rows of id, cultivar and 13 numbers, to a new file."""
    with closing(sqlite3.connect(path)) as connection, connection:
        _fill(connection)
    return Path(path)


def _fill(connection: sqlite3.Connection) -> None:
    data: Any = load_wine()
    columns = ["cultivar", *(name.split("/")[0] for name in data.feature_names)]
    connection.execute(f"CREATE TABLE wine (id INTEGER PRIMARY KEY, {', '.join(columns)})")
    connection.executemany(
        f"INSERT INTO wine ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        [(int(t), *row) for t, row in zip(data.target, data.data.tolist(), strict=True)],
    )


def _question(
    kind: int, n_readings: int, connection: sqlite3.Connection, rng: np.random.Generator
) -> Question:
    text, forms = _KINDS[kind]
    while True:
        x, y, other = rng.permutation(_COLUMNS)[:3].tolist()
        cultivar, level = int(rng.integers(3)), float(rng.uniform(0.4, 0.6))
        filters = _filters(connection, cultivar, x, y, other, level)
        written = [_written(form, filters) for form in forms[:n_readings]]
        readings = [f"SELECT id FROM wine WHERE {w[0][1].replace('@', '')}" for w in written]
        rows = [frozenset(connection.execute(reading)) for reading in readings]
        if len(set(rows)) == n_readings and all(rows):
            break
    spoken = text.format(
        a=cultivar,
        x=x.replace("_", " "),
        y=y.replace("_", " "),
        u=filters["B"][0].split()[-1],
        v=filters["C"][0].split()[-1],
    )
    return Question(spoken, tuple(readings), _grammar(written, x))


def _filters(
    connection: sqlite3.Connection, cultivar: int, x: str, y: str, other: str, level: float
) -> dict[str, list[str]]:
    """Each filter as it should be, then as it is written by mistake; @ marks the table's alias."""

    def at(column: str, q: float) -> str:
        values = [value for (value,) in connection.execute(f"SELECT {column} FROM wine")]
        return format(float(np.quantile(values, q)), ".4g")

    def threshold(column: str, operator: str) -> list[str]:
        flipped = {"<": ">", ">": "<"}[operator]
        return [
            f"@{column} {operator} {at(column, level)}",
            f"@{column} {flipped} {at(column, level)}",
            f"@{column} {operator} {at(column, level - 0.25)}",
            f"@{column} {operator} {at(column, level + 0.25)}",
            f"@{other} {operator} {at(other, level)}",
        ]

    def above_mean(where: str) -> list[str]:
        return [
            f"@{x} > ( SELECT AVG({x}) FROM wine {where})",
            f"@{x} < ( SELECT AVG({x}) FROM wine {where})",
            f"@{x} > ( SELECT MIN({x}) FROM wine {where})",
            f"@{x} > {at(x, level + 0.25)}",
            f"@{other} > ( SELECT AVG({other}) FROM wine {where})",
        ]

    others = [(cultivar + 1) % 3, (cultivar + 2) % 3, 3]
    return {
        "A": [f"@cultivar = {cultivar}", f"@cultivar <> {cultivar}"]
        + [f"@cultivar = {value}" for value in others],
        "B": threshold(x, ">"),
        "C": threshold(y, "<"),
        "M": above_mean(""),
        "MA": above_mean(f"WHERE cultivar = {cultivar} "),
        "MC": above_mean(f"WHERE {y} < {at(y, level)} "),
    }


def _written(form: str, filters: dict[str, list[str]]) -> list[tuple[float, str]]:
    """Conditions that the model writes for a reading: the right one, then one filter wrong."""
    words = form.split()
    right = [filters.get(word, [word])[0] for word in words]
    slips = [
        " ".join([*right[:place], wrong, *right[place + 1 :]])
        for place, word in enumerate(words)
        for wrong in filters.get(word, [])[1:]
    ]
    return [(1 - WRONG, " ".join(right)), *((WRONG / len(slips), slip) for slip in slips)]


def _grammar(written: list[list[tuple[float, str]]], x: str) -> Grammar:
    """The model: case and alias first, then reading and condition, then the query's end."""
    rules: dict[str, list[tuple[float, list[str]]]] = {"start": []}
    for p_case, lower in ((0.7, False), (0.3, True)):
        for p_alias, alias in ((0.7, ""), (0.3, "w.")):

            def symbols(text: str, lower: bool = lower, alias: str = alias) -> list[str]:
                words = text.replace("@", alias).split()
                cased = [w.lower() if lower and w in _KEYWORDS else w for w in words]
                return [f" {word}" for word in cased]

            name = f"{lower} {alias}"
            first, *head = symbols(f"SELECT @id FROM wine {'AS w' if alias else ''} WHERE")
            head = [first.strip(), *head]
            rules["start"].append(
                (p_case * p_alias, [*head, f"where {name}", f"order {name}", f"limit {name}"])
            )
            rules[f"where {name}"] = [
                (prior * p, symbols(condition))
                for prior, conditions in zip(PRIOR, written, strict=False)
                for p, condition in conditions
            ]
            rules[f"order {name}"] = [
                (0.5, []),
                (0.25, symbols("ORDER BY @id")),
                (0.15, symbols("ORDER BY @id DESC")),
                (0.1, symbols(f"ORDER BY @{x}")),
            ]
            rules[f"limit {name}"] = [
                (0.8 * 0.6, []),
                (0.8 * 0.4, [";"]),
                (0.2 * 0.6, symbols("LIMIT 1000")),
                (0.2 * 0.4, [*symbols("LIMIT 1000"), ";"]),
            ]
    return Grammar(rules)
