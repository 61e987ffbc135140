"""Reconstruction of long-run behaviour, and what a training goal decides: C4 to C7."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from armillary.claims import Check, Effort, Measured
from armillary.randomness import keyed
from dynabase._map import rollout
from dynabase.figures import sweep_figure

from ._runs import ALPHAS, CHAOTIC, CYCLIC, TEN, over_systems, pair, place, seeds, sweeps

PRESET = 1.005
ORIGINS = 50
FORECAST_ALPHAS = (0.0, 0.8, 0.85, 0.9, 0.925, 0.95, 0.98, 1.0, 1.005, 1.03, 1.05)
HORIZONS = (10, 50, 100)
SPLITS = 50


@dataclass(frozen=True)
class Grids:
    """Measures of all pairs: systems, seeds, then alphas where there are several."""

    d_stsp: Float[np.ndarray, "s r a"]
    d_hellinger: Float[np.ndarray, "s r a"]
    own: Float[np.ndarray, "s r 2"]
    periods: list[list[list[int | None]]]

    def at(self, alpha: float) -> Float[np.ndarray, "s r"]:
        """`d_stsp` at an alpha."""
        return self.d_stsp[:, :, place(alpha)]


def grids(effort: Effort, systems: tuple[str, ...]) -> Grids:
    """The sweeps of some systems as arrays."""
    found = sweeps(effort, systems)
    table = [[found[system, seed] for seed in seeds(effort)] for system in systems]
    return Grids(
        np.array([[each.d_stsp for each in line] for line in table]),
        np.array([[each.d_hellinger for each in line] for line in table]),
        np.array([[each.own for each in line] for line in table]),
        [[each.period for each in line] for line in table],
    )


def zero_shot(effort: Effort) -> Measured:
    """C4: the preset against parroting, alpha = 1 and the context's own histogram."""
    all_ten = grids(effort, TEN)
    ours, parrot, own = all_ten.at(PRESET), all_ten.at(0.0), all_ten.own[:, :, 0]
    chaotic = np.array([system in CHAOTIC for system in TEN])
    rng = keyed(effort.seed, "C4")
    ratio = (ours / parrot)[chaotic]
    low, high = over_systems(ratio, rng=rng)
    excess = (ours - own)[chaotic]
    all_ratio = over_systems(ours / parrot, rng=rng)
    wins = ours < parrot
    rows = []
    for i, system in enumerate(TEN):
        periods = [run[place(PRESET)] for run in all_ten.periods[i]]
        parrots = [run[0] for run in all_ten.periods[i]]
        rows.append(
            {
                "system": system,
                "parrot": np.median(parrot[i]),
                "alpha = 1": np.median(all_ten.at(1.0)[i]),
                "reconstruct": np.median(ours[i]),
                "context": np.median(own[i]),
                "wins": f"{wins[i].sum()}/{wins.shape[1]}",
                "D_H": np.median(all_ten.d_hellinger[i, :, place(PRESET)]),
                "D_H of parrot": np.median(all_ten.d_hellinger[i, :, 0]),
                "periods": " ".join(str(p or "-") for p in periods),
                "parrot's": " ".join(str(p or "-") for p in parrots),
            }
        )
    rows.append(
        {
            "system": "median of all",
            "parrot": np.median(parrot),
            "alpha = 1": np.median(all_ten.at(1.0)),
            "reconstruct": np.median(ours),
            "context": np.median(own),
            "wins": f"{wins.sum()}/{wins.size}",
        }
    )
    checks = [
        Check("share of pairs won over parroting", float(wins.mean()), at_least=0.8),
        Check(
            "median D_stsp ratio to parroting, 8 chaotic systems",
            float(np.median(ratio)),
            at_most=0.8,
        ),
        Check("upper end of its 95 % interval over systems", high, at_most=1.0),
        Check(
            "median excess over the context's own D_stsp, 8 chaotic systems",
            float(np.median(excess)),
            at_least=-0.25,
            at_most=0.25,
        ),
    ]
    notes = (
        (
            f"95 % interval of the ratio over chaotic systems: {low:.2f} .. {high:.2f}; of all ten "
            f"systems {np.median(ours / parrot):.2f} ({all_ratio[0]:.2f} .. {all_ratio[1]:.2f})"
        ),
        f"parroting's own excess over the context: {np.median((parrot - own)[chaotic]):.2f}",
        (
            "replaying the whole context would have no excess either: read the itinerary's period "
            "beside it ('-': none within 5,000 steps)"
        ),
    )
    return Measured(checks, rows, notes, scope=f"{wins.size} pairs of 10 systems")


def goals(effort: Effort) -> Measured:
    """C5: the alpha that forecasts best against the one that reconstructs best."""
    runs = seeds(effort, 3)
    errors = np.array([[_errors(system, seed) for seed in runs] for system in TEN])
    relative = np.median((errors / errors[:, :, :, :1]).reshape(-1, *errors.shape[2:]), axis=0)
    found = grids(effort, TEN)
    divergence = np.median(found.d_stsp, axis=(0, 1))
    best = {h: FORECAST_ALPHAS[int(relative[i].argmin())] for i, h in enumerate(HORIZONS)}
    best_d = float(ALPHAS[divergence.argmin()])
    rows = [
        {"alpha": alpha}
        | {f"MAE / parrot, h = {h}": relative[i, j] for i, h in enumerate(HORIZONS)}
        | {"D_stsp": divergence[place(alpha)] if alpha in ALPHAS else None}
        for j, alpha in enumerate(FORECAST_ALPHAS)
    ]
    rows += [
        {"alpha": float(alpha), "D_stsp": value}
        for alpha, value in zip(ALPHAS, divergence, strict=True)
        if alpha not in FORECAST_ALPHAS
    ]
    rows.sort(key=lambda row: row["alpha"] or 0.0)
    effort.run.figure(
        sweep_figure(
            {f"h = {h}": (FORECAST_ALPHAS, relative[i]) for i, h in enumerate(HORIZONS)},
            (ALPHAS, found.d_stsp.reshape(-1, len(ALPHAS))),
        ),
        "C5-goals",
        "Left: mean absolute error over h steps relative to parroting's, median over "
        f"{errors.shape[0] * errors.shape[1]} pairs. Right: state-space divergence of a free run "
        f"of 5,000 steps, median and quartiles over {found.own[:, :, 0].size} pairs. The alpha "
        "that forecasts best lies below 1, the one that reconstructs best above.",
    )
    checks = [
        Check("best alpha for 50 steps", best[50], at_least=0.8, at_most=0.98),
        Check("its MAE relative to parroting's", float(relative[1].min()), at_most=1.0),
        Check("best alpha for D_stsp", best_d, at_least=1.0, at_most=1.01),
        Check("difference of the two", best_d - best[50], at_least=1e-9),
    ]
    low, high = relative[0, FORECAST_ALPHAS.index(0.95)], relative[0, FORECAST_ALPHAS.index(1.005)]
    notes = (f"over 10 steps there is no conflict: {low:.3f} at 0.95, {high:.3f} at 1.005",)
    return Measured(checks, rows, notes, scope=f"10 systems, {ORIGINS} origins each")


def cycles(effort: Effort) -> Measured:
    """C6: the preset on two limit cycles."""
    found = grids(effort, CYCLIC)
    spectra = found.d_hellinger[:, :, place(PRESET)]
    rows = [
        {
            "system": system,
            "D_stsp": np.median(found.at(PRESET)[i]),
            "D_H": np.median(spectra[i]),
            "parrot D_stsp": np.median(found.at(0.0)[i]),
            "parrot D_H": np.median(found.d_hellinger[i, :, 0]),
            "context D_stsp": np.median(found.own[i, :, 0]),
        }
        for i, system in enumerate(CYCLIC)
    ]
    checks = [
        Check("largest median D_stsp", max(row["D_stsp"] for row in rows), at_most=0.1),
        Check("largest median D_H", max(row["D_H"] for row in rows), at_most=0.01),
    ]
    notes = ("on van der Pol parroting is as good: one period of a cycle is all there is to copy",)
    return Measured(checks, rows, notes, scope=f"{len(seeds(effort))} seed(s)")


def trained(effort: Effort) -> Measured:
    """C7: alpha trained on half of the systems, tried on the other half."""
    found = grids(effort, TEN)
    loss = found.d_stsp + 10 * found.d_hellinger  # the objective of `train`
    rng = keyed(effort.seed, "C7")
    alphas, ratios, wins = [], [], []
    for _ in range(SPLITS):
        order = rng.permutation(len(TEN))
        train, test = order[: len(TEN) // 2], order[len(TEN) // 2 :]
        pooled = np.median(loss[train].reshape(-1, len(ALPHAS)), axis=0)
        at = int(pooled.argmin())
        ratio = found.d_stsp[test, :, at] / found.d_stsp[test, :, 0]
        alphas.append(float(ALPHAS[at]))
        ratios.append(float(np.median(ratio)))
        wins.append(float(np.mean(ratio < 1)))
    values, counts = np.unique(alphas, return_counts=True)
    rows = [
        {
            "alpha": value,
            "splits": int(count),
            "median ratio": np.median(np.array(ratios)[np.array(alphas) == value]),
        }
        for value, count in zip(values.tolist(), counts, strict=True)
    ]
    checks = [
        Check("smallest alpha of 50 splits", min(alphas), at_least=1.0),
        Check("largest alpha of 50 splits", max(alphas), at_most=1.0125),
        Check(
            "D_stsp ratio to parroting held out, median of splits", np.median(ratios), at_most=0.85
        ),
        Check("share of held-out pairs won, mean of splits", float(np.mean(wins)), at_least=0.75),
    ]
    quantiles = np.quantile(ratios, [0.05, 0.95])
    inside = np.mean((np.array(alphas) >= 1) & (np.array(alphas) <= 1.0125))
    notes = (
        f"{inside:.0%} of the splits choose an alpha in 1 .. 1.0125",
        "where a half holds both limit cycles, whose loss is near 0, few systems decide the median",
        f"the ratio of a split lies in {quantiles[0]:.2f} .. {quantiles[1]:.2f} (90 %)",
    )
    return Measured(checks, rows, notes, scope=f"{SPLITS} splits of 10 systems")


def _errors(system: str, seed: int) -> Float[np.ndarray, "h a"]:
    """Mean absolute error over each horizon and alpha, from origins along the unseen part."""
    given = pair(system, seed)
    longest = max(HORIZONS)
    last = len(given.target) - 1 - longest
    origins = np.linspace(0, last, ORIGINS).round().astype(int)
    truth = given.target[origins + np.arange(1, longest + 1)[:, None]]
    out = np.empty((len(HORIZONS), len(FORECAST_ALPHAS)))
    for at, alpha in enumerate(FORECAST_ALPHAS):
        forecast = rollout(
            given.context,
            longest,
            alpha,
            z0=given.target[origins],
            theiler=given.theiler,
            trust_radius=given.guard(alpha),
        )
        error = np.abs(np.asarray(forecast) - truth).mean(axis=(1, 2))
        out[:, at] = [error[:h].mean() for h in HORIZONS]
    return out
