"""The calendar that a series of dates keeps: the one whose grid holds all of them with fewest gaps.

Tried are months (their ends, their beginnings, their ends or beginnings on business days, a day of
the month), equal steps, days and weeks of the wall clock, and business days. Where two calendars
hold the dates equally well months come first: two month ends 29 days apart are two month ends.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from pandas.tseries import offsets

DAY = 86_400_000_000  # microseconds
EVERY_MONTH = 28  # no later day of the month is in all of them


def calendar_of(index: pd.DatetimeIndex) -> tuple[Any, int]:
    """The calendar of increasing dates, two at least, and the length of its grid.

    None, and a length beyond that of any use, where not even half of the grid would be there.
    """
    best, fewest = None, 2 * len(index) + 1
    for offset, length in _candidates(index):
        if length < fewest:
            best, fewest = offset, length
    return best, fewest


# pandas makes the attributes of its indexes at run time, out of sight of a type checker.
def _candidates(index: Any) -> Iterator[tuple[Any, int]]:
    wall = index.tz_localize(None).as_unit("us")
    dates = wall.normalize()
    at_one_time = len((wall - dates).unique()) == 1
    if at_one_time:
        yield from _months(dates)
    absolute = index.as_unit("us").asi8
    step = int(np.gcd.reduce(np.diff(absolute)))
    days = np.diff(wall.asi8)
    if at_one_time and (whole := int(np.gcd.reduce(days))) % DAY == 0:
        weekly = whole == 7 * DAY
        yield (
            offsets.Week(weekday=int(wall[0].weekday())) if weekly else offsets.Day(whole // DAY),
            int(days.sum()) // whole + 1,
        )
    else:
        yield offsets.Micro(step), int(absolute[-1] - absolute[0]) // step + 1
    if at_one_time and (dates.dayofweek < 5).all():
        ends = dates.to_numpy().astype("datetime64[D]")
        yield offsets.BDay(), int(np.busday_count(ends[0], ends[-1])) + 1


def _months(dates: Any) -> Iterator[tuple[Any, int]]:
    number = np.asarray(12 * dates.year + dates.month)
    apart = np.diff(number)
    if (apart < 1).any():
        return
    k = int(np.gcd.reduce(apart))
    length = int(apart.sum()) // k + 1
    kinds = (
        (dates.is_month_end.all(), offsets.MonthEnd(k)),
        (dates.is_month_start.all(), offsets.MonthBegin(k)),
        (dates.day.max() <= EVERY_MONTH and dates.day.nunique() == 1, pd.DateOffset(months=k)),
        (all(map(offsets.BMonthEnd().is_on_offset, dates)), offsets.BMonthEnd(k)),
        (all(map(offsets.BMonthBegin().is_on_offset, dates)), offsets.BMonthBegin(k)),
    )
    for holds, offset in kinds:
        if holds:
            yield offset, length
            return
