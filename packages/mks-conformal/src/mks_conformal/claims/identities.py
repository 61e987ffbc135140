"""The score in its several forms, each computed apart, and its two limits."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve
from scipy.stats import spearmanr

from armillary.claims import Check, Effort, Measured
from mks_conformal.data import synthetic
from mks_conformal.kernels import Gaussian, Linear
from mks_conformal.score import mks_score
from mks_conformal.whitening import mahalanobis_whitening

LAM = 1e-2
Rows = Float[np.ndarray, "n d"]
Points = Float[np.ndarray, "m d"]


def identities(effort: Effort) -> Measured:
    """Equations (1) and (3) to (7), differences relative to k(r, r)."""
    rng = np.random.default_rng(effort.seed)
    R, new = rng.normal(size=(200, 3)), 1.5 * rng.normal(size=(100, 3))
    kernel = Gaussian(1.2)
    found = {
        "(7) and scikit-learn's variance": _against_gp(R, new),
        "(3) and (1), linear features": _against_features(R, new, Linear(0.5), _linear),
        "(3) and (1), squares of linear": _against_features(
            R, new, Linear(0.5) * Linear(0.5), _squares
        ),
        "(3) and (4), MMD less kernel PCA": _against_pca(R, new, kernel),
        "(3) and (6), universal kriging": _against_kriging(R, new, kernel),
    }
    checks = [Check(name, value, at_most=1e-8) for name, value in found.items()]
    large = mks_score(new, R, kernel=kernel, lam=1e8)
    infinite = mks_score(new, R, kernel=kernel, lam=np.inf)
    white = mahalanobis_whitening(R)(new)
    small = mks_score(new, R, kernel=Linear(1.0), lam=1e-8, scale="mahalanobis")
    exact = np.sum(white**2, axis=1)
    checks += [
        Check("(5) lam = 1e8 and inf, relative", _relative(large, infinite), at_most=1e-5),
        Check("(5) lam = 1e-8 and Mahalanobis", _relative(small, exact), at_most=1e-5),
    ]
    return Measured(checks, scope="200 Gaussian references in 3 dimensions, 100 points")


def _relative(ours: Float[np.ndarray, " m"], theirs: Float[np.ndarray, " m"]) -> float:
    return float(np.abs(ours / theirs - 1).max())


def _against_gp(R: Rows, new: Points) -> float:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    options: Any = {"alpha": len(R) * LAM, "optimizer": None}
    gp = GaussianProcessRegressor(RBF(1.2), **options).fit(R, np.zeros(len(R)))
    sd = np.asarray(gp.predict(new, return_std=True)[1], dtype=float)
    ours = mks_score(new, R, kernel=Gaussian(1.2), lam=LAM, centered=False)
    return float(np.abs(ours - sd**2).max())  # k(r, r) = 1


def _linear(rows: Rows) -> Float[np.ndarray, "n p"]:
    return np.sqrt(0.5) * rows


def _squares(rows: Rows) -> Float[np.ndarray, "n p"]:
    flat = rows[:, :, None] * rows[:, None, :]
    return 0.5 * flat.reshape(len(rows), -1)


def _against_features(R: Rows, new: Points, kernel: Any, features: Any) -> float:
    known, asked = features(R), features(new)
    mean = known.mean(axis=0)
    S = np.cov(known.T, bias=True)
    centred = asked - mean
    theirs = LAM * np.einsum(
        "ij,ji->i", centred, solve(S + LAM * np.eye(len(S)), centred.T, assume_a="pos")
    )
    ours = mks_score(new, R, kernel=kernel, lam=LAM)
    return float((np.abs(ours - theirs) / kernel.diag(new)).max())


def _centred(R: Rows, new: Points, kernel: Any) -> tuple[Any, Any, Any]:
    K, rows = kernel(R, R), kernel(new, R)
    J = np.eye(len(R)) - 1 / len(R)
    mmd = kernel.diag(new) - 2 * rows.mean(axis=1) + K.mean()
    return J @ K @ J, (rows - K.mean(axis=0)) @ J, mmd


def _against_pca(R: Rows, new: Points, kernel: Any) -> float:
    Kc, rows, mmd = _centred(R, new, kernel)
    values, vectors = np.linalg.eigh(Kc)
    theirs = mmd - ((rows @ vectors) ** 2 / (np.maximum(values, 0) + len(R) * LAM)).sum(axis=1)
    return float(np.abs(mks_score(new, R, kernel=kernel, lam=LAM) - theirs).max())


def _against_kriging(R: Rows, new: Points, kernel: Any) -> float:
    n = len(R)
    A = kernel(R, R) + n * LAM * np.eye(n)
    rows = kernel(new, R)
    solved = np.linalg.solve(A, np.column_stack([rows.T, np.ones(n)]))
    ones = solved[:, -1]
    variance = kernel.diag(new) - np.einsum("ij,ji->i", rows, solved[:, :-1])
    variance += (1 - rows @ ones) ** 2 / ones.sum()
    ours = mks_score(new, R, kernel=kernel, lam=LAM)
    return float(np.abs(ours + LAM - variance).max())


def interpolation(effort: Effort) -> Measured:
    """exp, d = 4, 500 references, 1000 points, whitened."""
    R = synthetic("exp", 1500, 4, effort.seed)
    white = mahalanobis_whitening(R[:500])
    known, new = white(R[:500]), white(R[500:])
    squares = ((new[:, None, :] - known[None, :, :]) ** 2).sum(axis=2)
    density = np.exp(-squares / 2).mean(axis=1)
    wide = mks_score(new, known, kernel=Gaussian(1.0), lam=1e6)
    both = mks_score(new, known, kernel=Gaussian(50.0) + Linear(0.01), lam=1e-3)
    one: Any = spearmanr(wide, -density)
    two: Any = spearmanr(both, np.sum(new**2, axis=1))
    return Measured(
        [
            Check("Spearman with -KDE, lam 1e6, h 1", float(one.statistic), at_least=0.9999),
            Check("Spearman with Mahalanobis, h 50", float(two.statistic), at_least=0.9999),
        ]
    )
