"""The figures of dpp-sample: quality against diversity."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armillary.figures import COLORS, LINESTYLES, MARKERS, label_axes, new

from .sweeps import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["frontier_figure"]

_NAMES = {
    "map": "MAP (ours)",
    "k-dpp": "k-DPP (ours)",
    "mmr": "MMR",
    "k-means": "k-means",
    "top-k": "top-k",
    "first draws": "first draws",
}


def frontier_figure(prompts: Sequence[Sequence[dict[str, Any]]]) -> "Figure":
    """Mean quality and Vendi score over prompts, a marker for each setting of each method.

    Parameters
    ----------
    prompts
        For each prompt its points, as `sweeps.sweep` gives them.
    """
    figure, axes = new()
    for number, method in enumerate(METHODS):
        sets = [[p for p in points if p["method"] == method] for points in prompts]
        if not all(sets):
            continue
        place = np.array([[[p["quality"], p["vendi"]] for p in points] for points in sets])
        mean = place.mean(axis=0)
        error = place.std(axis=0, ddof=1) / np.sqrt(len(place)) if len(place) > 1 else 0 * mean
        mean, error = mean[np.argsort(mean[:, 0])], error[np.argsort(mean[:, 0])]
        axes.errorbar(
            *mean.T, *error.T[::-1], fmt="none", ecolor=COLORS[number], elinewidth=0.8, alpha=0.35
        )
        axes.plot(
            *mean.T,
            color=COLORS[number],
            marker=MARKERS[number],
            linestyle=LINESTYLES[number],
            markersize=5,
            linewidth=1.2,
            label=_NAMES[method],
        )
    label_axes(axes, "quality: mean log p of the set (nats)", "diversity: Vendi score of the set")
    return figure
