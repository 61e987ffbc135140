"""Every way to make a region, on the same residuals: coverage and volume of each.

The same three parts serve every method: one fits the score, one calibrates it, one tests it.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from armillary import InputError

from .baselines import bonferroni_box, box_score, ellipsoid_score
from .conformal import Calibration
from .fitted import ResidualScore
from .kernel_score import MultivariateKernelScore
from .volume import PlateauWarning, VolumeWarning, region_volume

__all__ = ["METHODS", "Outcome", "contest", "density_score", "judge", "over_splits", "parts_of"]

POINTS = 16_000  # proposals of a volume
METHODS = ("MKS", "KDE", "ellipsoid", "box", "Bonferroni")

Residuals = Float[np.ndarray, "n d"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method made of one split."""

    inside: Bool[np.ndarray, " t"]  # which test rows the region holds
    log_volume: float
    relative_se: float  # of the volume; 0 for a closed form
    plateau: bool = False
    score: Any = None

    @property
    def coverage(self) -> float:
        """Share of test rows inside."""
        return float(self.inside.mean())


def density_score(residuals: Residuals, alpha: float, seed: int) -> MultivariateKernelScore:
    """The kernel density score (lam = inf) of the bandwidth with the least held-out volume.

    Without the ellipsoid as a way out, which is no density score.
    """
    options: dict[str, Any] = {"lam": np.inf, "alpha": alpha, "random_state": seed}
    score = MultivariateKernelScore(**options).fit(residuals)
    if score.kernel_ is None and score.table_:
        kernels = [row for row in score.table_ if row["bandwidth"] is not None]
        best = min(kernels, key=lambda row: row["log_volume"])
        score = MultivariateKernelScore(bandwidth=best["bandwidth"], **options).fit(residuals)
    return score


def judge(
    score: ResidualScore,
    fitting: Residuals,
    calibrating: Float[np.ndarray, "c d"],
    testing: Float[np.ndarray, "t d"],
    alpha: float,
    *,
    points: int = POINTS,
    rng: Any = 0,
) -> Outcome:
    """Calibrate a fitted score and see what its region holds and how large it is."""
    calibration = Calibration(score.score_samples(calibrating), None, score.resolution_)
    inside = calibration.inside(score.score_samples(testing), alpha)
    q = float(calibration.quantile(alpha)[0])
    with warnings.catch_warnings():
        # the outcome carries both, and a table of many would drown in them
        warnings.simplefilter("ignore", VolumeWarning)
        warnings.simplefilter("ignore", PlateauWarning)
        volume = region_volume(score, q, fitting, rtol=1e-9, max_points=points, rng=rng)
    relative = volume.se / volume.value if 0 < volume.value < np.inf else 0.0
    return Outcome(inside, volume.log_value, relative, volume.plateau, score)


def contest(
    fitting: Residuals,
    calibrating: Float[np.ndarray, "c d"],
    testing: Float[np.ndarray, "t d"],
    alpha: float,
    seed: int = 0,
    methods: Sequence[str] = METHODS,
) -> dict[str, Outcome]:
    """One outcome a method, all on the same rows."""
    makers: dict[str, Callable[[], Any]] = {
        "MKS": lambda: MultivariateKernelScore(alpha=alpha, random_state=seed).fit(fitting),
        "KDE": lambda: density_score(fitting, alpha, seed),
        "ellipsoid": lambda: ellipsoid_score(fitting),
        "box": lambda: box_score(fitting),
    }
    found: dict[str, Outcome] = {}
    for name in methods:
        if name == "Bonferroni":
            box = bonferroni_box(fitting, calibrating, alpha)
            found[name] = Outcome(box.contains(testing), box.log_volume, 0.0)
        else:
            found[name] = judge(makers[name](), fitting, calibrating, testing, alpha, rng=seed)
    return found


def parts_of(n: int, shares: Sequence[float], rng: np.random.Generator) -> list[np.ndarray]:
    """Random parts of n rows with these shares; the last takes what is left."""
    order = rng.permutation(n)
    ends = np.floor(np.cumsum(shares[:-1]) * n + 1e-9).astype(int)
    return [np.sort(part) for part in np.split(order, ends)]


def over_splits(
    found: Sequence[dict[str, Outcome]], *, baseline: str = "ellipsoid"
) -> list[dict[str, object]]:
    """A row a method: means over splits, with the standard error of the mean.

    Ratios are means of logs, exponentiated, of pairs of the same split.
    """
    rows: list[dict[str, object]] = []
    for name in found[0]:
        coverage = np.array([split[name].coverage for split in found])
        logs = np.array([split[name].log_volume for split in found])
        base = np.array([split[baseline].log_volume for split in found])
        finite = np.isfinite(logs).all() and np.isfinite(base).all()
        gaps = logs - base if finite else np.full(len(logs), np.nan)
        error = _error(gaps)
        rows.append(
            {
                "method": name,
                "coverage": float(coverage.mean()),
                "coverage_se": _error(coverage),
                "log_volume": float(logs.mean()),
                "volume": float(np.exp(min(logs.mean(), 700.0))) if finite else float("inf"),
                "ratio": float(np.exp(gaps.mean())) if finite else float("inf"),
                "ratio_low": float(np.exp(gaps.mean() - 1.96 * error)),
                "ratio_high": float(np.exp(gaps.mean() + 1.96 * error)),
            }
        )
    return rows


def _error(values: Float[np.ndarray, " k"]) -> float:
    """Standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def enough_rows(n: int, d: int) -> None:
    """Refuse a table too small to be split in three."""
    least = int(np.ceil((d + 2) / 0.3)) + 1
    if n < least:
        raise InputError("rows", found=n, expected=f"at least {least} for {d} output(s)")
