"""How much of each row lies outside the span of chosen rows: the geometry under all else.

The determinant of a set's Gram matrix is the product, row after row, of the squared residual of
the row after projection on those before it. Residuals do not depend on the rows' weights, so that
whatever is built on them (greedy choice, exchange, conditioning, the graded factorisation) is
right for any range of weights.

A row whose squared residual falls to `SPANNED` of its squared norm counts as lying in the span: a
copy leaves rounding noise of 1e-16, which a heavy weight would lift above an honest light row.
"""

import numpy as np
from jaxtyping import Float, Int

from .errors import RankError

SPANNED = 1e-12
_CANCELLED = 1e-4  # below this share, norm^2 - sum of squares has lost too many digits


class Residuals:
    """Squared distances of rows from the span of those taken so far, one row taken at a time.

    Parameters
    ----------
    rows
        Any norms above zero.
    capacity
        How many rows will be taken at most.
    """

    def __init__(self, rows: Float[np.ndarray, "n d"], capacity: int) -> None:
        self.rows = rows
        self.norm2 = np.einsum("ij,ij->i", rows, rows)
        self.left = self.norm2.copy()  # exactly 0 for rows in the span
        self.gains: list[float] = []  # squared residual of each row taken, when it was taken
        self._basis = np.empty((min(capacity, *rows.shape), rows.shape[1]))

    @property
    def basis(self) -> Float[np.ndarray, "taken d"]:
        """Orthonormal rows that span what was taken."""
        return self._basis[: len(self.gains)]

    def take(self, row: int) -> Float[np.ndarray, " n"]:
        """Add a row whose residual is not 0 to the span.

        Returns
        -------
        The coordinate of every row along the new direction; exactly 0 for rows that lay in the
        span already.
        """
        basis, direction = self.basis, self.rows[row]
        for _ in range(2):  # once leaves 1e-16 / |residual| of the span, twice leaves nothing
            direction = direction - (basis @ direction) @ basis
        gain = float(direction @ direction)
        direction = direction / np.sqrt(gain)
        self._basis[len(self.gains)] = direction
        self.gains.append(gain)

        along = self.rows @ direction
        along[self.left == 0] = 0.0
        self.left = _settled(self.left - along**2, self.rows, self.basis, self.norm2)
        self.left[row] = 0.0
        return along


def spanned_by(
    rows: Float[np.ndarray, "n d"], kept: Int[np.ndarray, " kept"], capacity: int
) -> Residuals:
    """Residuals outside the kept rows, none of which may lie in the span of those before it."""
    span = Residuals(rows, capacity)
    for row in kept:
        if span.left[row] == 0:
            raise RankError(
                "keep",
                found=f"row {row}, a combination of the kept rows before it",
                expected="rows of different directions",
            )
        span.take(int(row))
    return span


def residuals(
    rows: Float[np.ndarray, "n d"], basis: Float[np.ndarray, "m d"], norm2: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Squared residuals of all rows after projection on orthonormal `basis`, 0 in its span."""
    along = rows @ basis.T
    return _settled(norm2 - np.einsum("ij,ij->i", along, along), rows, basis, norm2)


def without_span(
    rows: Float[np.ndarray, "n d"], basis: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, "n d"]:
    """The parts of the rows that are orthogonal to orthonormal `basis`."""
    for _ in range(2):
        rows = rows - (rows @ basis.T) @ basis
    return rows


def log_volume(rows: Float[np.ndarray, "*sets k d"]) -> Float[np.ndarray, "*sets"]:
    """Log determinant of each set's Gram matrix, -inf where a row lies in the others' span.

    By QR of the rows, not from the Gram matrix, which squares the condition number.
    """
    k, d = rows.shape[-2:]
    if k > d:
        return np.full(rows.shape[:-2], -np.inf)
    triangle = np.linalg.qr(np.swapaxes(rows, -1, -2), mode="r")
    squares = np.diagonal(triangle, axis1=-2, axis2=-1) ** 2
    spanned = squares <= SPANNED * np.einsum("...kd,...kd->...k", rows, rows)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(spanned, 0.0, squares)).sum(axis=-1))


def _settled(
    left: Float[np.ndarray, " n"],
    rows: Float[np.ndarray, "n d"],
    basis: Float[np.ndarray, "m d"],
    norm2: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """`left` recomputed from the residual vectors where it is small, 0 where it is nothing."""
    close = np.flatnonzero((left < _CANCELLED * norm2) & (left != 0))
    if close.size:
        vectors = without_span(rows[close], basis)
        left[close] = np.einsum("ij,ij->i", vectors, vectors)
    left[left <= SPANNED * norm2] = 0.0
    return left
