"""Series from files: wide or long tables in CSV or Parquet, arrays in NPY or NPZ.

A *wide* table has one column for each variable; its columns together are one series, the
coordinates of one system, or with `each` a series of their own. A *long* one has a column that
names the series of each row. Rows stand in time order, the series of a long table in any. Stamps
that are missing on a regular grid become rows of NaN, so that a gap is never taken for a step.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from armillary import InputError, require
from armillary.files import read_array, read_arrays, read_table

from ._rows import NO_TIME, Lines, Recording, csv_lines, is_parquet, recording
from .stamps import numbered, read_stamps

__all__ = ["Columns", "Recording", "Table", "column_names", "read_recordings"]

ID, TIME = "unique_id", "ds"  # the names that Nixtla's libraries use
TIME_NAMES = ("ds", "date", "datetime", "time", "timestamp", "t", "year", "month")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table hold what; None: found by name.

    Parameters
    ----------
    target
        The variables. None: every other column.
    id
        The column that names the series. None: ``unique_id`` if there is one.
    time
        The column of time stamps; "none": rows are equally spaced. None: ``ds``, or another usual
        name, or a first column that holds no numbers.
    each
        Whether each variable of a wide table is a series of its own.
    series
        The one series to read of several.
    """

    target: tuple[str, ...] | None = None
    id: str | None = None
    time: str | None = None
    each: bool = False
    series: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """The series of a file, and the names of their variables."""

    path: str
    recordings: Sequence[Recording]
    targets: tuple[str, ...]

    def only(self) -> Recording:
        """The one series; refuses several."""
        if len(self.recordings) > 1:
            shown = ", ".join(each.name for each in self.recordings[:3])
            raise InputError(
                "expected one series",
                where=self.path,
                found=f"{len(self.recordings)} ({shown}, ...)",
                instead="choose one with --series",
            )
        return self.recordings[0]


def read_recordings(path: str | Path, columns: Columns = Columns()) -> Table:
    """Read the series of a file.

    Parameters
    ----------
    path
        A table (``.csv``, ``.tsv``, ``.parquet``), or an array of shape (T,) or (T, d) in an
        ``.npy`` file, which is mapped into memory, or alone or as ``trajectory`` in an ``.npz``.
    columns
        Which columns hold what.

    Raises
    ------
    InputError
        With the place: if a column is not there, a cell holds no number, stamps are doubled, out
        of order or on no regular grid.
    """
    if Path(path).suffix in (".npy", ".npz"):
        return _read_array(path, columns)
    names, first = _peek(path)
    ident = columns.id or (ID if ID in names else None)
    time = _time_column(names, first, columns, ident)
    others = tuple(name for name in names if name not in (ident, time))
    targets = columns.target or others
    used = [name for name in (ident, time, *targets) if name is not None]
    if not targets:
        raise InputError(
            "expected columns of numbers",
            where=f"{path}:1",
            found=", ".join(names) or "none",
            instead="separate the columns by commas" if set(";\t") & set("".join(names)) else None,
        )
    if len(set(used)) < len(used):
        raise InputError("a column is used twice", where=f"{path}:1", found=", ".join(used))
    frame = read_table(path, number=targets, nan="allow", required=used)
    where = Lines(path)
    stamps = numbered(len(frame)) if time is None else read_stamps(list(frame[time]), where, time)
    parts = _parts(frame, ident, columns, targets, Path(path).stem, path)
    grids: dict[bytes, tuple[pd.Index, int]] = {}
    found = [
        recording(name, frame[list(wanted)].iloc[rows], stamps, rows, time, where, grids)
        for name, rows, wanted in parts
    ]
    return Table(os.fspath(path), tuple(found), ("y",) if columns.each else targets)


def column_names(path: str | Path) -> list[str]:
    """The names of a table's columns."""
    return _peek(path)[0]


def _peek(path: str | Path) -> tuple[list[str], list[str]]:
    """Column names, and the first row, in which an empty text stands for a number."""
    if not is_parquet(path):
        if not {".csv", ".tsv"} & set(Path(path).suffixes):
            read_table(path)  # says what is wrong
        head = list(islice(csv_lines(path), 2))
        if len(head) < 2:
            read_table(path, number=())  # no names, or no rows
        return [name.strip() for name in head[0][1]], head[1][1]
    parquet = require("pyarrow.parquet", extra="armillary[parquet]")
    arrow = require("pyarrow", extra="armillary[parquet]")
    types = arrow.types
    try:
        schema = parquet.read_schema(path)
    except (OSError, arrow.ArrowException):
        read_table(path, number=())  # says what is wrong
        raise
    numeric = [types.is_integer(f.type) or types.is_floating(f.type) for f in schema]
    return list(schema.names), ["0" if number else "text" for number in numeric]


def _time_column(
    names: list[str], first: list[str], columns: Columns, ident: str | None
) -> str | None:
    if columns.time is not None:
        return None if columns.time == NO_TIME else columns.time
    rest = [name for name in names if name != ident and name not in (columns.target or ())]
    for name in (TIME, *rest[:1]):
        if name in rest and name.lower() in TIME_NAMES:
            return name
    if rest and rest[0] in names[: len(first)]:
        cell = first[names.index(rest[0])].strip()
        try:
            float(cell or "0")
        except ValueError:
            return rest[0]
    return None


def _parts(
    frame: pd.DataFrame,
    ident: str | None,
    columns: Columns,
    targets: tuple[str, ...],
    stem: str,
    path: str | Path,
) -> list[tuple[str, np.ndarray, tuple[str, ...]]]:
    """Name, rows and variables of each series, in the order in which they begin."""
    every = np.arange(len(frame))
    if ident is not None:
        if columns.each:
            raise InputError("--each is for wide tables", found=f"a column {ident!r} of series")
        groups = frame.groupby(ident, sort=False).indices
        parts = [(str(name), np.sort(rows), targets) for name, rows in groups.items()]
    elif columns.each:
        parts = [(name, every, (name,)) for name in targets]
    else:
        parts = [(stem, every, targets)]
    if columns.series is not None:
        known = [part[0] for part in parts]
        if columns.series not in known:
            raise InputError(
                f"no series {columns.series!r}",
                where=os.fspath(path),
                found=", ".join(known[:5]) + (", ..." if len(known) > 5 else ""),
            )
        parts = [part for part in parts if part[0] == columns.series]
    return parts


def _read_array(path: str | Path, columns: Columns) -> Table:
    if Path(path).suffix == ".npy":
        values = read_array(path, mmap=True)
    else:
        arrays = read_arrays(path)
        name = "trajectory" if "trajectory" in arrays else next(iter(arrays), "")
        if not arrays or (len(arrays) > 1 and name != "trajectory"):
            raise InputError(
                "expected one array, or one named 'trajectory'",
                where=os.fspath(path),
                found=", ".join(arrays) or "none",
            )
        values = arrays[name]
    if values.ndim not in (1, 2) or values.dtype.kind not in "iuf" or not values.size:
        raise InputError(
            "expected numbers of shape (time,) or (time, coordinates)",
            where=os.fspath(path),
            found=f"{values.dtype} of shape {values.shape}",
        )
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    bad = np.argwhere(np.isinf(values))
    if len(bad):
        raise InputError(
            "expected finite numbers",
            where=f"{path}: row {bad[0][0]}",
            found=str(values[tuple(bad[0])]),
        )
    stem = Path(path).stem
    write: Callable[[pd.Index], list[Any]] = lambda index: index.tolist()
    if values.ndim == 1:
        y: Any = pd.Series(values, name="y")
        return Table(os.fspath(path), (Recording(stem, y, 0, write, stamped=False),), ("y",))
    names = [f"x{i}" for i in range(values.shape[1])]
    y = pd.DataFrame(values, columns=names)
    targets: Sequence[str] = columns.target or names
    return Table(
        os.fspath(path),
        (Recording(stem, y[list(targets)], 0, write, stamped=False),),
        tuple(targets),
    )
