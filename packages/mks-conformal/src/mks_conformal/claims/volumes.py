"""How large the regions are beside the ellipsoid: real data, dimension, level, and no harm."""

from typing import Any

import numpy as np

from armillary.claims import Check, Effort, Measured
from mks_conformal.figures import level_curves

from .protocol import check_range, log_ratio, outcomes, paired, shapes


def smaller(effort: Effort) -> Measured:
    """Digits, txhousing, diamonds."""
    limits = {("digits", 0.1): 0.75, ("digits", 0.02): 0.85}
    if not effort.quick:
        limits |= {("txhousing", 0.1): 0.97, ("diamonds", 0.1): 1.0, ("diamonds", 0.02): 1.0}
    return _against_ellipsoid(effort, {key: (0.0, high) for key, high in limits.items()})


def no_harm(effort: Effort) -> Measured:
    """Gaussian residuals, breast cancer, french portfolios."""
    names = ("gauss",) if effort.quick else ("gauss", "cancer", "french")
    limits = {
        (name, alpha): (0.95, 1.06) if name == "gauss" else (0.0, 1.15)
        for name in names
        for alpha in (0.1, 0.02)
    }
    return _against_ellipsoid(effort, limits)


def _against_ellipsoid(
    effort: Effort, limits: dict[tuple[str, float], tuple[float, float]]
) -> Measured:
    seeds = [effort.seed + k for k in range(1 if effort.quick else 3)]
    checks, rows = [], []
    for (name, alpha), (low, high) in effort.run.progress(limits.items(), description="volumes"):
        found = [outcomes(name, seed, alpha) for seed in seeds]
        ratios = [log_ratio(one) for one in found]
        checks.append(check_range(f"{name}, alpha {alpha:g}", ratios, low, high))
        for seed, one, ratio in zip(seeds, found, ratios, strict=True):
            kept = one["MKS"]
            rows.append(
                {
                    "data": name,
                    "alpha": alpha,
                    "seed": seed,
                    "ratio": float(np.exp(ratio)),
                    "relative se": kept.relative_se,
                    "selected": kept.score.selected_,
                    "plateau": kept.plateau,
                }
            )
    return Measured(checks, rows, scope="a forest's residuals, at most 900 of them for the score")


def dimension(effort: Effort) -> Measured:
    """Exponential residuals in 2, 4 and 8 dimensions."""
    seeds = [effort.seed + k for k in range(3 if effort.quick else 10)]
    logs = {
        d: [log_ratio(shapes("exp", d, 600, 800, 0.1, seed)) for seed in seeds]
        for d in effort.run.progress((2, 4, 8), description="dimensions")
    }
    checks = []
    for d, e in ((2, 4), (4, 8)):
        gaps = [float(np.exp(b) - np.exp(a)) for a, b in zip(logs[d], logs[e], strict=True)]
        mean, low, high = paired(gaps)
        checks.append(Check(f"ratio at d = {e} less that at d = {d}", mean, low, high, at_most=0.0))
    middle = {d: paired([float(np.exp(v)) for v in values]) for d, values in logs.items()}
    checks.append(Check("ratio at d = 8", *middle[8], at_most=0.35))
    rows: list[dict[str, Any]] = [
        {"d": d, "ratio": mean, "low": low, "high": high} for d, (mean, low, high) in middle.items()
    ]
    effort.run.figure(
        level_curves(
            {
                "exponential residuals, alpha .1": [
                    (low, mean, high) for mean, low, high in middle.values()
                ]
            },
            [2, 4, 8],
            ("outputs d", "volume relative to the ellipsoid"),
        ),
        "dimension",
        f"Volume of the kernel score's region over the ellipsoid's, mean over {len(seeds)} "
        "samples with its 95 % interval; 600 residuals fit the score, 800 calibrate.",
    )
    return Measured(checks, rows)


def level(effort: Effort) -> Measured:
    """Exponential residuals at alpha .1 and .02."""
    seeds = [effort.seed + k for k in range(3 if effort.quick else 12)]
    checks, rows, curves = [], [], {}
    settings = [("exp", d, 1000, 4000, 0.02) for d in (2, 4, 8)]
    settings += [("exp", 4, 600, 800, 0.02), ("banana", 8, 600, 800, 0.01)]
    if effort.quick:
        settings = settings[:2]
    for law, d, n, m, tight in effort.run.progress(settings, description="levels"):
        loose = [float(np.exp(log_ratio(shapes(law, d, n, m, 0.1, seed)))) for seed in seeds]
        close = [float(np.exp(log_ratio(shapes(law, d, n, m, tight, seed)))) for seed in seeds]
        drop = paired([a - b for a, b in zip(loose, close, strict=True)])
        share = paired([1 - b / a for a, b in zip(loose, close, strict=True)])
        name = f"{law}, d = {d}, n {n}, alpha .1 to {tight:g}"
        demanded = law == "exp" and n == 1000 and d < 8
        checks.append(Check(f"decrease: {name}", *drop, at_least=0.0 if demanded else -np.inf))
        if demanded and d == 2:
            checks.append(Check(f"relative decrease: {name}", *share, at_least=0.12))
        rows.append(
            {
                "law": law,
                "d": d,
                "n": n,
                "ratio at .1": float(np.mean(loose)),
                f"ratio at {tight:g}": float(np.mean(close)),
                "decrease": drop[0],
            }
        )
        if n == 1000:
            ends = [paired(loose), paired(close)]
            curves[f"d = {d}"] = [(low, mean, high) for mean, low, high in ends]
    effort.run.figure(
        level_curves(curves, [0.1, 0.02], ("alpha", "volume relative to the ellipsoid")),
        "level",
        f"Exponential residuals: the ratio at two miscoverages, mean over {len(seeds)} samples "
        "with its 95 % interval; 1000 residuals fit the score, 4000 calibrate.",
    )
    return Measured(checks, rows)
