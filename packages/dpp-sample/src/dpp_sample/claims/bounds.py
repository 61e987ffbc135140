"""The claims about the pool's bias, on spaces where it can be known."""

from math import comb
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from armillary.claims import Check, Effort, Measured
from armillary.figures import COLORS, band, label_axes, new
from dpp_sample.bias import pool_bias, second_moment
from dpp_sample.errors import RankError
from dpp_sample.kdpp import KDPP

from .spaces import Space, bootstrap, kl, slope, tv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TINY = "5 strings in 3 dimensions with random log-probs; every law exact, by enumeration"


def kl_bound(effort: Effort) -> Measured:
    """K = 2, three betas: the bound in every cell, and the rate beneath it."""
    rows, checks = _bounded(effort, k=2, betas=(0.5, 1.0, 2.0), sizes=(4, 8, 16, 32, 48))
    known = {8: 7.46e-3, 16: 1.36e-3, 32: 2.93e-4, 48: 1.24e-4}
    checks += [
        _against(rows, known),
        _each(rows, "KL slope", -2.8, -1.9),
        _each(rows, "TV slope", -1.4, -0.95),
    ]
    effort.run.figure(
        _bound_figure(rows),
        "kl-bound",
        "Divergence of the target from the law of a set drawn from a pool of N: the bound "
        "(dashed) and the exact value (solid), geometric mean and range over the seeds; dotted: "
        "slopes of -1 and -2. "
        "The bound falls as 1/N; on a finite space the divergence itself falls as 1/N^2.",
    )
    notes = [
        "O(1/N) is a valid bound, not the rate: on a finite space TV falls as 1/N, KL as 1/N^2"
    ]
    return Measured(checks, rows, notes, _TINY)


def kl_bound_of_triples(effort: Effort) -> Measured:
    """K = 3 at beta 2."""
    rows, checks = _bounded(effort, k=3, betas=(2.0,), sizes=(8, 16, 32, 48))
    checks += [_against(rows, {8: 1.04e-1, 48: 1.14e-3}), _each(rows, "KL slope", -3.4, -2.3)]
    notes = ["pools of fewer than some 50 strings are not yet asymptotic at K = 3"]
    return Measured(checks, rows, notes, _TINY)


def _bounded(
    effort: Effort, *, k: int, betas: tuple[float, ...], sizes: tuple[int, ...]
) -> tuple[list[dict[str, float]], list[Check]]:
    """Exact KL, total variation and bound of each seed, beta and pool size."""
    rows: list[dict[str, float]] = []
    gaps, ratios = [], []
    cells = [(seed, beta) for seed in range(2 if effort.quick else 5) for beta in betas]
    for seed, beta in effort.run.progress(cells, description="pools"):
        space = Space.random(5, 3, seed, beta, k)
        target = space.target()
        for n in sizes:
            law, bound = space.pooled(n), space.bound(n)
            moment = second_moment(space.q, space.r, space.features, k, n)
            gaps.append(abs(bound - np.log(moment)))
            row = {"seed": seed, "beta": beta, "N": n, "KL": kl(target, law)}
            row |= {"TV": tv(target, law), "bound": bound}
            if n == sizes[-1]:
                for name in ("KL", "TV"):
                    last = rows[-1]
                    row[f"{name} slope"] = slope(last[name], row[name], int(last["N"]), n)
                ratios.append(n * bound / space.limit())
            rows.append(row)
    violations = sum(row["KL"] > row["bound"] for row in rows)
    return rows, [
        Check(f"cells where KL exceeds the bound, of {len(rows)}", violations, at_most=0),
        Check("largest |bound - log(E U^2 / Z^2)|", max(gaps), at_most=1e-10),
        Check(
            f"N x bound at N = {sizes[-1]} over its limit (median, range)",
            float(np.median(ratios)),
            min(ratios),
            max(ratios),
            at_least=0.75,
            at_most=1.25,
        ),
    ]


def _against(rows: list[dict[str, float]], known: dict[int, float]) -> Check:
    found = {row["N"]: row["KL"] for row in rows if row["seed"] == 0 and row["beta"] == 2}
    off = max(abs(found[n] / value - 1) for n, value in known.items())
    name = "KL of seed 0 at beta 2 against the derivation's own figures, relative"
    return Check(name, off, at_most=0.01)


def _each(rows: list[dict[str, float]], name: str, low: float, high: float) -> Check:
    values = [row[name] for row in rows if name in row]
    return Check(
        f"{name}, N = 32 to 48 (median, range)",
        float(np.median(values)),
        min(values),
        max(values),
        at_least=low,
        at_most=high,
    )


def estimated_bias(effort: Effort) -> Measured:
    """The one-pool estimate against the exact bound, and in a space too large to enumerate."""
    rng = np.random.default_rng(effort.seed)
    small = Space.random(5, 3, 0, 2.0, 2)
    checks, rows = [], []
    sizes = (8, 16, 32, 64, 128)
    for n in sizes:
        estimates, _ = _estimates(small, n, 400 if effort.quick else 2000, rng)
        argument = n * np.expm1(estimates)
        error = 1.96 * argument.std(ddof=1) / np.sqrt(len(argument))
        exact = n * small.bound(n)
        value, low, high = (float(argument.mean() + e) / exact for e in (0.0, -error, error))
        row = {"strings": 5, "N": n, "mean estimate": float(estimates.mean())}
        row |= {f"{q:.0%} of pools": float(np.quantile(estimates, q)) for q in (0.05, 0.5, 0.95)}
        rows.append(row | {"truth": exact / n, "N x argument": float(argument.mean())})
        if n in (8, 32, 128):
            least, most = (0.9, 1.1) if n == 128 else (1.0, np.inf)
            name = f"5 strings, N = {n}: estimate over exact bound"
            checks.append(Check(name, value, low, high, at_least=least, at_most=most))
    large = Space.random(2000, 20, 0, 1.3, 5)
    for n in (6, 12, 60):
        estimates, logs = _estimates(large, n, 1000 if effort.quick else 3000, rng)
        u = np.exp(logs - logs.max())

        def over_truth(
            rows: np.ndarray, estimates: np.ndarray = estimates, u: np.ndarray = u
        ) -> float:
            return float(
                estimates[rows].mean() / np.log(np.mean(u[rows] ** 2) / u[rows].mean() ** 2)
            )

        value, low, high = bootstrap(over_truth, len(u), seed=effort.seed)
        mean = float(estimates.mean())
        rows.append({"strings": 2000, "N": n, "mean estimate": mean, "truth": mean / value})
        name = f"2000 strings, N = {n}: mean estimate over log(mean U^2 / mean^2 U)"
        checks.append(Check(name, value, low, high, at_least=0.75, at_most=1.25))
    effort.run.figure(
        _estimate_figure(rows[: len(sizes)]),
        "bias-diag",
        "What one pool says of its own bias: median and 90% range of the estimate over pools of "
        "N draws, and the exact bound.",
    )
    return Measured(checks, rows, scope="random log-probs; 5 strings (exact) and 2000 strings")


def _estimates(
    space: Space, n: int, pools: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, " pools"], Float[np.ndarray, " pools"]]:
    """Estimate of the bound and log U, for pools of n draws."""
    estimates, log_means = [], []
    while len(estimates) < pools:
        drawn, counts = np.unique(rng.choice(len(space.r), n, p=space.r), return_counts=True)
        if len(drawn) < space.k:
            continue
        try:
            dpp = KDPP(space.features[drawn], space.log_weight[drawn] + np.log(counts), k=space.k)
        except RankError:  # a pool without a valid set is drawn again
            continue
        estimates.append(pool_bias(dpp.marginals(), 1 / counts, n, space.k)[0])
        log_means.append(dpp.log_normalizer - np.log(comb(n, space.k)))
    return np.array(estimates), np.array(log_means)


def _bound_figure(rows: list[dict[str, float]]) -> "Figure":
    figure, axes = new(9.6, 3.8, columns=3)
    for axis, beta in zip(axes, (0.5, 1.0, 2.0), strict=True):
        own = [row for row in rows if row["beta"] == beta]
        sizes = np.array(sorted({row["N"] for row in own}))
        for color, name, style, power in (
            (COLORS[4], "bound", "--", -1),
            (COLORS[0], "KL, exact", "-", -2),
        ):
            field = name.removesuffix(", exact")
            values = np.array([[r[field] for r in own if r["N"] == n] for n in sizes])
            middle = np.exp(np.log(values).mean(axis=1))
            band(axis, sizes, values.min(axis=1), middle, values.max(axis=1), name, color)
            axis.lines[-1].set(linestyle=style)
            guide = middle[-1] * (sizes / sizes[-1]) ** power
            axis.plot(sizes, guide, color="#8a8a8a", linestyle=":", linewidth=1, marker="")
            if beta == 2:
                where = (sizes[-1], middle[-1])
                axis.annotate(f"$N^{{{power}}}$", where, (5, -4), textcoords="offset points")
        _logarithmic(axis, sizes)
        axis.set_ylim(2e-5, 4)
        if beta > 0.5:
            axis.set_yticklabels([])
        label_axes(
            axis, "pool size N", "divergence (nats)" if beta == 0.5 else "", f"beta = {beta:g}"
        )
    for axis in axes[1:]:
        axis.get_legend().remove()
    return figure


def _estimate_figure(rows: list[dict[str, float]]) -> "Figure":
    figure, axis = new()
    sizes = np.array([row["N"] for row in rows])
    low, middle, high = ([row[f"{q} of pools"] for row in rows] for q in ("5%", "50%", "95%"))
    band(axis, sizes, low, middle, high, "estimate of one pool", COLORS[0])
    truth = [row["truth"] for row in rows]
    axis.plot(sizes, truth, "--", color=COLORS[4], marker="", label="exact bound")
    _logarithmic(axis, sizes)
    label_axes(axis, "pool size N", "bound on KL (nats)")
    return figure


def _logarithmic(axis: "Axes", sizes: np.ndarray) -> None:
    """Log scales, with a tick at each size."""
    axis.set(xscale="log", yscale="log")
    axis.set_xticks(sizes, [f"{n:g}" for n in sizes])
    axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
