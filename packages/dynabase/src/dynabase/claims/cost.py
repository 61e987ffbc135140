"""Against larger things, and against smaller ones: C8, C9 and C10."""

import time

import numpy as np
from jaxtyping import Float

from armillary import MissingExtra
from armillary.claims import Check, Effort, Measured, NotMeasured
from armillary.measure import compare, one_thread
from dynabase import peers
from dynabase._map import rollout
from dynabase._model import PRESETS
from dynabase.figures import growth_figure
from dynabase.fit import fit_one_step
from dynabase.forecaster import DynaBase
from dynabase.measures import itinerary_period
from dynabase.systems import generate

from ._runs import TEN, Pair, divergence, pair, seeds

DYNAMIX_PARAMETERS = 10_000  # DynaMix-3D, by its model card; its weights cannot be had offline
PRESET = 1.005
FREE = 3_000  # steps of C9


def lean(effort: Effort) -> Measured:
    """C8: the number of parameters, and seconds a step against pyEDM's simplex projection."""
    steps = 50 if effort.quick else 200
    x = generate("lorenz63", 2_000, seed=effort.seed)[:, 0]
    model = DynaBase("forecast", delays=3, tau=4, n_neighbors=1)
    try:
        with one_thread():
            found = compare(
                lambda: model.fit(x).predict(steps),
                lambda: peers.simplex(x, steps, m=3, tau=4, k=1),
                repeats=3 if effort.quick else 7,
                names=("dynabase", "pyEDM"),
            )
            contexts = _growth_with_context(10**5 if effort.quick else 10**6)
            horizons = _growth_with_horizon(effort.seed)
    except MissingExtra as missing:
        raise NotMeasured(str(missing)) from missing
    effort.run.figure(
        growth_figure(contexts, horizons),
        "C8-growth",
        "Left: seconds to fit, and for 1,000 steps, on contexts of T samples of a torus in three "
        "dimensions. Right: seconds for a free run of Lorenz-63 from 2,000 samples. One thread.",
    )
    rows: list[dict[str, object]] = [
        {
            "T": 2_000,
            "steps": steps,
            "fit and steps (s)": found.ours_s,
            "pyEDM (s)": found.theirs_s,
        }
    ]
    rows += [{"T": n, "steps": 1_000, "fit (s)": f, "steps (s)": s} for n, f, s in contexts]
    rows += [{"T": 2_000, "steps": n, "steps (s)": seconds} for n, seconds in horizons]
    checks = [
        Check("parameters of the map", len(PRESETS["forecast"]), at_most=2),
        Check("pyEDM / dynabase, time a step", found.ratio, found.low, found.high, at_least=20),
        Check("seconds for 10,000 steps, T = 2,000, d = 3", horizons[-1][1], at_most=0.6),
    ]
    notes = (
        (
            f"DynaMix-3D has about {DYNAMIX_PARAMETERS:,} parameters by its model card; its code "
            "is GPL-3.0 and its weights lie on a model hub only: nothing is compared with it here"
        ),
    )
    return Measured(checks, rows, notes, scope="one thread, fit included on both sides")


def torus(n: int) -> Float[np.ndarray, "n 3"]:
    """`n` samples of a quasi-periodic orbit: a context of any length at no cost."""
    a, b = 0.1 * np.arange(n), 0.1 * np.sqrt(2) * np.arange(n)
    return np.stack([(2 + np.cos(b)) * np.cos(a), (2 + np.cos(b)) * np.sin(a), np.sin(b)], axis=1)


def _growth_with_context(longest: int) -> list[tuple[int, float, float]]:
    """Length of the context, seconds to fit, seconds for 1,000 steps; without the first call."""
    out = []
    for n in (10**3, 10**4, 10**5, 10**6):
        if n > longest:
            break
        y = torus(n)
        begin = time.perf_counter()
        model = DynaBase().fit(y)
        fitted = time.perf_counter() - begin
        model.predict(1_000)
        begin = time.perf_counter()
        model.predict(1_000)
        out.append((n, fitted, time.perf_counter() - begin))
    return out


def _growth_with_horizon(seed: int) -> list[tuple[int, float]]:
    """Steps and seconds of a guarded free run, the best of three."""
    model = DynaBase("reconstruct").fit(generate("lorenz63", 2_000, seed=seed))
    model.simulate(10)
    out = []
    for n in (100, 1_000, 10_000):
        seconds = []
        for _ in range(3):
            begin = time.perf_counter()
            model.simulate(n)
            seconds.append(time.perf_counter() - begin)
        out.append((n, min(seconds)))
    return out


def foundation(effort: Effort) -> Measured:
    """C9: a small pretrained network on Lorenz-63, beside two parameters."""
    try:
        network = peers.foundation_model()
    except MissingExtra as missing:
        raise NotMeasured(str(missing)) from missing
    rows, ratios = [], []
    for seed in [2] if effort.quick else [2, 0, 1, 3, 4]:
        given = pair("lorenz63", seed)
        target = given.target[:FREE]

        def free(alpha: float, given: Pair = given) -> Float[np.ndarray, "n d"]:
            context = given.context
            return np.asarray(
                rollout(
                    context, FREE, alpha, theiler=given.theiler, trust_radius=given.guard(alpha)
                )
            )

        def pretrained(given: Pair = given) -> Float[np.ndarray, "n d"]:
            asked = given.context.T.astype(np.float32)
            return np.asarray(network.forecast(asked, horizon=FREE)[:, :, 4], dtype=float).T

        runs = {
            "fracast": pretrained,
            "reconstruct": lambda: free(PRESET),
            "forecast": lambda: free(0.95),
            "parrot": lambda: free(0.0),
        }
        scores = {}
        for name, run in runs.items():
            begin = time.perf_counter()
            path = run()
            seconds = time.perf_counter() - begin
            scores[name] = divergence(target, path)
            rows.append(
                {
                    "seed": seed,
                    "forecaster": name,
                    "D_stsp": scores[name],
                    "MAE of 50 steps": np.abs(path - target)[:50].mean(),
                    "sd of the tail": float(np.mean(path[FREE // 2 :].std(axis=0))),
                    "seconds": seconds,
                }
            )
        ratios.append(scores["fracast"] / scores["reconstruct"])
    checks = [Check("D_stsp of fracast / of reconstruct, seed 2", ratios[0], at_least=2)]
    if len(ratios) > 1:
        checks.append(Check("the same, median of five seeds", np.median(ratios), at_least=2))
    notes = (
        (
            "the tail is the second half of the run, in units of the context's own deviation: the "
            "network settles on the mean"
        ),
        (
            "fracast (85,001 parameters) is the one foundation model that runs offline here; it "
            "was made for short horizons"
        ),
    )
    return Measured(checks, rows, notes, scope=f"Lorenz-63, {FREE:,} free steps")


def ladder(effort: Effort) -> Measured:
    """C10: what each part of the map buys."""
    runs = [(system, seed) for system in TEN for seed in seeds(effort, 2)]
    names = ("k=5, alpha*", "k=1, alpha* beta*", "k=1, alpha*", "parrot", "no successor")
    errors, spread = np.empty((len(runs), len(names))), np.full((len(runs), len(names)), np.nan)
    periods: list[int | None] = []
    for at, key in enumerate(runs):
        given = pair(*key)
        one = fit_one_step(given.context, theiler=given.theiler, beta=False)
        two = fit_one_step(given.context, theiler=given.theiler)
        maps = (
            (one.alpha, 0.0, 5),
            (two.alpha, two.beta, 1),
            (one.alpha, 0.0, 1),
            (0.0, 0.0, 1),
            (1.0, -1.0, 1),
        )
        for number, (alpha, beta, k) in enumerate(maps):
            step = rollout(given.context, 1, alpha, beta, z0=given.target[:-1], n_neighbors=k)
            step = np.asarray(step)[0]
            errors[at, number] = np.sqrt(np.mean((step - given.target[1:]) ** 2))
            if number == 1:
                continue
            gain = PRESET if number in (0, 2) else alpha
            free, index = rollout(
                given.context,
                len(given.target),
                gain,
                beta,
                theiler=given.theiler,
                trust_radius=given.guard(gain),
                n_neighbors=k,
                return_indices=True,
            )
            spread[at, number] = divergence(given.target, free)
            if number == 2:
                periods.append(itinerary_period(index))
    relative = np.median(errors / errors[:, 3:4], axis=0)
    rows = [
        {
            "map": name,
            "one-step RMSE / parrot's": relative[i],
            "D_stsp (alpha = 1.005 for alpha*)": np.median(spread[:, i]) if i != 1 else None,
        }
        for i, name in enumerate(names)
    ]
    ratio = np.median(errors / errors[:, 2:3], axis=0)
    checks = [
        Check("RMSE without the successor / with, median", ratio[4], at_least=3),
        Check("RMSE of parroting / of alpha*, median", ratio[3], at_least=2),
        Check("RMSE with beta / without, median", ratio[1], at_least=0.9, at_most=1.1),
    ]
    return Measured(checks, rows, scope=f"{len(runs)} pairs of 10 systems")
