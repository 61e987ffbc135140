"""Longer checks of what the mathematics promises: `nox -s slow`."""

import math
import warnings

import numpy as np
import pytest

from dpp_sample import KDPP, PoolWarning, make_pool, pool_bias, select
from dpp_sample.bias import exact_bound, exact_pool_law
from dpp_sample.weights import pareto_smoothed

pytestmark = pytest.mark.slow


def heavy_copies(seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(9, 6))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    weight = 100 * rng.normal(size=9)
    heaviest = np.argsort(-weight)
    features[heaviest[1:3]] = features[heaviest[0]]
    return features, weight


@pytest.mark.parametrize("seed", range(5))
def test_forty_thousand_draws_follow_the_law(brute_force, fit_p_value, seed):
    """False alarm probability 1e-3 for each seed."""
    rng = np.random.default_rng(seed)
    features, weight = rng.normal(size=(9, 6)), rng.normal(size=9)
    law = brute_force(features, weight, 3)
    dpp = KDPP(features, weight, k=3)
    np.testing.assert_allclose(dpp.marginals(), law.marginals, atol=1e-12)
    assert fit_p_value(dpp.sample(40_000, rng=seed), law) > 1e-3


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_copies_a_hundred_nats_apart_equal_exact_arithmetic(exact_law, seed, k):
    features, weight = heavy_copies(seed)
    law = exact_law(features, weight, k)
    dpp = KDPP(features, weight, k=k)
    np.testing.assert_allclose(dpp.marginals(), law.marginals, atol=1e-12)
    assert dpp.marginals().sum() == pytest.approx(k, abs=1e-10)


def test_larger_sets_follow_their_marginals():
    """2000 rows, k = 20: the largest of 2000 standardised deviations of 20,000 draws.

    Bernoulli counts with normal tails: below 5.2 but for a probability of 4e-4.
    """
    rng = np.random.default_rng(0)
    dpp = KDPP(rng.normal(size=(2000, 256)), rng.normal(size=2000), k=20)
    marginals = dpp.marginals()
    assert marginals.sum() == pytest.approx(20, abs=1e-8)
    seen = np.bincount(dpp.sample(20_000, rng=1).ravel(), minlength=2000)
    common = marginals > 1e-3  # where 20,000 draws make the count near normal
    spread = np.sqrt(20_000 * marginals * (1 - marginals))
    assert np.abs((seen - 20_000 * marginals) / spread)[common].max() < 5.2


def test_random_pools_give_the_exact_pool_law(string_space):
    """The whole path, 4,000 pools, against mu_N. False alarm probability 1e-4."""
    from scipy.stats import chi2

    p, r, features = string_space(0, 5)
    law = exact_pool_law(p, r, features, 2, 8)
    rng, counts, total = np.random.default_rng(0), np.zeros(10), 4_000
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    while counts.sum() < total:
        draws = rng.choice(5, size=8, p=r)
        if len(set(draws.tolist())) < 2:
            continue
        pool = make_pool(
            [str(row) for row in draws], features[draws], kernel=None, logprob=np.log(r)[draws]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PoolWarning)
            chosen = select(pool, 2, method="sample", beta=2.0, rng=rng)
        counts[pairs.index(tuple(sorted(int(text) for text in chosen.texts)))] += 1
    statistic = np.sum((counts - total * law) ** 2 / (total * law))
    assert chi2.sf(statistic, 9) > 1e-4


def test_estimate_approaches_the_bound_and_errs_upward(string_space):
    """N times the mean of expm1(estimate) over 2000 pools; standard errors near 2 %."""
    p, r, features = string_space(0, 5)
    log_w, rng = np.log(p / r), np.random.default_rng(0)
    found = {}
    for n in (8, 32, 128):
        estimates = []
        while len(estimates) < 2000:
            rows, counts = np.unique(rng.choice(5, size=n, p=r), return_counts=True)
            if len(rows) < 2:
                continue
            dpp = KDPP(features[rows], log_w[rows] + np.log(counts), k=2)
            estimates.append(math.expm1(pool_bias(dpp.marginals(), 1 / counts, n, 2)[0]))
        found[n] = n * float(np.mean(estimates))
    exact = {n: n * math.expm1(exact_bound(p, r, features, 2, n)) for n in found}
    assert found[8] > exact[8]
    assert found[32] > exact[32]
    assert found[128] == pytest.approx(exact[128], rel=0.1)


def test_estimate_in_small_pools_of_a_large_space(string_space):
    """Mean estimate against log(mean U^2 / (mean U)^2) of the same 300 pools, within a quarter."""
    p, r, features = string_space(0, 2000, d=20, beta=1.3)
    log_w, rng, k = np.log(p / r), np.random.default_rng(0), 5
    for n in (6, 12, 60):
        log_u, estimates = [], []
        for _ in range(300):
            rows, counts = np.unique(rng.choice(2000, size=n, p=r), return_counts=True)
            if len(rows) < k:
                continue
            dpp = KDPP(features[rows], log_w[rows] + np.log(counts), k=k)
            log_u.append(dpp.log_normalizer)
            estimates.append(pool_bias(dpp.marginals(), 1 / counts, n, k)[0])
        u = np.exp(np.array(log_u) - max(log_u))
        assert np.mean(estimates) == pytest.approx(
            np.log(np.mean(u**2) / np.mean(u) ** 2), rel=0.25
        )


def test_normaliser_of_a_pool_is_unbiased(string_space):
    """E of Z_pool / C(N, k) is the mean of h over k draws. False alarm probability 1e-6."""
    p, r, features = string_space(1, 6)
    gram = features @ features.T
    exact = sum(
        p[a] * p[b] * (1 - gram[a, b] ** 2) for a in range(6) for b in range(6)
    )  # sum over ordered pairs
    rng, means = np.random.default_rng(0), []
    for _ in range(8_000):
        rows, counts = np.unique(rng.choice(6, size=7, p=r), return_counts=True)
        if len(rows) < 2:
            means.append(0.0)
            continue
        dpp = KDPP(features[rows], np.log(p / r)[rows] + np.log(counts), k=2)
        means.append(math.exp(dpp.log_normalizer) / math.comb(7, 2))
    error = np.std(means) / math.sqrt(len(means))
    assert abs(np.mean(means) - exact) < 4.9 * error


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("n", [40, 200, 1000])
def test_pareto_smoothing_equals_arviz(n, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from arviz import psislw
    logs = scale * np.random.default_rng(n).gumbel(size=n)
    smoothed, shape = psislw(logs.copy())
    our_shape, ours = pareto_smoothed(logs)
    assert our_shape == pytest.approx(float(shape), rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(ours - np.logaddexp.reduce(ours), np.asarray(smoothed), atol=1e-9)
