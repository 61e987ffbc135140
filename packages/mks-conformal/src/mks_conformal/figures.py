"""The figures of demo, `compare` and the claims: coverage with its band, volume ratios, curves."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import betabinom

from armillary.figures import COLORS, LINESTYLES, MARKERS, label_axes, new

from .conformal import misses_allowed
from .contest import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "contest_figure",
    "coverage_band",
    "coverage_panel",
    "coverages_figure",
    "level_curves",
    "rate_figure",
    "ratio_panel",
    "slices_figure",
]


# A method looks the same in every figure; the peers of `reproduce` follow in the order they come.
_LOOKS = {name: number for number, name in enumerate(METHODS)}


def _look(name: str, place: int) -> tuple[str, str]:
    """Colour and marker of a method."""
    number = _LOOKS.get(name, place)
    return COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]


def coverage_band(n_cal: int, n_test: int, alpha: float) -> tuple[float, float]:
    """Where 95 % of measured coverages lie if rows are exchangeable and no two scores tie.

    The rows inside, of `n_test`, are beta-binomial with n + 1 - l and l, l = floor(alpha (n + 1)):
    all test rows share the calibration rows, so that a binomial band alone is too narrow.
    """
    misses = misses_allowed(n_cal, alpha)
    if misses < 1:
        return 1.0, 1.0
    law: Any = betabinom(n_test, n_cal + 1 - misses, misses)
    return float(law.ppf(0.025)) / n_test, float(law.ppf(0.975)) / n_test


def coverage_panel(
    ax: "Axes",
    coverages: Mapping[str, Sequence[float]],
    alpha: float,
    band: tuple[float, float],
) -> None:
    """Coverage of each method: every split a dot, their mean a bar's end, the band behind."""
    ax.axvspan(*band, color="#8a8a8a", alpha=0.2, label="95 % of splits, if exact")
    ax.axvline(1 - alpha, color="black", linewidth=1.0, linestyle="--", label="1 - alpha")
    floor = min(band[0], *(min(values) for values in coverages.values())) - 0.02
    for place, (name, values) in enumerate(coverages.items()):
        color, marker = _look(name, place)
        ax.barh(place, np.mean(values) - floor, left=floor, color=color, alpha=0.35, height=0.55)
        jitter = np.linspace(-0.18, 0.18, len(values))
        ax.plot(values, place + jitter, marker, color=color, markersize=3)
    ax.set_xlim(left=floor)
    _names(ax, list(coverages))
    label_axes(ax, "coverage on test rows", "")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False)


def ratio_panel(ax: "Axes", rows: Sequence[Mapping[str, Any]]) -> None:
    """Volume of each method relative to the ellipsoid, with its interval, on a log scale."""
    ax.axvline(1.0, color="black", linewidth=1.0, linestyle="--")
    for place, row in enumerate(rows):
        value = row["ratio"]
        color, marker = _look(row["method"], place)
        if not np.isfinite(value):
            ax.annotate("unbounded", (1.0, place), va="center", ha="left", fontsize=9)
            continue
        low = value - row["ratio_low"] if np.isfinite(row["ratio_low"]) else 0.0
        high = row["ratio_high"] - value if np.isfinite(row["ratio_high"]) else 0.0
        ax.errorbar(
            [value],
            [place],
            xerr=[[low], [high]],
            color=color,
            marker=marker,
            linestyle="none",
            capsize=3,
        )
        ax.annotate(
            f"{value:.2f}", (value, place), xytext=(0, 7), textcoords="offset points", ha="center",
            fontsize=9,
        )  # fmt: skip
    ax.set_xscale("log")
    from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter

    finite = [row["ratio"] for row in rows if np.isfinite(row["ratio"])] + [1.0]
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 100) if 0.5 * min(finite) <= t]
    ax.xaxis.set_major_locator(FixedLocator([t for t in ticks if t <= 2 * max(finite)]))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.margins(x=0.15)
    _names(ax, [str(row["method"]) for row in rows])
    label_axes(ax, "volume relative to the ellipsoid (log scale)", "")


def _names(ax: "Axes", names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")


def coverages_figure(
    coverages: Mapping[str, Sequence[float]],
    bands: Mapping[str, tuple[float, float]],
    alpha: float,
) -> "Figure":
    """Coverage on each data set: a dot a seed, a bar for the mean, each with its own band."""
    figure, ax = new(6.8, 1.6 + 0.45 * len(coverages))
    for place, (name, values) in enumerate(coverages.items()):
        low, high = bands[name]
        label = "95 % of seeds, if exact" if place == 0 else None
        ax.barh(place, high - low, left=low, color="#8a8a8a", alpha=0.25, height=0.6, label=label)
        label = "a seed" if place == 0 else None
        ax.plot(values, [place] * len(values), "o", color=COLORS[0], markersize=4, label=label)
        mean, label = float(np.mean(values)), "mean" if place == 0 else None
        ax.plot(mean, place, "|", color="black", markersize=14, markeredgewidth=2, label=label)
    ax.axvline(1 - alpha, color="black", linewidth=1.0, linestyle="--", label="1 - alpha")
    ax.use_sticky_edges = False
    ax.margins(x=0.05)
    _names(ax, list(coverages))
    label_axes(ax, f"coverage on test rows, alpha {alpha:g}", "")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def contest_figure(
    rows: Sequence[Mapping[str, Any]],
    coverages: Mapping[str, Sequence[float]],
    alpha: float,
    n_cal: int,
    n_test: int,
) -> "Figure":
    """Coverage beside volume, a line a method."""
    figure, (left, right) = new(9.4, 3.8, columns=2)
    coverage_panel(left, coverages, alpha, coverage_band(n_cal, n_test, alpha))
    ratio_panel(right, rows)
    return figure


def slices_figure(
    regions: Mapping[str, Any],
    residuals: np.ndarray,
    dims: tuple[int, int],
    names: tuple[str, str],
) -> "Figure":
    """Slices of several regions about one prediction over two outputs, with test residuals.

    Parameters
    ----------
    regions
        `Grid2D` by name of the method, all of one row.
    residuals
        Test residuals, drawn as dots for all their other coordinates.
    dims, names
        The two outputs and their names.
    """
    figure, ax = new(6.4, 4.8)
    ax.plot(
        residuals[:, dims[0]],
        residuals[:, dims[1]],
        ".",
        color="#8a8a8a",
        markersize=3,
        label="test residuals (projected)",
    )
    for number, (name, grid) in enumerate(regions.items()):
        inside = grid.inside.astype(float)
        color, style = _look(name, number)[0], LINESTYLES[number]
        ax.contour(grid.x, grid.y, inside, levels=[0.5], colors=[color], linestyles=[style])
        ax.plot([], [], color=color, linestyle=style, marker="", label=f"slice of {name}")
    label_axes(ax, names[0], names[1])
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
    return figure


def level_curves(
    curves: Mapping[str, Sequence[tuple[float, float, float]]],
    x: Sequence[float],
    axes: tuple[str, str],
    *,
    logarithmic: bool = False,
) -> "Figure":
    """Means with intervals over a few settings, a line a name.

    Parameters
    ----------
    curves
        Name to one (lower end, mean, upper end) a setting.
    x
        The settings.
    axes
        Labels of the two axes.
    logarithmic
        Whether both axes are.
    """
    figure, ax = new()
    for number, (name, points) in enumerate(curves.items()):
        low, mid, high = np.asarray(points, dtype=float).T
        ax.errorbar(
            x,
            mid,
            yerr=[mid - low, high - mid],
            color=COLORS[number],
            marker=MARKERS[number],
            linestyle=LINESTYLES[number],
            capsize=3,
            label=name,
        )
    if logarithmic:
        ax.set_xscale("log")
        ax.set_yscale("log")
    ax.set_xticks(list(x), [f"{v:g}" for v in x])
    ax.minorticks_off()
    label_axes(ax, *axes)
    return figure


def rate_figure(
    errors: Mapping[str, Sequence[float]], sizes: Sequence[int], reference: str
) -> "Figure":
    """Error against the number of references, with the slope -1/2 through the first name's."""
    figure, ax = new()
    for number, (name, values) in enumerate(errors.items()):
        ax.plot(
            sizes,
            values,
            color=COLORS[number],
            marker=MARKERS[number],
            linestyle=LINESTYLES[number],
            label=name,
        )
    start = errors[reference][0]
    guide = [start * (sizes[0] / n) ** 0.5 for n in sizes]
    ax.plot(sizes, guide, color="#8a8a8a", linewidth=1.0, linestyle=":", marker="", label="n^-1/2")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(list(sizes), [str(n) for n in sizes])
    ax.set_yticks([0.01, 0.02, 0.05, 0.1], ["0.01", "0.02", "0.05", "0.1"])
    ax.minorticks_off()
    label_axes(ax, "reference residuals n", "rms error of the score")
    return figure
