"""Regions for a stream: the miscoverage follows the errors seen (Gibbs & Candes 2021).

    alpha_{t+1} = alpha_t + step (alpha - err_t)

On any sequence, however it drifts, |mean err - alpha| <= (max(alpha, 1 - alpha) + step) / (step T).
"""

from collections import deque
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Float

from armillary import InputError

from .body import MAX_REFERENCES
from .checks import as_rows, check_alpha
from .conformal import Calibration
from .fitted import ForeignScore, ResidualScore
from .kernel_score import MultivariateKernelScore
from .law import SplitLaw
from .region import RegionSet
from .shape import unfitted_copy

__all__ = ["OnlineCalibrator"]


class OnlineCalibrator:
    """Adaptive conformal regions: `region` for the next row, then `update` with its residual.

    Parameters
    ----------
    score
        A fitted score, or any object with ``score_samples``.
    alpha
        Miscoverage to be met in the long run.
    step
        How fast alpha_t moves. Larger follows drift faster and varies more.
    window
        Residuals kept, the latest; None keeps all.

    Attributes
    ----------
    alpha_t
        Miscoverage of the next region. At 0 or below that region is everything, at 1 or above
        it is empty.
    """

    def __init__(
        self, score: Any, alpha: float = 0.1, *, step: float = 0.005, window: int | None = None
    ) -> None:
        if not step >= 0:
            raise InputError("step", found=step, expected="a number >= 0")
        if window is not None and window < 1:
            raise InputError("window", found=window, expected="a whole number >= 1, or None")
        self.score, self.alpha, self.step, self.window = score, check_alpha(alpha), step, window
        self.alpha_t = self.alpha
        self._residuals: deque[Float[np.ndarray, " d"]] = deque()
        self._scores: deque[float] = deque()
        self._sorted = np.empty(0)
        self._issued: SplitLaw | None = None

    def __len__(self) -> int:
        return len(self._scores)

    def _rule(self, d: int) -> ResidualScore:
        if isinstance(self.score, ResidualScore):
            return self.score
        if not hasattr(self.score, "score_samples"):
            raise InputError("score", found=repr(self.score), expected="score_samples")
        # residuals serve the proposals of a volume alone: the latest will do
        latest = list(islice(reversed(self._residuals), MAX_REFERENCES))
        heads = np.array(latest) if len(latest) > d + 1 else np.concatenate([np.eye(d), -np.eye(d)])
        middle = float(abs(self._sorted[len(self) // 2])) if len(self) else 1.0
        return ForeignScore(self.score, heads, middle)

    def region(self, prediction: Any) -> RegionSet:
        """The region of the next row, from the residuals seen so far.

        Parameters
        ----------
        prediction
            The point prediction, (d,) or (1, d).
        """
        row = np.atleast_2d(np.asarray(prediction, dtype=float))
        row = as_rows(row, "prediction")
        if len(row) != 1:
            raise InputError("prediction", expected="one row", found=f"{len(row)}")
        rule = self._rule(row.shape[1])
        calibration = Calibration(self._sorted, None, rule.resolution_)
        self._issued = SplitLaw(rule, row, self.alpha_t, (calibration,), np.zeros(1, dtype=int))
        return RegionSet(self._issued, rule.names_)

    def update(self, residual: Any) -> None:
        """Take in y - prediction of the row whose region was just issued; move `alpha_t`.

        Raises
        ------
        InputError
            If no region was issued since the last update.
        """
        if self._issued is None:
            raise InputError("update needs a region", instead="call region(prediction) first")
        law, d = self._issued, self._issued.prediction.shape[1]
        row = as_rows(np.reshape(np.asarray(residual, dtype=float), (1, -1)), "residual", width=d)
        points = law.prediction + row
        missed = not law.inside(points, np.zeros(1, dtype=int))[0]
        self._issued = None
        self.alpha_t += self.step * (self.alpha - missed)
        self._append(row[0], float(law.rule.score_samples(row)[0]))

    def _append(self, residual: Float[np.ndarray, " d"], score: float) -> None:
        self._residuals.append(residual)
        self._scores.append(score)
        # a new array each time: regions that were issued keep theirs
        self._sorted = np.insert(self._sorted, np.searchsorted(self._sorted, score), score)
        if self.window is not None and len(self._scores) > self.window:
            self._residuals.popleft()
            old = np.searchsorted(self._sorted, self._scores.popleft())
            self._sorted = np.delete(self._sorted, old)

    def refit(self) -> None:
        """Fit the score again: the older half of the residuals fits it, the newer calibrates.

        Only a `MultivariateKernelScore` can be fitted again.
        """
        if not isinstance(self.score, MultivariateKernelScore):
            raise InputError("refit", found=repr(self.score), expected="a MultivariateKernelScore")
        residuals = np.array(self._residuals)
        older, newer = residuals[: len(residuals) // 2], residuals[len(residuals) // 2 :]
        self.score = unfitted_copy(self.score).fit(older)
        self._residuals, self._scores, self._sorted = deque(), deque(), np.empty(0)
        self._issued = None
        for row, score in zip(newer, self.score.score_samples(newer), strict=True):
            self._append(row, float(score))
