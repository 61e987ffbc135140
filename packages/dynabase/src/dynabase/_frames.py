"""Series as callers hold them: arrays, pandas Series and DataFrames, on a regular grid of times.

What comes in as one kind goes out as the same kind, its index continued by its own frequency.
Missing time stamps in a regular grid become rows of NaN, so that a gap is never taken for a step.
pandas is not imported here: who passes its objects has imported it.
"""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from armillary import InputError

from . import _checks

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """How the caller's series looked, to give forecasts the same look."""

    kind: str  # "array", "series", "frame"
    flat: bool  # one-dimensional
    columns: Any = None
    name: Any = None
    index: Any = None  # the regular pandas index, or None

    def dress(self, values: Float[np.ndarray, "n d"], index: Any = None) -> Any:
        """Values in the caller's kind, with `index` if that has one."""
        if self.kind == "array":
            return values[:, 0] if self.flat else values
        import pandas as pd

        if self.kind == "series":
            return pd.Series(values[:, 0], index=index, name=self.name)
        return pd.DataFrame(values, index=index, columns=self.columns)

    def ahead(self, n: int) -> Any:
        """The index of the next `n` steps, or None."""
        return None if self.index is None else extended(self.index, n)[len(self.index) :]

    def time(self, row: int) -> Any:
        """Time stamp of a row, or its number."""
        return row if self.index is None else self.index[row]


def read_series(y: Any, name: str = "y") -> tuple[Float[np.ndarray, "T d"], Form]:
    """A caller's series as rows on a regular grid, and its form."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(y, (pandas.Series, pandas.DataFrame)):
        return _checks.as_rows(y, name), Form("array", np.ndim(y) == 1)
    if isinstance(y, pandas.Series):
        values, form = _numbers(y, name)[:, None], {"kind": "series", "flat": True, "name": y.name}
    else:
        columns = [
            _numbers(y.iloc[:, at], f"{name}[{column!r}]") for at, column in enumerate(y.columns)
        ]
        values = np.column_stack(columns) if columns else np.empty((len(y), 0))
        form = {"kind": "frame", "flat": False, "columns": y.columns}
    values = _checks.as_rows(values, name)
    if not len(values):
        return values, Form(**form, index=y.index)
    grid = regular(y.index)
    if len(grid) > len(values):
        rows = np.full((len(grid), values.shape[1]), np.nan)
        rows[grid.get_indexer(y.index)] = values
        values = rows
    return values, Form(**form, index=grid)


def regular(index: "pd.Index") -> "pd.Index":
    """The grid of equal steps that an index lies on; without a frequency, row numbers.

    Raises
    ------
    InputError
        If stamps are doubled, out of order, missing, or on no regular grid.
    """
    import pandas as pd

    ordered = isinstance(index, (pd.DatetimeIndex, pd.PeriodIndex, pd.TimedeltaIndex))
    if not (ordered or pd.api.types.is_integer_dtype(index.dtype)):
        return pd.RangeIndex(len(index))
    _check_order(index)
    if len(index) < 2:
        return index
    if isinstance(index, pd.PeriodIndex):
        _check_length(int(index.asi8[-1] - index.asi8[0]) + 1, len(index))
        return pd.period_range(index[0], index[-1], freq=index.freq, name=index.name)
    if isinstance(index, pd.DatetimeIndex):
        frequency = index.freq or _frequency(index)
        return pd.date_range(index[0], index[-1], freq=frequency, name=index.name)
    if isinstance(index, pd.TimedeltaIndex):
        delta = pd.Timedelta(_common_step(index.asi8), unit=index.unit)
        _check_length((index[-1] - index[0]) // delta + 1, len(index))
        return pd.timedelta_range(index[0], index[-1], freq=delta, name=index.name)
    numbers = index.to_numpy()
    step = _common_step(numbers)
    _check_length(int(numbers[-1] - numbers[0]) // step + 1, len(index))
    return pd.RangeIndex(int(numbers[0]), int(numbers[-1]) + 1, step, name=index.name)


def extended(index: "pd.Index", n: int) -> "pd.Index":
    """A regular index with its next `n` stamps, of the same kind."""
    import pandas as pd

    total = len(index) + n
    if isinstance(index, pd.RangeIndex):
        begin = index.start
        return pd.RangeIndex(begin, begin + total * index.step, index.step, name=index.name)
    if len(index) and isinstance(index, pd.PeriodIndex):
        return pd.period_range(index[0], periods=total, freq=index.freq, name=index.name)
    if isinstance(index, pd.DatetimeIndex) and index.freq is not None:
        return pd.date_range(index[0], periods=total, freq=index.freq, name=index.name)
    if isinstance(index, pd.TimedeltaIndex) and index.freq is not None:
        return pd.timedelta_range(index[0], periods=total, freq=index.freq, name=index.name)
    raise InputError(
        "index",
        found=f"{len(index)} time stamp(s)",
        expected="enough of them to infer a frequency",
        instead="set the index's freq",
    )


def appended(index: "pd.Index", new: "pd.Index") -> "tuple[pd.Index, np.ndarray]":
    """A regular index grown to hold `new`, and the rows of `new` among those added."""
    _check_order(new)
    n = len(new)
    grown = extended(index, n)
    while n and grown[-1] < new[-1]:
        n *= 2
        grown = extended(index, n)
    added = grown[len(index) :]
    rows = added.get_indexer(new)
    if (rows < 0).any():
        raise InputError(
            "y_new",
            found=f"the time stamp {new[int(np.argmin(rows))]}",
            expected=f"stamps that continue the series from {added[0]} on",
        )
    return grown[: len(index) + int(rows[-1]) + 1], rows


def _numbers(column: "pd.Series", name: str) -> Float[np.ndarray, " T"]:
    try:
        return column.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(
            name, found=f"values of type {column.dtype}", expected="numbers"
        ) from error


def _check_order(index: "pd.Index") -> None:
    missing = np.flatnonzero(index.isna())
    if len(missing):
        raise InputError("index", where=f"row {missing[0]}", found="no time stamp", expected="one")
    wrong = np.flatnonzero(index[1:] <= index[:-1])
    if len(wrong):
        at = int(wrong[0])
        same = index[at] == index[at + 1]
        raise InputError(
            "index",
            where=f"rows {at} and {at + 1}",
            found=f"{index[at]} twice" if same else f"{index[at + 1]} after {index[at]}",
            expected="increasing time stamps",
            instead="aggregate the doubled rows" if same else "sort the series by time",
        )


def _common_step(numbers: np.ndarray) -> int:
    return int(np.gcd.reduce(np.diff(numbers)))


def _frequency(index: "pd.DatetimeIndex") -> Any:
    """The frequency whose grid holds all the stamps with the fewest gaps."""
    import pandas as pd

    from ._calendar import calendar_of

    if len(index) >= 3 and (whole := pd.infer_freq(index)) is not None:
        return whole
    offset, length = calendar_of(index)
    _check_length(length, len(index))
    return offset


def _check_length(grid: int, stamps: int) -> None:
    """Refuse a grid that the stamps fill less than half: no step of it is theirs."""
    if grid > 2 * stamps:
        raise InputError(
            "index",
            found="irregular time stamps, or more than half of them missing",
            expected="a regular grid",
            instead="resample the series",
        )
