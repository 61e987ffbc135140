"""The demo: five answers out of 256 real ones, for each of the eight prompts that are shipped."""

import warnings
from typing import Any

import numpy as np

from armillary.randomness import keyed
from armillary.run import Run

from . import baselines
from .data import RealPrompt, real_pools
from .figures import frontier_figure
from .metrics import distinct_n, vendi_score
from .pool import Pool, make_pool
from .selection import select
from .sweeps import METHODS, sweep, volumes

K = 5
_DRAWS = 20  # of the random methods


def demo(run: Run) -> None:
    """Choose from the shipped pools and compare with what is usually done."""
    prompts = real_pools()
    frontiers: list[list[dict[str, Any]]] = []
    scores: list[dict[str, tuple[float, float, float]]] = []
    rows: list[dict[str, Any]] = []
    for prompt in run.progress(prompts, description="prompts"):
        pool = pool_of(prompt)
        seen = prompt.pool.evaluation[pool.index]
        sets = _sets(pool, keyed(run.seed, prompt.prompt_id))
        scores.append({name: _score(pool, seen, found) for name, found in sets.items()})
        frontiers.append(sweep(pool, K, evaluate=seen, rng=keyed(run.seed, prompt.prompt_id, 1)))
        for name in (f"the {K} most probable", "MAP (ours)"):
            rows += [
                {"prompt": prompt.prompt, "chosen by": name, "text": pool.texts[row]}
                for row in sets[name][0]
            ]
    run.table(
        [_mean_row(name, [score[name] for score in scores]) for name in scores[0]],
        f"{K} of 256 real answers, mean over {len(prompts)} prompts "
        "(diversity judged by an embedding that did not select)",
    )
    for shown in (prompts[0].prompt, prompts[2].prompt):
        mine = [row for row in rows if row["prompt"] == shown]
        run.table(mine, f'For example, "{shown}"', columns=["chosen by", "text"])
    areas = {name: np.mean([volumes(points)[name] for points in frontiers]) for name in METHODS}
    run.metrics |= {"n_prompts": len(prompts), "k": K}
    run.metrics["hypervolume"] = areas
    run.metrics["mean_quality"], run.metrics["mean_vendi"], run.metrics["distinct_2"] = np.mean(
        [score["MAP (ours)"] for score in scores], axis=0
    ).tolist()
    run.figure(
        frontier_figure(frontiers),
        "frontier",
        f"Quality against diversity of {K} answers of SmolLM2-135M-Instruct: mean over "
        f"{len(prompts)} prompts, bars are one standard error; a marker is one setting.",
    )


def pool_of(prompt: RealPrompt) -> Pool:
    """The pool of a shipped prompt: 256 draws at temperature 1."""
    found = prompt.pool.candidates
    assert found.embedding is not None
    return make_pool(
        found.texts,
        found.embedding,
        token_ids=found.token_ids,
        logprob=found.logprob,
        proposal_logprob=found.proposal_logprob,
    )


def _sets(pool: Pool, rng: np.random.Generator) -> dict[str, Any]:
    """Sets of K rows by each method; several where the method is random."""
    quality = pool.at(1.0, 0.0).log_quality
    firsts = [pool.row[baselines.sample_k(len(pool.row), K, rng=rng)] for _ in range(_DRAWS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the demo shows sets; `check` is about the pools
        drawn = select(pool, K, method="sample", size=_DRAWS, rng=rng).indices
        best = select(pool, K).indices
        clustered = [baselines.kmeans_rerank(pool.features, quality, K, rng=rng) for _ in range(3)]
    return {
        "MAP (ours)": np.atleast_2d(best),
        "k-DPP draws (ours)": drawn,
        "MMR, lambda 1/2": baselines.mmr(pool.features, quality, K)[None],
        "best of k-means clusters": np.array(clustered),
        f"the {K} most probable": baselines.top_k(quality, K)[None],
        f"the first {K} drawn": np.array(firsts),
    }


def _score(pool: Pool, seen: np.ndarray, sets: np.ndarray) -> tuple[float, float, float]:
    """Mean quality, Vendi score and distinct-2 over the sets."""
    quality = pool.at(1.0, 0.0).log_quality
    return (
        float(quality[sets].mean()),
        float(np.mean([vendi_score(seen[rows]) for rows in sets])),
        float(np.mean([distinct_n([pool.texts[row] for row in rows]) for rows in sets])),
    )


def _mean_row(name: str, scores: list[tuple[float, float, float]]) -> dict[str, Any]:
    quality, vendi, distinct = np.mean(scores, axis=0)
    error = np.std([score[1] for score in scores], ddof=1) / np.sqrt(len(scores))
    return {
        "method": name,
        "mean log p (nats)": float(quality),
        f"Vendi (1 to {K})": float(vendi),
        "s.e.": float(error),
        "distinct bigrams": float(distinct),
    }
