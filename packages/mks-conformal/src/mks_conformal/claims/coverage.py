"""Finite-sample coverage, on every data set and against the exact value."""

import numpy as np

from armillary.claims import Check, Effort, Measured
from armillary.randomness import keyed
from mks_conformal.conformal import Calibration
from mks_conformal.data import synthetic
from mks_conformal.figures import coverage_band, coverages_figure
from mks_conformal.kernel_score import MultivariateKernelScore

from .protocol import REAL, outcomes, split_of


def coverage(effort: Effort) -> Measured:
    """Mean coverage over seeds, and 19 calibration rows against 18/20."""
    names = ("digits", "cancer", "gauss") if effort.quick else (*REAL, "gauss")
    seeds = range(1 if effort.quick else 3)
    checks, rows, drawn = [], [], {}
    cells = [(name, alpha) for name in names for alpha in (0.1, 0.02)]
    for name, alpha in effort.run.progress(cells, description="coverage"):
        found = [outcomes(name, effort.seed + seed, alpha)["MKS"].coverage for seed in seeds]
        split = split_of(name, effort.seed)
        n_cal, n_test = len(split.R_cal), len(split.R_test)
        sd = float(np.sqrt(alpha * (1 - alpha) * (1 / n_cal + 1 / n_test) / len(found)))
        mean = float(np.mean(found))
        rows.append({"data": name, "alpha": alpha, "coverage": mean, "sd": sd, "n_cal": n_cal})
        checks.append(
            Check(
                f"coverage on {name} at alpha {alpha:g}",
                mean,
                at_least=1 - alpha - 3 * sd,
                at_most=1 - alpha + 3 * sd,
                note=f"n_cal {n_cal}, n_test {n_test}, {len(found)} seed(s)",
            )
        )
        if alpha == 0.1:
            drawn[name] = (found, coverage_band(n_cal, n_test, alpha))
    checks.append(_exact(effort))
    bands = {name: band for name, (_, band) in drawn.items()}
    effort.run.figure(
        coverages_figure({name: values for name, (values, _) in drawn.items()}, bands, 0.1),
        "coverage",
        "Coverage on test rows at alpha .1: a dot is a seed, the stroke their mean; the grey band "
        "holds 95 % of the coverages of one seed if rows are exchangeable (beta-binomial).",
    )
    return Measured(checks, rows)


def _exact(effort: Effort) -> Check:
    """exp, d = 2, 19 calibration rows, alpha .1: each repetition tests one row."""
    repetitions, blocks = (500, 5) if effort.quick else (2000, 20)
    inside = []
    for block in range(blocks):
        rng = keyed(effort.seed, "exact", block)
        score = MultivariateKernelScore(random_state=block).fit(synthetic("exp", 100, 2, rng))
        for _ in range(repetitions // blocks):
            scores = score.score_samples(synthetic("exp", 20, 2, rng))
            held = Calibration(scores[:19], None, score.resolution_)
            inside.append(bool(held.inside(scores[19:], 0.1)[0]))
    tolerance = 3 * np.sqrt(0.09 / len(inside))
    return Check(
        f"coverage with 19 calibration rows, {len(inside)} repetitions",
        float(np.mean(inside)),
        at_least=0.9 - tolerance,
        at_most=0.9 + tolerance,
        note="exactly 18/20",
    )
