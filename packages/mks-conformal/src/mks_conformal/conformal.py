"""The conformal rule: from calibration scores to quantiles, p-values and membership.

With n calibration scores and miscoverage alpha the quantile is the ceil((n+1)(1-alpha))-th
smallest score, and infinite when that rank exceeds n: clamping it to the maximum would
under-cover. Membership is decided in integers, never by comparing a float p-value with alpha, and
wherever a score meets a stored one a tolerance makes equal rows tie, which is conservative.

With weights (covariate shift; Tibshirani, Barber, Candes & Ramdas 2019) counts become sums of
weights and the query's own weight is a mass at infinity.
"""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from armillary import InputError

from .checks import as_vector, check_alpha

__all__ = [
    "Calibration",
    "UnboundedRegionWarning",
    "conformal_quantile",
    "misses_allowed",
    "rows_needed",
    "warn_unbounded",
]

SLACK = 1e-9  # floats such as 1 - 0.1 push an exact integer up or down by less
TIE_TOLERANCE = 1e-10

Scores = Float[np.ndarray, " m"]


class UnboundedRegionWarning(UserWarning):
    """The quantile is infinite: the region is everything."""


def misses_allowed(n: int, alpha: float) -> int:
    """floor(alpha (n + 1)): how many of the n + 1 scores may be as large as the one tested."""
    return int(np.floor(alpha * (n + 1) + SLACK))


def rows_needed(alpha: float) -> int:
    """The least number of calibration rows with a finite quantile: ceil(1/alpha) - 1."""
    return int(np.ceil(1.0 / alpha - SLACK)) - 1


def conformal_quantile(
    scores: Any, alpha: float, *, weights: Any = None, test_weight: float | None = None
) -> float:
    """The score that bounds a region with coverage at least 1 - alpha.

    Parameters
    ----------
    scores
        Calibration scores, any order.
    alpha
        Miscoverage, strictly between 0 and 1.
    weights
        Weight of each calibration row, >= 0, for covariate shift. Needs `test_weight`.
    test_weight
        Weight of the row that the region is for, >= 0.

    Returns
    -------
    The ceil((n+1)(1-alpha))-th smallest score, or its weighted form; inf when there are too few
    rows, or the query's weight is too large, with an `UnboundedRegionWarning`.

    Raises
    ------
    InputError
        For a NaN, alpha outside (0, 1), or weights that are negative, NaN, all zero, or without
        `test_weight`.

    Examples
    --------
    >>> conformal_quantile(range(1, 10), 0.1)
    9.0
    >>> conformal_quantile([1, 2, 3, 4, 5], 0.1, weights=[1, 1, 1, 1, 1], test_weight=0.1)
    5.0
    """
    alpha = check_alpha(alpha)
    if (weights is None) != (test_weight is None):
        lone = "weights" if test_weight is None else "test_weight"
        raise InputError(f"{lone} alone", expected="both weights and test_weight, or neither")
    calibration = Calibration(as_vector(scores, "scores"), weights)
    if test_weight is None:
        (q,) = calibration.quantile(alpha)
    else:
        weight = as_vector([test_weight], "test_weight", nonnegative=True)
        (q,) = calibration.quantile(alpha, weight)
    if np.isinf(q):
        warn_unbounded(alpha, weighted=weights is not None, n=len(calibration))
    return float(q)


class Calibration:
    """Calibration scores in order, with weights or without.

    Parameters
    ----------
    scores
        Calibration scores.
    weights
        Their weights, or None.
    resolution
        Size to which rounding errors of the scores are relative, see `Core.resolution`.
    """

    def __init__(
        self, scores: Float[np.ndarray, " n"], weights: Any = None, resolution: float = 1.0
    ) -> None:
        if weights is None and (scores[1:] >= scores[:-1]).all():
            order = slice(None)  # a stream keeps its scores in order
        else:
            order = np.argsort(scores, kind="stable")
        self.scores, self.resolution = scores[order], resolution
        self.weights: Float[np.ndarray, " n"] | None = None
        if weights is not None:
            given = as_vector(weights, "weights", length=len(scores), nonnegative=True)
            if not given.sum() > 0:
                raise InputError("weights", expected="at least one above 0", found="all zero")
            self.weights = given[order]
            # tails[i] = sum of the weights of the i-th smallest score and all above it
            self.tails = np.append(np.cumsum(self.weights[::-1])[::-1], 0.0)

    def __len__(self) -> int:
        return len(self.scores)

    def _first_not_below(self, scores: Scores) -> Int[np.ndarray, " m"]:
        """How many calibration scores lie below each score, ties within rounding not counted."""
        tolerance = TIE_TOLERANCE * np.maximum(self.resolution, np.abs(scores))
        # an infinite score ties with infinite ones alone, and inf - inf is no number
        lowered = scores - np.where(np.isinf(scores), 0.0, tolerance)
        return np.searchsorted(self.scores, lowered, side="left")

    def not_below(self, scores: Scores) -> Int[np.ndarray, " m"]:
        """#{s_i >= s}, ties within rounding counted."""
        return len(self) - self._first_not_below(scores)

    def pvalue(self, scores: Scores, test_weight: Scores | None = None) -> Scores:
        """(1 + #{s_i >= s}) / (n + 1), or (w + sum_i w_i [s_i >= s]) / (w + sum_i w_i)."""
        below = self._first_not_below(scores)
        if self.weights is None or test_weight is None:
            return (1.0 + len(self) - below) / (len(self) + 1.0)
        return (test_weight + self.tails[below]) / (test_weight + self.tails[0])

    def inside(
        self, scores: Scores, alpha: float, test_weight: Scores | None = None
    ) -> Bool[np.ndarray, " m"]:
        """Whether the p-value exceeds alpha, decided without a division."""
        below = self._first_not_below(scores)
        if self.weights is None or test_weight is None:
            return 1 + len(self) - below > misses_allowed(len(self), alpha)
        total = test_weight + self.tails[0]
        return test_weight + self.tails[below] > (alpha + SLACK) * total

    def quantile(
        self, alpha: float, test_weight: Scores | None = None, m: int | None = None
    ) -> Scores:
        """The largest score with p-value above alpha, for `m` rows or one for each weight."""
        n = len(self)
        padded = np.append(self.scores, np.inf)
        if self.weights is None or test_weight is None:
            rank = n + 1 - misses_allowed(n, alpha)
            rows = (m or 1) if test_weight is None else len(test_weight)
            return np.full(rows, padded[min(rank, n + 1) - 1] if rank > 0 else -np.inf)
        total = test_weight + self.tails[0]
        limit = (alpha + SLACK) * total - test_weight
        # tails fall along the order: those above the limit come first
        count = np.searchsorted(-self.tails, -limit, side="left")
        return np.where(count > 0, padded[np.minimum(count, n + 1) - 1], -np.inf)


def warn_unbounded(
    alpha: float, *, weighted: bool, n: int, where: str = "", stacklevel: int = 3
) -> None:
    """Say that a region is everything, and what would bound it."""
    if weighted:
        text = (
            f"{where}the query's weight exceeds alpha = {alpha:g} of all weight: the region is "
            "everything (more calibration weight is needed)"
        )
    else:
        text = (
            f"{where}{n} calibration row(s) are too few for alpha = {alpha:g}: the region is "
            f"everything (at least {rows_needed(alpha)} rows are needed)"
        )
    warnings.warn(text, UnboundedRegionWarning, stacklevel=stacklevel)
