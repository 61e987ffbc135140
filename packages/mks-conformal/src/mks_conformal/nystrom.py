"""The kernel score for many reference residuals, through m landmarks.

With landmarks z_p, K_mm = L L' and psi(z) = L^-1 k_m(z), the score is

    s(z) = k(z, z) - |psi|^2 + lam (psi - psibar)' (S_psi + lam I)^-1 (psi - psibar),

psibar and S_psi being mean and covariance of psi over all n rows. What the landmarks cannot
express, k(z, z) - |psi|^2, enters in full, because (S + lam I)^-1 is 1/lam off their span: with
all rows as landmarks the score is exact. O(n m^2 + m^3) to fit, O(m^2) a query. Landmarks come
from randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber, arXiv 2207.06503).
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular

from .kernels import Foreign, Kernel
from .quadratic import Quadratic
from .score import Points, Scores, check_positive_definite

__all__ = ["NystromCore", "pivoted_landmarks"]

TRACE_TOLERANCE = 1e-12  # residual trace, of the first, at which no landmark is left to take
PIVOT_TOLERANCE = 1e-10  # a residual below this is rounding: its row is a copy of a landmark


def pivoted_landmarks(
    z: Float[np.ndarray, "n d"], kernel: Kernel, m: int, rng: np.random.Generator
) -> tuple[Int[np.ndarray, " r"], Float[np.ndarray, "n r"]]:
    """Landmark rows by randomly pivoted Cholesky, and the factor F with K approx. F F'.

    Each pivot is drawn with probability proportional to what is still unexplained of k(z, z).
    Fewer than `m` come back when the rest is explained, which duplicates bring about.
    """
    n = len(z)
    rest = kernel.diag(z).copy()
    first_trace, floor = rest.sum(), PIVOT_TOLERANCE * rest.max()
    F = np.zeros((n, min(m, n)), order="F")
    chosen: list[int] = []
    while len(chosen) < F.shape[1]:
        rest[rest < floor] = 0.0
        total = rest.sum()
        if total <= TRACE_TOLERANCE * first_trace:
            break
        # rng.choice would build the same sums and check them again
        pivot = int(np.searchsorted(np.cumsum(rest), rng.random() * total, side="right"))
        i = len(chosen)
        column = kernel(z, z[pivot : pivot + 1])[:, 0] - F[:, :i] @ F[pivot, :i]
        F[:, i] = column / np.sqrt(rest[pivot])
        rest = np.maximum(rest - F[:, i] ** 2, 0.0)
        rest[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen, dtype=int), F[:, : len(chosen)]


class NystromCore:
    """The score through landmarks; one matrix product of m x r a point, r <= m."""

    def __init__(
        self,
        z: Float[np.ndarray, "n d"],
        kernel: Kernel,
        lam: float,
        centered: bool = True,
        *,
        m: int,
        rng: np.random.Generator,
    ) -> None:
        self.kernel, self.lam, self.centered = kernel, lam, centered
        self.resolution = float(np.median(kernel.diag(z)))
        chosen, psi = pivoted_landmarks(z, kernel, m, rng)
        self.z = z[chosen]
        explained = np.einsum("ij,ij->", psi, psi)
        self.unexplained = max(0.0, 1.0 - float(explained / kernel.diag(z).sum()))
        if isinstance(kernel, Foreign):
            check_positive_definite(kernel(self.z, self.z), centered)
        lower = psi[chosen]  # L: the pivots' own rows of F
        mean = psi.mean(axis=0) if centered else np.zeros(len(chosen))
        psi = psi - mean
        self.values, vectors = np.linalg.eigh(psi.T @ psi / len(z))
        self.values = np.maximum(self.values, 0.0)
        # s = k(z,z) + |mean|^2 - 2 line.k_m - |shrunk' k_m - offset|^2 with shrunk = L^-T H and
        # H H' = S (S + lam)^-1: directions that lam smothers cost nothing
        share = self.values / (self.values + lam)
        kept = share > 1e-12
        H = vectors[:, kept] * np.sqrt(share[kept])
        self.shrunk = solve_triangular(lower, H, lower=True, trans=1, check_finite=False)
        self.line = solve_triangular(lower, mean, lower=True, trans=1, check_finite=False)
        self.offset = mean @ H
        self.constant = float(mean @ mean)

    def __call__(self, z: Points) -> Scores:
        """Scores of a few thousand points."""
        rows = self.kernel(z, self.z)
        score = self.kernel.diag(z) + self.constant - 2.0 * (rows @ self.line)
        explained = rows @ self.shrunk
        explained -= self.offset
        score -= np.einsum("ij,ij->i", explained, explained)
        return np.maximum(score, 0.0)

    def with_gradients(self, z: Points) -> tuple[Scores, Float[np.ndarray, "m d"]]:
        """Scores and their gradients."""
        explained = self.kernel(z, self.z) @ self.shrunk - self.offset
        weights = explained @ self.shrunk.T + self.line
        slopes = self.kernel.diag_gradients(z) - 2.0 * self.kernel.gradients(z, self.z, weights)
        return self(z), slopes

    def far(self) -> Quadratic | None:
        """The score where the decaying part of the kernel is zero."""
        tail = self.kernel.tail
        if tail is None:
            return None
        X = tail.slope * self.z  # k_m(z) = X z out there
        B = self.shrunk.T @ X
        return Quadratic(
            tail.constant + self.constant - float(self.offset @ self.offset),
            -2.0 * X.T @ self.line + 2.0 * B.T @ self.offset,
            tail.slope * np.eye(self.z.shape[1]) - B.T @ B,
        )

    def spectrum(self) -> Float[np.ndarray, " r"]:
        """Eigenvalues of the covariance operator S, largest first."""
        return self.values[::-1]
