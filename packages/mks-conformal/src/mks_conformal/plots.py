"""Drawing a region: the slice over two outputs as level sets, a uniform sample as dots.

A slice and a projection are different things: the slice fixes the other outputs, the projection
of the whole region is larger. Both are drawn, and the legend names them.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from armillary import InputError
from armillary.figures import COLORS, label_axes, new

from .region import RegionSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_region"]

DOTS = 400
GRID = 160


def plot_region(
    region: RegionSet,
    i: int = 0,
    dims: tuple[int, int] = (0, 1),
    ax: Any = None,
    *,
    level_sets: bool = False,
) -> "Axes":
    """Draw the region of row `i`.

    Parameters
    ----------
    region
        The regions.
    i
        Row.
    dims
        The outputs on the two axes. With one output its p-value is drawn instead.
    ax
        Axes to draw on; new ones by default.
    level_sets
        Also the boundaries of the regions at other miscoverages, by the p-value.

    Raises
    ------
    InputError
        If the region is unbounded or empty: there is nothing to draw.
    """
    ax = new(5.4, 4.4)[1] if ax is None else ax
    body = region.law.body(int(i) % max(len(region), 1))
    if not body.bounded or body.empty:
        state = "empty" if body.empty else "everything"
        raise InputError(f"row {i}", expected="a region to draw", found=f"one that is {state}")
    if region.n_outputs == 1:
        return _pvalue_curve(region, i, ax)
    grid = region.grid2d(i, dims, n=GRID)
    x, y = np.meshgrid(grid.x, grid.y)
    row = region[i]
    if region.n_outputs > 2:
        points = region.sample(DOTS, i, rng=0)
        ax.plot(
            points[:, dims[0]],
            points[:, dims[1]],
            ".",
            color="#8a8a8a",
            markersize=2.5,
            label="projection of the region (uniform sample)",
        )
    ax.contourf(x, y, grid.inside.astype(float), levels=[0.5, 1.5], colors=[COLORS[0]], alpha=0.3)
    ax.contour(x, y, grid.inside.astype(float), levels=[0.5], colors=[COLORS[0]], linewidths=1.8)
    shown = "region" if region.n_outputs == 2 else "slice at prediction + mean residual"
    ax.fill_between([], [], color=COLORS[0], alpha=0.3, label=f"{shown}, alpha {region.alpha:g}")
    if level_sets:
        _level_sets(region, i, dims, ax, (x, y))
    center = row.prediction[0, list(dims)]
    ax.plot(*center, "+", color="black", markersize=9, markeredgewidth=1.6, label="prediction")
    label_axes(ax, _axis(region, dims[0]), _axis(region, dims[1]))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
    return ax


def _level_sets(
    region: RegionSet, i: int, dims: tuple[int, int], ax: "Axes", mesh: tuple[Any, Any]
) -> None:
    """Boundaries of the regions at larger miscoverages, which lie inside, in the same slice."""
    row = region[i]
    body = region.law.body(int(i) % len(region))
    points = np.tile(body.whitening.location, (mesh[0].size, 1))
    points[:, dims[0]], points[:, dims[1]] = mesh[0].ravel(), mesh[1].ravel()
    pvalue = row.pvalue(points).reshape(mesh[0].shape)
    for level, style in ((0.75, ":"), (0.5, "-."), (0.25, "--")):
        inside = pvalue > level
        if level > region.alpha and inside.any():
            ax.contour(
                *mesh, inside.astype(float), levels=[0.5], colors=[COLORS[4]], linestyles=[style]
            )
            ax.plot([], [], linestyle=style, marker="", color=COLORS[4], label=f"alpha {level:g}")


def _pvalue_curve(region: RegionSet, i: int, ax: "Axes") -> "Axes":
    ends = region.intervals(i)
    low, high = float(ends.min()), float(ends.max())
    margin = 0.25 * (high - low)
    y = np.linspace(low - margin, high + margin, 600)
    ax.plot(y, region[i].pvalue(y[:, None]), color=COLORS[0], marker="", label="p-value")
    for number, (left, right) in enumerate(ends):
        label = f"region, alpha {region.alpha:g}" if number == 0 else None
        ax.axvspan(left, right, color=COLORS[0], alpha=0.2, label=label)
    ax.axhline(region.alpha, color=COLORS[4], linestyle="--", linewidth=1.2, label="alpha")
    center = float(region[i].prediction[0, 0])
    ax.plot(center, 0.0, "+", color="black", markersize=9, markeredgewidth=1.6, label="prediction")
    label_axes(ax, _axis(region, 0), "conformal p-value")
    ax.legend(loc="upper right", frameon=False)
    return ax


def _axis(region: RegionSet, output: int) -> str:
    return f"output {output}" if region.names is None else region.names[output]
