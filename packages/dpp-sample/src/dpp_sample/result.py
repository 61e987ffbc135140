"""`Selection`: the chosen set, with what is needed to doubt it."""

from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
from jaxtyping import Float, Int

from .errors import PoolWarning
from .pool import Pool
from .residuals import log_volume

MOST_PARETO_K = 0.7


@dataclass(frozen=True, eq=False)
class Selection:
    """k rows of a pool, or `size` sets of them.

    Parameters
    ----------
    indices
        Rows of the pool: in order of choice for MAP, ascending for draws, which are sets.
    texts
        Their texts; None where several sets were drawn.
    beta
        Inverse temperature that was used.
    log_det
        Log determinant of the features' Gram matrix over the set; -inf where it was filled up.
    gains
        What each row added to `log_det` (MAP alone).
    log_prob
        Log probability of the set given the pool (draws alone; given the kept rows, with `keep`;
        in the last round, for "refresh").
    marginals
        Probability of each of the pool's rows to be chosen (as for `log_prob`).
    ess, pareto_k
        Effective number of draws and tail shape of the weights at `beta`; of the first chunk for
        "refresh"; nan where there is no proposal law.
    kl_estimate, n_eff
        Estimate of the bound on the pool's bias, nats, and the effective pool size (`pool_bias`).
        For "refresh" those of the first chunk, which later rounds only improve on. None for MAP,
        `keep`, filled sets and pools that are not "iid".
    clipped
        Whether a chosen row's weight lay more than 600 nats below the largest; its draw is then of
        the clipped law.
    notes
        What stands against the figures, one sentence each.
    """

    indices: Int[np.ndarray, " k"] | Int[np.ndarray, "size k"]
    texts: list[str] | None
    beta: float
    log_det: float | Float[np.ndarray, " size"]
    gains: Float[np.ndarray, " k"] | None = None
    log_prob: float | Float[np.ndarray, " size"] | None = None
    marginals: Float[np.ndarray, " n"] | None = None
    ess: float = float("nan")
    pareto_k: float = float("nan")
    kl_estimate: float | None = None
    n_eff: float | None = None
    clipped: bool = False
    notes: tuple[str, ...] = ()


def drawn_selection(
    pool: Pool,
    sets: Int[np.ndarray, "sets k"],
    log_prob: Float[np.ndarray, " sets"] | None,
    size: int | None,
    **figures: Any,
) -> Selection:
    """The selection of drawn sets: of the only one, with its texts, where `size` is None."""
    log_det = log_volume(pool.features[sets])
    if size is not None:
        return Selection(sets, None, log_det=log_det, log_prob=log_prob, **figures)
    return Selection(
        sets[0],
        [pool.texts[row] for row in sets[0]],
        log_det=float(log_det[0]),
        log_prob=None if log_prob is None else float(log_prob[0]),
        **figures,
    )


def weight_doubts(ess: float, pareto_k: float, k: int, beta: float) -> list[str]:
    """What the weights' diagnostics say against drawing k rows from them; nan says nothing."""
    doubts = []
    if ess < 4 * k * (1 - 1e-9):  # the automatic beta may stand at just 4 k
        doubts.append(
            f"the effective sample size {ess:.1f} at beta {beta:.4g} is below 4 k = {4 * k}:"
            " a larger pool or a smaller beta would steady the draw"
        )
    if pareto_k > MOST_PARETO_K:
        doubts.append(
            f"Pareto k {pareto_k:.2f} at beta {beta:.4g} is above {MOST_PARETO_K}:"
            " a few draws carry the weight, and more may have been missed"
        )
    return doubts


def warn_of(doubts: list[str]) -> None:
    """Emit each as a `PoolWarning` of the caller's caller."""
    for doubt in doubts:
        warn(doubt, PoolWarning, stacklevel=3)
