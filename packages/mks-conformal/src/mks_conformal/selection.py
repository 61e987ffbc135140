"""Bandwidth and ridge by held-out volume, the ellipsoid being one of the candidates.

Two swapped folds of the score-fitting residuals: the score is fitted on one, its quantile taken
on the other, and the log volume of the sublevel set estimated with one set of proposals for all
candidates (common random numbers). One eigendecomposition a fold and bandwidth serves every
ridge, by equation (4). No calibration row is touched, so coverage stays intact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from joblib import Parallel, delayed

from .body import thin
from .conformal import TIE_TOLERANCE, Calibration
from .kernels import Foreign, Kernel, squared_distances
from .proposal import Proposal
from .quadratic import Quadratic
from .score import centring, check_positive_definite

__all__ = ["BANDWIDTHS", "LAMS", "Candidate", "Selection", "median_distance", "select_score"]

BANDWIDTHS = (0.15, 0.25, 0.4, 0.7, 1.1, 1.8, 3.0, 5.0)  # times the median pairwise distance
LAMS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, np.inf)
MAX_ROWS = 1000
LEAST_ROWS = 40
N_PROPOSALS = 4000
LEAST_INSIDE = 50
LEAST_GAIN = 0.05  # in log volume: a small-sample guard


@dataclass(frozen=True)
class Candidate:
    """A kernel, with the bandwidth that made it, and the ridges to try with it."""

    kernel: Kernel
    bandwidth: float | None
    lams: tuple[float, ...]


@dataclass(frozen=True)
class Selection:
    """What won; `kernel` None stands for the ellipsoid."""

    kernel: Kernel | None
    bandwidth: float | None
    lam: float | None
    table: list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class _Trial:
    """One score in one fold: which proposals lie inside, and the least log volume it can have."""

    inside: Bool[np.ndarray, " p"]
    floor: float  # of its far ellipsoid; inf when the set is unbounded


def median_distance(z: Float[np.ndarray, "n d"], rng: np.random.Generator) -> float:
    """Median pairwise distance of at most 300 rows."""
    rows = z if len(z) <= 300 else z[rng.choice(len(z), 300, replace=False)]
    squares = squared_distances(rows, rows)[np.triu_indices(len(rows), 1)]
    median = float(np.sqrt(np.median(squares)))
    # more than half of the pairs equal: any width will do that sees the others
    return median if median > 0 else float(np.sqrt(squares.mean())) or 1.0


def select_score(
    z: Float[np.ndarray, "n d"],
    candidates: Sequence[Candidate],
    alpha: float,
    centered: bool,
    rng: np.random.Generator,
) -> Selection:
    """The candidate of smallest mean held-out log volume, or the ellipsoid.

    The ellipsoid stays unless the winner beats it by more than max(0.05, 2 se of the paired
    difference), and always under 40 rows. A candidate with fewer than 50 proposals inside in
    either fold is out: log 0 would win.
    """
    if len(z) < LEAST_ROWS:
        return Selection(None, None, None, [])
    z = z[rng.permutation(len(z))[:MAX_ROWS]]
    half = len(z) // 2
    folds = [(z[:half], z[half:]), (z[half:], z[:half])]
    level = max(alpha, 2.0 / (len(z) - half + 1), 2.0 / (half + 1))
    proposal = Proposal(thin(z), 1.2 * float(np.linalg.norm(z, axis=1).max()))
    points = proposal.draw(N_PROPOSALS, rng)
    log_weights = -proposal.log_density(points)
    weights = np.exp(log_weights - log_weights.max())
    shift = float(log_weights.max()) - np.log(N_PROPOSALS)

    tasks = [(candidate, fold) for candidate in candidates for fold in folds]
    trials: Any = Parallel()(
        delayed(_trials)(candidate, *fold, points, level, centered) for candidate, fold in tasks
    )
    round_ = [_ellipsoid_trial(held, points, level) for _, held in folds]
    table: list[dict[str, Any]] = []
    best, best_volume, best_trials = None, np.inf, round_

    def row(
        kernel: str, bandwidth: float | None, lam: float | None, pair: Sequence[_Trial]
    ) -> float:
        sums = [float(weights[trial.inside].sum()) for trial in pair]
        n_inside = min(int(trial.inside.sum()) for trial in pair)
        volumes = [
            max(np.log(total) + shift, trial.floor) if total > 0 else np.inf
            for total, trial in zip(sums, pair, strict=True)
        ]
        mean = float(np.mean(volumes)) if n_inside >= LEAST_INSIDE else np.inf
        entry = {"kernel": kernel, "bandwidth": bandwidth, "lam": lam}
        table.append({**entry, "log_volume": mean, "n_inside": n_inside})
        return mean

    for i, candidate in enumerate(candidates):
        for j, lam in enumerate(candidate.lams):
            pair = [trials[2 * i][j], trials[2 * i + 1][j]]
            volume = row("kernel", candidate.bandwidth, lam, pair)
            if volume < best_volume:
                best, best_volume, best_trials = (candidate, lam), volume, pair
    ellipsoid_volume = row("ellipsoid", None, None, round_)
    gain = ellipsoid_volume - best_volume
    if best is None or not gain > max(LEAST_GAIN, 2.0 * _paired_se(weights, best_trials, round_)):
        return Selection(None, None, None, table)
    return Selection(best[0].kernel, best[0].bandwidth, best[1], table)


def _trials(
    candidate: Candidate,
    reference: Float[np.ndarray, "n d"],
    held: Float[np.ndarray, "h d"],
    points: Float[np.ndarray, "p d"],
    level: float,
    centered: bool,
) -> list[_Trial]:
    """Every ridge of one candidate in one fold, from one eigendecomposition."""
    kernel, n = candidate.kernel, len(reference)
    K = kernel(reference, reference)
    if isinstance(kernel, Foreign):
        check_positive_definite(K, centered)
    row_means, grand_mean = centring(K, centered)
    K -= row_means
    K -= (row_means - grand_mean)[:, None]
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0)
    everything = np.concatenate([held, points])
    rows = kernel(everything, reference)
    prior = kernel.diag(everything)
    if centered:
        means = rows.mean(axis=1)
        prior = prior - 2.0 * means + grand_mean
        rows -= means[:, None]
        rows -= row_means - grand_mean
    squares = (rows @ vectors) ** 2
    lams = np.array(candidate.lams)
    shrink = 1.0 / (values[:, None] + n * lams)
    scores = np.maximum(prior[:, None] - squares @ shrink, 0.0)
    far = _far(kernel, reference, row_means, grand_mean, vectors, centered)
    out = []
    for j in range(len(lams)):
        calibration = Calibration(scores[: len(held), j])
        q = float(calibration.quantile(level)[0])
        tolerance = TIE_TOLERANCE * max(1.0, abs(q))
        inside = scores[len(held) :, j] <= q + tolerance
        out.append(_Trial(inside, -np.inf if far is None else _floor(far, shrink[:, j], q)))
    return out


_Far = tuple[
    float, Float[np.ndarray, " d"], float, Float[np.ndarray, "n d"], Float[np.ndarray, " n"]
]


def _far(
    kernel: Kernel,
    reference: Float[np.ndarray, "n d"],
    row_means: Float[np.ndarray, " n"],
    grand_mean: float,
    vectors: Float[np.ndarray, "n n"],
    centered: bool,
) -> _Far | None:
    """The far quadratic in the eigenbasis: what every ridge shares."""
    tail = kernel.tail
    if tail is None:
        return None
    middle = reference.mean(axis=0) if centered else np.zeros(reference.shape[1])
    X = vectors.T @ (tail.slope * (reference - middle))
    v = vectors.T @ (grand_mean - row_means)
    return tail.constant + grand_mean, -2.0 * tail.slope * middle, tail.slope, X, v


def _floor(far: _Far, shrink: Float[np.ndarray, " n"], q: float) -> float:
    """Log volume of the far ellipsoid below q: proposals rarely reach it, the set holds it."""
    constant, linear, slope, X, v = far
    weighted = X * shrink[:, None]
    quadratic = Quadratic(
        constant - float((v * shrink) @ v),
        linear - 2.0 * weighted.T @ v,
        slope * np.eye(X.shape[1]) - weighted.T @ X,
    )
    if q < quadratic.minimum:
        return -np.inf
    ellipsoid = quadratic.sublevel(q)
    return np.inf if ellipsoid is None else ellipsoid.log_volume


def _ellipsoid_trial(
    held: Float[np.ndarray, "h d"], points: Float[np.ndarray, "p d"], level: float
) -> _Trial:
    q = float(Calibration(np.einsum("ij,ij->i", held, held)).quantile(level)[0])
    return _Trial(np.einsum("ij,ij->i", points, points) <= q, -np.inf)


def _paired_se(
    weights: Float[np.ndarray, " p"], ours: Sequence[_Trial], theirs: Sequence[_Trial]
) -> float:
    """Standard error of the mean difference of log volumes over the folds, by the delta method."""
    influence = np.zeros(len(weights))
    for one, other in zip(ours, theirs, strict=True):
        for trial, sign in ((one, 0.5), (other, -0.5)):
            masked = weights * trial.inside
            influence += sign * masked / max(float(masked.mean()), 1e-300)
    return float(influence.std() / np.sqrt(len(weights)))
