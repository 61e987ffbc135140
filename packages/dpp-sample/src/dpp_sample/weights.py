"""Importance weights in log space: effective size, Pareto tail, and the automatic beta.

A draw y_i from r stands for the target q with weight w_i = q(y_i) / r(y_i). Weights matter through
differences of their logs alone: the largest is subtracted before anything is exponentiated.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

LARGEST_BETA = 4.0
_FEWEST_IN_TAIL = 5


@dataclass(frozen=True, eq=False)
class Weights:
    """A pool's weights at one beta.

    Parameters
    ----------
    log_quality
        log q of each row, nats: what MAP maximises.
    log_weight
        Log of the summed weights of each row's copies: the law that is sampled.
    share2
        Sum over a row's copies of the squared share of the row's weight; 1/c for c equal copies.
    ess
        Effective number of draws, ``1 / sum of squared normalised weights``; nan where there is
        no proposal law.
    pareto_k
        Shape of the weights' upper tail. Above 0.7 estimates cannot be trusted; nan where fewer
        than 5 draws stand above the rest.
    logprob_sd, reward_sd
        Standard deviation over the draws of beta log p and of lam reward: which of them decides.
    """

    log_quality: Float[np.ndarray, " n"]
    log_weight: Float[np.ndarray, " n"]
    share2: Float[np.ndarray, " n"]
    ess: float
    pareto_k: float
    logprob_sd: float
    reward_sd: float


def log_sum_by(
    group: Int[np.ndarray, " N"], log_values: Float[np.ndarray, " N"], n: int
) -> Float[np.ndarray, " n"]:
    """Log of the sum of exp(log_values) in each of `n` groups; no group may be empty."""
    top = np.full(n, -np.inf)
    np.maximum.at(top, group, log_values)
    return top + np.log(np.bincount(group, np.exp(log_values - top[group]), minlength=n))


def effective_size(log_weight: Float[np.ndarray, " N"]) -> float:
    """``(sum w)^2 / sum w^2``, from 1 to N."""
    weight = np.exp(log_weight - log_weight.max())
    return float(weight.sum() ** 2 / (weight @ weight))


def pareto_smoothed(
    log_weight: Float[np.ndarray, " N"],
) -> tuple[float, Float[np.ndarray, " N"]]:
    """Pareto shape of the tail, and the weights with the tail replaced by its fitted quantiles.

    Pareto-smoothed importance sampling (Vehtari et al., arXiv 1507.02646): a generalised Pareto
    law is fitted to the largest ``min(0.2 N, 3 sqrt(N))`` weights. Draws tied with the cutoff are
    not in the tail. With fewer than 5 in it the shape is nan and the weights are returned as
    they are.
    """
    n = len(log_weight)
    logs = log_weight - log_weight.max()
    size = math.ceil(min(0.2 * n, 3 * math.sqrt(n)))
    if size < _FEWEST_IN_TAIL:
        return math.nan, log_weight
    # weights under the smallest float are 0, whatever their logs
    cutoff = max(np.partition(logs, n - size - 1)[n - size - 1], math.log(np.finfo(float).tiny))
    tail = np.flatnonzero(logs > cutoff)
    if len(tail) < _FEWEST_IN_TAIL:
        return math.nan, log_weight
    tail = tail[np.argsort(logs[tail], kind="stable")]
    shape, scale = _fit_pareto(np.exp(logs[tail]) - np.exp(cutoff))

    upper = np.log1p(-(np.arange(len(tail)) + 0.5) / len(tail))
    quantiles = scale * (-upper if shape == 0 else np.expm1(-shape * upper) / shape)
    smoothed = log_weight.copy()
    smoothed[tail] = np.minimum(np.log(quantiles + np.exp(cutoff)), 0.0) + log_weight.max()
    return shape, smoothed


def _fit_pareto(excess: Float[np.ndarray, " M"]) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto law, from ascending positive excesses.

    The posterior mean of Zhang & Stephens 2009 on a grid, the shape drawn towards 1/2 as if ten
    more observations had said so (Vehtari et al., appendix C).
    """
    size = len(excess)
    points = 30 + math.isqrt(size)
    quartile = excess[int(size / 4 + 0.5) - 1]
    grid = 1 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))
    grid = 1 / excess[-1] + grid / (3 * quartile)
    shapes = np.log1p(-grid[:, None] * excess).mean(axis=1)
    log_likelihood = size * (np.log(-grid / shapes) - shapes - 1)
    weight = np.exp(log_likelihood - log_likelihood.max())
    best = float(grid @ weight / weight.sum())
    shape = float(np.log1p(-best * excess).mean())
    return (size * shape + 5) / (size + 10), -shape / best


def sampling_beta(
    log_weight_at: Callable[[float], Float[np.ndarray, " N"]], k: int
) -> tuple[float, bool]:
    """Largest beta in [1, 4] whose effective size is at least max(4 k, N / 4).

    Parameters
    ----------
    log_weight_at
        Log weights of the N draws at a beta.
    k
        Size of the sets.

    Returns
    -------
    The beta, and whether any reached that size: if none did, beta is 1.
    """
    n = len(log_weight_at(1.0))
    enough = max(4 * k, n / 4) * (1 - 1e-9)  # N equal weights make N but for rounding

    def reaches(beta: float) -> bool:
        return effective_size(log_weight_at(beta)) >= enough

    # the effective size need not fall steadily: look everywhere, then close in on the last crossing
    grid = np.geomspace(1, LARGEST_BETA, 64)
    passing = [place for place, beta in enumerate(grid) if reaches(float(beta))]
    if not passing:
        return 1.0, False
    if passing[-1] == len(grid) - 1:
        return LARGEST_BETA, True
    low, high = map(float, grid[passing[-1] : passing[-1] + 2])
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low, True


def map_beta(logprob: Float[np.ndarray, " n"], k: int) -> float:
    """A beta at which volume and quality weigh alike in MAP; a heuristic.

    One selected item then trades about a quarter of a nat of volume per item against the gap
    between the best and the lower quartile of log p.
    """
    gap = float(logprob.max() - np.quantile(logprob, 0.25))
    return 1.0 if gap == 0 else float(np.clip(k / gap / 4, 1e-3, LARGEST_BETA))
