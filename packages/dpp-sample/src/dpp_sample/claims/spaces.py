"""Spaces of strings small enough to know every law on them exactly, and intervals for the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dpp_sample.bias import exact_bound, exact_pool_law, overlap_moments, target_law


@dataclass(frozen=True)
class Space:
    """M strings with their log p and features; r = p, and the target is q = p ** beta."""

    log_p: Float[np.ndarray, " M"]
    features: Float[np.ndarray, "M d"]
    beta: float
    k: int

    @classmethod
    def random(cls, size: int, d: int, seed: int, beta: float, k: int) -> "Space":
        """Log p from a standard normal, features in random directions."""
        g = np.random.default_rng(seed)
        log_p = g.normal(size=size)
        features = g.normal(size=(size, d))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        return cls(log_p - np.log(np.exp(log_p).sum()), features, beta, k)

    @property
    def log_weight(self) -> Float[np.ndarray, " M"]:
        """Log of q / r."""
        return (self.beta - 1) * self.log_p

    @property
    def r(self) -> Float[np.ndarray, " M"]:
        """The law that draws."""
        return np.exp(self.log_p)

    @property
    def q(self) -> Float[np.ndarray, " M"]:
        """The target's weight of each string."""
        return np.exp(self.beta * self.log_p)

    def target(self) -> Float[np.ndarray, " sets"]:
        """P, over all sets."""
        return target_law(self.q, self.features, self.k)

    def pooled(self, n: int) -> Float[np.ndarray, " sets"]:
        """mu_n, exactly."""
        return exact_pool_law(self.q, self.r, self.features, self.k, n)

    def bound(self, n: int) -> float:
        """The bound on KL(P || mu_n), exactly."""
        return exact_bound(self.q, self.r, self.features, self.k, n)

    def limit(self) -> float:
        """Limit of n times the bound: k^2 (rho_1 - 1)."""
        moments = overlap_moments(self.q, self.r, self.features, self.k)
        return float(self.k**2 * (moments[1] - 1))


def kl(p: Float[np.ndarray, " m"], q: Float[np.ndarray, " m"]) -> float:
    """KL(p || q), nats."""
    held = p > 0
    return float(np.sum(p[held] * np.log(p[held] / q[held])))


def tv(p: Float[np.ndarray, " m"], q: Float[np.ndarray, " m"]) -> float:
    """Total variation between two laws, 0 to 1."""
    return float(np.abs(p - q).sum() / 2)


def slope(low: float, high: float, n_low: int, n_high: int) -> float:
    """Exponent of a power law through two points."""
    return float(np.log(high / low) / np.log(n_high / n_low))


def bootstrap(
    statistic: Callable[[np.ndarray], float],
    n: int,
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """A statistic of n items with its percentile interval over resampled items.

    `statistic` takes the items' indices; items that it reads from several methods stay paired.
    """
    rng = np.random.default_rng(seed)
    again = [statistic(rng.integers(n, size=n)) for _ in range(draws)]
    low, high = np.quantile(again, [(1 - level) / 2, (1 + level) / 2])
    return statistic(np.arange(n)), float(low), float(high)


def mean_interval(
    values: Sequence[float] | np.ndarray, seed: int = 0
) -> tuple[float, float, float]:
    """Mean with its 95% bootstrap interval."""
    array = np.asarray(values, dtype=float)
    return bootstrap(lambda rows: float(array[rows].mean()), len(array), seed=seed)
