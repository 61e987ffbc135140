"""Prediction regions of many rows: membership, p-values, volume, box, samples, slices.

A `RegionSet` is what `MKSRegressor.predict_region` and `OnlineCalibrator.region` give. Membership
and p-values need no volume and stream over any number of rows; everything geometric is about one
row, `i`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from .body import check_known
from .bounds import bounding_box_of, intervals
from .checks import as_rows, in_order, label, same_width
from .law import Law, SliceLaw, known_outputs
from .proposal import explore, sample_from
from .volume import VolumeEstimate, rescaled, volume_of

__all__ = ["Grid2D", "RegionSet"]

GRID_POINTS = 20_000  # proposals that set the frame of a grid
MARGIN = 0.05
STREAM = 50_000  # rows answered at once


@dataclass(frozen=True, slots=True, eq=False)
class Grid2D:
    """A region on a grid over two outputs, the others fixed."""

    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    inside: Bool[np.ndarray, "n n"]  # rows follow y, columns x, as in a contour plot
    value: Float[np.ndarray, "n n"]  # the score, or 1 - p-value where there is no single score
    level: float  # the region is value <= level (value < level for 1 - p-value)


class RegionSet:
    """Prediction regions of m rows.

    Parameters
    ----------
    law
        What decides membership; made by `MKSRegressor` and `OnlineCalibrator`.
    names
        Names of the outputs, for messages and plots.
    """

    def __init__(self, law: Law, names: tuple[str, ...] | None = None) -> None:
        self.law = law
        self.names = names
        self._volumes: dict[Any, VolumeEstimate] = {}

    def __len__(self) -> int:
        return len(self.law.prediction)

    def __repr__(self) -> str:
        shape = f"{len(self)} row(s), {self.n_outputs} output(s)"
        return f"RegionSet({shape}, alpha={self.alpha:g})"

    def __getitem__(self, index: Any) -> "RegionSet":
        rows = np.atleast_1d(np.arange(len(self))[index])
        out = RegionSet(self.law.take(rows), self.names)
        out._volumes = self._volumes
        return out

    def __iter__(self) -> Iterator["RegionSet"]:
        return (self[i] for i in range(len(self)))

    @property
    def n_outputs(self) -> int:
        """D."""
        return self.law.prediction.shape[1]

    @property
    def alpha(self) -> float:
        """Miscoverage."""
        return self.law.alpha

    @property
    def guarantee(self) -> float:
        """The coverage that is proven; for cv+ it is below the usual 1 - alpha."""
        return self.law.guarantee

    @property
    def prediction(self) -> Float[np.ndarray, "m d"]:
        """The point predictions."""
        return self.law.prediction

    @property
    def threshold(self) -> Float[np.ndarray, " m"] | None:
        """The score that bounds each row's region, inf for everything; None for full and cv+."""
        return self.law.thresholds()

    def _points(self, Y: Any) -> tuple[Float[np.ndarray, "k d"], np.ndarray]:
        """Candidates and the row that each belongs to."""
        points = as_rows(in_order(Y, self.names), "Y", names=self.names)
        if self.n_outputs > 1 and np.ndim(Y) == 1:
            points = points.T  # one candidate, not one output
        same_width(points, self.n_outputs, "Y", self.names)
        if len(self) == 1:
            return points, np.zeros(len(points), dtype=int)
        if len(points) != len(self):
            raise InputError("Y", expected=f"{len(self)} row(s)", found=f"{len(points)}")
        return points, np.arange(len(points))

    def _streamed(self, answer: Callable[..., np.ndarray], Y: Any) -> np.ndarray:
        """The law's answer part by part: residuals of all rows at once would double the memory."""
        points, rows = self._points(Y)
        starts = range(0, max(len(points), 1), STREAM)
        parts = [answer(points[s : s + STREAM], rows[s : s + STREAM]) for s in starts]
        return np.concatenate(parts)

    def contains(self, Y: Any) -> Bool[np.ndarray, " k"]:
        """Whether each row's vector lies in its region.

        Parameters
        ----------
        Y
            (m, d), one candidate a row; with a single region any number of candidates. The
            columns of a data frame are found by name where the targets had names.

        Raises
        ------
        InputError
            For a NaN, or another number of rows or outputs.
        """
        return self._streamed(self.law.inside, Y)

    def pvalue(self, Y: Any) -> Float[np.ndarray, " k"]:
        """Conformal p-value of each candidate; it lies inside exactly when p > alpha."""
        return self._streamed(self.law.pvalue, Y)

    def score(self, Y: Any) -> Float[np.ndarray, " k"]:
        """Score of each candidate; refused for cv+ and jackknife+, which have no single one."""
        return self._streamed(self.law.score, Y)

    def volume(
        self,
        i: int = 0,
        *,
        rtol: float = 0.02,
        max_points: int = 640_000,
        rng: RngLike = None,
    ) -> VolumeEstimate:
        """Volume of the region of row `i`, in the product of the outputs' units.

        Rows with the same threshold share one estimate, but for det L(x) where the scale varies.

        Parameters
        ----------
        i
            Row.
        rtol, max_points, rng
            As in `region_volume`.
        """
        row = self._row(i)
        body, thresholds = self.law.body(row), self.law.thresholds()
        if thresholds is None or isinstance(rng, np.random.Generator):
            return volume_of(body, rtol=rtol, max_points=max_points, rng=rng)
        key = (float(thresholds[row]), rtol, max_points, rng)
        unit = body.whitening.log_volume_scale
        if key not in self._volumes:
            estimate = volume_of(body, rtol=rtol, max_points=max_points, rng=rng)
            self._volumes[key] = rescaled(estimate, -unit)
        return rescaled(self._volumes[key], unit)

    def bounding_box(self, i: int = 0, rng: RngLike = 0) -> Float[np.ndarray, "2 d"]:
        """Lower and upper end of the region of row `i` in every output.

        Exact for ellipsoids and one output; otherwise see `bounds.bounding_box_of`. Infinite for
        an unbounded region, NaN for an empty one.
        """
        return bounding_box_of(self.law.body(self._row(i)), as_generator(rng))

    def intervals(self, i: int = 0) -> Float[np.ndarray, "k 2"]:
        """The intervals that make up the region of row `i`, for one output."""
        if self.n_outputs != 1:
            raise InputError("intervals need one output", found=f"{self.n_outputs}")
        return intervals(self.law.body(self._row(i)))

    def sample(self, n: int, i: int = 0, rng: RngLike = None) -> Float[np.ndarray, "n d"]:
        """`n` points, uniform on the region of row `i`.

        Raises
        ------
        InputError
            If the region is unbounded or empty.
        """
        return sample_from(self.law.body(self._row(i)), n, as_generator(rng))

    def condition(self, known: dict[int, float], i: int = 0) -> "RegionSet":
        """What is left for the other outputs of row `i` once some are known: the slice.

        The rest of the outputs lies in the slice exactly when the whole vector lies in the
        region. So coverage is 1 - alpha on average over the known values, not given them, and
        the slice may be empty.

        Parameters
        ----------
        known
            Output index to value, for at least one output and not all.
        """
        check_known(known, self.n_outputs)
        outputs, values = known_outputs(known)
        whole = self.law.take(np.array([self._row(i)]))
        names = self.names
        if names is not None:
            names = tuple(name for j, name in enumerate(names) if j not in outputs)
        return RegionSet(SliceLaw(whole, outputs, values), names)

    def grid2d(
        self,
        i: int = 0,
        dims: tuple[int, int] = (0, 1),
        fixed: dict[int, float] | None = None,
        n: int = 200,
    ) -> Grid2D:
        """The slice of the region of row `i` over two outputs, on an n x n grid.

        Parameters
        ----------
        dims
            The two outputs, for x and y.
        fixed
            Values of other outputs; by default the middle of the residuals about the prediction.
        """
        row, d = self._row(i), self.n_outputs
        if len(set(dims)) != 2 or not all(0 <= j < d for j in dims):
            raise InputError("dims", found=dims, expected=f"two different outputs of 0 to {d - 1}")
        body = self.law.body(row)
        met = explore(body, GRID_POINTS, np.random.default_rng(0))[0] if body.bounded else None
        frame = body.references if met is None or len(met) < 10 else met
        low, high = frame.min(axis=0), frame.max(axis=0)
        if body.closed is not None:  # in many dimensions proposals seldom meet its ends
            low, high = body.closed.box()
        low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
        x, y = (np.linspace(low[j], high[j], n) for j in dims)
        points = np.tile(body.whitening.location, (n * n, 1))
        for j, value in (fixed or {}).items():
            if j in dims or not 0 <= j < d:
                raise InputError("fixed", found=f"output {j}", expected="outputs outside dims")
            points[:, j] = value
        points[:, dims[0]], points[:, dims[1]] = np.tile(x, n), np.repeat(y, n)
        rows = np.full(len(points), row)
        inside, level = self.law.inside(points, rows), 1.0 - self.alpha
        thresholds = self.law.thresholds()
        if thresholds is None:
            value = 1.0 - self.law.pvalue(points, rows)
        else:
            value, level = self.law.score(points, rows), float(thresholds[row])
        return Grid2D(x, y, inside.reshape(n, n), value.reshape(n, n), level)

    def plot(self, i: int = 0, dims: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
        """Draw the slice of row `i` through its prediction, and a sample's projection as dots."""
        from .plots import plot_region

        return plot_region(self, i, dims, ax)

    def to_npz(self, path: str | Path) -> None:
        """Save the regions as plain arrays and JSON; see `storage.py` for the keys."""
        from .storage import save_region

        save_region(self, path)

    def label(self, output: int) -> str:
        """The name of an output, or its index."""
        return label(self.names, output)

    def _row(self, i: int) -> int:
        if not -len(self) <= i < len(self):
            raise InputError("i", found=i, expected=f"a row of 0 to {len(self) - 1}")
        return int(i) % len(self)
