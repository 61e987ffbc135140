"""Whitened coordinates z = W (r - m): unit covariance, whatever the units of the outputs.

Each output is divided by its standard deviation first and only then are the outputs
decorrelated, so that units a factor 1e9 apart do no harm. W is fixed up to a rotation, which no
radial kernel sees.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from armillary import InputError

from .checks import label

__all__ = ["Whitening", "fit_whitening", "identity", "mahalanobis_whitening"]
__all__ += ["proposal_whitening"]

RANK_TOLERANCE = 1e-12  # of the largest eigenvalue of the correlation matrix
ROBUST_ROUNDS = 3
ROBUST_SHARE = 0.9


@dataclass(frozen=True, eq=False)
class Whitening:
    """The map z = matrix (r - location) and back."""

    location: Float[np.ndarray, " d"]
    matrix: Float[np.ndarray, "d d"]
    inverse: Float[np.ndarray, "d d"]

    def __call__(self, residuals: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Whiten residuals."""
        return (residuals - self.location) @ self.matrix.T

    def back(self, z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Residuals from their whitened form."""
        return z @ self.inverse.T + self.location

    @property
    def log_volume_scale(self) -> float:
        """Log |det W^-1|: what turns a whitened log volume into one in the outputs' units."""
        return float(np.linalg.slogdet(self.inverse)[1])


def identity(d: int) -> Whitening:
    """The whitening that changes nothing."""
    return Whitening(np.zeros(d), np.eye(d), np.eye(d))


def fit_whitening(
    residuals: Float[np.ndarray, "n d"], how: Any = "cov", names: Sequence[str] | None = None
) -> Whitening:
    """Location and whitening matrix of residuals.

    Parameters
    ----------
    residuals
        Rows to learn from; at least d + 2.
    how
        ``"cov"`` (mean and covariance), ``"robust"`` (three rounds of keeping the 90 % of
        smallest Mahalanobis distance), ``"none"``, or a fitted affine transformer with
        `transform`, such as scikit-learn's ``StandardScaler`` or ``PCA(whiten=True)``.
    names
        Names of the outputs, for messages.

    Raises
    ------
    InputError
        If an output is constant, outputs are linearly dependent, or the transformer is not an
        invertible affine map.
    """
    if isinstance(how, str):
        if how == "cov":
            return mahalanobis_whitening(residuals, names)
        if how == "none":
            return identity(residuals.shape[1])
        if how == "robust":
            return _robust(residuals, names)
    elif hasattr(how, "transform"):
        return _from_transformer(residuals, how)
    raise InputError(
        "whiten", found=repr(how), expected="'cov', 'robust', 'none' or a fitted transformer"
    )


def mahalanobis_whitening(
    residuals: Float[np.ndarray, "n d"], names: Sequence[str] | None = None
) -> Whitening:
    """W with W C W' = I, C the covariance of the rows with divisor n.

    Raises
    ------
    InputError
        If an output is constant or the outputs are linearly dependent.
    """
    n, _ = residuals.shape
    location = residuals.mean(axis=0)
    sd = residuals.std(axis=0)
    # the rounding of a mean leaves a spread of about 1e-16 of the level
    constant = sd <= 1e-14 * np.abs(residuals).max(axis=0, initial=0.0)
    if constant.any():
        j = int(np.argmax(constant))
        raise InputError(
            f"output {label(names, j)} has constant residuals ({float(residuals[0, j])}): "
            "leave it out of the targets"
        )
    scaled = (residuals - location) / sd
    # singular values of the rows keep the digits that squaring would lose at correlation 1 - 1e-9
    _, singular, directions = np.linalg.svd(scaled / np.sqrt(n), full_matrices=False)
    if len(singular) < len(sd) or singular[-1] ** 2 < RANK_TOLERANCE * singular[0] ** 2:
        raise InputError(_dependence(directions[-1] / sd, names))
    matrix = directions / singular[:, None] / sd
    inverse = (directions.T * singular) * sd[:, None]
    return Whitening(location, matrix, inverse)


def proposal_whitening(residuals: Float[np.ndarray, "n d"]) -> Whitening:
    """Coordinates for proposals, which have to suit the residuals and never fail.

    The Mahalanobis whitening, or where the residuals are degenerate their scales alone.
    """
    try:
        return mahalanobis_whitening(residuals)
    except InputError:
        sd = residuals.std(axis=0)
        sd = np.where(sd > 0, sd, sd.max() or 1.0)
        return Whitening(residuals.mean(axis=0), np.diag(1.0 / sd), np.diag(sd))


def _dependence(direction: Float[np.ndarray, " d"], names: Sequence[str] | None) -> str:
    weights = direction / direction[np.argmax(np.abs(direction))]
    shown = ", ".join(f"{weight:.3g}" for weight in weights + 0.0)
    outputs = "" if names is None else f" of ({', '.join(names)})"
    return (
        f"outputs are linearly dependent along [{shown}]{outputs}: "
        "leave one of them out of the targets"
    )


def _robust(residuals: Float[np.ndarray, "n d"], names: Sequence[str] | None) -> Whitening:
    n, d = residuals.shape
    keep = max(int(np.ceil(ROBUST_SHARE * n)), d + 2)
    whitening = mahalanobis_whitening(residuals, names)
    for _ in range(ROBUST_ROUNDS):
        distance = np.einsum("ij,ij->i", whitening(residuals), whitening(residuals))
        nearest = np.argsort(distance, kind="stable")[:keep]
        whitening = mahalanobis_whitening(residuals[nearest], names)
    return whitening


def _from_transformer(residuals: Float[np.ndarray, "n d"], transformer: Any) -> Whitening:
    d = residuals.shape[1]
    # the map is read off at points on the scale of the data, where rounding is harmless
    middle, scale = residuals.mean(axis=0), residuals.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    corners = np.vstack([middle, middle + np.diag(scale)])
    images = np.asarray(transformer.transform(corners), dtype=float)
    if images.shape != (d + 1, d):
        raise InputError("whiten", expected=f"a transformer to {d} output(s)")
    matrix = (images[1:] - images[0]).T / scale
    if not np.isfinite(matrix).all() or np.linalg.matrix_rank(matrix * scale) < d:
        raise InputError("whiten", expected="an invertible transformer")
    inverse = np.linalg.inv(matrix * scale) * scale[:, None]
    location = middle - inverse @ images[0]
    whitening = Whitening(location, matrix, inverse)
    probe = residuals[:50]
    error = np.abs(whitening(probe) - np.asarray(transformer.transform(probe))).max()
    if not error <= 1e-8 * (1.0 + np.abs(images).max()):
        raise InputError("whiten", expected="an affine transformer", found=repr(transformer))
    return whitening
