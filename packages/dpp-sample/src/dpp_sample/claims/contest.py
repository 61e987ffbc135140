"""One pool, every method: sets of candidates, scored by the clusters they fall in."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from armillary.figures import COLORS, new
from dpp_sample.baselines import diverse_beam, kmeans_rerank, mmr, top_k
from dpp_sample.clusters import one_hot
from dpp_sample.features import LexicalEmbedder, combine_features, shifted
from dpp_sample.grammar import Grammar
from dpp_sample.greedy import greedy_map
from dpp_sample.kdpp import KDPP
from dpp_sample.pool import make_pool
from dpp_sample.sources import Candidates

from .spaces import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

K = 4
MEANING = 0.9  # share of the similarity that the cluster has; the text has the rest
TEMPERATURES = (1.0, 1.5, 2.0)
PENALTIES = (0.2, 0.5, 1.0)
LAMBDAS = tuple(np.linspace(0, 1, 17).tolist())
DRAWS = 50  # sets of a random method from one pool

Scores = dict[str, dict[str, float]]  # method -> measure -> value, of one item
Stacked = dict[str, dict[str, Float[np.ndarray, " items"]]]
Measure = Callable[[Int[np.ndarray, "s k"]], dict[str, float]]


def contest(
    grammar: Grammar,
    cluster: Callable[[Sequence[str]], Int[np.ndarray, " n"]],
    measure: Measure,
    *,
    n: int,
    map_betas: Sequence[float],
    draw_betas: Sequence[float],
    rng: np.random.Generator,
) -> Scores:
    """Scores of all methods on one pool of `n` draws, with the mean log p of their sets.

    Parameters
    ----------
    grammar
        The model.
    cluster
        Which texts mean the same.
    measure
        Scores of sets, from the clusters of their members.
    n
        Draws at T = 1, which all but hotter sampling and beam search choose from.
    map_betas, draw_betas
        Inverse temperatures of MAP and of the k-DPP.
    rng
        Of everything random.
    """
    pools = {t: grammar.sample(n, temperature=t, rng=rng) for t in TEMPERATURES}
    beams = {
        penalty: diverse_beam(
            grammar.step_logprobs, n_groups=K, eos=grammar.eos, max_length=200, penalty=penalty
        )
        for penalty in PENALTIES
    }
    tokens = [ids for pool in pools.values() for ids in pool.token_ids or ()]
    tokens += [beam.tokens for group in beams.values() for beam in group]
    clusters = cluster([grammar.text(ids) for ids in tokens])
    log_p = np.array([grammar.logprob(ids) for ids in tokens])

    sets = {
        f"sampling, T = {t:g}": start + _subsets(n, rng)
        for t, start in zip(pools, range(0, len(tokens), n), strict=False)
    }
    own = pools[1.0]
    sets |= dict(_chosen(own, clusters[:n], map_betas, draw_betas, rng))
    for place, penalty in enumerate(PENALTIES):
        start = len(pools) * n + K * place
        sets[f"diverse beam, penalty {penalty:g}"] = np.arange(start, start + K)[None]
    return {
        name: measure(clusters[rows]) | {"mean_logprob": float(log_p[rows].mean())}
        for name, rows in sets.items()
    }


def _chosen(
    drawn: Candidates,
    clusters: Int[np.ndarray, " n"],
    map_betas: Sequence[float],
    draw_betas: Sequence[float],
    rng: np.random.Generator,
) -> Iterator[tuple[str, Int[np.ndarray, "s k"]]]:
    """Sets of draws by every method that chooses from a pool."""
    text = shifted(LexicalEmbedder()(drawn.texts))
    mixed = combine_features([(one_hot(clusters), MEANING), (text, 1 - MEANING)])
    for features, suffix in ((mixed, ""), (text, ", text only")):
        pool = make_pool(
            drawn.texts, features, kernel=None, token_ids=drawn.token_ids, logprob=drawn.logprob
        )
        first = np.array(pool.index)
        for beta in map_betas:
            best = greedy_map(pool.features, pool.at(beta).log_quality, k=K)
            yield f"MAP, beta {beta:g}{suffix}", first[best.indices][None]
        for beta in draw_betas:
            law = KDPP(pool.features, pool.at(beta).log_weight, k=K)
            yield f"k-DPP, beta {beta:g}{suffix}", first[law.sample(DRAWS, rng=rng)]
        if suffix:
            continue
        quality = pool.at(1.0).log_quality
        for lam in LAMBDAS:
            yield f"MMR, lambda {lam:.3g}", first[mmr(pool.features, quality, K, lam=lam)][None]
        yield "k-means", first[kmeans_rerank(pool.features, quality, K, rng=rng)][None]
        yield "top-K", first[top_k(quality, K)][None]


def _subsets(n: int, rng: np.random.Generator) -> Int[np.ndarray, "s k"]:
    """Random sets of K of n draws."""
    return rng.random((DRAWS, n)).argsort(axis=1)[:, :K]


def averaged(repeats: Iterable[Scores]) -> Scores:
    """Mean over the pools of one item."""
    found = list(repeats)
    return {
        name: {key: float(np.mean([scores[name][key] for scores in found])) for key in measures}
        for name, measures in found[0].items()
    }


def stacked(items: Sequence[Scores], best_by: str) -> Stacked:
    """Values of each method over the items; of MMR and beam search the best setting alone.

    The best is the one with the highest mean of `best_by`, chosen in hindsight: kind to them.
    """
    scores = {
        name: {key: np.array([item[name][key] for item in items]) for key in measures}
        for name, measures in items[0].items()
    }
    for prefix in ("MMR, ", "diverse beam, "):
        settings = [name for name in scores if name.startswith(prefix)]
        best = max(settings, key=lambda name: scores[name][best_by].mean())
        knob = best.removeprefix(prefix).split()[0]
        kept = {f"{prefix}best {knob}": scores[best]}
        scores = {name: own for name, own in scores.items() if name not in settings} | kept
    return scores


def difference(
    scores: Stacked, measure: str, ours: str, theirs: str, seed: int
) -> tuple[float, float, float]:
    """Mean paired difference with its interval."""
    return mean_interval(scores[ours][measure] - scores[theirs][measure], seed)


def table(scores: Stacked) -> list[dict[str, object]]:
    """One row for each method: means, and half the width of the first measure's interval."""
    rows: list[dict[str, object]] = []
    for name, measures in scores.items():
        row: dict[str, object] = {"method": name}
        for number, (key, values) in enumerate(measures.items()):
            row[key] = float(values.mean())
            if number == 0:
                _, low, high = mean_interval(values)
                row |= {f"{key} low": low, f"{key} high": high}
        rows.append(row)
    return rows


def bars(scores: Stacked, titles: dict[str, str]) -> "Figure":
    """Mean and interval of each method, one panel for each measure; ours first, in colour."""
    names = sorted(scores, key=lambda name: (not _ours(name), "text only" in name))
    figure, axes = new(9.0, 0.32 * len(names) + 1.2, columns=len(titles))
    places = np.arange(len(names))[::-1]
    for axis, (key, title) in zip(axes, titles.items(), strict=True):
        middle, low, high = np.array([mean_interval(scores[name][key]) for name in names]).T
        colors = [COLORS[0] if _ours(name) else "#9a9a9a" for name in names]
        axis.barh(
            places,
            middle,
            xerr=[np.maximum(middle - low, 0), np.maximum(high - middle, 0)],
            color=colors,
            hatch=["//" if _ours(n) and "text only" in n else "" for n in names],
            edgecolor="white",
            error_kw={"linewidth": 1.0, "capsize": 2.5},
        )
        axis.set_yticks(places, names if axis is axes[0] else [])
        axis.grid(axis="x")
        axis.grid(visible=False, axis="y")
        axis.set_xlabel(title)
        axis.set(xlim=(0, 1.02 * max(1.0, high.max())), ylim=(-0.7, len(names) - 0.3))
    return figure


def _ours(name: str) -> bool:
    return name.startswith(("MAP", "k-DPP"))
