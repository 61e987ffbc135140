"""Iterated pools: keep the set, draw fresh strings, draw a new set from both.

Iterated sampling-importance-resampling (Andrieu, Lee & Vihola 2018) on sets. Given a set S of k
strings and N - k fresh draws from r, a draw from the K-DPP of both together leaves the target P
exactly invariant, so that the bias of a pool falls geometrically with the rounds. A larger pool
makes it fall as 1/N.

The state is a set of draws, not of rows: of equal strings the copy that stays is drawn in
proportion to its weight, since copies may come from different proposals.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from .bias import pool_bias
from .checks import as_count
from .kdpp import KDPP
from .pool import FeatureMap, Pool, make_pool
from .residuals import log_volume
from .result import Selection, drawn_selection, warn_of, weight_doubts
from .sources.candidates import Candidates
from .weights import effective_size, log_sum_by, pareto_smoothed, sampling_beta

Embed = Callable[[list[str]], np.ndarray]


def refreshed(
    pool: Pool,
    k: int,
    beta: float | None,
    lam: float,
    *,
    rounds: int,
    size: int | None,
    rng: np.random.Generator,
) -> Selection:
    """`select(method="refresh")`: the draws in rounds + 1 consecutive chunks, one for each round.

    The first chunk gives the starting set and, where `beta` is None, the automatic beta.
    """
    if pool.kind != "iid":
        raise InputError(
            "method", found=f'"refresh" on a pool of kind "{pool.kind}"', expected="iid"
        )
    n_draws = len(pool.row)
    if rounds < 1 or n_draws // (rounds + 1) < 4 * k:
        raise InputError(
            "rounds",
            found=f"{rounds} with {n_draws} draws",
            expected=f"at least 1, and 4 k = {4 * k} draws in each of the rounds + 1 chunks",
        )
    chunks = np.array_split(np.arange(n_draws), rounds + 1)
    doubts: list[str] = []
    if beta is None:
        beta, doubts = automatic_beta(pool, k, lam, chunks[0])
    log_weight = pool.draw_log_weight(beta, lam)
    start = _Draws(pool, log_weight, chunks[0], k)
    doubts += start.doubts(beta)

    sets, log_probs, marginals, clipped = [], [], np.zeros(len(pool)), False
    for _ in range(size or 1):
        now = start
        local, held = now.sample(rng)
        for chunk in chunks[1:]:
            now = _Draws(pool, log_weight, np.concatenate([held, chunk]), k)
            local, held = now.sample(rng)
        sets.append(now.rows[local])
        log_probs.append(now.dpp.log_prob(local))
        marginals[now.rows] += now.dpp.marginals() / (size or 1)
        clipped |= bool(now.dpp.clipped[local].any())
    kl_estimate, n_eff = start.bias()
    return drawn_selection(
        pool,
        np.array(sets),
        np.array(log_probs),
        size,
        beta=beta,
        marginals=marginals,
        ess=start.ess,
        pareto_k=start.pareto_k,
        kl_estimate=kl_estimate,
        n_eff=n_eff,
        clipped=clipped,
        notes=tuple(doubts),
    )


def iterated_select(
    propose: Callable[[int, np.random.Generator], Candidates],
    k: int,
    *,
    embed: Embed,
    kernel: str | FeatureMap | None = "shifted",
    pool_size: int,
    rounds: int,
    beta: float,
    lam: float = 1.0,
    rng: RngLike = None,
) -> Selection:
    """Draw k strings by iterated pools, asking for fresh candidates in each round.

    Parameters
    ----------
    propose
        Gives n independent candidates with their log-probs (fewer if some were dropped).
    k
        Size of the set.
    embed
        Embeddings of texts, the same function in all rounds. One with a method `fit` (a
        `LexicalEmbedder`) is fitted to the first pool.
    kernel
        As for `make_pool`; the bandwidth of "rbf" is that of the first pool.
    pool_size
        N, the set that is held counted; at most the rank of a `LexicalEmbedder`, which is exact
        up to there: P is invariant under one kernel, not under a new one each round.
    rounds
        Refreshments after the first pool: the model is asked for ``N + rounds (N - k)`` strings.
    beta, lam
        As for `Pool.at`. There is no automatic beta: it would depend on the pool.
    rng
        Seed or generator, passed on to `propose`.

    Returns
    -------
    Selection
        `indices` number the candidates in the order in which they were proposed. `log_prob` is
        given the last pool; `ess`, `pareto_k` and the bias figures are of the first.

    Raises
    ------
    InputError
        If the candidates have no log-probs, or an argument is out of range.
    RankError
        If the first pool spans fewer than k dimensions.
    """
    generator = as_generator(rng)
    if pool_size <= as_count(k, 2**31):
        raise InputError("pool_size", found=pool_size, expected=f"more than k = {k}")
    if rounds < 0:
        raise InputError("rounds", found=rounds, expected=">= 0")
    first = pool = now = current = None
    held = local = number = np.zeros(0, dtype=int)
    proposed = 0
    for _ in range(rounds + 1):
        fresh = propose(pool_size - len(held), generator)
        current = _joined(None if current is None else current.take(held), fresh)
        number = np.append(number[held], proposed + np.arange(len(fresh)))
        proposed += len(fresh)
        if first is None:
            embed, kernel = _fixed(embed, kernel, current.texts, pool_size)
        pool = make_pool(
            current.texts,
            embed(current.texts),
            kernel=kernel,
            token_ids=current.token_ids,
            logprob=current.logprob,
            proposal_logprob=current.proposal_logprob,
            reward=current.reward,
        )
        now = _Draws(pool, pool.draw_log_weight(beta, lam), np.arange(len(current)), k)
        first = first or now
        local, held = now.sample(generator)
    assert first is not None and now is not None and pool is not None and current is not None
    doubts = first.doubts(beta)
    warn_of(doubts)
    kl_estimate, n_eff = first.bias()
    order = np.argsort(number[held])
    return Selection(
        indices=number[held][order],
        texts=[current.texts[draw] for draw in held[order]],
        beta=beta,
        log_det=float(log_volume(pool.features[now.rows[local]])),
        log_prob=float(now.dpp.log_prob(local)),
        ess=first.ess,
        pareto_k=first.pareto_k,
        kl_estimate=kl_estimate,
        n_eff=n_eff,
        clipped=bool(now.dpp.clipped[local].any()),
        notes=tuple(doubts),
    )


class _Draws:
    """The K-DPP of some of a pool's draws, their copies merged."""

    def __init__(
        self, pool: Pool, log_weight: Float[np.ndarray, " N"], draws: Int[np.ndarray, " m"], k: int
    ) -> None:
        self._draws = draws
        self._log_weight = log_weight[draws]
        self.rows, self._group = np.unique(pool.row[draws], return_inverse=True)
        if len(self.rows) < k:
            raise InputError(
                f"{len(self.rows)} distinct texts among {len(draws)} draws, cannot choose {k}",
                instead="use a larger pool",
            )
        self._merged = log_sum_by(self._group, self._log_weight, len(self.rows))
        self.dpp = KDPP(pool.features[self.rows], self._merged, k=k)
        self.ess = effective_size(self._log_weight)
        self.pareto_k = pareto_smoothed(self._log_weight)[0]

    def sample(
        self, rng: np.random.Generator
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Draw a set: its rows in `dpp`, and for each the draw that stands for it."""
        local = self.dpp.sample(rng=rng)
        noisy = self._log_weight + rng.gumbel(
            size=len(self._draws)
        )  # the largest is a draw by weight
        copies = [int(np.argmax(np.where(self._group == row, noisy, -np.inf))) for row in local]
        return local, self._draws[copies]

    def bias(self) -> tuple[float, float]:
        """`pool_bias` of these draws as a pool."""
        share2 = np.exp(2 * (self._log_weight - self._merged[self._group]))
        share2 = np.bincount(self._group, share2, len(self.rows))
        return pool_bias(self.dpp.marginals(), share2, len(self._draws), self.dpp.k)

    def doubts(self, beta: float) -> list[str]:
        """`weight_doubts` of these draws."""
        return weight_doubts(self.ess, self.pareto_k, self.dpp.k, beta)


def automatic_beta(
    pool: Pool, k: int, lam: float, draws: Int[np.ndarray, " m"] | slice = slice(None)
) -> tuple[float, list[str]]:
    """`sampling_beta` of some draws of a pool, and what stands against it; 1 for a list."""
    if pool.kind == "enumerated":
        return 1.0, []
    beta, reached = sampling_beta(lambda beta: pool.draw_log_weight(beta, lam)[draws], k)
    n = len(pool.row[draws])
    if reached:
        return beta, []
    ess = effective_size(pool.draw_log_weight(1.0, lam)[draws])
    doubt = f"no beta from 1 to 4 gives {n} draws an effective size of {max(4 * k, n / 4):g}"
    return beta, [f"{doubt} (4 k, or N / 4): beta is 1, where it is {ess:.1f}"]


def _fixed(
    embed: Embed, kernel: str | FeatureMap | None, texts: list[str], pool_size: int
) -> tuple[Embed, str | FeatureMap | None]:
    """The embedder and the kernel with what they would take from each pool taken from this one."""
    from .features import LexicalEmbedder, median_distance, rbf

    if isinstance(embed, LexicalEmbedder) and pool_size > embed.rank:
        raise InputError(
            "pool_size", found=pool_size, expected=f"at most {embed.rank} with a LexicalEmbedder"
        )
    fit: Any = getattr(embed, "fit", None)
    if fit is not None:
        embed = fit(texts)
    if kernel == "rbf":
        kernel = partial(rbf, bandwidth=median_distance(embed(texts)))
    return embed, kernel


def _joined(held: Candidates | None, fresh: Candidates) -> Candidates:
    """The held candidates, then the fresh ones, with what a pool needs of them."""
    if fresh.logprob is None:
        raise InputError("propose", found="candidates without log-probs", expected="their log p")
    if fresh.proposal_logprob is None:
        fresh = replace(fresh, proposal_logprob=fresh.logprob)
    if held is None:
        return fresh
    joined: dict[str, Any] = {}
    for name in ("texts", "token_ids", "logprob", "proposal_logprob", "reward"):
        old, new = getattr(held, name), getattr(fresh, name)
        if (old is None) != (new is None):
            raise InputError("propose", found=f"{name} in some rounds", expected="in all or none")
        joined[name] = np.append(old, new) if isinstance(new, np.ndarray) else new and old + new
    return Candidates(**joined)
