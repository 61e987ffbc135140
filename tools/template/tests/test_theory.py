"""What the mathematics proves. Each test fails by chance once in a million seeds."""

import math

import numpy as np
from scipy.stats import beta, binom, gamma

from template_package import median_of_means

LEVEL = 1e-6


def test_the_law_of_the_estimate_is_that_of_an_order_statistic(rng):
    """Means of m exponential values are Gamma(m) / m, and the median of k is Beta in their law."""
    k, m, trials = 9, 4, 1_500
    middle = (k + 1) / 2
    u = beta(middle, middle).ppf(0.8)  # the median of k uniforms lies below u with chance 0.8
    threshold = gamma(m).ppf(u) / m
    samples = rng.exponential(size=(trials, k * m))
    below = sum(median_of_means(sample, k, rng=rng).value <= threshold for sample in samples)

    low, high = binom(trials, 0.8).ppf([LEVEL / 2, 1 - LEVEL / 2])
    assert low <= below <= high


def test_errors_beyond_the_radius_are_as_rare_as_the_theorem_says(rng):
    """At most exp(-k / 8) of the errors exceed 2 sigma / sqrt(m), here for a skewed law."""
    k, m, trials = 16, 5, 1_500
    samples = rng.pareto(2.5, size=(trials, k * m))  # mean 1 / 1.5, variance 2.5 / (1.5^2 0.5)
    radius = 2 * math.sqrt(2.5 / (1.5**2 * 0.5)) / math.sqrt(m)
    errors = [abs(median_of_means(sample, k, rng=rng).value - 1 / 1.5) for sample in samples]

    assert sum(error > radius for error in errors) <= binom(trials, math.exp(-k / 8)).ppf(1 - LEVEL)


def test_fewer_wild_values_than_half_the_blocks_cannot_carry_it_away(rng):
    """With 4 of 9 blocks spoilt the median is a mean of clean values, whatever the others are."""
    clean = rng.uniform(-1, 1, 86)
    for wild in (np.inf, 1e300, -1e300):
        spoilt = np.concatenate([clean, np.full(4, np.sign(wild) * 1e300)])
        assert abs(median_of_means(spoilt, 9, rng=rng).value) <= 1
