"""Full conformal in residual space: the calibration residuals are the score's references.

For a candidate r the augmented set has N = n + 1 rows, and the score of a row is its
leave-one-out kriging variance 1 / (B^-1)_ii (Dubrule 1983), with the bordered matrix
B = [[K + N lam I, 1], [1', 0]]. One inverse of B without the candidate serves all candidates:

    u = B^-1 [k_r; 1],   S = k(r, r) + N lam - [k_r; 1]' u,
    score of the candidate S,   score of row i  1 / ((B^-1)_ii + u_i^2 / S).

The p-value is (1 + #{i : score_i >= S}) / (n + 1): exact coverage without a second split, O(n^2) a
candidate. Kernel, ridge and whitening must come from other rows: whitening by the calibration
rows alone would break the symmetry, and coverage with it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cho_solve

from .body import Body, thin
from .checks import as_rows, same_width
from .conformal import TIE_TOLERANCE, Calibration, misses_allowed
from .fitted import RADIUS_INFLATION
from .kernel_score import MultivariateKernelScore
from .kernels import Foreign, Kernel, as_kernel
from .law import Factor, Points, Rows, Values, scaled, taken
from .quadratic import Ellipsoid
from .score import ExactCore, check_lam, check_positive_definite, cholesky, prior_scale
from .whitening import Whitening

__all__ = ["FullConformal", "FullLaw", "full_conformal_pvalues"]

ENTRIES = 4_000_000  # of the candidate x row matrices held at once


def full_conformal_pvalues(
    R_cal: Float[np.ndarray, "n d"], R_new: Float[np.ndarray, "m d"], *, kernel: Any, lam: float
) -> Float[np.ndarray, " m"]:
    """p-value of each candidate residual against calibration residuals, without a split.

    Parameters
    ----------
    R_cal
        Calibration residuals, exchangeable with the candidates.
    R_new
        Candidates.
    kernel
        Kernel object, fixed before the calibration rows were seen.
    lam
        Ridge > 0, fixed likewise; inf ranks by leave-one-out MMD^2 (kernel density).

    Returns
    -------
    (1 + #{i : score_i >= score of the candidate}) / (n + 1), ties counted, in (0, 1].

    Raises
    ------
    InputError
        For bad shapes, a NaN, lam <= 0, or a kernel that is not positive definite.
    """
    rows = as_rows(R_cal, "R_cal", at_least=1)
    points = as_rows(R_new, "R_new")
    same_width(points, rows.shape[1], "R_new")
    check_lam(lam, True, "variance")
    rule = FullConformal(rows, as_kernel(kernel), lam)
    return (1.0 + rule.not_below(points)) / (len(rows) + 1.0)


class FullConformal:
    """The set-up of full conformal: one inverse for all candidates."""

    def __init__(
        self, z: Float[np.ndarray, "n d"], kernel: Kernel, lam: float, centered: bool = True
    ) -> None:
        self.z, self.kernel, self.lam, self.centered = z, kernel, lam, centered
        n = len(z)
        K = kernel(z, z)
        if isinstance(kernel, Foreign):
            check_positive_definite(K, centered)
        self.resolution = prior_scale(K)
        self.diagonal, self.row_sums = np.diagonal(K).copy(), K.sum(axis=1)
        self.ridge = (n + 1) * lam
        self.inverse: Float[np.ndarray, "b b"] | None = None
        if np.isfinite(lam):
            K[np.diag_indices(n)] += self.ridge
            A_inverse = cho_solve((cholesky(K, lam), True), np.eye(n), check_finite=False)
            self.inverse = _bordered(A_inverse) if centered else A_inverse

    def scores(
        self, rows: Float[np.ndarray, "m n"], prior: Values
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m n"]]:
        """Score of each candidate and of every row beside it, from k(r, z_i) and k(r, r)."""
        n = len(self.z)
        if self.inverse is None:
            return self._mmd_scores(rows, prior)
        extended = np.column_stack([rows, np.ones(len(rows))]) if self.centered else rows
        u = extended @ self.inverse
        S = prior + self.ridge - np.einsum("ij,ij->i", extended, u)
        others = u[:, :n] ** 2 / S[:, None]
        others += np.diagonal(self.inverse)[:n]
        return S, np.divide(1.0, others, out=others)

    def _mmd_scores(
        self, rows: Float[np.ndarray, "m n"], prior: Values
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m n"]]:
        """The limit lam = inf: leave-one-out MMD^2, from row sums of the augmented matrix."""
        n = len(self.z)
        own = rows.sum(axis=1)
        total = self.row_sums.sum() + 2.0 * own + prior
        sums = self.row_sums + rows
        S = prior - 2.0 * own / n + self.row_sums.sum() / n**2
        others = self.diagonal - 2.0 * (sums - self.diagonal) / n
        others += (total[:, None] - 2.0 * sums + self.diagonal) / n**2
        return S, others

    def not_below(self, z: Points) -> Int[np.ndarray, " k"]:
        """How many rows score at least as much as each candidate, ties within rounding counted."""
        out = np.empty(len(z), dtype=int)
        step = max(1, ENTRIES // (len(self.z) + 1))
        for start in range(0, len(z), step):
            part = z[start : start + step]
            out[start : start + step] = self._count(
                self.kernel(part, self.z), self.kernel.diag(part)
            )
        return out

    def _count(self, rows: Float[np.ndarray, "m n"], prior: Values) -> Int[np.ndarray, " m"]:
        S, others = self.scores(rows, prior)
        tolerance = TIE_TOLERANCE * np.maximum(self.resolution, np.abs(S))
        return (others >= (S - tolerance)[:, None]).sum(axis=1)

    def inside(self, z: Points, alpha: float) -> Bool[np.ndarray, " k"]:
        """Whether the p-value of each candidate exceeds alpha, in integers."""
        return 1 + self.not_below(z) > misses_allowed(len(self.z), alpha)

    def bounded(self, alpha: float) -> bool:
        """Whether a candidate far away is outside."""
        n, tail = len(self.z), self.kernel.tail
        if misses_allowed(n, alpha) < 1:
            return False
        if tail is None or tail.slope > 0:
            return True
        count = self._count(np.zeros((1, n)), np.array([tail.constant]))
        return bool(1 + count[0] <= misses_allowed(n, alpha))

    def far(self, alpha: float) -> Ellipsoid | None:
        """An ellipsoid of far candidates that are inside, if there is one, to a good approximation.

        Out there S is a quadratic. The rows' scores depend on the candidate only weakly: the
        level is the least of their quantiles at the tips of a first ellipsoid.
        """
        tail = self.kernel.tail
        if self.inverse is None or tail is None or not tail.slope or not tail.decays:
            return None
        n = len(self.z)
        quadratic = ExactCore(self.z, self.kernel, self.ridge / n, self.centered).far()
        assert quadratic is not None
        # S = s + N lam, and lam' = N lam / n more for the unknown mean, equation (6)
        offset = self.ridge + (self.ridge / n if self.centered else 0.0)
        alone = 1.0 / np.diagonal(self.inverse)[:n]
        first = quadratic.sublevel(float(Calibration(alone).quantile(alpha)[0]) - offset)
        if first is None:
            return None
        tips = np.concatenate([first.center + first.shape.T, first.center - first.shape.T])
        prior = tail.constant + tail.slope * np.einsum("ij,ij->i", tips, tips)
        others = self.scores(tail.slope * tips @ self.z.T, prior)[1]
        level = min(float(Calibration(row).quantile(alpha)[0]) for row in others)
        return quadratic.sublevel(level - offset)


def _bordered(A_inverse: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "b b"]:
    """Inverse of [[A, 1], [1', 0]] from that of A."""
    n = len(A_inverse)
    column = A_inverse.sum(axis=1)
    c = column.sum()
    out = np.empty((n + 1, n + 1))
    out[:n, :n] = A_inverse - np.outer(column, column) / c
    out[:n, n] = out[n, :n] = column / c
    out[n, n] = -1.0 / c
    return out


@dataclass(frozen=True, eq=False)
class FullLaw:
    """Full conformal around the predictions of m rows."""

    rule: FullConformal
    whitening: Whitening
    references: Float[np.ndarray, "n d"]  # calibration residuals, scaled where there is a factor
    proposal_whitening: Whitening
    prediction: Float[np.ndarray, "m d"]
    alpha: float
    factor: Factor | None = None

    @classmethod
    def build(
        cls,
        score: MultivariateKernelScore,
        residuals: Float[np.ndarray, "n d"],
        prediction: Float[np.ndarray, "m d"],
        alpha: float,
        factor: Factor | None,
    ) -> "FullLaw":
        """From a fitted kernel score, which lends kernel, ridge and whitening."""
        assert score.kernel_ is not None
        assert score.lam_ is not None
        z = score.whitening_(residuals)
        rule = FullConformal(z, score.kernel_, score.lam_, score.centered)
        lent = score.whitening_, residuals, score.proposal_whitening_
        return cls(rule, *lent, prediction, alpha, factor)

    @property
    def guarantee(self) -> float:
        """1 - alpha, for exchangeable rows."""
        return 1.0 - self.alpha

    def take(self, rows: Rows) -> "FullLaw":
        """The law of some of its rows."""
        return replace(self, prediction=self.prediction[rows], factor=taken(self.factor, rows))

    def _whitened(self, points: Points, rows: Rows) -> Points:
        return self.whitening(scaled(points, rows, self.prediction, self.factor))

    def score(self, points: Points, rows: Rows) -> Values:
        """Leave-one-out kriging variance of each candidate."""
        z = self._whitened(points, rows)
        out = np.empty(len(z))
        step = max(1, ENTRIES // (len(self.rule.z) + 1))
        for start in range(0, len(z), step):
            part = z[start : start + step]
            kernel = self.rule.kernel
            out[start : start + step] = self.rule.scores(
                kernel(part, self.rule.z), kernel.diag(part)
            )[0]
        return out

    def pvalue(self, points: Points, rows: Rows) -> Values:
        """Full conformal p-value of each point."""
        counts = self.rule.not_below(self._whitened(points, rows))
        return (1.0 + counts) / (len(self.rule.z) + 1.0)

    def inside(self, points: Points, rows: Rows) -> Bool[np.ndarray, " k"]:
        """Whether each point belongs to the region of its row."""
        return self.rule.inside(self._whitened(points, rows), self.alpha)

    def thresholds(self) -> None:
        """None: the scores that a candidate is compared with depend on the candidate."""
        return

    def body(self, row: int) -> Body:
        """The region of one row, in the outputs' own coordinates."""
        white, far = self.whitening, self.rule.far(self.alpha)
        if far is not None:
            far = Ellipsoid(white.back(far.center[None])[0], white.inverse @ far.shape)
        heads = self.proposal_whitening(self.references)
        body = Body(
            inside=lambda points: self.rule.inside(white(points), self.alpha),
            references=thin(self.references),
            whitening=self.proposal_whitening,
            radius=RADIUS_INFLATION * float(np.linalg.norm(heads, axis=1).max()),
            far=far,
            bounded=self.rule.bounded(self.alpha),
        )
        return body.moved(self.prediction[row], None if self.factor is None else self.factor[row])
