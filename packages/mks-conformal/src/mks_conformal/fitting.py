"""What the verbs do: a region from a table or from pairs, its figures, and verdicts in a stream."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from armillary import InputError
from armillary.parallel import map_jobs
from armillary.randomness import as_generator, keyed

from .baselines import box_score, ellipsoid_score
from .checks import check_alpha
from .conformal import Calibration, conformal_quantile, misses_allowed, rows_needed
from .contest import Outcome, contest, enough_rows, parts_of
from .estimator import MKSRegressor
from .io import Pairs, read_features
from .kernel_score import MultivariateKernelScore
from .law import SplitLaw
from .mondrian import CalibrationSet
from .region import RegionSet

__all__ = ["Fitted", "calibrate_pairs", "compared", "fit_table", "verdicts"]

CHUNK = 20_000  # candidates judged at once

Residuals = Float[np.ndarray, "n d"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A region, the outputs' names, and what is to be said of it."""

    region: RegionSet
    names: tuple[str, ...]
    metrics: dict[str, Any]


def fit_table(
    data: Path,
    targets: str,
    features: str | None,
    *,
    estimator: str,
    alpha: float,
    method: str,
    test_size: float,
    predict: Path | None,
    seed: int,
    jobs: int,
) -> Fitted:
    """Fit a regressor to a table; see the verb `fit`."""
    check_alpha(alpha, "--alpha")
    X, Y, names = read_features(data, targets, features)
    kept, tested = _test_rows(len(Y), test_size, seed)
    model = MKSRegressor(
        _estimator(estimator, Y.shape[1], seed),
        alpha=alpha,
        method=method,
        random_state=seed,
        n_jobs=jobs,
    )
    import pandas

    table = pandas.DataFrame(Y, columns=list(names))
    model.fit(X.iloc[kept], table.iloc[kept])
    asked = X
    if predict is not None:
        from armillary.files import read_table

        asked = read_table(predict, number=list(X.columns))[list(X.columns)]
    region = model.predict_region(asked)
    region.names = names
    metrics = _metrics(region, model.score_, model.calibration_residuals_, seed)
    inside = None
    if len(tested):
        inside = model.predict_region(X.iloc[tested]).contains(Y[tested])
    return Fitted(region, names, metrics | _coverage(inside))


def calibrate_pairs(
    pairs: Pairs, *, alpha: float, score_size: float, test_size: float, seed: int
) -> Fitted:
    """A region around any model's predictions; see the verb `calibrate`."""
    check_alpha(alpha, "--alpha")
    if not 0 < score_size < 1:
        raise InputError("--score-size", found=score_size, expected="between 0 and 1")
    residuals, names = pairs.residuals, pairs.true
    kept, tested = _test_rows(len(residuals), test_size, seed)
    order = as_generator(seed).permutation(kept)
    n_score = round(score_size * len(kept))
    fitting, held = np.sort(order[:n_score]), np.sort(order[n_score:])
    least = residuals.shape[1] + 2  # below it no ellipsoid can be fitted
    if n_score < least or not len(held):
        raise InputError(
            "rows",
            found=f"{len(residuals)}: {n_score} for the score, {len(held)} to calibrate",
            expected=f"at least {least} for the score and 1 to calibrate",
            instead="bring more rows, or change --score-size or --test-size",
        )
    score = MultivariateKernelScore(alpha=alpha, random_state=seed)
    score.fit_rows(residuals[fitting], names)
    scores = score.score_samples(residuals[held])
    known = CalibrationSet.build(scores, None, None, score.resolution_)
    m = len(residuals)
    law = SplitLaw(score, pairs.prediction, alpha, known.calibrations, np.zeros(m, dtype=int))
    known.warn(law, None, stacklevel=2)
    region = RegionSet(law, names)
    inside = None
    if len(tested):
        calibration = known.calibrations[0]
        inside = calibration.inside(score.score_samples(residuals[tested]), alpha)
    return Fitted(region, names, _metrics(region, score, residuals[held], seed) | _coverage(inside))


def _estimator(name: str, d: int, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.multioutput import MultiOutputRegressor

    if name == "ridge":
        return Ridge()
    if name == "forest":
        return RandomForestRegressor(200, random_state=seed)
    boosting = HistGradientBoostingRegressor(random_state=seed)
    return boosting if d == 1 else MultiOutputRegressor(boosting)


def _test_rows(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if not 0 <= share < 1:
        raise InputError("--test-size", found=share, expected="at least 0 and below 1")
    order = keyed(seed, "test rows").permutation(n)
    n_test = round(share * n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _coverage(inside: Bool[np.ndarray, " t"] | None) -> dict[str, Any]:
    if inside is None:
        return {"coverage": None, "coverage_se": None, "n_test": 0}
    share = float(inside.mean())
    error = float(np.sqrt(share * (1 - share) / len(inside)))
    return {"coverage": share, "coverage_se": error, "n_test": len(inside)}


def _metrics(region: RegionSet, score: Any, held: Residuals, seed: int) -> dict[str, Any]:
    """What a region is worth beside an ellipsoid and a box of the same rows."""
    alpha, n = region.alpha, len(held)
    bounded = misses_allowed(n, alpha) >= 1
    chosen = score.diagnostics()
    out: dict[str, Any] = {"alpha": alpha, "n_cal": n, "n_cal_needed": rows_needed(alpha)}
    out |= {"guarantee": region.guarantee, "bounded": bounded, "n_score": len(score.references_)}
    volume = region.volume(rng=seed)
    out |= {"volume": volume.value, "volume_se": volume.se, "log_volume": volume.log_value}
    out |= {"bounded": volume.bounded, "plateau": volume.plateau}
    for name, make in (("ellipsoid", ellipsoid_score), ("box", box_score)):
        ratio = None
        if bounded and volume.bounded:
            peer = make(score.references_)
            shape = peer.closed_form(conformal_quantile(peer.score_samples(held), alpha))
            if shape is not None:
                ratio = float(np.exp(volume.log_value - shape.log_volume))
        out[f"volume_ratio_{name}"] = ratio
    return out | {key: chosen[key] for key in ("selected", "bandwidth", "lam", "effective_rank")}


def verdicts(
    region: RegionSet, targets: Residuals
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """First row, scores, p-values and membership, a chunk of candidates at a time.

    Parameters
    ----------
    region
        One region a candidate.
    targets
        The candidates.
    """
    for start in range(0, len(targets), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(targets)))
        part, law = targets[rows], region.law
        scores = law.score(part, rows)
        if isinstance(law, SplitLaw) and len(law.calibrations) == 1 and law.test_weight is None:
            # p-value and membership come from the score, which costs the most
            calibration: Calibration = law.calibrations[0]
            yield start, scores, calibration.pvalue(scores), calibration.inside(scores, law.alpha)
        else:
            yield start, scores, law.pvalue(part, rows), law.inside(part, rows)


def compared(
    residuals: Residuals, alpha: float, splits: int, seed: int, jobs: int
) -> tuple[list[dict[str, Outcome]], tuple[int, int]]:
    """One contest a random split, and the numbers of calibration and test rows."""
    n = len(residuals)
    enough_rows(n, residuals.shape[1])

    def one(split: int) -> dict[str, Outcome]:
        rng = keyed(seed, "split", split)
        fitting, held, tested = (residuals[rows] for rows in parts_of(n, (0.4, 0.3, 0.3), rng))
        found = contest(fitting, held, tested, alpha, seed=split)
        return {
            name: Outcome(o.inside, o.log_volume, o.relative_se, o.plateau)
            for name, o in found.items()
        }

    found = map_jobs(one, range(splits), jobs=jobs, description="splits")
    parts = parts_of(n, (0.4, 0.3, 0.3), keyed(seed, "split", 0))
    return found, (len(parts[1]), len(parts[2]))
