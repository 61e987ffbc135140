"""Time stamps as files write them: read, told apart from numbers, and written the same way again.

Dates are ISO 8601, with or without a time of day and a zone, or one of the forms of `_FORMS`. A day
and a month that cannot be told apart are refused, never guessed. Numbers are years, sample numbers
or seconds; they must lie on a grid of equal steps, up to rounding.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from armillary import InputError

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:(?P<separator>[T ])\d\d:\d\d(?P<seconds>:\d\d(?P<fraction>\.\d+)?)?"
    r"(?P<zone> ?(?:Z|[+-]\d\d:?\d\d))?)?"
)
_FORMS = {
    r"\d{4}-\d\d": "%Y-%m",
    r"\d{4}/\d\d?/\d\d?": "%Y/%m/%d",
    r"\d{4}/\d\d?/\d\d? \d\d?:\d\d": "%Y/%m/%d %H:%M",
    r"\d\d?\.\d\d?\.\d{4}": "%d.%m.%Y",
    r"\d\d?\.\d\d?\.\d{4} \d\d?:\d\d": "%d.%m.%Y %H:%M",
}
_COMPACT, _QUARTER, _SLASHES = r"(18|19|20|21)\d{6}", r"\d{4}-?Q[1-4]", r"\d\d?/\d\d?/\d{4}"
_OFF_GRID = 0.25  # steps that a number may lie off its place on the grid


@dataclass(frozen=True, slots=True, eq=False)
class Stamps:
    """The time column of a file."""

    index: pd.Index
    write: Callable[[Any], list[Any]]  # an index of this kind, as the file would write it


def numbered(n: int) -> Stamps:
    """Rows without time stamps: their numbers, from 0."""
    return Stamps(pd.RangeIndex(n), lambda index: index.tolist())


def read_stamps(cells: Sequence[str], where: Callable[[int], str], name: str) -> Stamps:
    """Read a column of time stamps.

    Parameters
    ----------
    cells
        The texts.
    where
        Gives the place of a row in the file.
    name
        The column, for the error.

    Raises
    ------
    InputError
        With the place, if a cell holds no time stamp of the form that the first one has.
    """
    first = cells[0].strip()

    def refusal(row: int, expected: str, instead: str | None = None) -> InputError:
        found = repr(cells[row]) if cells[row].strip() else "an empty field"
        return InputError(
            f"column {name!r}", where=where(row), found=found, expected=expected, instead=instead
        )

    def parsed(form: str) -> pd.DatetimeIndex:
        times = pd.to_datetime(pd.Index(cells).str.strip(), format=form, errors="coerce")
        if times.isna().any():
            raise refusal(int(times.isna().argmax()), f"a time stamp of the form of {first!r}")
        return pd.DatetimeIndex(times)

    def dates(form: str) -> Stamps:
        return Stamps(parsed(form), lambda index: index.strftime(form).tolist())

    if (iso := _ISO.fullmatch(first)) is not None:
        return _iso_stamps(cells, iso, refusal)
    for pattern, form in _FORMS.items():
        if re.fullmatch(pattern, first):
            return dates(form)
    if re.fullmatch(_QUARTER, first):
        return _quarters(cells, first, refusal)
    if re.fullmatch(_SLASHES, first):
        return dates(_order_of_slashes(cells, refusal))
    if re.fullmatch(_COMPACT, first):
        times = pd.to_datetime(pd.Index(cells).str.strip(), format="%Y%m%d", errors="coerce")
        if not times.isna().any():
            return dates("%Y%m%d")
    return _numbers(cells, refusal)


def on_grid(times: Float[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " n"], float]:
    """Places of increasing numbers on a grid of equal steps from the first on, and the step.

    The places are negative where a number lies farther than a quarter of a step off its place, or
    shares it with the one before.
    """
    if len(times) < 2:
        return np.zeros(len(times), dtype=int), 1.0
    usual = float(np.median(np.diff(times)))
    # The usual step may be rounded: the whole length, counted in it, gives it more exactly.
    total = np.round(np.diff(times) / usual).sum()
    step = float(times[-1] - times[0]) / max(total, 1)
    exact = (times - times[0]) / step
    places = np.round(exact).astype(int)
    off = np.abs(exact - places) > _OFF_GRID
    off[1:] |= places[1:] <= places[:-1]
    return np.where(off, -1, places), step


def _iso_stamps(cells: Sequence[str], first: re.Match[str], refusal: Any) -> Stamps:
    zone = first["zone"]
    texts = pd.Index(cells).str.strip()
    times = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=zone is not None)
    clock = first["separator"] is not None
    odd = np.array([_is_odd(text, clock, zone is not None) for text in texts]) | times.isna()
    if odd.any():
        raise refusal(int(odd.argmax()), f"a time stamp of the form of {first.string!r}")
    times = pd.DatetimeIndex(times)
    if zone is not None:  # one offset is kept; several (summer time) are written in UTC
        offsets = {text[-6:].lstrip("0123456789.:") for text in texts}
        if len(offsets) == 1:
            times = times.tz_convert(pd.Timestamp(texts[0]).tz)
    if not clock:
        return Stamps(times, lambda index: index.strftime("%Y-%m-%d").tolist())
    fine = any("." in text for text in texts)
    unit = "auto" if fine else "seconds" if first["seconds"] else "minutes"
    return Stamps(
        times, lambda index: [t.isoformat(first["separator"], timespec=unit) for t in index]
    )


def _is_odd(text: str, clock: bool, zone: bool) -> bool:
    found = _ISO.fullmatch(text)
    return (
        found is None
        or (found["separator"] is not None) != clock
        or (found["zone"] is not None) != zone
    )


def _quarters(cells: Sequence[str], first: str, refusal: Any) -> Stamps:
    for row, cell in enumerate(cells):
        if not re.fullmatch(_QUARTER, cell.strip()):
            raise refusal(row, f"a quarter of the form of {first!r}")
    form = "%Y-Q%q" if "-" in first else "%YQ%q"
    index = pd.PeriodIndex([cell.strip().replace("-", "") for cell in cells], freq="Q")
    return Stamps(index, lambda index: [period.strftime(form) for period in index])


def _order_of_slashes(cells: Sequence[str], refusal: Any) -> str:
    """Day or month first, whichever the column allows."""
    parts = []
    for row, cell in enumerate(cells):
        if not re.fullmatch(_SLASHES, cell.strip()):
            raise refusal(row, f"a date of the form of {cells[0]!r}")
        parts.append([int(part) for part in cell.strip().split("/")[:2]])
    first, second = np.max(parts, axis=0)
    if first <= 12 and second <= 12:
        raise refusal(0, "a date whose day and month can be told apart", "write YYYY-MM-DD")
    return "%d/%m/%Y" if first > 12 else "%m/%d/%Y"


def _numbers(cells: Sequence[str], refusal: Any) -> Stamps:
    """Whole numbers as they are; others as places on their grid."""
    try:
        times = np.array([float(cell) for cell in cells])
    except ValueError:
        row = next(row for row, cell in enumerate(cells) if not _is_number(cell))
        raise refusal(row, "a time stamp (YYYY-MM-DD, YYYY-MM-DD HH:MM) or a number") from None
    if not np.isfinite(times).all():
        raise refusal(int((~np.isfinite(times)).argmax()), "a finite number")
    if (times == np.round(times)).all() and np.abs(times).max() < 2**53:
        return Stamps(pd.Index(times.astype(np.int64)), lambda index: index.tolist())
    return Stamps(pd.Index(times), lambda index: index.tolist())


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
