"""Peers on the same rows: built-in ones, MAPIE's local ellipsoids, optimal-transport ranks."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from armillary import MissingExtra, require
from armillary.claims import Check, Effort, Measured
from armillary.randomness import keyed
from mks_conformal.conformal import Calibration
from mks_conformal.contest import METHODS, Outcome, contest, judge, over_splits
from mks_conformal.figures import contest_figure
from mks_conformal.fitted import as_score
from mks_conformal.quadratic import log_ball_volume
from mks_conformal.whitening import mahalanobis_whitening

from .protocol import Split, split_of

EXTRA = "mks-conformal[bench]"
ALPHA = 0.1


def peers(effort: Effort) -> Measured:
    """Every peer on digits, and on txhousing in the full measurement."""
    names = ("digits",) if effort.quick else ("digits", "txhousing")
    seeds = [effort.seed + k for k in range(1 if effort.quick else 3)]
    checks, rows, notes = [], [], []
    for name in effort.run.progress(names, description="peers"):
        found: list[dict[str, Outcome]] = []
        for seed in seeds:
            split = split_of(name, seed)
            one = contest(split.R_fit, split.R_cal, split.R_test, ALPHA, seed, methods=METHODS)
            for peer, measure in (("MAPIE", mapie), ("OT ranks", transport)):
                try:
                    one[peer] = measure(split, seed)
                except MissingExtra as error:
                    notes.append(f"{peer}: {error}")
            found.append(one)
        table = over_splits(found)
        rows += [{"data": name, **row} for row in table]
        for row in table:
            value = row["ratio"]
            assert isinstance(value, float)
            checks.append(Check(f"{name}: {row['method']} over ellipsoid", value))
        coverages = {peer: [one[peer].coverage for one in found] for peer in found[0]}
        split = split_of(name, effort.seed)
        effort.run.figure(
            contest_figure(table, coverages, ALPHA, len(split.R_cal), len(split.R_test)),
            f"peers-{name}",
            f"{name}, alpha {ALPHA:g}: coverage on test rows (a dot is a seed, the band holds 95 % "
            "of seeds if rows are exchangeable) and volume relative to the ellipsoid. MAPIE's "
            "volume differs by row: its geometric mean over test rows is shown.",
        )
    notes.append(
        "MAPIE's ellipsoids follow x; the other regions here are the same for every x. The "
        "optimal-transport rank is the discrete one, of the nearest reference in dual potentials; "
        "where points of small norm reach furthest in some direction its region is unbounded."
    )
    return Measured(checks, rows, list(dict.fromkeys(notes)))


def mapie(split: Split, seed: int) -> Outcome:
    """MAPIE's score with its own network for center and covariance, fitted on the same residuals.

    Raises
    ------
    MissingExtra
        Without MAPIE or torch.
    """
    torch: Any = require("torch", extra=EXTRA)
    module: Any = require("mapie.experimental", extra=EXTRA)
    torch.manual_seed(seed)
    score = module.MultivariateResidualNormalisedScore(random_state=seed)
    center, spread = split.X_fit.mean(axis=0), split.X_fit.std(axis=0) + 1e-9
    scale = split.R_fit.std(axis=0)  # a network wants inputs and outputs of unit size

    def standard(X: Any) -> Any:
        return ((X - center) / spread).astype(np.float32)

    def scored(X: Any, R: Any) -> Float[np.ndarray, " n"]:
        Z = (R / scale).astype(np.float32)
        found = score.get_signed_conformity_scores(Z, X=standard(X))
        return np.asarray(found, dtype=float)

    score.fit(standard(split.X_fit), (split.R_fit / scale).astype(np.float32))
    calibration = Calibration(scored(split.X_cal, split.R_cal))
    inside = calibration.inside(scored(split.X_test, split.R_test), ALPHA)
    q = float(calibration.quantile(ALPHA)[0])
    covariance = score.covariance_estimator_.get_covariance_matrix(standard(split.X_test))
    half = 0.5 * np.linalg.slogdet(np.asarray(covariance, dtype=float))[1]
    d = len(scale)
    log_volume = log_ball_volume(d) + d * np.log(q) + np.log(scale).sum() + float(half.mean())
    return Outcome(inside, float(log_volume), 0.0)


class TransportRank:
    """Norm of the rank that discrete optimal transport gives a residual (Thurin et al. 2025).

    Whitened residuals are matched with as many points of the spherical uniform law; a new one gets
    the point that its dual potentials make the cheapest, and its norm is the score.
    """

    def __init__(self, residuals: Float[np.ndarray, "n d"], seed: int) -> None:
        ot: Any = require("ot", extra=EXTRA)
        rng = keyed(seed, "ranks")
        self.white = mahalanobis_whitening(residuals)
        z = self.white(residuals)
        n, d = z.shape
        directions = rng.normal(size=(n, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        self.points = (np.arange(1, n + 1) / n)[:, None] * directions
        _, log = ot.emd([], [], self._cost(z), numItermax=1_000_000, log=True)
        self.potential = np.asarray(log["v"], dtype=float)

    def _cost(self, z: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m n"]:
        return (z**2).sum(axis=1)[:, None] + (self.points**2).sum(axis=1) - 2.0 * z @ self.points.T

    def score_samples(self, R: Float[np.ndarray, "m d"]) -> Float[np.ndarray, " m"]:
        """Norms of ranks."""
        nearest = (self._cost(self.white(R)) - self.potential).argmin(axis=1)
        return np.linalg.norm(self.points[nearest], axis=1)

    def unbounded(self, q: float, seed: int) -> bool:
        """Whether { score <= q } goes to infinity in some of many directions.

        Far out in a direction the cheapest point is the one that reaches furthest that way. In
        many dimensions the points of a sample are sparse, and it may well be one of small norm.
        """
        directions = keyed(seed, "directions").normal(size=(20_000, self.points.shape[1]))
        furthest = (directions @ self.points.T).argmax(axis=1)
        return bool((np.linalg.norm(self.points[furthest], axis=1) <= q).any())


def transport(split: Split, seed: int) -> Outcome:
    """Optimal-transport ranks, fitted on the same residuals.

    Raises
    ------
    MissingExtra
        Without POT.
    """
    rank = TransportRank(split.R_fit, seed)
    score = as_score(rank, split.R_fit)
    found = judge(score, split.R_fit, split.R_cal, split.R_test, ALPHA, rng=seed)
    q = float(Calibration(score.score_samples(split.R_cal)).quantile(ALPHA)[0])
    return replace(found, log_volume=np.inf) if rank.unbounded(q, seed) else found
