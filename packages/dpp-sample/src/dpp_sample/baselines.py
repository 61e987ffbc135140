"""What people do today instead of a determinantal point process.

Each baseline answers with indices into the candidates it is given, so that all can be scored alike:

* `sample_k` - k of the draws, as they come
* `top_k` - the k most probable
* `kmeans_rerank` - k clusters, the best of each
* `mmr` - maximal marginal relevance, as retrieval libraries have it
* `llm_select` - ask a language model to pick
* `diverse_beam` - diverse beam search; it writes its own candidates

Determinantal beam search (Meister et al. 2021, arXiv 2106.07400) is not offered.
"""

import re
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError
from armillary.randomness import RngLike, as_generator

StepLogprobs = Callable[[Sequence[tuple[int, ...]]], Float[np.ndarray, "b vocab"]]


@dataclass(frozen=True, slots=True)
class Beam:
    """One string written by `diverse_beam`."""

    tokens: tuple[int, ...]  # the end token included, when there is one
    logprob: float  # nats, under the model alone: no penalty in it
    complete: bool  # False: cut off at max_length


def diverse_beam(
    step_logprobs: StepLogprobs,
    *,
    n_groups: int,
    eos: int | Collection[int],
    max_length: int,
    penalty: float = 0.5,
) -> list[Beam]:
    """Diverse beam search with groups of one beam and a Hamming penalty.

    At each position the groups choose in order; group g takes the token with the largest
    ``log p(token | its prefix) - penalty * (earlier groups that took this token at this position)``
    (Vijayakumar et al. 2016, arXiv 1610.02424, section 4). Ties: the lowest token. A group ends
    with its end token; a group that has ended penalises nobody.

    Parameters
    ----------
    step_logprobs
        Maps b prefixes (token ids after the prompt) to the b rows of log p of the next token,
        -inf where it is forbidden. Called once per position with the prefixes of the groups that
        still run, in the order of the groups; each is the group's previous prefix and one token,
        so that a model may keep its key-value cache.
    n_groups
        Number of strings wanted.
    eos
        The end token, or several.
    max_length
        Positions at most, the end token included.
    penalty
        Nats for each earlier group with the same token at the same position; 0 makes all groups
        equal to greedy search.

    Returns
    -------
    One `Beam` for each group, in order. Two groups may end with the same string.

    Raises
    ------
    InputError
        If `n_groups` or `max_length` is below 1, `penalty` is negative, or no token is allowed.
    """
    for name, value in (("n_groups", n_groups), ("max_length", max_length)):
        if value < 1:
            raise InputError(name, found=value, expected="at least 1")
    if not 0 <= penalty < np.inf:
        raise InputError("penalty", found=penalty, expected="a finite number >= 0")
    ends = {eos} if isinstance(eos, int) else set(eos)
    prefixes: list[tuple[int, ...]] = [()] * n_groups
    logprobs = np.zeros(n_groups)
    running = list(range(n_groups))
    for _ in range(max_length):
        steps = np.asarray(step_logprobs([prefixes[g] for g in running]), dtype=float)
        taken = np.zeros(steps.shape[1])
        for row, group in enumerate(running):
            token = int(np.argmax(steps[row] - penalty * taken))
            if not np.isfinite(steps[row, token]):
                raise InputError(
                    "step_logprobs",
                    found=f"no finite row maximum after {prefixes[group]}",
                    expected="one allowed token at least",
                )
            taken[token] += 1
            logprobs[group] += steps[row, token]
            prefixes[group] += (token,)
        running = [g for g in running if prefixes[g][-1] not in ends]
        if not running:
            break
    return [Beam(p, float(lp), p[-1] in ends) for p, lp in zip(prefixes, logprobs, strict=True)]


def sample_k(n_draws: int, k: int, *, rng: RngLike = None) -> Int[np.ndarray, " k"]:
    """`k` of `n_draws` draws, without replacement: what the first k samples of a model are.

    Copies among the draws stay copies: this baseline may show the same string twice.
    """
    _check_k(k, n_draws)
    return as_generator(rng).choice(n_draws, size=k, replace=False)


def top_k(log_quality: Float[np.ndarray, " n"], k: int) -> Int[np.ndarray, " k"]:
    """The `k` rows of highest quality, best first; ties: the lowest row."""
    _check_k(k, len(log_quality))
    return np.argsort(-np.asarray(log_quality, dtype=float), kind="stable")[:k]


def kmeans_rerank(
    features: Float[np.ndarray, "n d"],
    log_quality: Float[np.ndarray, " n"],
    k: int,
    *,
    rng: RngLike = None,
) -> Int[np.ndarray, " k"]:
    """The best of each of `k` clusters of the rows, the best cluster first.

    Clusters that stay empty (fewer than `k` distinct rows) are filled by the best remaining rows.
    """
    from sklearn.cluster import KMeans  # a second to import, which no other baseline needs
    from sklearn.exceptions import ConvergenceWarning

    _check_k(k, len(features))
    seed = int(as_generator(rng).integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        model = KMeans(k, n_init=5, random_state=seed)  # pyright: ignore[reportArgumentType]
        labels = model.fit_predict(np.asarray(features, dtype=float))
    order = top_k(log_quality, len(features))
    _, first = np.unique(labels[order], return_index=True)
    best = np.sort(first)
    others = np.setdiff1d(np.arange(len(order)), best)
    return order[np.concatenate([best, others[: k - len(best)]])]


def mmr(
    features: Float[np.ndarray, "n d"],
    log_quality: Float[np.ndarray, " n"],
    k: int,
    *,
    lam: float = 0.5,
) -> Int[np.ndarray, " k"]:
    """Maximal marginal relevance (Carbonell & Goldstein 1998), in order of choice.

    The first row is the one of highest quality z, scaled to [0, 1]; each next one has the largest
    ``lam * z - (1 - lam) * max over the chosen of the cosine``. Equal qualities: z = 0.
    """
    _check_k(k, len(features))
    if not 0 <= lam <= 1:
        raise InputError("lam", found=lam, expected="a number in [0, 1]")
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    low, high = float(np.min(log_quality)), float(np.max(log_quality))
    z = (log_quality - low) / (high - low) if high > low else np.zeros(len(unit))
    chosen = [int(np.argmax(z))]
    nearest = unit @ unit[chosen[0]]
    while len(chosen) < k:
        score = lam * z - (1 - lam) * nearest
        score[chosen] = -np.inf
        chosen.append(int(np.argmax(score)))
        nearest = np.maximum(nearest, unit @ unit[chosen[-1]])
    return np.array(chosen)


def llm_select(texts: Sequence[str], k: int, *, chooser: Callable[[str], str]) -> list[int]:
    """Let a language model choose `k` good and different candidates.

    Parameters
    ----------
    texts
        The candidates; they are shown to the model numbered from 1.
    k
        How many it must name.
    chooser
        Any function from a prompt to the model's reply.

    Returns
    -------
    Indices from 0, in the reply's order.

    Raises
    ------
    InputError
        If the reply does not name exactly `k` different candidates.
    """
    _check_k(k, len(texts))
    numbered = "\n".join(f"{i}. {text!r}" for i, text in enumerate(texts, start=1))
    reply = chooser(
        f"Here are {len(texts)} candidate answers.\n{numbered}\n"
        f"Choose the {k} that are best and most different from one another. "
        f"Reply with their {k} numbers only, separated by commas."
    )
    named = [int(number) - 1 for number in re.findall(r"[0-9]+", reply)]
    if len(named) != k or len(set(named)) != k or not all(0 <= i < len(texts) for i in named):
        raise InputError(
            "the chooser's reply",
            found=repr(reply[:80]),
            expected=f"{k} different numbers from 1 to {len(texts)}",
        )
    return named


def _check_k(k: int, n: int) -> None:
    if not 1 <= k <= n:
        raise InputError("k", found=k, expected=f"a number from 1 to the {n} candidates")
