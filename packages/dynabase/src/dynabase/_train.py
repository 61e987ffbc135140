"""Gains from how well long rollouts reconstruct a system, or from many recordings at once.

The objective of reconstruction is

    J(alpha, beta) = median over runs of  D_stsp(target || rollout) + 10 D_H(target, rollout),

with the same starts for every alpha, so that J is a deterministic function of it. It has many local
minima: a grid finds the valley, Nelder-Mead in log(alpha) refines it, the best alpha seen wins.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from armillary import InputError
from armillary.parallel import map_jobs
from armillary.randomness import RngLike, spawn

from . import _checks
from ._order import complete_rows
from ._recording import Recording
from ._run import Gains, run, run_one
from .embed import delay_embed, theiler_window
from .fit import Pairs, solve, trust_radius
from .measures import d_hellinger, d_stsp
from .neighbours import require_neighbours
from .preprocess import location_and_scale

# Alphas tried for reconstruction: dense where the best ones lie.
GRID = (0, 0.5, 0.9, 0.95, 0.98, 0.99, 1, 1.0025, 1.005, 1.0075, 1.01, 1.015, 1.02, 1.03, 1.05)
# And for a horizon, where the best ones are smaller.
HORIZON_GRID = (0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 1, 1.005, 1.025, 1.05)
SPECTRUM_WEIGHT = 10.0
REFINEMENTS = 40
FIRST_STEP = 2.5e-3  # in log(alpha), the finest spacing of the grid
TARGET_ORIGINS = 50
STARTS = (0.05, 0.7, 4)  # in-context rollouts start from so many rows on this part of the context


@dataclass(frozen=True, slots=True)
class TrainResult:
    """Gains trained on many recordings, and every alpha that was tried."""

    alpha: float
    beta: float
    objective: str
    n_pairs: int
    table: list[dict[str, float]] = field(repr=False)  # alpha, loss and what it is made of


def train(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    objective: Literal["dsr", "mse", "horizon"] = "dsr",
    *,
    horizon: int | None = None,
    refine: bool = True,
    jobs: int = 1,
    rng: RngLike = None,
) -> TrainResult:
    """One pair of gains for many recordings: how the presets were made.

    Parameters
    ----------
    pairs
        (context, target) of each recording, shapes (T, d) and (n, d): what is given, and what
        really followed. Each pair is scaled by its context's mean and standard deviations; the
        numbers of coordinates may differ.
    objective
        "dsr": reconstruction, one rollout from the context's last row over the target's length.
        "horizon": mean absolute error over `horizon` steps from 50 rows of the target, relative to
        parroting's; median over the pairs. "mse": one step in closed form, on the contexts alone.
    horizon
        Steps of the objective of that name.
    refine
        Refine the best alpha of the grid by 40 evaluations of Nelder-Mead.
    jobs
        Processes to use.
    rng
        Of the Monte Carlo measure of systems with more than five coordinates.

    Returns
    -------
    The gains; beta is 0 but for "mse".

    Notes
    -----
    The objective of reconstruction is rough, since any change of alpha leads to another orbit: over
    60 pairs, alphas that differ by 1e-5 gave losses some 5 % apart. A refined alpha is one of the
    good ones, not the best one to its last digits.

    Raises
    ------
    InputError
        If there is no pair, a context too short, or a target with NaN.
    """
    if not len(pairs):
        raise InputError("pairs", found="none", expected="at least one (context, target)")
    if objective not in ("dsr", "mse", "horizon"):
        raise InputError("objective", found=repr(objective), expected="'dsr', 'mse' or 'horizon'")
    scaled = [_scaled(context, target) for context, target in pairs]
    if objective == "mse":
        recordings = [_recording(context) for context, _ in scaled]
        fit = solve([(Pairs.of(each, k=1), each.context) for each in recordings])
        row = {"alpha": fit.alpha, "beta": fit.beta, "loss": 1 - fit.r2}
        return TrainResult(fit.alpha, fit.beta, objective, len(pairs), [row])
    if objective == "horizon":
        steps = _checks.whole(horizon, "horizon", 1)
        measure, grid = partial(_horizon_errors, steps=steps), HORIZON_GRID
        names, pool = ("mae_to_parrot",), _median_ratio
    else:
        seeds = [int(child.integers(2**32)) for child in spawn(rng, len(pairs))]
        scaled = [(*pair, seed) for pair, seed in zip(scaled, seeds, strict=True)]
        measure, grid = _reconstruction_errors, GRID
        names, pool = ("d_stsp", "d_hellinger"), _median_reconstruction

    def evaluate(alphas: Sequence[float]) -> list[dict[str, float]]:
        wanted = [0.0, *alphas] if objective == "horizon" else list(alphas)
        errors = np.array(map_jobs(partial(measure, alphas=wanted), scaled, jobs=jobs))
        return pool(errors, alphas, names)

    table = evaluate(grid)
    if refine:
        table += _refined(lambda alpha: evaluate([alpha])[0], table)
    table.sort(key=lambda row: row["alpha"])
    best = min(table, key=lambda row: row["loss"])
    return TrainResult(best["alpha"], 0.0, objective, len(pairs), table)


def reconstruction_alpha(
    recording: Recording, *, k: int = 1, beta: float = 0.0, rng: RngLike = None
) -> float:
    """The alpha of the grid that reconstructs the recording itself best.

    Four rollouts as long as the context start from rows spread over its first part; the target is
    the whole context. A single coordinate is compared in up to three of its delays.
    """
    context, n = recording.context, len(recording.series)
    low, high, number = STARTS
    starts = np.linspace(low, high, number) * len(context.rows)
    usable = np.flatnonzero(context.finite)
    starts = usable[np.minimum(np.searchsorted(usable, starts), len(usable) - 1)]
    alphas = np.repeat(np.array(GRID, dtype=float), number)
    rows = np.tile(starts, len(GRID))
    radius = trust_radius(context)
    gains = Gains(alphas, np.full(len(alphas), beta), np.where(alphas > 1, radius, np.inf))
    path = run(context, context.rows[rows], n, gains, k=k, shift=recording.shift(rows))
    seeds = [int(child.integers(2**32)) for child in spawn(rng, 1)] * len(rows)
    errors = [
        _divergence(recording, generated, seed)
        for generated, seed in zip(recording.newest(path).swapaxes(0, 1), seeds, strict=True)
    ]
    losses = np.median(np.reshape(errors, (len(GRID), number)), axis=1)
    return float(GRID[int(np.argmin(losses))])


def _scaled(context: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = _checks.as_rows(context, "context")
    ahead = _checks.as_rows(target, "target", width=rows.shape[1])
    if np.isnan(rows[-1]).any():
        raise InputError("context", found="NaN in the last row", expected="a row to start from")
    mean, scale = location_and_scale(rows)
    return (rows - mean) / scale, (ahead - mean) / scale


def _recording(context: Float[np.ndarray, "T d"]) -> Recording:
    recording = Recording.of(context, theiler=theiler_window(context))
    require_neighbours(recording.context, 1)
    return recording


def _gains(recording: Recording, alphas: Float[np.ndarray, " b"]) -> Gains:
    radius = trust_radius(recording.context)
    return Gains(alphas, np.zeros(len(alphas)), np.where(alphas > 1, radius, np.inf))


def _reconstruction_errors(
    pair: tuple[np.ndarray, np.ndarray, int], alphas: Sequence[float]
) -> list[list[float]]:
    """D_stsp and D_H of one rollout for each alpha."""
    context, target, seed = pair
    recording = _recording(context)
    gains = _gains(recording, np.array(alphas, dtype=float))
    if len(alphas) == 1:  # the same numbers, sooner
        only = float(gains.alpha[0]), 0.0, float(gains.radius[0])
        path = run_one(recording.context, context[-1], len(target), *only)
    else:
        states = np.repeat(context[-1:], len(alphas), axis=0)
        path = run(recording.context, states, len(target), gains)
    return [_measures(target, path.values[:, at], seed) for at in range(len(alphas))]


def _measures(target: np.ndarray, generated: np.ndarray, seed: int) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of escapes and short spectra: they show
        return [d_stsp(target, generated, rng=seed), d_hellinger(target, generated)]


def _divergence(recording: Recording, generated: Float[np.ndarray, "n d"], seed: int) -> float:
    """The objective against the recording itself, where it is complete."""
    series, m = recording.series, min(len(recording.lags), 3)
    if series.shape[1] == 1 and m > 1:
        tau = int(recording.lags[1])
        series, generated = delay_embed(series, m, tau), delay_embed(generated, m, tau)
    complete = complete_rows(series)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        geometry = d_stsp(series[complete], generated, rng=seed)
        if not complete.all():  # a spectrum needs a stretch without gaps
            series = series[_longest_run(complete)]
        return geometry + SPECTRUM_WEIGHT * d_hellinger(series, generated)


def _longest_run(complete: np.ndarray) -> slice:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], complete.astype(int), [0]])))
    begin, end = edges[::2], edges[1::2]
    longest = int(np.argmax(end - begin))
    return slice(int(begin[longest]), int(end[longest]))


def _horizon_errors(
    pair: tuple[np.ndarray, np.ndarray], alphas: Sequence[float], steps: int
) -> list[list[float]]:
    """Mean absolute error of forecasts from rows of the target, for each alpha."""
    context, target = pair
    if len(target) <= steps:
        raise InputError(
            "horizon", found=steps, expected=f"fewer steps than a target has rows ({len(target)})"
        )
    recording = _recording(context)
    n_origins = min(TARGET_ORIGINS, len(target) - steps)
    origins = np.linspace(0, len(target) - 1 - steps, n_origins).round().astype(int)
    gains = _gains(recording, np.repeat(np.array(alphas, dtype=float), n_origins))
    states = np.tile(target[origins], (len(alphas), 1))
    path = run(recording.context, states, steps, gains)
    truth = target[origins + np.arange(1, steps + 1)[:, None]]
    forecast = path.values.reshape(steps, len(alphas), n_origins, -1)
    error = np.abs(forecast - truth[:, None]).mean(axis=(0, 2, 3))
    return error[:, None].tolist()


def _median_ratio(
    errors: Float[np.ndarray, "pairs a 1"], alphas: Sequence[float], names: tuple[str, ...]
) -> list[dict[str, float]]:
    """Errors relative to the first alpha's, which is parroting's; median over the pairs."""
    first = np.where(errors[:, :1] > 0, errors[:, :1], 1.0)
    ratios = np.median(errors[:, 1:] / first, axis=0)[:, 0]
    return [
        {"alpha": float(alpha), "loss": float(ratio), names[0]: float(ratio)}
        for alpha, ratio in zip(alphas, ratios, strict=True)
    ]


def _median_reconstruction(
    errors: Float[np.ndarray, "pairs a 2"], alphas: Sequence[float], names: tuple[str, ...]
) -> list[dict[str, float]]:
    losses = np.median(errors[:, :, 0] + SPECTRUM_WEIGHT * errors[:, :, 1], axis=0)
    parts = np.median(errors, axis=0)
    return [
        {"alpha": float(alpha), "loss": float(loss), **dict(zip(names, part, strict=True))}
        for alpha, loss, part in zip(alphas, losses, parts.tolist(), strict=True)
    ]


def _refined(
    evaluate: Callable[[float], dict[str, float]], table: list[dict[str, float]]
) -> list[dict[str, float]]:
    """What Nelder-Mead in log(alpha) tried around the best alpha so far."""
    best = min(table, key=lambda row: row["loss"])["alpha"]
    if best == 0:
        return []
    tried: dict[float, dict[str, float]] = {}

    def loss(point: np.ndarray) -> float:
        alpha = float(np.exp(point[0]))
        if alpha not in tried:  # the simplex comes back to some of its points
            tried[alpha] = evaluate(alpha)
        return tried[alpha]["loss"]

    simplex = np.log(best) + np.array([[0.0], [FIRST_STEP]])
    minimize(
        loss,
        simplex[0],
        method="Nelder-Mead",
        options={"maxfev": REFINEMENTS, "initial_simplex": simplex, "xatol": 1e-5, "fatol": 0},
    )
    return list(tried.values())
