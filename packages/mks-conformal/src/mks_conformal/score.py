"""The kernel score, exactly: what is left of a residual when the reference residuals explain it.

For reference residuals z_1..z_n, a kernel k and a ridge lam, with Kc the centred kernel matrix,
four forms of one number (Meyer & Xu, arXiv 2604.21595; the equations are our derivation):

* Mahalanobis:  lam <phi(z) - mu, (S + lam I)^-1 (phi(z) - mu)>                       (1)
* GP variance:  kc(z, z) - kc_z' (Kc + n lam I)^-1 kc_z                               (3)
* MMD^2 minus kernel PCA:  kc(z, z) - sum_j (u_j' kc_z)^2 / (L_j + n lam)             (4)
* universal kriging variance with unknown mean, less lam                              (6)

As lam -> inf it becomes MMD^2, a kernel density score; as lam -> 0 with the linear kernel, the
Mahalanobis distance (5). Without centring it is the posterior variance of a Gaussian process (7).
A `Core` is a fitted score in whitened coordinates; `nystrom.py` holds the one for large n.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.linalg import LinAlgError, cho_factor, solve_triangular

from armillary import InputError

from .checks import as_rows, same_width
from .kernels import Foreign, Kernel, as_kernel
from .quadratic import Quadratic

__all__ = [
    "CHUNK",
    "Core",
    "ExactCore",
    "centring",
    "check_lam",
    "check_positive_definite",
    "cholesky",
    "mks_score",
    "prior_scale",
]

CHUNK = 4000  # rows scored at once: CHUNK x n x 8 bytes is the most that is held
PSD_TOLERANCE = 1e-8

Points = Float[np.ndarray, "m d"]
Scores = Float[np.ndarray, " m"]


@runtime_checkable
class Core(Protocol):
    """A fitted score in whitened coordinates, on the variance scale."""

    kernel: Kernel
    lam: float
    centered: bool
    resolution: float

    def __call__(self, z: Points) -> Scores:
        """Scores of a few thousand points."""
        ...

    def with_gradients(self, z: Points) -> tuple[Scores, Float[np.ndarray, "m d"]]:
        """Scores and their gradients."""
        ...

    def far(self) -> Quadratic | None:
        """The score out of reach of the references; None when the kernel tells nothing."""
        ...

    def spectrum(self) -> Float[np.ndarray, " r"]:
        """Eigenvalues of the covariance operator S, largest first."""
        ...


def mks_score(
    R_new: Float[np.ndarray, "m d"],
    R_ref: Float[np.ndarray, "n d"],
    *,
    kernel: Any,
    lam: float,
    centered: bool = True,
    scale: str = "variance",
) -> Float[np.ndarray, " m"]:
    """Kernel score of each residual against reference residuals, equations (3) and (7).

    The pure function: raw residuals, no whitening, O(n^2) a point after O(n^3).

    Parameters
    ----------
    R_new
        Residuals to score.
    R_ref
        Reference residuals. They must not be the calibration rows.
    kernel
        A kernel object, for example ``Gaussian(1.0) + Linear(0.01)``.
    lam
        Ridge, > 0; ``inf`` gives MMD^2, the kernel density score.
    centered
        Centre the kernel on the references (3), or not (7).
    scale
        ``"variance"``: the GP form, at least 0. ``"mahalanobis"``: divided by `lam`, equation
        (1). The regions are the same.

    Returns
    -------
    Scores, larger is stranger.

    Raises
    ------
    InputError
        For bad shapes, a NaN, lam <= 0, lam = inf with ``scale="mahalanobis"`` or without
        centring, a kernel that is not positive definite.

    Examples
    --------
    >>> from mks_conformal import Gaussian
    >>> R = np.array([[0.0], [1.0]])
    >>> mks_score(np.array([[0.0], [9.0]]), R, kernel=Gaussian(1.0), lam=0.1).round(3)
    array([0.133, 1.303])
    """
    references = as_rows(R_ref, "R_ref", at_least=1)
    points = as_rows(R_new, "R_new")
    same_width(points, references.shape[1], "R_new")
    check_lam(lam, centered, scale)
    core = ExactCore(references, as_kernel(kernel), lam, centered)
    out = np.empty(len(points))
    for start in range(0, len(points), CHUNK):
        out[start : start + CHUNK] = core(points[start : start + CHUNK])
    return out / lam if scale == "mahalanobis" else out


def check_lam(lam: float, centered: bool, scale: str) -> None:
    """Refuse a ridge that is not positive, or infinite where infinity means nothing."""
    if not lam > 0:
        raise InputError("lam", found=lam, expected="a positive number or inf")
    if scale not in ("variance", "mahalanobis"):
        raise InputError("scale", found=repr(scale), expected="'variance' or 'mahalanobis'")
    if np.isinf(lam) and scale == "mahalanobis":
        raise InputError("scale='mahalanobis' divides by lam", found="lam=inf")
    if np.isinf(lam) and not centered:
        raise InputError("lam=inf without centring ranks by k(r, r) alone", instead="centered=True")


class ExactCore:
    """The score against all n references, by a Cholesky factor of Kc + n lam I."""

    def __init__(
        self, z: Float[np.ndarray, "n d"], kernel: Kernel, lam: float, centered: bool = True
    ) -> None:
        self.z, self.kernel, self.lam, self.centered = z, kernel, lam, centered
        K = kernel(z, z)
        if isinstance(kernel, Foreign):
            check_positive_definite(K, centered)
        self.resolution = prior_scale(K)
        self.row_means, self.grand_mean = centring(K, centered)
        self.factor: Float[np.ndarray, "n n"] | None = None
        if np.isfinite(lam):
            K -= self.row_means
            K -= (self.row_means - self.grand_mean)[:, None]
            K[np.diag_indices(len(z))] += len(z) * lam
            self.factor = cholesky(K, lam)

    def _centred(self, z: Points) -> tuple[Float[np.ndarray, "m n"], Scores]:
        """kc_z, one row a point, and kc(z, z)."""
        rows = self.kernel(z, self.z)
        prior = self.kernel.diag(z)
        if self.centered:
            means = rows.mean(axis=1)
            prior = prior - 2.0 * means + self.grand_mean
            rows -= means[:, None]
            rows -= self.row_means - self.grand_mean
        return rows, prior

    def __call__(self, z: Points) -> Scores:
        """Scores of a few thousand points."""
        rows, score = self._centred(z)
        if self.factor is not None:
            half = _solve_lower(self.factor, rows.T)
            score = score - np.einsum("ij,ij->j", half, half)
        return np.maximum(score, 0.0)

    def with_gradients(self, z: Points) -> tuple[Scores, Float[np.ndarray, "m d"]]:
        """Scores and their gradients."""
        rows, score = self._centred(z)
        weights = np.full(rows.shape, 1.0 / len(self.z) if self.centered else 0.0)
        if self.factor is not None:
            half = _solve_lower(self.factor, rows.T)
            score = score - np.einsum("ij,ij->j", half, half)
            solved = solve_triangular(self.factor, half, lower=True, trans=1, check_finite=False)
            if self.centered:
                solved = solved - solved.mean(axis=0)
            weights += solved.T
        slopes = self.kernel.diag_gradients(z) - 2.0 * self.kernel.gradients(z, self.z, weights)
        return np.maximum(score, 0.0), slopes

    def far(self) -> Quadratic | None:
        """The quadratic a + b.z + z'Qz that it is where the decaying part of the kernel is zero."""
        tail = self.kernel.tail
        if tail is None:
            return None
        d = self.z.shape[1]
        X = tail.slope * self.z
        v = np.zeros(len(self.z))
        constant, linear = tail.constant, np.zeros(d)
        if self.centered:
            middle = self.z.mean(axis=0)
            X = X - tail.slope * middle
            v = self.grand_mean - self.row_means
            constant += self.grand_mean
            linear = -2.0 * tail.slope * middle
        matrix = tail.slope * np.eye(d)
        if self.factor is not None:
            half = _solve_lower(self.factor, np.column_stack([X, v]))
            matrix = matrix - half[:, :d].T @ half[:, :d]
            linear = linear - 2.0 * half[:, :d].T @ half[:, d]
            constant -= float(half[:, d] @ half[:, d])
        return Quadratic(float(constant), linear, matrix)

    def spectrum(self) -> Float[np.ndarray, " r"]:
        """Eigenvalues of the covariance operator S, largest first."""
        K = self.kernel(self.z, self.z)
        K -= self.row_means
        K -= (self.row_means - self.grand_mean)[:, None]
        return np.maximum(np.linalg.eigvalsh(K)[::-1], 0.0) / len(K)


def centring(
    K: Float[np.ndarray, "n n"], centered: bool = True
) -> tuple[Float[np.ndarray, " n"], float]:
    """Row means and grand mean of a kernel matrix, equation (2); zeros when not centred."""
    if not centered:
        return np.zeros(len(K)), 0.0
    row_means = K.mean(axis=1)
    return row_means, float(row_means.mean())


def prior_scale(K: Float[np.ndarray, "n n"]) -> float:
    """The size of k(z, z): rounding errors of a score are relative to it, not to the score."""
    return float(np.median(np.diagonal(K)))


def check_positive_definite(K: Float[np.ndarray, "n n"], centered: bool = True) -> None:
    """Refuse a kernel that is asymmetric or has an eigenvalue below -1e-8 of the largest.

    Raises
    ------
    InputError
        With the eigenvalue that was found.
    """
    if not np.allclose(K, K.T, rtol=1e-8, atol=1e-10 * np.abs(K).max()):
        raise InputError("kernel", expected="a symmetric kernel", found="k(a, b) != k(b, a)")
    row_means, grand_mean = centring(K, centered)
    values = np.linalg.eigvalsh(K - row_means - row_means[:, None] + grand_mean)
    if values[0] < -PSD_TOLERANCE * max(values[-1], 0.0):
        raise InputError(
            "kernel",
            expected="a positive definite kernel",
            found=f"eigenvalue {values[0]:.3g} beside {values[-1]:.3g}",
        )


def cholesky(K: Float[np.ndarray, "n n"], lam: float) -> Float[np.ndarray, "n n"]:
    """The lower factor of K, whose upper triangle is not to be read; `K` is overwritten.

    Raises
    ------
    InputError
        If the ridge is too small for this kernel matrix.
    """
    try:
        # the transpose, equal by symmetry, is what LAPACK takes without a copy
        return cho_factor(K.T, lower=True, overwrite_a=True, check_finite=False)[0]
    except LinAlgError as error:
        raise InputError(
            "lam", found=lam, expected="a ridge above the rounding of the kernel matrix"
        ) from error


def _solve_lower(
    factor: Float[np.ndarray, "n n"], columns: Float[np.ndarray, "n m"]
) -> Float[np.ndarray, "n m"]:
    return solve_triangular(factor, columns, lower=True, overwrite_b=True, check_finite=False)
