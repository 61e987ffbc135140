"""Greedy maximum of the target over sets of size k (Chen, Zhang & Zhou 2018, arXiv 1709.05135).

Maximises ``sum of log q(y) over the set + log det k over the set`` one row at a time:
the gain of row i is log q_i + log g_i, g_i its squared residual after projection on the rows chosen
before (`residuals`). Weights are never exponentiated, so any range of log q is handled exactly.
O(n k (d + k)) time, O(n + k d) memory beyond the features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Real

from .checks import as_count, as_kept, as_logs, as_rows, one_of
from .errors import rank_error
from .residuals import residuals, spanned_by

_WORTHWHILE = 1e-9  # nats that an exchange must gain: less is rounding
_SWEEPS = 50


@dataclass(frozen=True, eq=False)
class MapResult:
    """A greedy set, in the order of choice.

    Parameters
    ----------
    indices
        Chosen rows: kept rows first, then in order of choice, then rows that filled up.
    gains
        What each added to the log determinant, nats; -inf for rows that filled up.
    log_det
        Log determinant of the features' Gram matrix over the set: the sum of `gains`.
    """

    indices: Int[np.ndarray, " k"]
    gains: Float[np.ndarray, " k"]
    log_det: float


def greedy_map(
    features: Real[np.ndarray, "n d"],
    log_quality: Real[np.ndarray, " n"] | None = None,
    *,
    k: int,
    keep: Sequence[int] = (),
    refine: bool = False,
    fill: str = "error",
) -> MapResult:
    """Choose k rows, each the best addition to those before it.

    Parameters
    ----------
    features
        Rows phi, of any norm above 0.
    log_quality
        log q of each row, nats, up to a constant; None means equal.
    k
        Size of the set.
    keep
        Rows that are in the set whatever their quality.
    refine
        Afterwards exchange single rows for better ones while that gains (at most 50 sweeps).
    fill
        When no row is left outside the span of those chosen: "error" raises, "quality" takes the
        rows of highest quality that remain. The set's determinant is then 0.

    Returns
    -------
    The set. Ties go to the lowest index.

    Raises
    ------
    RankError
        If the rows span fewer than k dimensions (and `fill` is "error"), or the kept rows fewer
        than there are of them.
    InputError
        If an argument has the wrong shape, is not finite or out of range.

    Examples
    --------
    >>> greedy_map(np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), k=2).indices
    array([1, 2])
    """
    rows = as_rows(features)
    n = len(rows)
    k = as_count(k, n)
    quality = as_logs(log_quality, "log_quality", n)
    kept = as_kept(keep, n, k)
    one_of(fill, "fill", ("error", "quality"))

    span = spanned_by(rows, kept, capacity=k)
    chosen = kept.tolist()
    while len(chosen) < k:
        score = _score(quality, span.left)
        best = int(np.argmax(score))
        if score[best] == -np.inf:
            break
        span.take(best)
        chosen.append(best)

    if refine:
        chosen = _exchanged(chosen, len(kept), rows, span.norm2, quality)
        span = spanned_by(rows[chosen], np.arange(len(chosen)), capacity=k)
    gains = np.log(span.gains)
    if len(chosen) < k:
        if fill == "error":
            raise rank_error(len(chosen), k, n)
        best_first = np.argsort(-quality, kind="stable")
        spare = best_first[~np.isin(best_first, chosen)]
        chosen = [*chosen, *spare[: k - len(chosen)].tolist()]
        gains = np.append(gains, np.full(k - len(gains), -np.inf))
    return MapResult(np.array(chosen, dtype=int), gains, float(gains.sum()))


def _score(
    quality: Float[np.ndarray, " n"], left: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    with np.errstate(divide="ignore"):  # log 0 = -inf: a row in the span is never chosen
        return quality + np.log(left)


def _exchanged(
    chosen: list[int],
    n_kept: int,
    rows: Float[np.ndarray, "n d"],
    norm2: Float[np.ndarray, " n"],
    quality: Float[np.ndarray, " n"],
) -> list[int]:
    """Replace one row by the best for its place, until no place gains."""
    chosen = list(chosen)
    for _ in range(_SWEEPS):
        before = list(chosen)
        for place in range(n_kept, len(chosen)):
            others = chosen[:place] + chosen[place + 1 :]
            basis = np.linalg.qr(rows[others].T)[0].T
            score = _score(quality, residuals(rows, basis, norm2))
            best = int(np.argmax(score))
            if score[best] > score[chosen[place]] + _WORTHWHILE:
                chosen[place] = best
        if chosen == before:
            break
    return chosen
