"""What decides membership: one law for each conformal mode, the split law among them.

A `Law` holds the predictions of m rows and answers for any point of any row. `SplitLaw` serves
split conformal, groups (Mondrian), covariate-shift weights and the online calibrator; `full.py`
and `crossfit.py` hold the others; `SliceLaw` is any of them with some outputs known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from .body import Body
from .conformal import Calibration
from .fitted import ResidualScore

__all__ = ["Factor", "Law", "SliceLaw", "SplitLaw", "scaled", "taken"]

Points = Float[np.ndarray, "k d"]
Rows = Int[np.ndarray, " k"]
Values = Float[np.ndarray, " k"]
Factor = Float[np.ndarray, "m d d"]  # lower triangular L(x), one a row


@runtime_checkable
class Law(Protocol):
    """Membership of points in the regions of m rows."""

    @property
    def prediction(self) -> Float[np.ndarray, "m d"]:
        """The point predictions."""
        ...

    @property
    def alpha(self) -> float:
        """Miscoverage."""
        ...

    @property
    def guarantee(self) -> float:
        """The coverage that is proven, on average over calibration and test rows."""
        ...

    def take(self, rows: Rows) -> "Law":
        """The law of some of its rows."""
        ...

    def score(self, points: Points, rows: Rows) -> Values:
        """Score of each point in the region of its row."""
        ...

    def pvalue(self, points: Points, rows: Rows) -> Values:
        """Conformal p-value of each point."""
        ...

    def inside(self, points: Points, rows: Rows) -> Bool[np.ndarray, " k"]:
        """Whether each point belongs to the region of its row."""
        ...

    def thresholds(self) -> Float[np.ndarray, " m"] | None:
        """The score that bounds each row's region; None where no single one does."""
        ...

    def body(self, row: int) -> Body:
        """The region of one row, in the outputs' own coordinates."""
        ...


def scaled(
    points: Points, rows: Rows, prediction: Float[np.ndarray, "m d"], factor: Factor | None
) -> Points:
    """Residuals y - f(x), divided by L(x) where there is one."""
    residuals = points - prediction[rows]
    if factor is None:
        return residuals
    return np.linalg.solve(factor[rows], residuals[:, :, None])[:, :, 0]


def taken(factor: Factor | None, rows: Rows) -> Float[np.ndarray, "k d d"] | None:
    """Some rows of a factor, if there is one."""
    return None if factor is None else factor[rows]


@dataclass(frozen=True, eq=False)
class SplitLaw:
    """One score, one set of calibration scores a group, a weight a row if any."""

    rule: ResidualScore
    prediction: Float[np.ndarray, "m d"]
    alpha: float
    calibrations: tuple[Calibration, ...]
    group: Int[np.ndarray, " m"]
    factor: Factor | None = None
    test_weight: Float[np.ndarray, " m"] | None = None

    @property
    def guarantee(self) -> float:
        """1 - alpha, for exchangeable rows (of a group) or the true weights."""
        return 1.0 - self.alpha

    def take(self, rows: Rows) -> "SplitLaw":
        """The law of some of its rows."""
        return replace(
            self,
            prediction=self.prediction[rows],
            group=self.group[rows],
            factor=taken(self.factor, rows),
            test_weight=None if self.test_weight is None else self.test_weight[rows],
        )

    def score(self, points: Points, rows: Rows) -> Values:
        """Score of each point's residual."""
        return self.rule.score_samples(scaled(points, rows, self.prediction, self.factor))

    def pvalue(self, points: Points, rows: Rows) -> Values:
        """Conformal p-value of each point."""
        scores, out = self.score(points, rows), np.empty(len(points))
        for which, weight, calibration in self._by_group(rows):
            out[which] = calibration.pvalue(scores[which], weight)
        return out

    def inside(self, points: Points, rows: Rows) -> Bool[np.ndarray, " k"]:
        """Whether each point belongs to the region of its row."""
        scores, out = self.score(points, rows), np.empty(len(points), dtype=bool)
        for which, weight, calibration in self._by_group(rows):
            out[which] = calibration.inside(scores[which], self.alpha, weight)
        return out

    def thresholds(self) -> Float[np.ndarray, " m"]:
        """The quantile of each row."""
        out = np.empty(len(self.prediction))
        for which, weight, calibration in self._by_group(np.arange(len(out))):
            out[which] = calibration.quantile(self.alpha, weight, len(which))
        return out

    def _by_group(
        self, rows: Rows
    ) -> list[tuple[Int[np.ndarray, " j"], Float[np.ndarray, " j"] | None, Calibration]]:
        """Which of the points a calibration serves, and their weights."""
        group = self.group[rows]
        parts = []
        for label in np.unique(group):
            which = np.flatnonzero(group == label)
            weight = None if self.test_weight is None else self.test_weight[rows[which]]
            parts.append((which, weight, self.calibrations[label]))
        return parts

    def body(self, row: int) -> Body:
        """The region of one row, in the outputs' own coordinates."""
        q = float(self.take(np.array([row])).thresholds()[0])
        factor = None if self.factor is None else self.factor[row]
        return self.rule.body(q).moved(self.prediction[row], factor)


@dataclass(frozen=True, eq=False)
class SliceLaw:
    """One row of another law with some outputs held at known values."""

    whole: Law
    known: tuple[int, ...]
    values: Float[np.ndarray, " q"]

    @property
    def free(self) -> Int[np.ndarray, " f"]:
        """The outputs that are left."""
        return np.setdiff1d(np.arange(self.whole.prediction.shape[1]), np.array(self.known))

    @property
    def prediction(self) -> Float[np.ndarray, "1 f"]:
        """The prediction of the outputs that are left."""
        return self.whole.prediction[:, self.free]

    @property
    def alpha(self) -> float:
        """Miscoverage of the whole region."""
        return self.whole.alpha

    @property
    def guarantee(self) -> float:
        """That of the whole region: on average over the known values, not given them."""
        return self.whole.guarantee

    def take(self, rows: Rows) -> "SliceLaw":
        """The law of some of its rows, of which there is one."""
        return replace(self, whole=self.whole.take(rows))

    def _full(self, points: Float[np.ndarray, "k f"]) -> Points:
        full = np.empty((len(points), self.whole.prediction.shape[1]))
        full[:, self.free] = points
        full[:, list(self.known)] = self.values
        return full

    def score(self, points: Float[np.ndarray, "k f"], rows: Rows) -> Values:
        """Score of the completed points."""
        return self.whole.score(self._full(points), rows)

    def pvalue(self, points: Float[np.ndarray, "k f"], rows: Rows) -> Values:
        """p-value of the completed points."""
        return self.whole.pvalue(self._full(points), rows)

    def inside(self, points: Float[np.ndarray, "k f"], rows: Rows) -> Bool[np.ndarray, " k"]:
        """Membership of the completed points."""
        return self.whole.inside(self._full(points), rows)

    def thresholds(self) -> Float[np.ndarray, " m"] | None:
        """Those of the whole law."""
        return self.whole.thresholds()

    def body(self, row: int) -> Body:
        """The slice of the whole region."""
        return self.whole.body(row).slice(list(self.known), self.values)


def known_outputs(
    known: dict[int, float],
) -> tuple[tuple[int, ...], Float[np.ndarray, " q"]]:
    """Indices in order and their values."""
    indices: Sequence[int] = sorted(known)
    return tuple(int(i) for i in indices), np.array([float(known[i]) for i in indices])
