"""Every method over its own knob on one pool: what diversity costs, ours beside the usual ones.

Each sweep gives points of quality (mean log p of the set, nats) and diversity (Vendi score in the
features given). MAP and the k-DPP sweep beta, MMR its lambda, k-means the share of the best
candidates that it clusters; the best k and the first k draws have no knob.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from armillary.randomness import RngLike, as_generator

from .baselines import kmeans_rerank, mmr, top_k
from .frontier import pareto
from .metrics import hypervolume, vendi_score
from .pool import Pool

__all__ = ["METHODS", "sweep", "volumes"]

METHODS = ("map", "k-dpp", "mmr", "k-means", "top-k", "first draws")
_LAMBDAS = np.linspace(0, 1, 17)
_SHARES = (1.0, 0.5, 0.25, 0.125)
_DRAWS = 20


def sweep(
    pool: Pool,
    k: int,
    *,
    evaluate: Float[np.ndarray, "n _"] | None = None,
    rng: RngLike = None,
) -> list[dict[str, Any]]:
    """Points of all methods: ``method, knob, quality, vendi, indices``.

    Parameters
    ----------
    pool, k
        As for `select`.
    evaluate
        Features that judge diversity, one row for each of the pool's; by default its own.
    rng
        Seed or generator: the k-DPP, k-means and the first draws are random (medians of 20).
    """
    generator = as_generator(rng)
    seen = pool.features if evaluate is None else evaluate
    quality = pool.at(1.0, 0.0).log_quality
    points = [
        {
            "method": name,
            "knob": point.beta,
            "quality": point.quality,
            "vendi": point.vendi,
            "indices": point.indices.tolist(),
        }
        for name, method in (("map", "map"), ("k-dpp", "sample"))
        for point in pareto(pool, k, method=method, evaluate=seen, rng=generator)
    ]
    for method, knob, sets in _baselines(pool, k, quality, generator):
        qualities = quality[sets].mean(axis=1)
        middle = np.argsort(qualities, kind="stable")[(len(sets) - 1) // 2]
        points.append(
            {
                "method": method,
                "knob": knob,
                "quality": float(np.median(qualities)),
                "vendi": float(np.median([vendi_score(seen[rows]) for rows in sets])),
                "indices": sets[middle].tolist(),
            }
        )
    return points


def volumes(points: list[dict[str, Any]]) -> dict[str, float]:
    """Hypervolume of each method over (quality, Vendi), above the worst quality seen and Vendi 1.

    It compares methods on one pool; across pools it has no meaning, the reference being the pool's.
    """
    worst = min(point["quality"] for point in points)
    return {
        name: hypervolume(
            np.array([[p["quality"], p["vendi"]] for p in points if p["method"] == name]),
            (worst, 1.0),
        )
        for name in METHODS
    }


def _baselines(
    pool: Pool, k: int, quality: Float[np.ndarray, " n"], rng: np.random.Generator
) -> Iterator[tuple[str, float | None, Int[np.ndarray, "draws k"]]]:
    for lam in _LAMBDAS:
        yield "mmr", float(lam), mmr(pool.features, quality, k, lam=float(lam))[None]
    for share in _SHARES:
        best = top_k(quality, max(k, round(share * len(pool))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer distinct rows than clusters: filled by quality
            runs = [
                best[kmeans_rerank(pool.features[best], quality[best], k, rng=rng)]
                for _ in range(3)
            ]
        yield "k-means", share, np.array(runs)
    yield "top-k", None, top_k(quality, k)[None]
    if pool.kind == "iid":
        firsts = [_first_distinct(pool, k, rng) for _ in range(_DRAWS)]
        yield "first draws", None, np.array(firsts)


def _first_distinct(pool: Pool, k: int, rng: np.random.Generator) -> Int[np.ndarray, " k"]:
    """The first k distinct strings of the draws in a random order."""
    rows = pool.row[rng.permutation(len(pool.row))]
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)[:k]]
