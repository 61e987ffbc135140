"""The claims that draws are exact: of one pool, and of iterated pools."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from scipy.stats import chi2

from armillary.claims import Check, Effort, Measured
from armillary.figures import COLORS, MARKERS, label_axes, new
from dpp_sample.bias import refresh_kernel
from dpp_sample.kdpp import KDPP

from .spaces import Space, tv

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def refreshed_pools(effort: Effort) -> Measured:
    """The transition matrix of one round, exact: it keeps P, and the rest dies geometrically."""
    second = (0.391, 0.362, 0.378, 0.571, 0.483)
    once = (0.054, 0.047, 0.121, 0.183, 0.121)
    after = (0.0003, 0.0001, 0.0007, 0.0102, 0.0020)
    rows, paths, moved, off = [], [], 0.0, {"eigenvalue": 0.0, "one-shot": 0.0, "after 5": 0.0}
    for seed in range(2 if effort.quick else 5):
        space = Space.random(6, 3, seed, 2.0, 2)
        target = space.target()
        kernel = refresh_kernel(space.q, space.r, space.features, 2, 6)
        moved = max(moved, float(np.abs(target @ kernel - target).max()))
        value = float(np.sort(np.abs(np.linalg.eigvals(kernel)))[-2])
        law, path = space.pooled(6), []
        for _ in range(6):
            path.append(tv(law, target))
            law = law @ kernel
        paths.append(path)
        rows.append({"seed": seed, "second eigenvalue": value, "TV one-shot": path[0]})
        rows[-1] |= {f"TV after {i}": path[i] for i in range(1, 6)}
        pairs = {"eigenvalue": (value, second), "one-shot": (path[0], once)}
        for name, (found, known) in pairs.items():
            off[name] = max(off[name], abs(found / known[seed] - 1))
        off["after 5"] = max(off["after 5"], abs(path[5] - after[seed]))
    effort.run.figure(
        _rounds_figure(paths),
        "refresh",
        "Total variation between the target and the law of the set after each round of iterated "
        "pools of 6 draws, one line for each seed; round 0 is the one-shot pool.",
    )
    return Measured(
        [
            Check("largest entry of |P T - P|", moved, at_most=1e-12),
            Check(
                "second eigenvalue against its figure, relative", off["eigenvalue"], at_most=0.02
            ),
            Check("TV of one pool against its figure, relative", off["one-shot"], at_most=0.02),
            Check("TV after 5 rounds against its figure, absolute", off["after 5"], at_most=6e-5),
            Check(
                "TV after 5 rounds over TV of one pool",
                max(p[5] / p[0] for p in paths),
                at_most=0.1,
            ),
        ],
        rows,
        scope="6 strings, sets of 2, pools of 6; the 15 x 15 matrix exact, by enumeration",
    )


def exact_sampler(effort: Effort) -> Measured:
    """Draws against every set's probability; marginals where weights span hundreds of nats."""
    draws = 10_000 if effort.quick else 40_000
    off, p_values = 0.0, []
    for seed in range(2 if effort.quick else 5):
        rng = np.random.default_rng(seed)
        features, log_weight = rng.normal(size=(9, 6)), rng.normal(size=9)
        dpp = KDPP(features, log_weight, k=3)
        sets = list(combinations(range(9), 3))
        law = np.array([np.exp(log_weight[list(s)].sum()) * _gram_det(features, s) for s in sets])
        law /= law.sum()
        marginals = [sum(p for p, s in zip(law, sets, strict=True) if i in s) for i in range(9)]
        off = max(off, float(np.abs(dpp.marginals() - marginals).max()))
        at = {s: i for i, s in enumerate(sets)}
        drawn = [at[tuple(s)] for s in dpp.sample(draws, rng=seed).tolist()]
        p_values.append(_chi_square(np.bincount(drawn, minlength=len(sets)), draws * law))
    wide, total = 0.0, 0.0
    for seed in range(2 if effort.quick else 10):
        rng = np.random.default_rng(seed)
        log_weight = 100 * rng.normal(size=9)
        features = rng.normal(size=(9, 6))
        heavy = np.argsort(-log_weight)[:3]
        features[[i for i in range(9) if i not in heavy][:3]] = features[heavy]
        dpp = KDPP(features, log_weight, k=5)
        wide = max(
            wide, float(np.abs(dpp.marginals() - _exact_marginals(features, log_weight, 5)).max())
        )
        total = max(total, abs(float(dpp.marginals().sum()) - 5))
    return Measured(
        [
            Check("marginals against all 84 sets, largest difference", off, at_most=1e-12),
            Check(
                f"smallest chi-square p of {len(p_values)} runs of {draws} draws",
                min(p_values),
                at_least=1e-3,
            ),
            Check(
                "marginals at log-weight sd 100 with copies, against 120 digits",
                wide,
                at_most=1e-10,
            ),
            Check("their sum minus K", total, at_most=1e-10),
        ],
        [{"seed": i, "chi-square p": p} for i, p in enumerate(p_values)],
    )


def _gram_det(features: Float[np.ndarray, "n d"], rows: tuple[int, ...]) -> float:
    chosen = features[list(rows)]
    return float(np.linalg.det(chosen @ chosen.T))


def _chi_square(observed: np.ndarray, expected: Float[np.ndarray, " cells"]) -> float:
    """P-value; cells with an expectation below 5 count as one."""
    rare = expected < 5
    seen = [*observed[~rare], observed[rare].sum()] if rare.any() else list(observed)
    meant = [*expected[~rare], expected[rare].sum()] if rare.any() else list(expected)
    statistic = sum((s - m) ** 2 / m for s, m in zip(seen, meant, strict=True))
    return float(chi2.sf(statistic, len(seen) - 1))


def _exact_marginals(
    features: Float[np.ndarray, "n d"], log_weight: Float[np.ndarray, " n"], k: int
) -> Float[np.ndarray, " n"]:
    """Marginals by enumeration: determinants as fractions, weights in 120 digits."""
    rows = [[Fraction(value) for value in row] for row in features.tolist()]
    gram = [[_dot(x, y) for y in rows] for x in rows]
    with localcontext(prec=120):
        weights = [Decimal(value).exp() for value in log_weight.tolist()]
        marginals, total = [Decimal(0)] * len(rows), Decimal(0)
        for chosen in combinations(range(len(rows)), k):
            volume = _determinant([[gram[i][j] for j in chosen] for i in chosen])
            mass = Decimal(volume.numerator) / Decimal(volume.denominator)
            for i in chosen:
                mass *= weights[i]
            total += mass
            for i in chosen:
                marginals[i] += mass
        return np.array([float(value / total) for value in marginals])


def _dot(x: list[Fraction], y: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


def _determinant(matrix: list[list[Fraction]]) -> Fraction:
    """By elimination, exactly."""
    if not matrix:
        return Fraction(1)
    pivot = next((i for i, row in enumerate(matrix) if row[0]), None)
    if pivot is None:
        return Fraction(0)
    head, rest = matrix[pivot], matrix[:pivot] + matrix[pivot + 1 :]
    reduced = [
        [x - row[0] / head[0] * h for x, h in zip(row[1:], head[1:], strict=True)] for row in rest
    ]
    return (-1) ** pivot * head[0] * _determinant(reduced)


def _rounds_figure(paths: list[list[float]]) -> "Figure":
    figure, axis = new()
    for seed, path in enumerate(paths):
        axis.plot(range(6), path, color=COLORS[seed], marker=MARKERS[seed], label=f"seed {seed}")
    axis.set(yscale="log")
    label_axes(axis, "rounds after the first pool", "total variation")
    return figure
