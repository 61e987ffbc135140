"""The demo: the lower half of handwritten digits, predicted from the upper half."""

import warnings
from typing import Any

import numpy as np

from armillary.randomness import keyed
from armillary.run import Run

from . import data
from .conformal import Calibration
from .contest import Outcome, contest, over_splits, parts_of
from .estimator import MKSRegressor
from .figures import contest_figure, slices_figure
from .law import SplitLaw
from .region import RegionSet

__all__ = ["demo"]

ALPHA = 0.1
SPLITS = 3


def demo(run: Run) -> None:
    """Regions for eight outputs, against the ellipsoid and the boxes that are usual."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.frozen import FrozenEstimator

    digits = data.digits()
    rows = keyed(run.seed, "digits").permutation(len(digits.X))
    train, held = rows[:700], rows[700:]
    forest = RandomForestRegressor(60, min_samples_leaf=3, random_state=run.seed, n_jobs=run.jobs)
    forest.fit(digits.X[train], digits.Y[train])
    X, Y = digits.X[held], digits.Y[held]
    residuals = Y - np.asarray(forest.predict(X))

    found: list[dict[str, Outcome]] = []
    splits = [parts_of(len(held), (0.4, 0.3, 0.3), keyed(run.seed, k)) for k in range(SPLITS)]
    for k, (a, b, c) in enumerate(run.progress(splits, description="splits")):
        found.append(contest(residuals[a], residuals[b], residuals[c], ALPHA, seed=k))
    parts = splits[0]
    table = over_splits(found)
    n_cal, n_test = len(parts[1]), len(parts[2])
    shown = ["method", "coverage", "coverage_se", "ratio", "ratio_low", "ratio_high"]
    run.table(
        table,
        f"Lower half of a digit from the upper: 8 outputs, {SPLITS} splits, volume relative to "
        "the ellipsoid",
        columns=shown,
    )
    coverages = {name: [one[name].coverage for one in found] for name in found[0]}
    run.figure(
        contest_figure(table, coverages, ALPHA, n_cal, n_test),
        "contest",
        f"Left: coverage on {n_test} test rows, a dot a split, with the band that "
        f"exchangeability gives for {n_cal} calibration rows. Right: volume of the 8-dimensional "
        "region relative to the ellipsoid.",
    )
    _draw_slices(run, found[0], residuals, parts, digits.outputs)

    model = MKSRegressor(FrozenEstimator(forest), alpha=ALPHA, random_state=run.seed)
    model.conformalize(X[:-1], Y[:-1])
    with warnings.catch_warnings(record=True):
        region = model.predict_region(X[-1:])
        truth = Y[-1]
        rest = region.condition({0: float(truth[0])})
        volume = region.volume(rng=run.seed)
        box = region.bounding_box()
    run.table(
        [
            {"output": name, "truth": t, "prediction": p, "low": low, "high": high}
            for name, t, p, low, high in zip(
                digits.outputs, truth, region.prediction[0], *box, strict=True
            )
        ],
        f"One digit: the box that encloses its region (p-value of the truth "
        f"{float(region.pvalue(truth[None])[0]):.2f})",
    )
    by_name = {row["method"]: row for row in table}
    best = by_name["MKS"]
    run.metrics |= {
        "alpha": ALPHA,
        "n_cal": n_cal,
        "coverage": best["coverage"],
        "coverage_se": best["coverage_se"],
        "volume": volume.value,
        "volume_se": volume.se,
        "volume_ratio_ellipsoid": best["ratio"],
        "volume_ratio_box": _quotient(best, by_name["box"]),
        "rest_holds_truth": bool(rest.contains(truth[None, 1:])[0]),
    }
    score: Any = model.score_
    chosen = score.diagnostics()
    run.metrics |= {key: chosen[key] for key in ("bandwidth", "lam", "effective_rank")}


def _quotient(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    return float(np.exp(ours["log_volume"] - theirs["log_volume"]))


def _draw_slices(
    run: Run,
    outcomes: dict[str, Outcome],
    residuals: np.ndarray,
    parts: list[np.ndarray],
    names: tuple[str, ...],
) -> None:
    """Slices of three regions of residuals over the two largest components."""
    grids = {}
    for name in ("MKS", "ellipsoid", "box"):
        score = outcomes[name].score
        held = Calibration(score.score_samples(residuals[parts[1]]), None, score.resolution_)
        zero = np.zeros((1, residuals.shape[1]))
        law = SplitLaw(score, zero, ALPHA, (held,), np.zeros(1, dtype=int))
        grids[name] = RegionSet(law).grid2d(dims=(0, 1))
    run.figure(
        slices_figure(
            grids, residuals[parts[2]], (0, 1), (f"residual of {names[0]}", f"of {names[1]}")
        ),
        "slices",
        "Slices of three regions at alpha .1, the other six outputs at their mean residual; dots "
        "are all test residuals, whose other outputs differ, so that many lie outside the slices.",
    )
