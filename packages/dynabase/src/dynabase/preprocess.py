"""What is taken off a series before it is forecast, and put back exactly afterwards.

In order: the logarithm, the trend or season, the scale. Nothing is done unless it was asked for,
but for the scale. Whatever is fitted sees the finite values of the context alone.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from armillary import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A straight line in time for each coordinate."""

    intercept: Float[np.ndarray, " d"]
    slope: Float[np.ndarray, " d"]

    @classmethod
    def fit(cls, y: Float[np.ndarray, "T d"]) -> "Line":
        """The line of least squares through the finite values of `y`."""
        time = np.arange(len(y), dtype=float)
        intercept, slope = np.zeros(y.shape[1]), np.zeros(y.shape[1])
        for at, values in enumerate(y.T):
            seen = np.isfinite(values)
            centre = time[seen] - time[seen].mean()
            square = np.sum(centre**2)
            slope[at] = np.sum(centre * values[seen]) / square if square > 0 else 0.0
            intercept[at] = values[seen].mean() - slope[at] * time[seen].mean()
        return cls(intercept, slope)

    def at(self, start: int, n: int) -> Float[np.ndarray, "n d"]:
        """The line at `n` times from `start` on."""
        return self.intercept + self.slope * np.arange(start, start + n)[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class Season:
    """The mean of each phase of a period, for each coordinate."""

    profile: Float[np.ndarray, "P d"]

    @classmethod
    def fit(cls, y: Float[np.ndarray, "T d"], period: int) -> "Season":
        """The mean profile of the finite values of `y`."""
        profile = np.empty((period, y.shape[1]))
        for phase in range(period):
            values = y[phase::period]
            seen = np.isfinite(values)
            count = seen.sum(axis=0)
            if (count == 0).any():
                raise InputError(
                    "detrend",
                    found=f"'seasonal:{period}' for {len(y)} rows, none of them in phase {phase}",
                    expected="a value in every phase of the period",
                )
            profile[phase] = np.where(seen, values, 0.0).sum(axis=0) / count
        return cls(profile)

    def at(self, start: int, n: int) -> Float[np.ndarray, "n d"]:
        """The profile at `n` times from `start` on."""
        return self.profile[np.arange(start, start + n) % len(self.profile)]


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """The way from a series to what the map sees, and back.

    Times are counted in rows of the series, from the context's first.
    """

    log: bool
    trend: Line | Season | None
    differenced: bool
    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]

    @classmethod
    def fit(
        cls, y: Float[np.ndarray, "T d"], *, detrend: str | None, log: bool, standardize: bool
    ) -> "Preparation":
        """Fit trend and scale on a context.

        Raises
        ------
        InputError
            If `log` meets a value that is not positive, or `detrend` is none of None, "linear",
            "diff", "seasonal:P".
        """
        period = season_period(detrend)
        trend: Line | Season | None = None
        values = logarithm(y) if log else y
        if detrend == "linear":
            trend = Line.fit(values)
        elif period is not None:
            trend = Season.fit(values, period)
        plain = cls(log, trend, detrend == "diff", np.zeros(y.shape[1]), np.ones(y.shape[1]))
        if not standardize:
            return plain
        mean, scale = location_and_scale(plain.apply(y))
        return cls(log, trend, plain.differenced, mean, scale)

    @property
    def lost(self) -> int:
        """Rows that `apply` uses up at the beginning."""
        return int(self.differenced)

    def apply(self, y: Float[np.ndarray, "T d"], start: int = 0) -> Float[np.ndarray, "T2 d"]:
        """The series as the map sees it; `start` is the time of its first row."""
        values = logarithm(y) if self.log else y
        if self.trend is not None:
            values = values - self.trend.at(start, len(y))
        if self.differenced:
            values = np.diff(values, axis=0)
        return (values - self.mean) / self.scale

    def undo(
        self, path: Float[np.ndarray, "n b d"], start: int, last: Float[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "n b d"]:
        """A forecast in the series' units, or their logarithm: see `finish`.

        `start` is the time of its first row, `last` the observation before it, in the series' own
        units.
        """
        values = path * self.scale + self.mean
        if self.differenced:
            values = (np.log(last) if self.log else last) + np.cumsum(values, axis=0)
        if self.trend is not None:
            values = values + self.trend.at(start, len(path))[:, None]
        return values

    def finish(self, values: np.ndarray) -> np.ndarray:
        """Undo the logarithm, if there was one."""
        return np.exp(values) if self.log else values


def location_and_scale(
    y: Float[np.ndarray, "T d"],
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Mean and population standard deviation of each coordinate; 1 for a constant one."""
    seen = np.isfinite(y)
    count = np.maximum(seen.sum(axis=0), 1)
    filled = np.where(seen, y, 0.0)
    mean = filled.sum(axis=0) / count
    square = np.where(seen, (filled - mean) ** 2, 0.0).sum(axis=0) / count
    low = np.where(seen, y, np.inf).min(axis=0)
    constant = low >= np.where(seen, y, -np.inf).max(axis=0)
    # The mean of equal numbers is not always that number: a constant is forecast as itself.
    mean = np.where(constant & seen.any(axis=0), low, mean)
    deviation = np.sqrt(square)
    return mean, np.where(constant | (deviation == 0), 1.0, deviation)


def logarithm(y: Float[np.ndarray, "T d"]) -> Float[np.ndarray, "T d"]:
    """Natural logarithm of positive data; NaN stays."""
    bad = np.argwhere(y <= 0)
    if len(bad):
        row, column = bad[0]
        raise InputError(
            "y",
            where=f"row {row}, coordinate {column}",
            found=f"{y[row, column]:g}",
            expected="positive values with log=True",
            instead="log=False, or shift the data",
        )
    return np.log(y)


def outside_earlier_range(y: Float[np.ndarray, "T d"]) -> list[int]:
    """Coordinates whose last value lies outside all that came before it."""
    if len(y) < 2:
        return []
    before, last = y[:-1], y[-1]
    seen = np.isfinite(before)
    low = np.where(seen, before, np.inf).min(axis=0)
    high = np.where(seen, before, -np.inf).max(axis=0)
    return np.flatnonzero(seen.any(axis=0) & ((last < low) | (last > high))).tolist()


def season_period(detrend: str | None) -> int | None:
    """The P of "seasonal:P", else None; refuses what is no name of a trend."""
    if detrend in (None, "linear", "diff"):
        return None
    if isinstance(detrend, str) and detrend.startswith("seasonal:"):
        period = detrend.removeprefix("seasonal:")
        if period.isdecimal() and int(period) >= 2:
            return int(period)
    raise InputError(
        "detrend",
        found=repr(detrend),
        expected="None, 'linear', 'diff' or 'seasonal:P' with a period P >= 2",
    )
