"""Gains from one recording: one step ahead in closed form, or by the error of longer forecasts.

Fit 1. For each time t of the context with in-context neighbour i (none nearer in time than the
Theiler window) let e0 = c[t] - c[i], v = c[i+1] - c[i], e1 = c[t+1] - c[i+1]. The squared error of
(1) over these pairs is quadratic in the gains, so that they solve

    [ S00  S0v ] [alpha]   [ S01 ]
    [ S0v  Svv ] [beta ] = [ Sv1 ],      Sab = sum over t of <a, b>.

Fit 2 looks for the alpha whose forecasts over a horizon have the least mean absolute error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from . import _checks
from ._order import complete_rows
from ._recording import Recording
from ._run import Gains, neighbour_weights, run
from .neighbours import Context, Prefixes, require_neighbours

RIDGE = 1e-10
DEGENERATE = 1e-8  # deviations this small against the context's spread are rounding
NOISY = 0.8
ORIGINS = 64
ALPHA_RANGE = (0.0, 1.05)
RADIUS_QUANTILE = 0.99


@dataclass(frozen=True, slots=True)
class OneStepFit:
    """Gains of the best one-step map, with what is needed to doubt them."""

    alpha: float
    beta: float
    r2: float  # share of the squared error of parroting that the gains explain
    se_alpha: float  # standard errors, robust to correlation within a Theiler window;
    se_beta: float  # nan for a gain that was not fitted
    n_pairs: int
    degenerate: bool  # all neighbours match exactly: the data say nothing of alpha

    @property
    def reading(self) -> str:
        """What the numbers say, in words."""
        if self.degenerate:
            return (
                "neighbours match exactly (periodic, constant or too short data): alpha cannot be "
                "seen and is set to 0"
            )
        if self.alpha < NOISY:
            return (
                f"alpha = {self.alpha:.3g} is below {NOISY}: noise, or too few delays, hides how "
                "neighbours move apart; n_neighbors > 1 or more delays may help"
            )
        return (
            f"alpha = {self.alpha:.3g}: deviations from a neighbour "
            f"{'grow' if self.alpha > 1 else 'shrink'} by {abs(self.alpha - 1):.2%} a step"
        )


def fit_one_step(
    context: Float[np.ndarray, "T d"], *, theiler: int, beta: bool = True, n_neighbors: int = 1
) -> OneStepFit:
    """Gains with the least squared one-step error, in closed form.

    Parameters
    ----------
    context
        The recording in time order; rows with NaN are gaps.
    theiler
        Neighbours must be farther apart in time than this; see `theiler_window`.
    beta
        Whether to fit beta too, or to keep it 0.
    n_neighbors
        Neighbours averaged over; with several, e0, v and e1 are their weighted means.

    Returns
    -------
    The fit. Noise can make its alpha negative; nothing is clipped here.

    Raises
    ------
    InputError
        If an argument is out of range or the context has too few usable rows.
    """
    rows = _checks.as_rows(context, "context")
    k = _checks.whole(n_neighbors, "n_neighbors", at_least=1)
    recording = Recording.of(rows, theiler=_checks.whole(theiler, "theiler", at_least=0))
    require_neighbours(recording.context, k)
    return one_step(recording, k=k, beta=None if beta else 0.0)


def fit_horizon(
    context: Float[np.ndarray, "T d"], h: int, *, theiler: int, rng: RngLike = None
) -> float:
    """The alpha (beta = 0) with the least mean absolute error over `h` steps.

    Parameters
    ----------
    context
        The recording in time order, in units in which its coordinates' errors may be added.
    h
        Horizon in steps, >= 1.
    theiler
        Theiler window, in samples.
    rng
        Draw the origins at random. None: spread them evenly.

    Returns
    -------
    The best alpha seen among 13 values on [0, 1.05] and 20 of a golden section search between the
    best one's neighbours. The loss has jumps, so that it need not be unimodal.

    Notes
    -----
    Up to 64 origins in the second half of the context; each forecast sees nothing after its origin.
    For alpha > 1 deviations are clipped at the default trust radius.

    Raises
    ------
    InputError
        If the second half of the context is shorter than the horizon.
    """
    rows = _checks.as_rows(context, "context")
    recording = Recording.of(rows, theiler=_checks.whole(theiler, "theiler", at_least=0))
    require_neighbours(recording.context, 1)
    return horizon(recording, h, rng=rng)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Deviations from in-context neighbours: now (e0), a step later (e1), and their velocity."""

    times: Int[np.ndarray, " n"]
    e0: Float[np.ndarray, "n q"]
    v: Float[np.ndarray, "n q"]
    e1: Float[np.ndarray, "n q"]

    @classmethod
    def of(cls, recording: Recording, *, k: int, at_most: int | None = None) -> "Pairs":
        """The pairs of a recording, of the coordinates that its map advances."""
        rows, q = recording.context.rows, recording.q
        times, index, squared = recording.context.analogues(k, at_most=at_most)
        weight = neighbour_weights(squared)[:, :, None]
        now = (weight * rows[index, :q]).sum(axis=1)
        then = (weight * rows[index + 1, :q]).sum(axis=1)
        return cls(times, rows[times, :q] - now, then - now, rows[times + 1, :q] - then)


def one_step(
    recording: Recording,
    *,
    k: int,
    alpha: float | None = None,
    beta: float | None = None,
    at_most: int | None = None,
) -> OneStepFit:
    """Fit 1 of a recording; a gain that is None is fitted, the other is kept."""
    pairs = Pairs.of(recording, k=k, at_most=at_most)
    return solve([(pairs, recording.context)], alpha=alpha, beta=beta)


def solve(
    recordings: list[tuple[Pairs, Context]],
    *,
    alpha: float | None = None,
    beta: float | None = None,
) -> OneStepFit:
    """Fit 1 pooled over recordings; a gain that is None is fitted, the other is kept."""
    designs = [np.stack([pairs.e0, pairs.v]) for pairs, _ in recordings]
    targets = [pairs.e1 for pairs, _ in recordings]
    # What the pairs' squares would be if deviations were as large as the context is wide.
    floor = DEGENERATE**2 * sum(
        len(pairs.times) * _variance(context, pairs.e0.shape[1]) for pairs, context in recordings
    )
    n_pairs = sum(len(target) for target in targets)
    explained = sum(float(np.sum(target**2)) for target in targets)
    products = sum((np.einsum("inq,jnq->ij", x, x) for x in designs), np.zeros((2, 2)))
    gains = np.array([alpha or 0.0, beta or 0.0])
    if products[0, 0] <= floor:
        r2 = float(n_pairs > 0 and explained <= floor)
        return OneStepFit(
            float(gains[0]), float(gains[1]), r2, math.nan, math.nan, n_pairs, degenerate=True
        )
    free = np.array([alpha is None, beta is None])
    onto = sum((np.einsum("inq,nq->i", x, y) for x, y in zip(designs, targets, strict=True)), 0.0)
    normal = products[np.ix_(free, free)]
    diagonal = np.diag(normal)
    normal = normal + np.diag(np.where(diagonal > 0, RIDGE * diagonal, 1.0))
    gains[free] = np.linalg.solve(normal, (onto - products[:, ~free] @ gains[~free])[free])
    residuals = [
        y - np.einsum("i,inq->nq", gains, x) for x, y in zip(designs, targets, strict=True)
    ]
    unexplained = sum(float(np.sum(residual**2)) for residual in residuals)
    scores = [
        _window_sums(np.einsum("inq,nq->ni", x[free], residual), pairs.times, context.theiler)
        for x, residual, (pairs, context) in zip(designs, residuals, recordings, strict=True)
    ]
    errors = np.full(2, math.nan)
    errors[free] = np.sqrt(np.sum(np.linalg.solve(normal, np.concatenate(scores).T) ** 2, axis=1))
    return OneStepFit(
        alpha=float(gains[0]),
        beta=float(gains[1]),
        r2=1 - unexplained / explained if explained > 0 else 1.0,
        se_alpha=float(errors[0]),
        se_beta=float(errors[1]),
        n_pairs=n_pairs,
        degenerate=False,
    )


def one_step_errors(
    recording: Recording, *, k: int
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Rows, and their squared errors one step later, after Fit 1 with beta = 0."""
    pairs = Pairs.of(recording, k=k)
    alpha = max(0.0, solve([(pairs, recording.context)], beta=0.0).alpha)
    return pairs.times, np.sum((pairs.e1 - alpha * pairs.e0) ** 2, axis=1)


def trust_radius(context: Context, *, at_most: int | None = None) -> float:
    """The 0.99 quantile of the distances of in-context neighbours; the spread if there are none."""
    squared = context.analogues(1, at_most=at_most)[2]
    if not len(squared):
        return float(context.spread)
    return float(np.quantile(np.sqrt(squared), RADIUS_QUANTILE))


def horizon(
    recording: Recording, h: int, *, k: int = 1, beta: float = 0.0, rng: RngLike = None
) -> float:
    """Fit 2 on a recording, of the newest values of its delay vectors."""
    h = _checks.whole(h, "h", at_least=1)
    context = recording.context
    origins = _origins(recording, h, k)
    if len(origins) > ORIGINS:
        if rng is None:
            origins = origins[np.linspace(0, len(origins) - 1, ORIGINS).round().astype(int)]
        else:
            origins = np.sort(as_generator(rng).choice(origins, ORIGINS, replace=False))
    ahead = origins + recording.offset + np.arange(1, h + 1)[:, None]
    truth = recording.series[ahead]
    radius = trust_radius(context)

    def losses(alphas: Float[np.ndarray, " a"]) -> Float[np.ndarray, " a"]:
        alpha, start = np.repeat(alphas, len(origins)), np.tile(origins, len(alphas))
        gains = Gains(alpha, np.full(len(alpha), beta), np.where(alpha > 1, radius, np.inf))
        limits = start - 1 - context.theiler
        path = run(
            Prefixes(context, limits),
            context.rows[start],
            h,
            gains,
            k=k,
            shift=recording.shift(start),
        )
        forecast = recording.newest(path).reshape(h, len(alphas), len(origins), -1)
        return np.nanmean(np.abs(forecast - truth[:, None]), axis=(0, 2, 3))

    grid = np.linspace(*ALPHA_RANGE, 13)
    found = dict(zip(grid.tolist(), losses(grid).tolist(), strict=True))
    best = min(found, key=found.__getitem__)
    step = grid[1] - grid[0]
    low, high = max(best - step, ALPHA_RANGE[0]), min(best + step, ALPHA_RANGE[1])
    found |= golden_section(lambda alpha: float(losses(np.array([alpha]))[0]), low, high, 20)
    return min(found, key=found.__getitem__)


def golden_section(
    loss: Callable[[float], float], low: float, high: float, n: int
) -> dict[float, float]:
    """Points and losses of a golden section search with `n` evaluations."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    seen = {left: loss(left), right: loss(right)}
    while len(seen) < n and left < right:
        if seen[left] <= seen[right]:
            high, right = right, left
            left = high - ratio * (high - low)
            seen[left] = loss(left)
        else:
            low, left = left, right
            right = low + ratio * (high - low)
            seen[right] = loss(right)
    return seen


def _origins(recording: Recording, h: int, k: int) -> Int[np.ndarray, " n"]:
    """Rows of the second half to forecast from: with `k` neighbours before, and a truth after."""
    context, n = recording.context, len(recording.context.rows)
    origins = np.arange(n // 2, n - h)
    if len(origins):
        before = np.cumsum(context.admissible)
        limits = origins - 1 - context.theiler
        enough = (limits >= 0) & (before[np.maximum(limits, 0)] >= k)
        seen = np.concatenate([[0], np.cumsum(complete_rows(recording.series))])
        ahead = origins + recording.offset + 1
        origins = origins[enough & context.finite[origins] & (seen[ahead + h] > seen[ahead])]
    if not len(origins):
        raise InputError(
            "h",
            found=h,
            expected=f"a horizon that fits into the second half of the context ({n} rows) and "
            f"leaves {k} neighbour(s) before it",
        )
    return origins


def _variance(context: Context, q: int) -> float:
    rows = context.rows[context.finite, :q]
    return float(np.mean(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1))) if len(rows) else 0.0


def _window_sums(
    scores: Float[np.ndarray, "n p"], times: Int[np.ndarray, " n"], window: int
) -> Float[np.ndarray, "b p"]:
    """Sums over windows, for the sandwich estimate: within one, scores may be correlated."""
    _, block = np.unique(times // max(window, 1), return_inverse=True)
    sums = np.zeros((int(block.max(initial=-1)) + 1, scores.shape[1]))
    np.add.at(sums, block, scores)
    return sums
