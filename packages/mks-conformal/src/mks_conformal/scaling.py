"""Regions that change their size and shape with x: residuals divided by a local factor L(x).

`KnnScale` takes the covariance of the out-of-fold residuals of the k nearest training rows,
shrunk to the global one. Anything with ``fit(X, residuals)`` and ``factor(X) -> (n, d, d)``, lower
triangular, goes in its place.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.neighbors import NearestNeighbors

from armillary import InputError

from .checks import as_rows

__all__ = ["KnnScale", "as_scale", "checked_factor", "divided", "factors_for_training"]


class KnnScale:
    """Local covariance C(x) = (1 - rho) C_loc + rho C, rho = d / (d + k), and its factor.

    k = clip(10 d, 50, n / 4) neighbours in standardised x; a training row is left out of its own
    neighbourhood.
    """

    def fit(self, X: Any, residuals: Float[np.ndarray, "n d"]) -> "KnnScale":
        """Keep the training rows and their out-of-fold residuals."""
        rows = as_rows(X, "X")
        n, d = residuals.shape
        self.residuals_ = residuals
        self.mean_ = rows.mean(axis=0)
        sd = rows.std(axis=0)
        self.sd_ = np.where(sd > 0, sd, 1.0)
        self.k_ = int(np.clip(10 * d, 50, max(n // 4, 1)))
        self.global_ = np.atleast_2d(np.cov(residuals, rowvar=False, bias=True))
        self.neighbours_ = NearestNeighbors(n_neighbors=self.k_).fit(self._standardised(rows))
        return self

    def _standardised(self, rows: Float[np.ndarray, "m p"]) -> Float[np.ndarray, "m p"]:
        return (rows - self.mean_) / self.sd_

    def training_factor(self) -> Float[np.ndarray, "n d d"]:
        """L at the training rows, each without itself."""
        return self._factor(self.neighbours_.kneighbors(return_distance=False))

    def factor(self, X: Any) -> Float[np.ndarray, "m d d"]:
        """L at new rows."""
        rows = self._standardised(as_rows(X, "X", width=len(self.mean_)))
        return self._factor(self.neighbours_.kneighbors(rows, return_distance=False))

    def _factor(self, indices: Any) -> Float[np.ndarray, "m d d"]:
        d = self.residuals_.shape[1]
        rho = d / (d + self.k_)
        out = np.empty((len(indices), d, d))
        for start in range(0, len(indices), 4096):
            local = self.residuals_[indices[start : start + 4096]]
            local = local - local.mean(axis=1, keepdims=True)
            covariance = np.einsum("nki,nkj->nij", local, local) / self.k_
            out[start : start + 4096] = (1 - rho) * covariance + rho * self.global_
        try:
            return np.linalg.cholesky(out)
        except np.linalg.LinAlgError as error:
            raise InputError("residuals", expected="no constant or dependent output") from error


def as_scale(scale: Any) -> Any:
    """None for ``"global"``, a `KnnScale` for ``"knn"``, else the object itself.

    Raises
    ------
    InputError
        If it is neither a known name nor has `fit` and `factor`.
    """
    if isinstance(scale, str):
        if scale == "global":
            return None
        if scale == "knn":
            return KnnScale()
    elif hasattr(scale, "fit") and hasattr(scale, "factor"):
        return scale
    raise InputError("scale", found=repr(scale), expected="'global', 'knn' or fit(X, R), factor(X)")


def checked_factor(factor: Any, n: int, d: int) -> Float[np.ndarray, "n d d"]:
    """A user's factors: finite, lower triangular, positive on the diagonal.

    Raises
    ------
    InputError
        Otherwise.
    """
    array = np.asarray(factor, dtype=float)
    if array.shape != (n, d, d):
        raise InputError("scale.factor", expected=f"shape {(n, d, d)}", found=f"{array.shape}")
    if not np.isfinite(array).all() or np.any(np.triu(array, 1)):
        raise InputError("scale.factor", expected="finite lower triangular matrices")
    if not (np.diagonal(array, axis1=1, axis2=2) > 0).all():
        raise InputError("scale.factor", expected="a positive diagonal")
    return array


def factors_for_training(scale: Any, X: Any, n: int, d: int) -> Float[np.ndarray, "n d d"]:
    """L at the rows that the scale was fitted on, each without itself where it knows how."""
    if hasattr(scale, "training_factor"):
        return scale.training_factor()
    return checked_factor(scale.factor(X), n, d)


def divided(
    residuals: Float[np.ndarray, "n d"], factor: Float[np.ndarray, "n d d"]
) -> Float[np.ndarray, "n d"]:
    """L^-1 r, row by row."""
    return np.linalg.solve(factor, residuals[:, :, None])[:, :, 0]
