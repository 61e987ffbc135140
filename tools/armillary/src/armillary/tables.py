"""Tables in and out: CSV and Parquet with the place of every fault.

A column is either text or numbers, by what the caller says and never by a guess: the type of a
column cannot change because one cell did. The place of a fault is ``file:line:column``, where
column is the number of the field. In Parquet, which has no lines, it is the row, counted from 1.
"""

import csv
import difflib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from .errors import InputError, require
from .files import PathLike, atomic, excerpt, reading, text_lines
from .jsonl import jsonable

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingTypeStubs]

__all__ = ["parse_number", "read_table", "write_csv"]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_MISSING = frozenset({"", "na", "n/a", "nan", "none", "null", "<na>", "#n/a"})
_CHUNK = 10_000  # rows turned into arrays at a time: the text of a large file never stands whole


def read_table(
    path: PathLike,
    *,
    text: Sequence[str] = (),
    number: Sequence[str] | None = None,
    nan: Literal["allow", "refuse"] = "refuse",
    inf: Literal["allow", "refuse"] = "refuse",
    required: Sequence[str] = (),
) -> "pandas.DataFrame":
    """A CSV (``.csv``, ``.tsv``, also with ``.gz``) or Parquet (``.parquet``) file as a frame.

    Parameters
    ----------
    path
        The file. CSV is UTF-8 with column names in the first line; blank lines are skipped.
    text
        Columns kept as text, if the file has them; a missing value is the empty text.
    number
        Columns of numbers, which must be there; the others are text. By default every column
        that is not in `text` must hold numbers.
    nan
        Whether a number may be missing: an empty field, ``nan``, ``NA``, ``null`` and the like.
    inf
        Whether a number may be infinite.
    required
        Columns that must be there.

    Returns
    -------
    float64 for numbers, text for the rest, in the order of the file.

    Raises
    ------
    InputError
        With the place, if a row has another number of fields than the header, a cell of a number
        column holds no number, a name is missing, or stands twice; and if there are no rows.
    MissingExtra
        If pandas, or pyarrow for Parquet, is not installed.
    """
    pandas = require("pandas", extra="armillary[tables]")
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    kind = suffixes[-2] if suffixes[1:] and suffixes[-1] == ".gz" else "".join(suffixes[-1:])
    wanted = _Wanted(os.fspath(path), text, number, nan, inf, required)
    if kind in _DELIMITERS:
        columns = _read_csv(path, _DELIMITERS[kind], wanted)
    elif kind == ".parquet":
        columns = _read_parquet(path, wanted)
    else:
        raise InputError(
            "expected a table (.csv, .tsv or .parquet)",
            where=os.fspath(path),
            found=f"the suffix {kind!r}" if kind else "no suffix",
        )
    if not len(next(iter(columns.values()))):
        raise InputError("expected rows below the column names", where=wanted.file, found="none")
    return pandas.DataFrame(columns)


def parse_number(text: str, *, where: str, what: str) -> float:
    """The finite number that `text` holds.

    Parameters
    ----------
    text
        What the user wrote.
    where, what
        The place and the name of it, for the error.

    Raises
    ------
    InputError
        If it is no number, missing, or not finite.
    """
    value = _number(text)
    if value is None or not math.isfinite(value):
        raise InputError(what, where=where, expected="a finite number", found=_shown(text))
    return value


def write_csv(path: PathLike, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows as CSV, atomically, under the names of all their fields in order of appearance.

    A field that is missing, None or not finite is left empty; lists and mappings become JSON.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    with atomic(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        if names:
            writer.writerow(names)
        for row in rows:
            cells = (jsonable(row.get(name)) for name in names)
            writer.writerow(json.dumps(c) if isinstance(c, list | dict) else c for c in cells)


@dataclass(frozen=True)
class _Wanted:
    """What the caller wants of a file, and the errors when it is not so."""

    file: str
    text: Sequence[str]
    number: Sequence[str] | None
    nan: str
    inf: str
    required: Sequence[str]

    def is_number(self, name: str) -> bool:
        return name not in self.text if self.number is None else name in self.number

    def check_names(self, names: Sequence[str], where: str) -> None:
        for position, name in enumerate(names, start=1):
            if not name:
                raise InputError(
                    f"column {position} has no name",
                    where=where,
                    instead="name it, or write the table without its index",
                )
            if names.index(name) < position - 1:
                raise InputError(f"column {position}: the name {name!r} stands twice", where=where)
        for name in (*self.required, *(self.number or ())):
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                raise InputError(
                    f"no column {name!r}",
                    where=where,
                    found=", ".join(names[:10]) + ", ..." * (len(names) > 10),
                    instead=f"did you mean {near[0]!r}?" if near else None,
                )

    def numbers(
        self, cells: Sequence[str] | np.ndarray, name: str, position: int, lines: Sequence[int]
    ) -> Float[np.ndarray, " n"]:
        """One column's cells as numbers; `lines` says where each of them stands."""
        values = cells if isinstance(cells, np.ndarray) else _numbers(cells)

        def refusal(row: int, expected: str) -> InputError:
            where = f"{self.file}:{lines[row]}:{position}"
            found = _shown(str(cells[row]))
            return InputError(f"column {name!r}", where=where, expected=expected, found=found)

        if isinstance(values, list) and None in values:
            raise refusal(values.index(None), "a number")
        array = np.asarray(values, dtype=np.float64)
        if self.nan == "refuse" and (bad := np.isnan(array)).any():
            raise refusal(int(bad.argmax()), "a number")
        if self.inf == "refuse" and (bad := np.isinf(array)).any():
            raise refusal(int(bad.argmax()), "a finite number")
        return array


_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([ T][\d:.+Z-]*)?)?")


def _read_csv(path: PathLike, delimiter: str, wanted: _Wanted) -> dict[str, Any]:
    rows = _csv_rows(path, delimiter)
    header_line, header = next(rows, (1, None))
    if header is None:
        raise InputError("expected column names", where=wanted.file, found="an empty file")
    names = [name.strip() for name in header]
    if len(names) == 1 and (other := re.search(r"[;\t|,]", names[0])):
        raise InputError(
            f"expected fields separated by {delimiter!r}",
            where=f"{wanted.file}:{header_line}",
            found=f"{other.group()!r} in {excerpt(names[0])}",
        )
    dates = [_DATE.fullmatch(name) is not None for name in names]
    values = [date or _number(name) is not None for date, name in zip(dates, names, strict=True)]
    # Whole numbers may be names (years, channels), and so may dates (a column a month); measured
    # values never are, nor a date beside a number: that is a first row without names.
    if all(values) and (any("." in n for n in names) or any(dates) != all(dates)):
        raise InputError(
            "expected column names in the first line",
            where=f"{wanted.file}:{header_line}",
            found=excerpt(",".join(names)),
        )
    wanted.check_names(names, f"{wanted.file}:{header_line}")
    parts: list[list[Any]] = [[] for _ in names]
    while chunk := list(islice(rows, _CHUNK)):
        lines = [line for line, _ in chunk]
        for line, row in chunk:
            if len(row) != len(names):
                raise InputError(
                    f"expected {len(names)} fields", where=f"{wanted.file}:{line}", found=len(row)
                )
        for index, (name, cells) in enumerate(
            zip(names, zip(*(row for _, row in chunk), strict=True), strict=True)
        ):
            if wanted.is_number(name):
                parts[index].append(wanted.numbers(cells, name, index + 1, lines))
            else:
                parts[index].extend(cells)
    return {
        name: np.concatenate(part) if part and wanted.is_number(name) else part
        for name, part in zip(names, parts, strict=True)
    }


def _csv_rows(path: PathLike, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text_lines(path), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1  # where the row begins: a quoted field may hold line breaks
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                "expected CSV", where=f"{os.fspath(path)}:{line}", found=str(error)
            ) from error
        if len(row) > 1 or any(field.strip() for field in row):
            yield line, row


def _read_parquet(path: PathLike, wanted: _Wanted) -> dict[str, Any]:
    arrow = require("pyarrow", extra="armillary[parquet]")
    parquet = require("pyarrow.parquet", extra="armillary[parquet]")
    with reading(path), Path(path).open("rb") as file:
        try:
            table = parquet.read_table(file)
        except (arrow.ArrowException, OSError) as error:
            raise InputError(
                "expected a whole Parquet file", where=wanted.file, found=str(error)
            ) from error
    names: list[str] = table.column_names
    wanted.check_names(names, wanted.file)
    lines = range(1, table.num_rows + 1)
    columns: dict[str, Any] = {}
    for position, name in enumerate(names, start=1):
        column = table.column(position - 1)
        kinds = arrow.types
        if wanted.is_number(name) and (
            kinds.is_integer(column.type)
            or kinds.is_floating(column.type)
            or kinds.is_decimal(column.type)
            or kinds.is_boolean(column.type)
        ):
            cells = column.cast("float64", safe=False).to_numpy()
        else:
            cells = ["" if value is None else str(value) for value in column.to_pylist()]
        columns[name] = (
            wanted.numbers(cells, name, position, lines) if wanted.is_number(name) else cells
        )
    return columns


def _numbers(cells: Sequence[str]) -> list[float | None]:
    if "_" not in "".join(cells):  # the usual case, at half the time
        with suppress(ValueError):
            return list(map(float, cells))
    return [_number(cell) for cell in cells]


def _number(text: str) -> float | None:
    """The number that a cell holds, NaN if it is missing, None if it holds something else."""
    try:
        return None if "_" in text else float(text)  # float takes 1_000, which no file means
    except ValueError:
        return math.nan if text.strip().lower() in _MISSING else None


def _shown(cell: str) -> str:
    return excerpt(cell) if cell.strip() else "an empty field"
