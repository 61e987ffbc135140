"""Rows of a file as one series on a regular grid of times, every fault with its two lines."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from armillary import InputError
from armillary.files import text_lines

from ._frames import read_series as on_regular_grid
from .stamps import Stamps, on_grid

NO_TIME = "none"  # for --time: the rows are equally spaced
EVENLY = f"resample the series, or take its rows as equally spaced with --time {NO_TIME}"


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One series of a file, on a regular grid of times."""

    name: str
    y: Any  # Series for one variable, DataFrame for several
    missing: int  # rows added for time stamps that the file lacks
    write: Callable[[Any], list[Any]]  # stamps as the file writes them
    stamped: bool = True  # the file has time stamps

    def stamps(self) -> list[Any]:
        """The time stamps, as the file writes them."""
        return self.write(self.y.index)

    def times(self) -> pd.Index:
        """The time stamps in a form that compares with those of another file."""
        dates = isinstance(self.y.index, (pd.DatetimeIndex, pd.PeriodIndex))
        return self.y.index if dates else pd.Index(self.stamps())

    @property
    def incomplete(self) -> int:
        """Rows with a missing value, those of missing stamps included."""
        gaps = np.isnan(self.y.to_numpy())
        return int(gaps.sum() if gaps.ndim == 1 else gaps.any(axis=1).sum())


class Lines:
    """The place of a row in a file: its line in CSV, looked for only when asked."""

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def __call__(self, row: int) -> str:
        return f"{self.path}:{self.line(row)}"

    def both(self, row: Any, other: Any) -> str:
        """The places of two rows."""
        return f"{self(int(row))} and {self.line(int(other))}"

    def line(self, row: int) -> int:
        """The line of a row, counted from 1."""
        if is_parquet(self.path):
            return row + 1
        line = next(islice(csv_lines(self.path), row + 1, None))
        return line[0]


def is_parquet(path: str | Path) -> bool:
    return Path(path).suffix == ".parquet"


def csv_lines(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each row that is not blank, the header among them."""
    reader = csv.reader(text_lines(path), delimiter="\t" if ".tsv" in Path(path).suffixes else ",")
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        if any(field.strip() for field in row):
            yield line, row


def recording(
    name: str,
    frame: pd.DataFrame,
    stamps: Stamps,
    rows: np.ndarray,
    time: str | None,
    where: Lines,
    grids: dict[bytes, tuple[pd.Index, int]],
) -> Recording:
    index, write = stamps.index[rows], stamps.write
    _check_order(index, write, rows, time, where)
    if index.dtype.kind == "f":
        index, write = _as_places(index, rows, time, where)
    values = frame.to_numpy(dtype=float)
    key = _numbers(index).tobytes()
    if key not in grids:
        grids[key] = _grid(index, rows, write, time, where)
    grid, missing = grids[key]
    filled = np.full((len(grid), values.shape[1]), np.nan)
    filled[grid.get_indexer(index) if missing else slice(None)] = values
    y: Any = pd.DataFrame(filled, index=grid, columns=frame.columns)
    if values.shape[1] == 1:
        y = y.iloc[:, 0]
    return Recording(name, y, missing, write, stamped=time is not None)


def _grid(
    index: pd.Index, rows: np.ndarray, write: Any, time: str | None, where: Lines
) -> tuple[pd.Index, int]:
    """The regular index that holds `index`, and how many stamps it adds."""
    steps = np.diff(_numbers(index))
    try:
        if (
            index.dtype.kind == "i"
            and len(steps)
            and sum(steps // np.gcd.reduce(steps)) > 2 * len(index)
        ):
            raise InputError("more than half of the stamps missing")
        form = on_regular_grid(pd.Series(0.0, index=index))[1]
    except InputError as error:
        kinds, counts = np.unique(steps, return_counts=True)
        at = int((steps != kinds[counts.argmax()]).argmax())
        shown = write(index[at : at + 2])
        raise InputError(
            f"column {time!r}",
            where=where.both(rows[at], rows[at + 1]),
            found=f"{shown[0]}, then {shown[1]}: no regular grid holds them and the other stamps "
            "without being mostly gaps",
            expected="equally spaced time stamps",
            instead=EVENLY,
        ) from error
    return form.index, len(form.index) - len(index)


def _numbers(index: pd.Index) -> np.ndarray:
    dated = isinstance(index, (pd.DatetimeIndex, pd.PeriodIndex))
    return index.asi8 if dated else index.to_numpy()


def _check_order(
    index: pd.Index, write: Any, rows: np.ndarray, time: str | None, where: Lines
) -> None:
    wrong = np.flatnonzero(index[1:] <= index[:-1])
    if len(wrong):
        at = int(wrong[0])
        before, after = write(index[at : at + 2])
        double = index[at] == index[at + 1]
        raise InputError(
            f"column {time!r}",
            where=where.both(rows[at], rows[at + 1]),
            found=f"{before} twice" if double else f"{after} after {before}",
            expected="increasing time stamps",
            instead="aggregate the doubled rows" if double else "sort the rows by time",
        )


def _as_places(
    index: pd.Index, rows: np.ndarray, time: str | None, where: Lines
) -> tuple[pd.Index, Callable[[pd.Index], list[Any]]]:
    """Times that are not whole numbers as places on their grid."""
    times = index.to_numpy()
    places, step = on_grid(times)
    if (places < 0).any():
        at = max(int((places < 0).argmax()), 1)
        raise InputError(
            f"column {time!r}",
            where=where.both(rows[at - 1], rows[at]),
            found=f"{times[at - 1]:g}, then {times[at]:g}",
            expected=f"equal steps (here of {step:g})",
            instead=EVENLY,
        )
    begin = float(times[0])
    return pd.Index(places), lambda ahead: [float(f"{begin + step * i:.12g}") for i in ahead]
