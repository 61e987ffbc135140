"""`select`: k good and different rows of a pool, by MAP, by a draw, or by iterated pools."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from .bias import pool_bias
from .checks import as_count, as_kept, one_of
from .conditioned import ConditionedKDPP
from .errors import RankError
from .greedy import greedy_map
from .pool import Pool
from .refresh import automatic_beta, refreshed
from .result import Selection, drawn_selection, warn_of, weight_doubts
from .weights import Weights, map_beta


def select(
    pool: Pool,
    k: int,
    *,
    method: str = "map",
    beta: float | str = "auto",
    lam: float = 1.0,
    size: int | None = None,
    rounds: int = 4,
    refine: bool = False,
    map_on: str = "quality",
    keep: Sequence[int] = (),
    fill: str = "error",
    smooth: str = "none",
    rng: RngLike = None,
) -> Selection:
    """Choose k rows of a pool under ``P(S) ~ prod q * det k``, ``log q = beta log p + lam reward``.

    Parameters
    ----------
    pool
        From `make_pool`.
    k
        Size of the set.
    method
        "map": the greedy maximum of the target (`greedy_map`), no randomness. "sample": a draw
        from the pool's K-DPP (`KDPP`). "refresh": the draws of an "iid" pool used one chunk after
        the other, which removes the pool's bias (`refresh`).
    beta
        Inverse temperature of the whole string. "auto": for draws the largest in [1, 4] at which
        the weights stay even (`sampling_beta`; 1 for an "enumerated" pool); for MAP a heuristic
        (`map_beta`), for which `pareto` is the real tool.
    lam
        Nats per unit of reward.
    size
        Number of independent sets to draw; None draws one and gives its texts.
    rounds
        Rounds of "refresh": the pool is cut in rounds + 1 chunks of at least 4 k draws.
    refine
        Improve the greedy set by exchanges.
    map_on
        "quality" maximises the target, whose mode does not know the proposal. "weight" maximises
        the K-DPP of the pool, log w in place of log q.
    keep
        Rows of the pool that must be in the set; for "map" and "sample".
    fill
        When the pool has too few distinct or independent rows: "error" raises, "quality" fills up
        with the best rows that remain. A pool of fewer than k rows is then taken whole.
    smooth
        "psis" smooths the weights' tail (`Pool.at`).
    rng
        Seed or generator.

    Raises
    ------
    RankError
        If the rows span fewer than k dimensions.
    InputError
        If the pool has fewer than k rows, or an argument is out of range or of another method.
    """
    one_of(method, "method", ("map", "sample", "refresh"))
    one_of(map_on, "map_on", ("quality", "weight"))
    one_of(fill, "fill", ("error", "quality"))
    k = as_count(k, 2**31)
    of_others = {
        "size": method == "map" and size is not None,
        "refine": method != "map" and refine,
        "keep": method == "refresh" and len(keep) > 0,
        "smooth": method == "refresh" and smooth != "none",
    }
    for name, wrong in of_others.items():
        if wrong:
            raise InputError(name, found=f'a value with method "{method}"', expected="none")
    if size is not None:
        as_count(size, 2**31, "size")
    if isinstance(beta, str):
        one_of(beta, "beta", ("auto",))
    given = None if isinstance(beta, str) else float(beta)

    doubts: list[str] = []
    if k > len(pool):
        if fill == "error":
            raise InputError(
                f"{len(pool)} distinct texts, cannot choose {k}",
                instead='use fill="quality" or a lower k',
            )
        doubts.append(f"the pool has {len(pool)} distinct texts: fewer than k = {k} are chosen")
        k = len(pool)
    if method == "refresh":
        chosen = refreshed(pool, k, given, lam, rounds=rounds, size=size, rng=as_generator(rng))
    elif method == "map":
        given = map_beta(pool.at(1.0, 0.0).log_quality, k) if given is None else given
        weights = pool.at(given, lam, smooth)
        objective = weights.log_quality if map_on == "quality" else weights.log_weight
        best = greedy_map(pool.features, objective, k=k, keep=keep, refine=refine, fill=fill)
        chosen = Selection(
            indices=best.indices,
            texts=[pool.texts[row] for row in best.indices],
            beta=given,
            log_det=best.log_det,
            gains=best.gains,
            ess=weights.ess,
            pareto_k=weights.pareto_k,
        )
    else:
        if given is None:
            given, unreached = automatic_beta(pool, k, lam)
            doubts += unreached
        weights = pool.at(given, lam, smooth)
        chosen = _drawn(pool, weights, given, k, keep, fill, size, as_generator(rng))
    notes = [*doubts, *chosen.notes]
    warn_of(notes)
    if (pool.length != 1).any():
        notes.append("quality is normalised by length: the target is not the tempered law")
    return replace(chosen, notes=tuple(notes))


def _drawn(
    pool: Pool,
    weights: Weights,
    beta: float,
    k: int,
    keep: Sequence[int],
    fill: str,
    size: int | None,
    rng: np.random.Generator,
) -> Selection:
    """Draw from the pool's K-DPP."""
    doubts = weight_doubts(weights.ess, weights.pareto_k, k, beta)
    as_kept(keep, len(pool), k)
    try:
        law = ConditionedKDPP(pool.features, weights.log_weight, keep, k=k)
    except RankError as error:
        if fill == "error" or error.rank is None:
            raise
        doubts.append(f"the features have rank {error.rank}: the rest of k = {k} are filled up")
        law = ConditionedKDPP(pool.features, weights.log_weight, keep, k=error.rank)
    sets = law.sample(size or 1, rng)
    clipped = bool(law.clipped[sets].any())
    if clipped:
        doubts.append("a chosen row lies more than 600 nats below the heaviest: its weight is that")

    log_prob = marginals = kl_estimate = n_eff = None
    if law.k == k:
        log_prob, marginals = law.log_prob(sets), law.marginals()
        if pool.kind == "iid" and not len(keep):
            kl_estimate, n_eff = pool_bias(marginals, weights.share2, len(pool.row), k)
    else:
        sets = _filled(sets, weights.log_quality, k)
    return drawn_selection(
        pool,
        sets,
        log_prob,
        size,
        beta=beta,
        marginals=marginals,
        ess=weights.ess,
        pareto_k=weights.pareto_k,
        kl_estimate=kl_estimate,
        n_eff=n_eff,
        clipped=clipped,
        notes=tuple(doubts),
    )


def _filled(
    sets: Int[np.ndarray, "size drawn"], log_quality: Float[np.ndarray, " n"], k: int
) -> Int[np.ndarray, "size k"]:
    """Each set with the best of the other rows, up to k."""
    best_first = np.argsort(-log_quality, kind="stable")
    spare = [best_first[~np.isin(best_first, drawn)][: k - len(drawn)] for drawn in sets]
    return np.sort(np.hstack([sets, spare]), axis=1)
