"""The demo: Newcomb's passage times of light, two of which are wild."""

import numpy as np
from scipy.stats import trim_mean

from armillary import figures
from armillary.randomness import spawn
from armillary.run import Run

from .block_means import median_of_means
from .newcomb import PASSAGE_TIMES, TODAY

BLOCKS = (1, 3, 6, 11, 22, 33, 66)
CUTS = 400  # random cuts into blocks for each number of blocks


def demo(run: Run) -> None:
    """Compare estimates of the centre, and show what the number of blocks does."""
    rngs = spawn(run.seed, len(BLOCKS))
    spread = {
        k: [median_of_means(PASSAGE_TIMES, k, rng=rng).value for _ in range(CUTS)]
        for k, rng in zip(BLOCKS, rngs, strict=True)
    }
    eleven = float(np.mean(spread[11]))
    run.metrics |= {"median_of_means": eleven, "mean": PASSAGE_TIMES.mean(), "today": TODAY}
    named = {
        "mean": PASSAGE_TIMES.mean(),
        "mean without the two wild values": PASSAGE_TIMES[PASSAGE_TIMES > 0].mean(),
        "mean, 10 % trimmed at each end": trim_mean(PASSAGE_TIMES, 0.1),
        "median": np.median(PASSAGE_TIMES),
        "median of 11 block means": eleven,
    }
    run.table(
        [{"estimate": name, "ns above 24,800": round(float(v), 2)} for name, v in named.items()],
        f"Newcomb's {len(PASSAGE_TIMES)} passage times of light, 1882",
    )
    figure, ax = figures.new()
    low, mid, high = np.quantile(list(spread.values()), [0.05, 0.5, 0.95], axis=1)
    figures.band(ax, BLOCKS, low, mid, high, label="median of block means, 90 % of random cuts")
    ax.axhline(named["mean without the two wild values"], color=figures.COLORS[4], linestyle=":")
    ax.set_xscale("log")
    ax.set_xticks(BLOCKS, [str(k) for k in BLOCKS])
    ax.minorticks_off()
    figures.label_axes(ax, "blocks", "passage time (ns above 24,800)")
    run.figure(
        figure,
        "blocks",
        "From the mean (1 block) to the median (66). The dotted line is the mean without the two "
        "wild values. More blocks come nearer to it, without being told which values are wild, "
        "until the blocks are so small that their middle is that of the values, not of the mean.",
    )
