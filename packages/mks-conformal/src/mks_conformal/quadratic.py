"""Quadratics a + b.x + x'Qx and the ellipsoids that they bound.

The kernel score is exactly such a quadratic far from the residuals, and everywhere for a linear
kernel; so is the squared Mahalanobis distance. Change of coordinates and slices stay quadratic,
which is what makes their volumes, boxes and conditionals closed forms.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

__all__ = ["Ellipsoid", "Quadratic", "log_ball_volume"]


def log_ball_volume(d: int) -> float:
    """Log volume of the unit ball in R^d."""
    return 0.5 * d * float(np.log(np.pi)) - float(gammaln(0.5 * d + 1.0))


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """{ center + shape u : |u| <= 1 }."""

    center: Float[np.ndarray, " d"]
    shape: Float[np.ndarray, "d d"]

    @property
    def log_volume(self) -> float:
        """Log volume, finite where the volume itself would overflow."""
        d = len(self.center)
        return log_ball_volume(d) + float(np.linalg.slogdet(self.shape)[1])

    def box(self) -> Float[np.ndarray, "2 d"]:
        """The bounding box: lower and upper end of every coordinate."""
        half = np.linalg.norm(self.shape, axis=1)
        return np.stack([self.center - half, self.center + half])

    def moved(
        self, shift: Float[np.ndarray, " d"], factor: Float[np.ndarray, "d d"] | None = None
    ) -> "Ellipsoid":
        """Its image under x -> shift + factor x."""
        if factor is None:
            return Ellipsoid(self.center + shift, self.shape)
        return Ellipsoid(factor @ self.center + shift, factor @ self.shape)

    def slice(self, at: Sequence[int], values: Float[np.ndarray, " k"]) -> "Ellipsoid | None":
        """Its slice where the coordinates `at` have these values; None when they miss it."""
        whiten = np.linalg.inv(self.shape)
        distance = Quadratic(0.0, np.zeros(len(whiten)), np.eye(len(whiten)))
        return distance.affine(whiten, self.center).slice(at, values).sublevel(1.0)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """x -> constant + linear.x + x' matrix x, the matrix symmetric and not negative."""

    constant: float
    linear: Float[np.ndarray, " d"]
    matrix: Float[np.ndarray, "d d"]

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """Its value at every row."""
        return self.constant + x @ self.linear + np.einsum("ij,jk,ik->i", x, self.matrix, x)

    def gradients(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Its gradient at every row."""
        return self.linear + 2.0 * x @ self.matrix

    @property
    def flat(self) -> bool:
        """Whether it is bounded along some direction: then its sublevel sets are not."""
        return self._scaled() is None

    def _scaled(
        self,
    ) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"], Float[np.ndarray, "d d"]] | None:
        """Scales s, eigenvalues and vectors of matrix / (s s'): outputs may differ by 1e9."""
        diagonal = np.diagonal(self.matrix)
        if not (diagonal > 0).all():
            return None
        scale = np.sqrt(diagonal)
        values, vectors = np.linalg.eigh(self.matrix / np.outer(scale, scale))
        return None if values[0] <= 1e-14 else (scale, values, vectors)

    @property
    def minimum(self) -> float:
        """Its smallest value; the constant when it is flat."""
        if self.flat:
            return self.constant
        return self.constant + 0.5 * float(self.linear @ self.lowest())

    def lowest(self) -> Float[np.ndarray, " d"]:
        """Where it is smallest, if it is not flat."""
        scaled = self._scaled()
        if scaled is None:
            return np.zeros_like(self.linear)
        scale, values, vectors = scaled
        return -0.5 * (vectors @ ((vectors.T @ (self.linear / scale)) / values)) / scale

    def affine(
        self, matrix: Float[np.ndarray, "d d"], shift: Float[np.ndarray, " d"]
    ) -> "Quadratic":
        """The quadratic x -> self(matrix (x - shift))."""
        Q = matrix.T @ self.matrix @ matrix
        b = matrix.T @ self.linear
        Qs = Q @ shift
        return Quadratic(self.constant - float(b @ shift) + float(shift @ Qs), b - 2.0 * Qs, Q)

    def slice(self, at: Sequence[int], values: Float[np.ndarray, " k"]) -> "Quadratic":
        """The quadratic in the other coordinates, those `at` being held at `values`."""
        known = np.asarray(at, dtype=int)
        free = np.setdiff1d(np.arange(len(self.linear)), known)
        Q = self.matrix
        constant = self.constant + self.linear[known] @ values
        constant += values @ Q[np.ix_(known, known)] @ values
        linear = self.linear[free] + 2.0 * Q[np.ix_(free, known)] @ values
        return Quadratic(float(constant), linear, Q[np.ix_(free, free)])

    def sublevel(self, level: float) -> Ellipsoid | None:
        """The ellipsoid { x : self(x) <= level }; None when it is empty or not bounded."""
        scaled = self._scaled()
        if scaled is None or not np.isfinite(level):
            return None
        excess = level - self.minimum
        if excess < 0:
            return None
        scale, values, vectors = scaled
        return Ellipsoid(self.lowest(), vectors * np.sqrt(excess / values) / scale[:, None])
