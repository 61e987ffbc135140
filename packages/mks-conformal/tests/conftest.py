"""Shared by the tests: residuals with a skewed law, and a band for binomial counts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mks_conformal import MultivariateKernelScore, UnboundedRegionWarning


@pytest.fixture(scope="session")
def skewed() -> Callable[[int, int, int], np.ndarray]:
    """`skewed(n, d, seed)`: independent Exp(1) - 1."""
    return lambda n, d, seed: np.random.default_rng(seed).exponential(size=(n, d)) - 1.0


@pytest.fixture(scope="session")
def binomial_band() -> Callable[[float, float, int, float], tuple[int, int]]:
    """`binomial_band(p_low, p_high, trials, level)`.

    Counts outside have probability at most `level` for any success probability in the interval.
    """

    def band(p_low: float, p_high: float, trials: int, level: float) -> tuple[int, int]:
        low = binom.ppf(level / 2, trials, p_low)
        high = binom.isf(level / 2, trials, p_high)
        return int(low), int(high)

    return band


@pytest.fixture(scope="session")
def fixed_score() -> Callable[..., MultivariateKernelScore]:
    """`fixed_score(R, **options)`: a kernel score with nothing left to select."""

    def fit(R: np.ndarray, **options: Any) -> MultivariateKernelScore:
        given = {"bandwidth": 1.0, "lam": 1e-3, "random_state": 0, **options}
        return MultivariateKernelScore(**given).fit(R)

    return fit


@pytest.fixture
def finite_regions() -> Any:
    """Fail when a region is unbounded."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", UnboundedRegionWarning)
        yield
