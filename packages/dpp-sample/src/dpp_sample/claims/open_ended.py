"""The claim about open-ended generation, on the shipped texts of a real language model.

Quality is the mean log p of a set, diversity its Vendi score in an embedding that no method chose
by. Each method has a knob that trades one for the other; its frontier is compared by the area it
dominates and, at a baseline's own quality, by the Vendi score.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from armillary.claims import Check, Effort, Measured
from armillary.figures import COLORS, MARKERS, band, label_axes, new
from armillary.parallel import map_jobs
from armillary.randomness import keyed
from dpp_sample.baselines import kmeans_rerank, mmr, sample_k, top_k
from dpp_sample.data import Drawn, RealPrompt, real_pools
from dpp_sample.frontier import MAP_BETAS, SAMPLE_BETAS
from dpp_sample.greedy import greedy_map
from dpp_sample.kdpp import KDPP
from dpp_sample.metrics import hypervolume, vendi_score
from dpp_sample.pool import make_pool

from .spaces import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

K = 8
REFERENCE = (-60.0, 1.0)  # mean log p (nats) and Vendi; worse sets count for nothing
SHARES = (1.0, 0.5, 0.25, 0.125)  # of the pool by quality, that k-means clusters
OURS, DRAWN, ON_WEIGHT = "MAP", "k-DPP draws", "MAP on the pool's weights"
BASELINES = ("temperature", "k-means", "diverse beam", "top-K")

Point = tuple[float, float]  # quality, Vendi
Frontiers = dict[str, list[Point]]  # method -> one point for each setting


def open_ended(effort: Effort) -> Measured:
    """Frontiers of eight prompts, methods paired by prompt."""
    prompts = real_pools()
    sweep = partial(_frontiers, repeats=10 if effort.quick else 50, seed=effort.seed)
    found = map_jobs(sweep, prompts, jobs=effort.jobs, description="open-ended")
    volumes = {
        name: np.array([hypervolume(frontiers[name], REFERENCE) for frontiers in found])
        for name in found[0]
    }
    checks = []
    for name in BASELINES:
        gain = mean_interval(volumes[OURS] - volumes[name], effort.seed)
        checks.append(Check(f"hypervolume: {OURS}, minus {name}", *gain, at_least=0.0))
    gain = mean_interval(volumes[OURS] / volumes["MMR"] - 1, effort.seed)
    checks.append(Check(f"hypervolume: {OURS} over MMR, minus 1", *gain, at_least=0.0))
    gaps = {
        name: np.array([_gap(frontiers[OURS], frontiers[name]) for frontiers in found])
        for name in volumes
    }
    for name in ("temperature", "k-means", "diverse beam"):
        wins = int((gaps[name] > 0).sum())
        title = f"prompts of {len(found)} with more Vendi at the quality of {name}"
        checks.append(Check(title, wins, at_least=len(found) - 1))
    effort.run.figure(
        _figure(found),
        "open-ended",
        f"Sets of {K} answers of SmolLM2-135M-Instruct: quality against diversity, mean over "
        f"{len(found)} prompts, a marker for each setting. Bands and bars: 95% bootstrap interval "
        "of the Vendi score over the prompts.",
    )
    return Measured(
        checks,
        [_row(name, found, effort.seed) for name in volumes],
        [
            "eight prompts: the intervals say nothing of other models",
            "the 1 to 5% over MMR were expected from a sweep of 6 lambdas: a row of its own here",
            f"top-K is the limit of {OURS} at large beta, and of MMR at lambda 1",
            f"{ON_WEIGHT} (the abstract's way) at beta 1 + b are {OURS} at b, since r = p",
            "samples at T = 1 lie below the reference of -60 nats; the last column has -120",
        ],
        "short answers of a 135M-parameter model, eight prompts",
    )


def _row(name: str, found: Sequence[Frontiers], seed: int) -> dict[str, object]:
    volume = mean_interval([hypervolume(f[name], REFERENCE) for f in found], seed)
    return {
        "method": name,
        "settings": len(found[0][name]),
        "hypervolume": volume[0],
        "low": volume[1],
        "high": volume[2],
        f"Vendi of {OURS} above it": float(np.nanmean([_gap(f[OURS], f[name]) for f in found])),
        "hypervolume from -120": float(np.mean([hypervolume(f[name], (-120, 1)) for f in found])),
    }


def _frontiers(prompt: RealPrompt, *, repeats: int, seed: int) -> Frontiers:
    """Points of every method; those of a random one are means over the repeats."""
    drawn = prompt.pool
    embedding = np.asarray(drawn.candidates.embedding)
    pool = make_pool(
        drawn.candidates.texts,
        embedding,
        token_ids=drawn.candidates.token_ids,
        logprob=drawn.candidates.logprob,
    )
    first = np.array(pool.index)
    raw, quality = embedding[first], pool.at(1.0).log_quality
    rng = keyed(seed, "open-ended", prompt.prompt_id)

    def point(sets: Sequence[Int[np.ndarray, " k"]]) -> Point:
        return _point(drawn, [first[rows] for rows in sets])

    def best(log_quality: Float[np.ndarray, " n"]) -> Point:
        return point([greedy_map(pool.features, log_quality, k=K).indices])

    found: Frontiers = {OURS: [best(pool.at(beta).log_quality) for beta in MAP_BETAS]}
    found[ON_WEIGHT] = [best(pool.at(1 + beta).log_weight) for beta in MAP_BETAS]
    laws = [KDPP(pool.features, pool.at(beta).log_weight, k=K) for beta in SAMPLE_BETAS]
    found[DRAWN] = [point(list(law.sample(repeats, rng=rng))) for law in laws]
    for name, settings in (("MMR", 17), ("MMR, 6 settings", 6)):
        lambdas = np.linspace(0, 1, settings).tolist()
        found[name] = [point([mmr(raw, quality, K, lam=lam)]) for lam in lambdas]
    found["k-means"] = []
    for share in SHARES:
        kept = top_k(quality, max(K, round(share * len(raw))))
        runs = [kmeans_rerank(raw[kept], quality[kept], K, rng=rng) for _ in range(repeats // 5)]
        found["k-means"].append(point([kept[rows] for rows in runs]))
    samples = [drawn, *prompt.colder.values()]
    found["temperature"] = [
        _point(own, [sample_k(len(own), K, rng=rng) for _ in range(repeats)]) for own in samples
    ]
    found["diverse beam"] = [_point(own, [np.arange(K)]) for own in prompt.beams.values()]
    found["top-K"] = [point([top_k(quality, K)])]
    return found


def _point(drawn: Drawn, sets: Sequence[Int[np.ndarray, " k"]]) -> Point:
    log_p = np.asarray(drawn.candidates.logprob)
    qualities = [log_p[rows].mean() for rows in sets]
    scores = [vendi_score(drawn.evaluation[rows]) for rows in sets]
    return float(np.mean(qualities)), float(np.mean(scores))


def _gap(ours: Sequence[Point], theirs: Sequence[Point]) -> float:
    """Mean difference of Vendi at the qualities of `theirs` that the frontier of `ours` reaches.

    The frontier is linear between its points; below its least quality it keeps its Vendi score.
    """
    frontier = sorted(p for p in ours if not any(q[0] >= p[0] and q[1] > p[1] for q in ours))
    x, y = np.array(frontier).T
    reached = [(q, v) for q, v in theirs if q <= x[-1]]
    return float(np.mean([np.interp(q, x, y) - v for q, v in reached])) if reached else np.nan


def _figure(found: Sequence[Frontiers]) -> "Figure":
    figure, axis = new(7.6, 4.6)
    for number, name in enumerate((OURS, "MMR", DRAWN, *BASELINES)):
        points = np.array([frontiers[name] for frontiers in found])  # prompts x settings x 2
        quality = points[:, :, 0].mean(axis=0)
        vendi = np.array([mean_interval(points[:, s, 1]) for s in range(points.shape[1])]).T
        order = np.argsort(quality)
        quality, (middle, low, high) = quality[order], vendi[:, order]
        color = COLORS[number]
        if name in (OURS, "MMR"):
            band(axis, quality, low, middle, high, name, color)
        else:
            axis.errorbar(
                quality,
                middle,
                yerr=[np.maximum(middle - low, 0), np.maximum(high - middle, 0)],
                label=name,
                color=color,
                marker=MARKERS[number],
                linestyle="" if name == "top-K" else ":",
                linewidth=1.2,
                elinewidth=0.8,
            )
    label_axes(axis, "quality: mean log p of the set (nats)", "diversity: Vendi score of the set")
    return figure
