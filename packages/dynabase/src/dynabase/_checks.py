"""What the caller gave, checked once at the door; a message names the argument and the way out."""

import math
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from armillary import InputError

HUGE = 1e150  # beyond it sums of squares overflow, and no distance is left


def as_rows(
    values: npt.ArrayLike, name: str, *, width: int | None = None
) -> Float[np.ndarray, "T d"]:
    """A two-dimensional float array without infinities; one-dimensional input becomes a column."""
    try:
        rows = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(name, found=_short(values), expected="numbers") from error
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InputError(
            name,
            found=f"an array of shape {np.shape(values)}",
            expected="one series: shape (time,) or (time, coordinates)",
        )
    if width is not None and rows.shape[1] != width:
        raise InputError(
            name,
            found=f"{rows.shape[1]} coordinate(s)",
            expected=f"{width}, as the context has",
        )
    infinite = np.argwhere(np.isinf(rows))
    huge = np.argwhere(np.abs(rows) > HUGE)
    if len(huge) and not len(infinite):
        row, column = huge[0]
        raise InputError(
            name,
            where=f"row {row}, coordinate {column}",
            found=str(rows[row, column]),
            expected=f"numbers up to {HUGE:g} in size, whose squares can be told",
        )
    if len(infinite):
        row, column = infinite[0]
        raise InputError(
            name,
            where=f"row {row}, coordinate {column}",
            found=str(rows[row, column]),
            expected="finite numbers (NaN marks a missing value)",
        )
    return rows


def whole(value: object, name: str, at_least: int) -> int:
    """A whole number not below `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < at_least:
        raise InputError(name, found=_short(value), expected=f"a whole number >= {at_least}")
    return int(value)


def real(value: object, name: str, at_least: float = -math.inf) -> float:
    """A finite number not below `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InputError(name, found=_short(value), expected="a finite number")
    if value < at_least:
        raise InputError(name, found=_short(value), expected=f"a number >= {at_least:g}")
    return float(value)


def gains(alpha: object, beta: object) -> tuple[float, float]:
    """Deviation and velocity gain."""
    return real(alpha, "alpha", at_least=0.0), real(beta, "beta")


def radius(value: object) -> float:
    """A trust radius; infinity stands for none."""
    return math.inf if value is None else real(value, "trust_radius", at_least=0.0)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
