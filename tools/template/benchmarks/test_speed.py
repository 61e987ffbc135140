"""The hot path against what a user would otherwise take, on the same values.

Read the ratio of the medians, not the seconds: `nox -s bench -- template-package`.
"""

import numpy as np
import pytest
from scipy.stats import trim_mean

from template_package import median_of_means

SIZES = (1_000, 30_000, 1_000_000)


@pytest.mark.parametrize("n", SIZES)
def test_median_of_means(benchmark, n):
    benchmark.group = f"n={n}"
    values = np.random.default_rng(0).standard_t(2.1, n)
    benchmark(median_of_means, values, 37, rng=0)


@pytest.mark.parametrize("n", SIZES)
def test_trimmed_mean(benchmark, n):
    benchmark.group = f"n={n}"
    values = np.random.default_rng(0).standard_t(2.1, n)
    benchmark(trim_mean, values, 0.1)
