"""What the claims share: residuals of a forest on real data, the shapes, and intervals."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import t as student

from armillary import MissingExtra
from armillary.claims import Check, NotMeasured
from armillary.randomness import keyed
from mks_conformal import data
from mks_conformal.contest import Outcome, contest

__all__ = ["REAL", "Split", "check_range", "outcomes", "paired", "shapes", "split_of"]

REAL = ("digits", "cancer", "txhousing", "diamonds", "french")
MOST_TRAIN, MOST_SCORE, MOST_CAL = 1200, 900, 1200
TREES, LEAF = 60, 3
GAUSS_ROWS, GAUSS_D = 4000, 4


@dataclass(frozen=True, eq=False)
class Split:
    """Three parts of one data set: features and residuals of each."""

    X_fit: Any
    R_fit: Float[np.ndarray, "n d"]
    X_cal: Any
    R_cal: Float[np.ndarray, "c d"]
    X_test: Any
    R_test: Float[np.ndarray, "t d"]


@cache
def split_of(name: str, seed: int) -> Split:
    """A forest's out-of-bag residuals for the score, held-out ones for the rest.

    At most 1200 rows, and at most half, train the forest; the first 900 of them fit the score; at
    most 1200, and at most a quarter, calibrate; the rest test. `gauss` is residuals of that law.

    Raises
    ------
    NotMeasured
        Without the extra that carries the data.
    """
    from sklearn.ensemble import RandomForestRegressor

    rng = keyed(seed, name)
    if name == "gauss":
        R = data.synthetic("gauss", GAUSS_ROWS, GAUSS_D, rng)
        X = np.zeros((len(R), 1))
        a, b = MOST_SCORE, MOST_SCORE + MOST_CAL
        return Split(X[:a], R[:a], X[a:b], R[a:b], X[b:], R[b:])
    try:
        table = getattr(data, name)()
    except MissingExtra as error:
        raise NotMeasured(str(error)) from error
    order = rng.permutation(len(table.X))
    X, Y = table.X[order], table.Y[order]
    n_train = min(MOST_TRAIN, len(X) // 2)
    n_cal = min(MOST_CAL, len(X) // 4)
    a, b = n_train, n_train + n_cal
    forest = RandomForestRegressor(TREES, min_samples_leaf=LEAF, oob_score=True, random_state=seed)
    forest.fit(X[:a], Y[:a])
    n_score = min(MOST_SCORE, n_train)
    own: Any = forest.oob_prediction_
    held = Y[a:] - np.asarray(forest.predict(X[a:]))
    return Split(
        X[:n_score],
        Y[:n_score] - own[:n_score],
        X[a:b],
        held[:n_cal],
        X[b:],
        held[n_cal:],
    )


@cache
def outcomes(name: str, seed: int, alpha: float) -> dict[str, Outcome]:
    """Kernel score and ellipsoid on one split of a data set."""
    split = split_of(name, seed)
    return contest(
        split.R_fit, split.R_cal, split.R_test, alpha, seed, methods=("MKS", "ellipsoid", "box")
    )


@cache
def shapes(
    law: str, d: int, n_score: int, n_cal: int, alpha: float, seed: int
) -> dict[str, Outcome]:
    """The same on synthetic residuals; one sample a seed, whatever alpha."""
    rng = keyed(seed, law, d, n_score, n_cal)
    R = data.synthetic(law, n_score + n_cal + 2000, d, rng)
    a, b = n_score, n_score + n_cal
    return contest(R[:a], R[a:b], R[b:], alpha, seed, methods=("MKS", "ellipsoid"))


def log_ratio(found: dict[str, Outcome]) -> float:
    """Log volume of the kernel score's region over the ellipsoid's."""
    return found["MKS"].log_volume - found["ellipsoid"].log_volume


def check_range(
    name: str, log_ratios: list[float], at_least: float = 0.0, at_most: float = np.inf
) -> Check:
    """Geometric mean of ratios over seeds with their range."""
    ratios = np.exp(log_ratios)
    mean = float(np.exp(np.mean(log_ratios)))
    return Check(
        f"{name} (mean, range over {len(ratios)} seeds)",
        mean,
        float(ratios.min()),
        float(ratios.max()),
        at_least=at_least,
        at_most=at_most,
    )


def paired(values: list[float]) -> tuple[float, float, float]:
    """Mean and 95 % t-interval."""
    array = np.asarray(values, dtype=float)
    mean = float(array.mean())
    half = float(student.ppf(0.975, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array)))
    return mean, mean - half, mean + half
