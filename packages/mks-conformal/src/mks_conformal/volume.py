"""Volumes by importance sampling, with a standard error; closed forms where there are any.

With proposals from the law g of `proposal.py`, in whitened coordinates,

    V = |det W^-1| mean( 1{inside} / g )

is unbiased. Ellipsoids and boxes have closed forms, and in one dimension the end points are found.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from .body import Body
from .bounds import intervals
from .checks import as_rows
from .fitted import as_score
from .proposal import explore

__all__ = ["PlateauWarning", "VolumeEstimate", "VolumeWarning", "region_volume"]
__all__ += ["rescaled", "volume_of"]

FIRST_POINTS = 20_000
LEAST_ESS = 400
LEAST_INSIDE = 50


class PlateauWarning(UserWarning):
    """The quantile lies above the score's far minimum: most of the region is far from data."""


class VolumeWarning(UserWarning):
    """A volume could not be estimated as well as asked."""


@dataclass(frozen=True, slots=True)
class VolumeEstimate:
    """A volume with what is needed to doubt it."""

    value: float  # in the product of the outputs' units; may over- or underflow at large d
    se: float  # standard error of `value`; 0 for a closed form
    log_value: float  # natural log, always usable
    ess: float  # effective number of proposals inside; inf for a closed form
    n_inside: int  # proposals inside; 0 for a closed form
    bounded: bool  # False: the region is unbounded and the value inf
    plateau: bool  # True: the region holds an ellipsoid mostly far from any residual


def volume_of(
    body: Body, *, rtol: float = 0.02, max_points: int = 640_000, rng: RngLike = None
) -> VolumeEstimate:
    """The volume of a body, in its own coordinates.

    The number of proposals doubles from 20 000 until se / value <= `rtol` and the effective
    number inside is at least 400, or `max_points` are spent; then a `VolumeWarning`.
    """
    if not (rtol > 0 and max_points > 0):
        raise InputError("rtol and max_points", found=(rtol, max_points), expected="both positive")
    if not body.bounded:
        return VolumeEstimate(np.inf, 0.0, np.inf, np.inf, 0, bounded=False, plateau=False)
    if body.empty:
        return _exact(-np.inf, plateau=False)
    if body.closed is not None:
        return _exact(body.closed.log_volume, plateau=False)
    plateau = body.far is not None
    if plateau:
        warnings.warn(
            "the quantile lies above the far minimum of the score, so the region holds an "
            "ellipsoid mostly far from any residual: a larger bandwidth, gamma or alpha avoids it",
            PlateauWarning,
            stacklevel=3,
        )
    if body.d == 1:
        ends = intervals(body)
        if not np.isfinite(ends).all():
            return VolumeEstimate(np.inf, 0.0, np.inf, np.inf, 0, bounded=False, plateau=plateau)
        with np.errstate(divide="ignore"):
            return _exact(float(np.log((ends[:, 1] - ends[:, 0]).sum())), plateau=plateau)
    if body.d > 16:
        warnings.warn(f"in {body.d} dimensions the error is large", VolumeWarning, stacklevel=3)
    return _sampled(body, rtol, max_points, as_generator(rng), plateau)


def _sampled(
    body: Body, rtol: float, max_points: int, rng: np.random.Generator, plateau: bool
) -> VolumeEstimate:
    spent, log_weights = 0, np.empty(0)
    target = min(FIRST_POINTS, max_points)
    while True:
        fresh = explore(body, target - spent, rng)[1]
        log_weights, spent = np.concatenate([log_weights, fresh]), target
        estimate = _estimate(log_weights, spent, plateau)
        enough = estimate.n_inside >= LEAST_INSIDE and estimate.ess >= LEAST_ESS
        if enough and estimate.se <= rtol * estimate.value:
            return estimate
        if spent >= max_points:
            warnings.warn(
                f"after {spent} points the relative standard error is "
                f"{estimate.se / estimate.value if estimate.value > 0 else np.inf:.3g} "
                f"({estimate.n_inside} points inside)",
                VolumeWarning,
                stacklevel=4,
            )
            return estimate
        target = min(2 * spent, max_points)


def _estimate(log_weights: Float[np.ndarray, " k"], spent: int, plateau: bool) -> VolumeEstimate:
    k = len(log_weights)
    if k == 0:
        return VolumeEstimate(0.0, np.inf, -np.inf, 0.0, 0, bounded=True, plateau=plateau)
    top = float(log_weights.max())
    w = np.exp(log_weights - top)
    log_value = top + float(np.log(w.sum() / spent))
    mean, square = w.sum() / spent, (w**2).sum() / spent
    relative = float(np.sqrt(max(square / mean**2 - 1.0, 0.0) / max(spent - 1, 1)))
    with np.errstate(over="ignore"):
        value = float(np.exp(log_value))
    # a handful of hits tells little of the spread of their weights
    se = value * relative if k >= LEAST_INSIDE else np.inf
    ess = float(w.sum() ** 2 / (w**2).sum())
    return VolumeEstimate(value, se, log_value, ess, k, bounded=True, plateau=plateau)


def rescaled(estimate: VolumeEstimate, log_factor: float) -> VolumeEstimate:
    """The estimate for the same set in other units."""
    with np.errstate(over="ignore", under="ignore"):
        value = float(np.exp(estimate.log_value + log_factor))
        known = 0 < estimate.value < np.inf
        # through the relative error: both value and factor may be out of the range of floats
        se = value * (estimate.se / estimate.value) if known else estimate.se
    return replace(estimate, value=value, se=se, log_value=estimate.log_value + log_factor)


def _exact(log_value: float, *, plateau: bool) -> VolumeEstimate:
    with np.errstate(over="ignore"):
        value = float(np.exp(log_value))
    return VolumeEstimate(value, 0.0, log_value, np.inf, 0, bounded=True, plateau=plateau)


def region_volume(
    score: Any,
    q: float,
    R_ref: Float[np.ndarray, "n d"],
    *,
    rtol: float = 0.02,
    max_points: int = 640_000,
    rng: RngLike = None,
) -> VolumeEstimate:
    """Volume of { r : score(r) <= q }.

    Parameters
    ----------
    score
        A fitted score, or any object with ``score_samples``.
    q
        The threshold; inf gives infinite volume.
    R_ref
        Residuals around which the region lies, usually those the score was fitted on. They
        steer the proposals and do not change what is estimated.
    rtol, max_points
        Proposals double from 20 000 until se / value <= `rtol`, or `max_points` are spent.
    rng
        Seed or generator of the proposals.

    Raises
    ------
    InputError
        If `score` has no ``score_samples``, for a NaN, or an option out of range.
    """
    references = as_rows(R_ref, "R_ref", at_least=2)
    if np.isnan(q):
        raise InputError("q", found="NaN", expected="a number or inf")
    body = as_score(score, references).body(float(q), references)
    return volume_of(body, rtol=rtol, max_points=max_points, rng=rng)
