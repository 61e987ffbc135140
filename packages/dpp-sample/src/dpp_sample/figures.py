"""The figures of dpp-sample: quality against diversity."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armillary.figures import COLORS, MARKERS, new

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
            mean[:, 0],
            mean[:, 1],
            xerr=error[:, 0],
            yerr=error[:, 1],
            color=COLORS[number],
            marker=MARKERS[number],
            markersize=5,
            linewidth=1.2,
            elinewidth=0.6,
            label=_NAMES[method],
        )
    axes.set_xlabel("quality: mean log p of the set (nats)")
    axes.set_ylabel("diversity: Vendi score of the set")
    axes.legend()
    return figure
