"""The kernel score as an object: whitening, choice of bandwidth and ridge, exact or Nystrom."""

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.random import RandomState
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from armillary import InputError

from .checks import as_rows, check_alpha, column_names, same_width
from .fitted import ResidualScore
from .kernel_names import make_kernel
from .kernels import Kernel, as_kernel
from .nystrom import NystromCore
from .quadratic import Ellipsoid, Quadratic
from .score import CHUNK, Core, ExactCore, check_lam
from .selection import BANDWIDTHS, LAMS, Candidate, median_distance, select_score
from .whitening import fit_whitening, proposal_whitening

__all__ = ["MultivariateKernelScore", "generator_from"]

EXACT_ROWS = 1500  # above, landmarks="auto" means 500 of them
AUTO_LANDMARKS = 500


class MultivariateKernelScore(ResidualScore, BaseEstimator):
    """Multivariate kernel score of residuals (Meyer & Xu, arXiv 2604.21595).

    The score of a residual is what the reference residuals leave unexplained of it, in the
    feature space of a kernel: lam <phi - mu, (S + lam I)^-1 (phi - mu)>, see `score.py`.

    Parameters
    ----------
    kernel
        A name of radial kernels and ``linear`` joined by + and *, or a kernel object, or a
        function (n, d), (m, d) -> (n, m) that has `diag`. Whitened residuals go in.
    bandwidth
        ``"select"``: by held-out volume; or a number, in whitened units. A kernel object has its
        own, and is then what it is.
    lam
        Ridge: ``"select"``, a number > 0, or inf (kernel density score).
    gamma
        Weight of the linear part of a named kernel. It makes every region bounded.
    whiten
        ``"cov"``, ``"robust"``, ``"none"``, or a fitted affine transformer (in a
        ``FrozenEstimator`` where scikit-learn will clone the score).
    centered
        Centre the kernel on the references, or not (posterior variance of a Gaussian process).
    scale
        ``"variance"`` or ``"mahalanobis"`` (divided by lam). The regions are the same.
    landmarks
        ``"auto"``: 500 above 1500 rows, else none; a number; or None for the exact score.
    alpha
        Miscoverage at which volumes are compared in the selection.
    random_state
        Seed of folds, proposals and landmarks.

    Attributes
    ----------
    selected_ : {"kernel", "ellipsoid"}
        The ellipsoid, |z|^2, wins whenever the kernel does not beat it clearly.
    kernel_, bandwidth_, lam_
        What was used; None for the ellipsoid.
    whitening_, core_
        The two halves of the fitted score.

    Notes
    -----
    Never fit it on calibration rows: coverage would break.
    """

    def __init__(
        self,
        kernel: Any = "gaussian+linear",
        bandwidth: float | str = "select",
        lam: float | str = "select",
        gamma: float = 0.01,
        whiten: Any = "cov",
        centered: bool = True,
        scale: str = "variance",
        landmarks: int | str | None = "auto",
        alpha: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.lam = lam
        self.gamma = gamma
        self.whiten = whiten
        self.centered = centered
        self.scale = scale
        self.landmarks = landmarks
        self.alpha = alpha
        self.random_state = random_state

    def fit(self, R: Any, y: Any = None) -> "MultivariateKernelScore":  # noqa: ARG002
        """Fit on residuals.

        Parameters
        ----------
        R
            Residuals (n, d), n >= d + 2, in the outputs' units. Out-of-fold residuals of the
            training rows are the right ones; calibration residuals never are.
        y
            Ignored.

        Raises
        ------
        InputError
            For a NaN, too few rows, constant or linearly dependent outputs, a kernel that is not
            positive definite, or an option out of range.
        """
        return self.fit_rows(as_rows(R, "R"), column_names(R))

    def fit_rows(
        self, rows: Float[np.ndarray, "n d"], names: tuple[str, ...] | None
    ) -> "MultivariateKernelScore":
        """`fit` for rows that were checked already, with the outputs' names."""
        n, d = rows.shape
        if n < d + 2:
            needed = f"at least {d + 2} rows for {d} output(s)"
            raise InputError("R", expected=needed, found=f"n_samples = {n}")
        alpha = check_alpha(self.alpha)
        rng = generator_from(self.random_state)
        self.n_features_in_, self.names_ = d, names
        self.references_ = rows
        self.whitening_ = fit_whitening(rows, self.whiten, names)
        z = self.whitening_(rows)
        self._choose(z, alpha, rng)
        unit = isinstance(self.whiten, str) and self.whiten != "none"
        self.proposal_whitening_ = self.whitening_ if unit else proposal_whitening(rows)
        self.core_: Core | None = None
        self.resolution_ = 1.0
        if self.kernel_ is not None and self.lam_ is not None:
            m = self._n_landmarks(n)
            if m is None or np.isinf(self.lam_):  # MMD^2 needs no factor, and none is cheaper
                self.core_ = ExactCore(z, self.kernel_, self.lam_, self.centered)
            else:
                self.core_ = NystromCore(z, self.kernel_, self.lam_, self.centered, m=m, rng=rng)
            self.resolution_ = self.core_.resolution / self._divisor
        return self

    def _choose(self, z: Float[np.ndarray, "n d"], alpha: float, rng: np.random.Generator) -> None:
        """Set kernel_, bandwidth_, lam_, selected_ and table_."""
        lams = self._lams()
        kernels = self._kernels(z, rng)
        if len(lams) == len(kernels) == 1:
            self.selected_, self.table_ = "kernel", []
            ((self.bandwidth_, self.kernel_),), (self.lam_,) = kernels, lams
            return
        candidates = [Candidate(kernel, bandwidth, lams) for bandwidth, kernel in kernels]
        won = select_score(z, candidates, alpha, self.centered, rng)
        self.selected_ = "ellipsoid" if won.kernel is None else "kernel"
        self.kernel_, self.bandwidth_, self.lam_ = won.kernel, won.bandwidth, won.lam
        self.table_ = won.table

    def _lams(self) -> tuple[float, ...]:
        if self.lam == "select":
            finite_only = self.scale == "mahalanobis" or not self.centered
            check_lam(1.0, self.centered, self.scale)
            return tuple(lam for lam in LAMS if np.isfinite(lam) or not finite_only)
        if isinstance(self.lam, str):
            raise InputError("lam", found=repr(self.lam), expected="'select', a number or inf")
        check_lam(self.lam, self.centered, self.scale)
        return (float(self.lam),)

    def _kernels(
        self, z: Float[np.ndarray, "n d"], rng: np.random.Generator
    ) -> list[tuple[float | None, Kernel]]:
        if not isinstance(self.kernel, str):
            if self.bandwidth != "select":
                raise InputError("bandwidth", found=self.bandwidth, instead="set it in the kernel")
            return [(None, as_kernel(self.kernel))]
        if self.bandwidth != "select":
            if isinstance(self.bandwidth, str):
                expected = "'select' or a positive number"
                raise InputError("bandwidth", found=repr(self.bandwidth), expected=expected)
            h = float(self.bandwidth)
            return [(h, make_kernel(self.kernel, h, self.gamma))]
        widths = [float(share) * median_distance(z, rng) for share in BANDWIDTHS]
        return [(h, make_kernel(self.kernel, h, self.gamma)) for h in widths]

    def _n_landmarks(self, n: int) -> int | None:
        if self.landmarks is None:
            return None
        if self.landmarks == "auto":
            return AUTO_LANDMARKS if n > EXACT_ROWS else None
        if isinstance(self.landmarks, str) or not self.landmarks >= 1:
            expected = "'auto', None or a whole number >= 1"
            raise InputError("landmarks", found=repr(self.landmarks), expected=expected)
        return int(self.landmarks)

    @property
    def _divisor(self) -> float:
        return self.lam_ if self.scale == "mahalanobis" and self.lam_ is not None else 1.0

    def score_samples(self, R: Any) -> Float[np.ndarray, " m"]:
        """Scores of residuals, larger is stranger; never negative. Streams in chunks of rows.

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            For a NaN or another number of outputs.
        """
        check_is_fitted(self)
        rows = as_rows(R, "residuals", names=self.names_)
        same_width(rows, self.n_features_in_, "residuals", self.names_)
        out = np.empty(len(rows))
        for start in range(0, len(rows), CHUNK):
            z = self.whitening_(rows[start : start + CHUNK])
            if self.core_ is None:
                out[start : start + CHUNK] = np.einsum("ij,ij->i", z, z)
            else:
                out[start : start + CHUNK] = self.core_(z)
        return out if self.core_ is None else out / self._divisor

    def with_gradients(
        self, R: Float[np.ndarray, "m d"]
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m d"]]:
        """Scores and their gradients in the residuals' own units, for a few thousand rows."""
        z = self.whitening_(R)
        if self.core_ is None:
            return np.einsum("ij,ij->i", z, z), 2.0 * z @ self.whitening_.matrix
        scores, slopes = self.core_.with_gradients(z)
        return scores / self._divisor, slopes @ self.whitening_.matrix / self._divisor

    def _quadratic(self) -> tuple[Quadratic | None, bool]:
        """The score far away, in residuals' units, and whether it is that everywhere."""
        d = self.n_features_in_
        white = self.whitening_
        if self.core_ is None:
            return Quadratic(0.0, np.zeros(d), np.eye(d)).affine(white.matrix, white.location), True
        far, tail = self.core_.far(), self.core_.kernel.tail
        if far is None or tail is None:
            return None, False
        scaled = Quadratic(
            far.constant / self._divisor, far.linear / self._divisor, far.matrix / self._divisor
        )
        return scaled.affine(white.matrix, white.location), not tail.decays

    def closed_form(self, q: float) -> Ellipsoid | None:
        """The ellipsoid { score <= q }, if it is one."""
        quadratic, everywhere = self._quadratic()
        return quadratic.sublevel(q) if quadratic is not None and everywhere else None

    def far(self) -> Quadratic | None:
        """What the score is far from all residuals, if that is known and not all of it."""
        quadratic, everywhere = self._quadratic()
        return None if everywhere else quadratic

    def diagnostics(self) -> dict[str, Any]:
        """What was chosen and how rich the residuals are in the kernel's feature space.

        Returns
        -------
        ``selected``, ``bandwidth``, ``lam``, ``n_references``, ``n_landmarks``;
        ``unexplained``, the share of k(z, z) that the landmarks leave out (above some per cent,
        more of them make smaller regions);
        ``effective_rank`` tr S / |S| and ``d_lam`` tr S (S + lam I)^-1, which set the rate at
        which the score converges (Koltchinskii & Lounici 2017); ``table``, one row for each
        candidate with its mean held-out log volume (whitened) and the proposals inside.
        """
        check_is_fitted(self)
        if self.core_ is None or self.lam_ is None:
            rank = d_lam = float(self.n_features_in_)
        else:
            values = self.core_.spectrum()
            rank = float(values.sum() / values[0])
            d_lam = float((values / (values + self.lam_)).sum())
        nystrom = self.core_ if isinstance(self.core_, NystromCore) else None
        return {
            "selected": self.selected_,
            "bandwidth": self.bandwidth_,
            "lam": self.lam_,
            "effective_rank": rank,
            "d_lam": d_lam,
            "n_references": len(self.references_),
            "n_landmarks": None if nystrom is None else len(nystrom.z),
            "unexplained": 0.0 if nystrom is None else nystrom.unexplained,
            "table": self.table_,
        }


def generator_from(random_state: Any) -> np.random.Generator:
    """A NumPy generator from what scikit-learn calls a random state.

    Raises
    ------
    InputError
        For anything but None, a whole number, a Generator or a RandomState.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return np.random.default_rng(random_state)
    raise InputError("random_state", found=random_state, expected="None, a seed or a generator")
