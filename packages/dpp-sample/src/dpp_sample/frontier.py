"""The quality-diversity frontier of one pool: the same selection at many betas."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int, Real

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from .checks import as_logs, as_rows, one_of
from .errors import PoolWarning
from .pool import Pool
from .selection import select

MAP_BETAS = (0.0, *np.geomspace(1e-3, 2, 16).tolist())
SAMPLE_BETAS = tuple(np.linspace(1, 1.5, 9).tolist())
_DRAWS = 20


@dataclass(frozen=True, eq=False)
class ParetoPoint:
    """One beta's place between quality and diversity; medians over the draws for "sample".

    Parameters
    ----------
    beta
        Inverse temperature.
    quality
        Mean quality over the set.
    vendi
        Vendi score of the set, from 1 to k.
    log_det
        Log determinant of the set's Gram matrix.
    indices
        The set: for "sample" the draw whose quality is the (lower) median.
    ess
        Effective number of draws at this beta; nan where there is no proposal law.
    dominated
        Whether another point is at least as good in both and better in one.
    """

    beta: float
    quality: float
    vendi: float
    log_det: float
    indices: Int[np.ndarray, " k"]
    ess: float
    dominated: bool = False


def pareto(
    pool: Pool,
    k: int,
    *,
    betas: Sequence[float] | None = None,
    method: str = "map",
    quality: str | Real[np.ndarray, " n"] = "mean_logprob",
    evaluate: Real[np.ndarray, "n _"] | None = None,
    lam: float = 1.0,
    rng: RngLike = None,
) -> list[ParetoPoint]:
    """Sets of k rows over a range of betas, with what each costs and gives.

    Parameters
    ----------
    pool, k
        As for `select`.
    betas
        By default 0 and 16 from 0.001 to 2 for "map", 9 from 1 to 1.5 for "sample".
    method
        "map" or "sample" (20 draws at each beta).
    quality
        "mean_logprob": the mean over the set of log p, nats; or a number of each row.
    evaluate
        Features for the Vendi score, one row for each of the pool's: an embedding other than the
        one that selected judges more fairly. By default the pool's own.
    lam
        Nats per unit of reward.
    rng
        Seed or generator, for "sample".

    Returns
    -------
    One point for each beta, in their order; dominated points are marked, not dropped.
    """
    from .metrics import vendi_score  # brings what the method itself does not need

    one_of(method, "method", ("map", "sample"))
    if betas is None:
        betas = MAP_BETAS if method == "map" else SAMPLE_BETAS
    if not len(betas):
        raise InputError("betas", found="none", expected="at least 1")
    if isinstance(quality, str):
        one_of(quality, "quality", ("mean_logprob",))
        value = pool.at(1.0, 0.0).log_quality
    else:
        value = as_logs(quality, "quality", len(pool))
    seen = pool.features if evaluate is None else as_rows(evaluate)
    if len(seen) != len(pool):
        raise InputError("evaluate", found=f"{len(seen)} rows", expected=f"{len(pool)}")
    size = None if method == "map" else _DRAWS
    generator = as_generator(rng)
    points = []
    for beta in betas:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PoolWarning)  # each point carries its own ess
            chosen = select(pool, k, method=method, beta=beta, lam=lam, size=size, rng=generator)
        sets = np.atleast_2d(chosen.indices)
        qualities = value[sets].mean(axis=1)
        middle = np.argsort(qualities, kind="stable")[(len(sets) - 1) // 2]
        points.append(
            ParetoPoint(
                beta=float(beta),
                quality=float(np.median(qualities)),
                vendi=float(np.median([vendi_score(seen[rows]) for rows in sets])),
                log_det=float(np.median(chosen.log_det)),
                indices=sets[middle],
                ess=chosen.ess,
            )
        )
    return _marked(points)


def _marked(points: list[ParetoPoint]) -> list[ParetoPoint]:
    def beats(a: ParetoPoint, b: ParetoPoint) -> bool:
        as_good = a.quality >= b.quality and a.vendi >= b.vendi
        return as_good and (a.quality > b.quality or a.vendi > b.vendi)

    return [replace(p, dominated=any(beats(other, p) for other in points)) for p in points]
