import math

import numpy as np
import pytest

from armillary import InputError
from dpp_sample import KDPP, pool_bias
from dpp_sample.bias import (
    exact_bound,
    exact_pool_law,
    overlap_moments,
    refresh_kernel,
    second_moment,
    target_law,
)
from dpp_sample.weights import log_sum_by


def divergence(p, q):
    return float(np.sum(p * np.log(p / q)))


def variation(p, q):
    return float(np.abs(p - q).sum() / 2)


# The bound ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_bound_is_the_second_moment_and_holds(string_space, beta, k):
    for seed in range(3):
        p, r, features = string_space(seed, 5, beta=beta)
        target = target_law(p, features, k)
        for n in (4, 9, 16):
            bound = exact_bound(p, r, features, k, n)
            assert bound == pytest.approx(math.log(second_moment(p, r, features, k, n)), abs=1e-10)
            law = exact_pool_law(p, r, features, k, n)
            assert law.sum() == pytest.approx(1, abs=1e-12)
            assert -1e-14 <= divergence(target, law) <= bound + 1e-14


def test_divergence_bound_and_limit_of_one_space(string_space):
    p, r, features = string_space(0, 5)
    target = target_law(p, features, 2)
    laws = {n: exact_pool_law(p, r, features, 2, n) for n in (8, 16, 32, 48)}
    found = [divergence(target, law) for law in laws.values()]
    np.testing.assert_allclose(found, [7.46e-3, 1.36e-3, 2.93e-4, 1.24e-4], rtol=1e-2)
    bounds = [exact_bound(p, r, features, 2, n) for n in (8, 48)]
    np.testing.assert_allclose(bounds, [7.02e-2, 8.61e-3], rtol=1e-2)
    limit = 4 * (overlap_moments(p, r, features, 2)[1] - 1)
    assert limit == pytest.approx(0.386, abs=5e-4)
    assert 48 * bounds[1] == pytest.approx(limit, rel=0.25)
    # the bound falls as 1/N, the total variation too, the divergence as 1/N^2
    slope = math.log(1.5)
    assert math.log(found[3] / found[2]) / slope == pytest.approx(-2.1, abs=0.3)
    distance = [variation(target, laws[n]) for n in (32, 48)]
    assert math.log(distance[1] / distance[0]) / slope == pytest.approx(-1.1, abs=0.3)


def test_overlap_moments_by_all_tuples(string_space):
    """rho_j from their definition, over every ordered tuple."""
    p, r, features = string_space(1, 4)
    k, gram = 2, features @ features.T
    h = np.array(
        [
            [
                p[a] / r[a] * p[b] / r[b] * np.linalg.det(gram[np.ix_([a, b], [a, b])])
                for b in range(4)
            ]
            for a in range(4)
        ]
    )
    pairs = np.outer(r, r)
    z = np.sum(pairs * h)
    one_shared = np.sum(r * (h @ r) ** 2)
    both_shared = np.sum(pairs * h**2)
    np.testing.assert_allclose(
        overlap_moments(p, r, features, k), np.array([z**2, one_shared, both_shared]) / z**2
    )


def test_pool_law_by_all_sequences_of_draws(brute_force, string_space):
    """mu_N from all M^N ordered pools, each with its own brute-force K-DPP."""
    p, r, features = string_space(2, 3, d=2)
    total, mass = np.zeros(3), 0.0
    for code in range(3**4):
        draws = np.array([code // 3**place % 3 for place in range(4)])
        rows, counts = np.unique(draws, return_counts=True)
        if len(rows) < 2:
            continue
        weight = np.log(p / r)[rows] + np.log(counts)
        law = brute_force(features[rows], weight, 2)
        probability = float(np.prod(r[draws]))
        mass += probability
        for chosen, share in zip(rows[law.sets].tolist(), law.probability, strict=True):
            total[[[0, 1], [0, 2], [1, 2]].index(chosen)] += probability * share
    np.testing.assert_allclose(exact_pool_law(p, r, features, 2, 4), total / mass, atol=1e-13)


# The estimate -------------------------------------------------------------------------------


def test_leaving_out_a_copy_changes_the_normaliser_as_stated():
    """U without one copy of row i is U (1 - pi_i share) N / (N - k), exactly."""
    rng = np.random.default_rng(0)
    row = np.array([0, 1, 0, 2, 3, 3, 0, 4, 5])
    log_w, features, k, n = rng.normal(size=9), rng.normal(size=(6, 4)), 3, 9
    weight = log_sum_by(row, log_w, 6)
    dpp = KDPP(features, weight, k=k)
    mean = dpp.log_normalizer - math.log(math.comb(n, k))
    for draw in range(n):
        rest = np.delete(np.arange(n), draw)
        rows, group = np.unique(row[rest], return_inverse=True)
        less = KDPP(features[rows], log_sum_by(group, log_w[rest], len(rows)), k=k)
        share = math.exp(log_w[draw] - weight[row[draw]])
        expected = math.log(1 - dpp.marginals()[row[draw]] * share) + math.log(n / (n - k))
        found = less.log_normalizer - math.log(math.comb(n - 1, k)) - mean
        assert found == pytest.approx(expected, abs=1e-10)


def test_estimate_is_the_jackknife_of_the_normaliser():
    rng = np.random.default_rng(0)
    n, k = 12, 3
    features, log_w = rng.normal(size=(n, 5)), rng.normal(size=n)
    full = KDPP(features, log_w, k=k).log_normalizer - math.log(math.comb(n, k))
    left_out = []
    for draw in range(n):
        rest = np.delete(np.arange(n), draw)
        less = KDPP(features[rest], log_w[rest], k=k).log_normalizer
        left_out.append(math.exp(less - math.log(math.comb(n - 1, k)) - full))
    variance = (n - 1) / n * np.sum((np.array(left_out) - 1) ** 2)
    kl_estimate, _ = pool_bias(KDPP(features, log_w, k=k).marginals(), np.ones(n), n, k)
    assert kl_estimate == pytest.approx(math.log1p(variance), rel=1e-9)


def test_even_pools_have_all_their_rows_effective():
    kl_estimate, n_eff = pool_bias(np.full(20, 0.25), np.ones(20), 20, 5)
    assert n_eff == pytest.approx(20)
    assert kl_estimate == pytest.approx(0, abs=1e-14)


def test_a_pool_of_k_draws_reports_no_selection():
    assert pool_bias(np.ones(4), np.ones(4), 4, 4) == (math.inf, 4.0)


def test_copies_count_as_draws():
    """Ten equal strings once each, or five twice: the same share of every draw."""
    single = pool_bias(np.full(10, 0.3), np.ones(10), 10, 3)
    double = pool_bias(np.full(5, 0.6), np.full(5, 0.5), 10, 3)
    assert double == pytest.approx(single)


def test_fewer_draws_than_k_are_refused():
    with pytest.raises(InputError, match="n_drawn: expected at least k = 3, found 2"):
        pool_bias(np.ones(2), np.ones(2), 2, 3)


def test_estimate_in_small_pools_of_a_space(string_space):
    """Mean of N expm1(estimate) over pools against the limit .386; standard error below 6 %."""
    p, r, features = string_space(0, 5)
    log_w, rng = np.log(p / r), np.random.default_rng(0)
    found = []
    for _ in range(400):
        draws = rng.choice(5, size=32, p=r)
        rows, counts = np.unique(draws, return_counts=True)
        dpp = KDPP(features[rows], log_w[rows] + np.log(counts), k=2)
        kl_estimate, n_eff = pool_bias(dpp.marginals(), 1 / counts, 32, 2)
        assert n_eff <= 32
        found.append(32 * math.expm1(kl_estimate))
    assert 0.386 < np.mean(found) < 0.62  # .50 expected: it errs upward in small pools


# Iterated pools -----------------------------------------------------------------------------

EIGENVALUES = [0.391, 0.362, 0.378, 0.571, 0.483]
ONE_SHOT = [0.054, 0.047, 0.121, 0.183, 0.121]
FIVE_ROUNDS = [0.0003, 0.0001, 0.0007, 0.0102, 0.0020]


@pytest.mark.parametrize("seed", range(5))
def test_target_is_invariant_under_refreshment(string_space, seed):
    p, r, features = string_space(seed, 6)
    target = target_law(p, features, 2)
    kernel = refresh_kernel(p, r, features, 2, 6)
    np.testing.assert_allclose(kernel.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(target @ kernel, target, atol=1e-12)
    flow = target[:, None] * kernel
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)  # reversible, too

    second = np.sort(np.abs(np.linalg.eigvals(kernel)))[-2]
    assert second == pytest.approx(EIGENVALUES[seed], rel=0.02)
    law = exact_pool_law(p, r, features, 2, 6)
    assert variation(target, law) == pytest.approx(ONE_SHOT[seed], rel=0.02)
    law = law @ np.linalg.matrix_power(kernel, 5)
    assert variation(target, law) == pytest.approx(FIVE_ROUNDS[seed], abs=6e-5)
