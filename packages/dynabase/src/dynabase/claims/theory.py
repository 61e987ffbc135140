"""What the mathematics says of the map, seen in numbers: C1, C2 and C3."""

import math
import warnings

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from armillary.claims import Check, Effort, Measured
from armillary.randomness import keyed
from dynabase import baselines
from dynabase._map import rollout
from dynabase.fit import OneStepFit, fit_one_step
from dynabase.forecaster import DynaBase
from dynabase.measures import itinerary_period
from dynabase.systems import SYSTEMS

from ._runs import TEN, Pair, over_systems, pair, seeds

STEPS, FREE = 10_000, 5_000


def parroting(effort: Effort) -> Measured:
    """C1: alpha = 0 against a context parrot written independently."""
    rows, n = [], FREE
    for system in SYSTEMS:
        given = pair(system, effort.seed)
        free, index = rollout(given.context, n, 0.0, theiler=given.theiler, return_indices=True)
        copied = baselines.parrot(given.context, n, theiler=given.theiler)
        jumps = np.flatnonzero(np.diff(index) != 1)
        seam = int(jumps[0]) + 1 if len(jumps) else n
        first = given.context[:, 0]
        model = DynaBase("parrot", delays=3, tau=1, mode="vector", n_neighbors=1, standardize=False)
        delayed = model.fit(first).simulate(seam)
        motif = baselines.parrot(first, seam, motif=3, theiler=model.theiler_)
        rows.append(
            {
                "system": system,
                "steps to the seam": seam,
                "max difference": float(np.abs(free[:seam] - copied[:seam]).max()),
                "past the seam": float(np.abs(free - copied).max()),
                "3 delays": float(np.abs(delayed - motif).max()),
            }
        )
    names = {
        "max difference": "max difference to the seam, full state",
        "past the seam": f"max difference over all {n} steps, full state",
        "3 delays": "max difference, first coordinate in 3 delays",
    }
    checks = [Check(text, max(row[key] for row in rows), at_most=0) for key, text in names.items()]
    return Measured(checks, rows, scope=f"{len(rows)} systems, one seed")


def chaos(effort: Effort) -> Measured:
    """C2: how orbits part, settle, and stay within bounds."""
    long, rows, checks = STEPS, [], []
    lorenz = [pair("lorenz63", seed) for seed in range(effort.seed, effort.seed + 3)]
    rates = {alpha: _growth(lorenz[0], alpha, effort) for alpha in (0.9, 0.98, 1.005, 1.02)}
    worst = max(abs(rate - math.log(alpha)) for alpha, rate in rates.items())
    checks.append(Check("largest difference of growth rate and ln alpha", worst, at_most=1e-6))
    for alpha in (0.0, 0.9, 0.95, 0.98, 1.0, 1.005, 1.01):
        periods = []
        for each in lorenz:
            _, index = rollout(
                each.context,
                long,
                alpha,
                theiler=each.theiler,
                trust_radius=each.guard(alpha),
                return_indices=True,
            )
            periods.append(itinerary_period(index))
        rows.append({"alpha": alpha} | {f"period, seed {i}": p for i, p in enumerate(periods)})
    settled = [p is not None for row in rows[:3] for p in list(row.values())[1:]]
    free = [p is None for row in rows[4:] for p in list(row.values())[1:]]
    checks += [
        Check("share of periodic itineraries, alpha <= 0.95", float(np.mean(settled)), at_least=1),
        Check("share without a period, alpha >= 1", float(np.mean(free)), at_least=1),
    ]
    excess, escaped, held = -math.inf, 0, 0
    for system in ("lorenz63", "rossler", "chua"):
        for seed in range(effort.seed, effort.seed + 4):
            each = pair(system, seed)
            size = np.linalg.norm(each.context, axis=1).max()
            for alpha in (1.005, 1.02):
                guarded = rollout(
                    each.context, long, alpha, theiler=each.theiler, trust_radius=each.radius
                )
                beyond = np.linalg.norm(guarded, axis=1).max() - size - each.radius
                excess = max(excess, float(beyond))
                held += bool(np.isnan(guarded).any())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                wild = rollout(each.context, long, 1.02, theiler=each.theiler)
            escaped += bool(np.isnan(wild).any())
    checks += [
        Check("largest norm beyond max |c| + r, guarded", excess, at_most=1e-12),
        Check("divergences of 12 unguarded runs at alpha = 1.02", escaped, at_least=9),
        Check("divergences of 24 guarded runs", held, at_most=0),
    ]
    return Measured(checks, rows, scope=f"{long} steps; periods on Lorenz-63")


def closed_form(effort: Effort) -> Measured:
    """C3: Fit 1 against an optimizer, and what it gives on clean flows."""
    runs = seeds(effort)
    shape = (len(TEN), len(runs))
    alpha, gain, r2, extra, beta, error = (np.empty(shape) for _ in range(6))
    apart = 0.0
    for i, system in enumerate(TEN):
        for j, seed in enumerate(runs):
            given = pair(system, seed)
            one = fit_one_step(given.context, theiler=given.theiler, beta=False)
            two = fit_one_step(given.context, theiler=given.theiler)
            if j == 0:
                apart = max(apart, _distance_to_optimum(given, two))
            alpha[i, j], r2[i, j], beta[i, j] = one.alpha, one.r2, two.beta
            extra[i, j] = two.r2 - one.r2
            error[i, j] = _one_step_error(given, one.alpha) / _one_step_error(given, 0.0)
            gain[i, j] = one.r2
    middle, saved = np.median(alpha, axis=1), np.median(gain, axis=1)
    low, high = over_systems(error, rng=keyed(effort.seed, "C3"))
    rows = [
        {
            "system": system,
            "alpha*": middle[i],
            "lowest": alpha[i].min(),
            "highest": alpha[i].max(),
            "r2": saved[i],
            "|beta*|": np.abs(beta[i]).max(),
            "r2 gained by beta": extra[i].max(),
            "RMSE / parrot": float(np.median(error[i])),
        }
        for i, system in enumerate(TEN)
    ]
    checks = [
        Check("largest difference to the optimizer's gains", apart, at_most=1e-8),
        Check("smallest alpha* of a run", alpha.min(), at_least=0.92),
        Check("largest alpha* of a run", alpha.max(), at_most=1.05),
        Check("smallest share of squared error saved in a run", gain.min(), at_least=0.4),
        Check("largest |beta*|", np.abs(beta).max(), at_most=0.12),
        Check("largest r2 gained by beta", extra.max(), at_most=0.04),
        Check(
            "one-step RMSE on the unseen part / parrot's, median",
            float(np.median(error)),
            low,
            high,
            at_most=0.4,
        ),
    ]
    if len(runs) > 1:  # with one seed these are the extremes of single runs
        checks[1:1] = [
            Check("smallest median alpha* of a system", middle.min(), at_least=0.93),
            Check("largest median alpha* of a system", middle.max(), at_most=1.01),
            Check("smallest median share of squared error saved", saved.min(), at_least=0.5),
        ]
    return Measured(checks, rows, scope=f"10 systems, {len(runs)} seed(s)")


def _growth(given: Pair, alpha: float, effort: Effort) -> float:
    """Rate at which two orbits 1e-7 apart part while they share their neighbours."""
    rng = keyed(effort.seed, "C2", str(alpha))
    rates, weights = [], []
    for _ in range(20):
        start = given.context[rng.integers(len(given.context))] + 0.01 * rng.normal(size=3)
        push = rng.normal(size=3)
        both = np.stack([start, start + 1e-7 * push / np.linalg.norm(push)])
        path, index = rollout(given.context, 50, alpha, z0=both, return_indices=True)
        parted = index[:, 0] != index[:, 1]
        n = int(parted.argmax()) if parted.any() else len(parted)
        if n < 2:
            continue
        gap = np.linalg.norm(path[:n, 0] - path[:n, 1], axis=1)
        rates.append(math.log(gap[-1] / gap[0]) / (n - 1))
        weights.append(n - 1)
    return float(np.average(rates, weights=weights))


def _distance_to_optimum(given: Pair, fit: OneStepFit) -> float:
    """Largest difference between closed form and BFGS on the same squared error, made afresh."""
    rows, w = given.context, given.theiler
    distance = cdist(rows[:-1], rows[:-1])
    times = np.arange(len(rows) - 1)
    distance[np.abs(times[:, None] - times) <= w] = np.inf
    distance[:, times > len(rows) - 2 - w] = np.inf
    near = distance.argmin(axis=1)
    e0, e1 = rows[:-1] - rows[near], rows[1:] - rows[near + 1]
    v = rows[near + 1] - rows[near]
    scale = np.sum(e1**2)

    def loss(gains: Float[np.ndarray, "2"]) -> tuple[float, Float[np.ndarray, "2"]]:
        left = e1 - gains[0] * e0 - gains[1] * v
        slope = -2 * np.array([np.sum(left * e0), np.sum(left * v)]) / scale
        return float(np.sum(left**2) / scale), slope

    best = minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-12})
    return float(np.abs(best.x - [fit.alpha, fit.beta]).max())


def _one_step_error(given: Pair, alpha: float) -> float:
    forecast = rollout(given.context, 1, alpha, z0=given.target[:-1])
    return float(np.sqrt(np.mean((np.asarray(forecast)[0] - given.target[1:]) ** 2)))
