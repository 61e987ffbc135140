import warnings
from itertools import combinations

import numpy as np
import pytest

from armillary import InputError
from dpp_sample import (
    KDPP,
    PoolWarning,
    RankError,
    greedy_map,
    make_pool,
    pareto,
    pool_bias,
    select,
)
from dpp_sample.conditioned import ConditionedKDPP


def even_pool(n=60, d=8, seed=0, **options):
    """A pool whose automatic beta reaches its effective size."""
    rng = np.random.default_rng(seed)
    texts = [f"text {row}" for row in range(n)]
    return make_pool(
        texts, rng.normal(size=(n, d)), logprob=-3 * rng.gamma(2, size=n) - 5, **options
    )


# MAP ----------------------------------------------------------------------------------------


def test_map_is_the_greedy_maximum_of_the_target():
    pool = even_pool()
    chosen = select(pool, 4, beta=0.3)
    expected = greedy_map(pool.features, 0.3 * pool.logprob, k=4)
    np.testing.assert_array_equal(chosen.indices, expected.indices)
    assert chosen.log_det == expected.log_det
    np.testing.assert_array_equal(chosen.gains, expected.gains)
    assert chosen.texts == [pool.texts[row] for row in expected.indices]
    assert chosen.log_prob is chosen.marginals is chosen.kl_estimate is chosen.n_eff is None
    assert chosen.ess == pool.at(0.3).ess
    assert chosen.beta == 0.3
    assert not chosen.clipped


def test_map_does_not_know_the_proposal_or_the_copies():
    rng = np.random.default_rng(0)
    x, log_p = rng.normal(size=(20, 5)), -5 * rng.gamma(2, size=20)
    rows = np.concatenate([np.arange(20), rng.integers(20, size=30)])
    texts = [str(row) for row in rows]
    pool = make_pool(texts, x[rows], logprob=log_p[rows], proposal_logprob=-np.ones(50))
    plain = make_pool(texts[:20], x, logprob=log_p)
    np.testing.assert_array_equal(select(pool, 4).indices, select(plain, 4).indices)
    assert select(pool, 4).beta == select(plain, 4).beta


def test_map_on_weights_is_the_mode_of_the_pools_kernel():
    pool = even_pool()
    chosen = select(pool, 4, beta=1.3, map_on="weight")
    expected = greedy_map(pool.features, pool.at(1.3).log_weight, k=4)
    np.testing.assert_array_equal(chosen.indices, expected.indices)
    # for r = p this is quality at beta - 1
    np.testing.assert_array_equal(chosen.indices, select(pool, 4, beta=1.3 - 1).indices)


def test_automatic_beta_of_map():
    pool = even_pool()
    gap = pool.logprob.max() - np.quantile(pool.logprob, 0.25)
    assert select(pool, 4).beta == pytest.approx(4 / gap / 4)


# Draws --------------------------------------------------------------------------------------


def test_a_draw_is_of_the_pools_k_dpp():
    pool = even_pool()
    weights = pool.at(1.1)
    dpp = KDPP(pool.features, weights.log_weight, k=4)
    chosen = select(pool, 4, method="sample", beta=1.1, rng=3)
    assert chosen.log_prob == pytest.approx(dpp.log_prob(chosen.indices), abs=1e-12)
    np.testing.assert_allclose(chosen.marginals, dpp.marginals(), atol=1e-13)
    expected = pool_bias(dpp.marginals(), weights.share2, 60, 4)
    assert (chosen.kl_estimate, chosen.n_eff) == pytest.approx(expected)
    rows = pool.features[chosen.indices]
    assert chosen.log_det == pytest.approx(np.linalg.slogdet(rows @ rows.T)[1])
    assert chosen.texts == [pool.texts[row] for row in chosen.indices]


def test_same_seed_same_draw():
    pool = even_pool()
    for method in ("sample", "refresh"):
        first, again, other = (
            select(pool, 2, method=method, rng=seed, size=20).indices for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


def test_several_draws_come_without_texts():
    chosen = select(even_pool(), 4, method="sample", size=7, rng=0)
    assert chosen.indices.shape == (7, 4)
    assert chosen.texts is None
    assert chosen.log_det.shape == chosen.log_prob.shape == (7,)
    assert chosen.marginals.shape == (60,)


def test_automatic_beta_of_draws():
    pool = even_pool(200)
    chosen = select(pool, 4, method="sample", rng=0)
    assert 1 < chosen.beta < 4
    assert chosen.ess == pytest.approx(50, rel=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # at just 4 k there is nothing to doubt
        chosen = select(even_pool(60), 4, method="sample", rng=0)
    assert chosen.ess == pytest.approx(16, rel=1e-6)
    listed = even_pool(200, pool_kind="enumerated")
    assert select(listed, 4, method="sample", rng=0).beta == 1.0


def test_a_list_has_no_bias_figures_and_no_doubts():
    pool = even_pool(pool_kind="enumerated")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = select(pool, 4, method="sample", beta=2.0, rng=0)
    assert chosen.kl_estimate is chosen.n_eff is None
    assert chosen.notes == ()


def test_uneven_weights_are_warned_of():
    pool = even_pool()
    with pytest.warns(PoolWarning, match=r"effective sample size .* is below 4 k = 16") as caught:
        chosen = select(pool, 4, method="sample", beta=4.0, rng=0)
    assert chosen.ess < 16
    assert [str(warning.message) for warning in caught] == list(chosen.notes)


@pytest.mark.filterwarnings("ignore:the effective sample size")
def test_heavy_tails_are_warned_of():
    rng = np.random.default_rng(0)
    pool = make_pool(
        [str(row) for row in range(500)],
        rng.normal(size=(500, 6)),
        logprob=np.full(500, -50.0),
        proposal_logprob=-50 - 1.2 * rng.exponential(size=500),  # a Pareto tail of shape 1.2
    )
    with pytest.warns(PoolWarning, match=r"Pareto k .* is above 0\.7"):
        select(pool, 3, method="sample", beta=1.0, rng=0)


@pytest.mark.filterwarnings("ignore:the effective sample size")
def test_no_even_beta_is_warned_of():
    with pytest.warns(
        PoolWarning, match="no beta from 1 to 4 gives 10 draws an effective size of 16"
    ):
        chosen = select(even_pool(10), 4, method="sample", rng=0)
    assert chosen.beta == 1.0


def test_clipped_rows_are_flagged():
    features, logprob = np.eye(3), np.array([-1.0, -2.0, -5000.0])
    pool = make_pool(list("abc"), features, kernel=None, logprob=logprob, pool_kind="enumerated")
    with pytest.warns(PoolWarning, match="600 nats below"):
        assert select(pool, 3, method="sample", beta=1.0, rng=0).clipped
    assert not select(pool, 2, method="sample", beta=1.0, rng=0).clipped


def test_length_normalisation_is_noted():
    pool = even_pool(length_normalize=True, n_tokens=np.arange(1, 61))
    assert "not the tempered law" in select(pool, 3).notes[-1]


# Kept rows ----------------------------------------------------------------------------------


def test_kept_rows_condition_the_law(brute_force, fit_p_value):
    """Against brute force over all sets that hold them. False alarm probability 1e-4."""
    rng = np.random.default_rng(0)
    features, weight = rng.normal(size=(8, 5)), rng.normal(size=8)
    law = brute_force(features, weight, 4)
    holds = (law.sets == 2).any(axis=1) & (law.sets == 6).any(axis=1)
    given = law._replace(
        sets=law.sets[holds], probability=law.probability[holds] / law.probability[holds].sum()
    )
    dpp = ConditionedKDPP(features, weight, [6, 2], k=4)
    np.testing.assert_allclose(np.exp(dpp.log_prob(given.sets)), given.probability, atol=1e-12)
    marginals = np.bincount(given.sets.ravel(), np.repeat(given.probability, 4))
    np.testing.assert_allclose(dpp.marginals(), marginals, atol=1e-12)
    draws = dpp.sample(5_000, np.random.default_rng(1))
    assert fit_p_value(draws, given) > 1e-4


def test_kept_rows_are_in_the_selection():
    pool = even_pool()
    chosen = select(pool, 5, method="sample", keep=[30, 7], rng=0)
    assert {7, 30} <= set(chosen.indices.tolist())
    assert chosen.marginals[[7, 30]].tolist() == [1, 1]
    assert chosen.marginals.sum() == pytest.approx(5)
    assert chosen.kl_estimate is chosen.n_eff is None
    assert select(pool, 5, keep=[30, 7]).indices[:2].tolist() == [30, 7]
    whole = select(pool, 2, method="sample", keep=[30, 7], rng=0)
    assert whole.indices.tolist() == [7, 30]
    assert whole.log_prob == 0.0


def test_keeping_nothing_is_the_k_dpp_itself():
    pool = even_pool()
    weight = pool.at(1.0).log_weight
    dpp, same = KDPP(pool.features, weight, k=3), ConditionedKDPP(pool.features, weight, k=3)
    np.testing.assert_allclose(same.marginals(), dpp.marginals(), atol=1e-14)
    draws = same.sample(5, np.random.default_rng(0))
    np.testing.assert_array_equal(draws, dpp.sample(5, rng=0))


def test_copies_of_kept_rows_are_not_drawn(pool_of_copies):
    dpp = ConditionedKDPP(pool_of_copies, -np.arange(60.0), [55, 3], k=6)
    blocks = dpp.sample(50, np.random.default_rng(0)) // 10
    assert (blocks == np.arange(6)).all()
    with pytest.raises(RankError, match="rank 6 .* k = 7|k = 7, found rank 6"):
        ConditionedKDPP(pool_of_copies, None, [55, 3], k=7)
    with pytest.raises(RankError, match="found row 4, a combination"):
        ConditionedKDPP(pool_of_copies, None, [3, 4], k=6)
    with pytest.raises(RankError, match="k = 3, found rank 2 among 4"):
        ConditionedKDPP(np.eye(2)[[0, 0, 1, 1]], None, [0, 2], k=3)


# Too few rows -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the effective sample size")
def test_too_few_texts(pool_of_copies):
    pool = make_pool(["a", "b", "a", "c"], np.eye(3)[[0, 1, 0, 2]], logprob=-np.ones(4))
    for method in ("map", "sample"):
        with pytest.raises(InputError) as caught:
            select(pool, 5, method=method)
        assert str(caught.value) == (
            '3 distinct texts, cannot choose 5 (use fill="quality" or a lower k)'
        )
        with pytest.warns(PoolWarning, match="3 distinct texts: fewer than k = 5 are chosen"):
            chosen = select(pool, 5, method=method, fill="quality", beta=1.0, rng=0)
        assert sorted(chosen.indices) == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:the effective sample size")
def test_filling_up_draws():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3, 4))[[0, 0, 1, 1, 2, 2]]
    logprob = -np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    pool = make_pool(list("abcdef"), features, kernel=None, logprob=logprob)
    with pytest.raises(RankError, match="rank 3 "):
        select(pool, 5, method="sample", beta=1.0)
    with pytest.warns(PoolWarning, match="rank 3: the rest of k = 5 are filled up"):
        chosen = select(pool, 5, method="sample", beta=1.0, fill="quality", rng=0)
    assert len(set(chosen.indices.tolist())) == 5
    blocks = chosen.indices // 2
    assert set(blocks) == {0, 1, 2}
    assert chosen.log_det == -np.inf
    assert chosen.log_prob is chosen.marginals is chosen.kl_estimate is None
    with pytest.warns(PoolWarning):
        several = select(pool, 4, method="sample", beta=1.0, fill="quality", size=9, rng=0)
    assert several.indices.shape == (9, 4)
    assert (np.diff(several.indices, axis=1) > 0).all()


# Options ------------------------------------------------------------------------------------


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "greedy"}, "method: expected 'map' or 'sample' or 'refresh', found 'greedy'"),
        ({"beta": "best"}, "beta: expected 'auto', found 'best'"),
        ({"beta": -0.1}, "beta: expected a finite number >= 0, found -0.1"),
        ({"size": 3}, 'size: expected none, found a value with method "map"'),
        ({"method": "sample", "size": 0}, "size: expected"),
        (
            {"method": "sample", "refine": True},
            'refine: expected none, found a value with method "',
        ),
        ({"method": "refresh", "keep": [1]}, "keep: expected none"),
        ({"method": "refresh", "smooth": "psis"}, "smooth: expected none"),
        ({"map_on": "law"}, "map_on: expected 'quality' or 'weight', found 'law'"),
        ({"fill": "copies"}, "fill: expected 'error' or 'quality', found 'copies'"),
        ({"method": "sample", "keep": [99]}, "keep: expected rows 0 to 59, found row 99"),
        ({"method": "sample", "rng": -1}, "rng: expected a generator, None or a whole number >= 0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError) as caught:
        select(even_pool(), 3, **options)
    assert message in str(caught.value)


# The frontier -------------------------------------------------------------------------------


def test_frontier_of_map():
    pool = even_pool()
    points = pareto(pool, 5)
    assert [point.beta for point in points] == [0.0, *np.geomspace(1e-3, 2, 16)]
    assert points[0].log_det > points[-1].log_det
    assert points[-1].quality == max(point.quality for point in points)
    for point in points:
        assert point.quality == pytest.approx(pool.logprob[point.indices].mean())
        assert 1 <= point.vendi <= 5
        better = [
            (other.quality > point.quality and other.vendi >= point.vendi)
            or (other.quality >= point.quality and other.vendi > point.vendi)
            for other in points
        ]
        assert point.dominated == any(better)
    assert not all(point.dominated for point in points)


def test_frontier_of_draws_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        points = pareto(even_pool(), 4, method="sample", betas=[1.0, 4.0], rng=0)
        again = pareto(even_pool(), 4, method="sample", betas=[1.0, 4.0], rng=0)
    assert points[0].ess == pytest.approx(60)
    assert points[1].ess < 16
    assert [point.quality for point in points] == [point.quality for point in again]


def test_quality_and_diversity_can_be_judged_by_others():
    pool = even_pool()
    other = np.random.default_rng(1).normal(size=(60, 4))
    value = np.arange(60.0)
    (point,) = pareto(pool, 3, betas=[0.1], quality=value, evaluate=other)
    assert point.quality == pytest.approx(value[point.indices].mean())
    rows = other[point.indices] / np.linalg.norm(other[point.indices], axis=1, keepdims=True)
    share = np.linalg.eigvalsh(rows @ rows.T / 3)
    assert point.vendi == pytest.approx(np.exp(-np.sum(share * np.log(share))))


@pytest.mark.unchecked
def test_bad_frontier_options_are_named():
    pool = even_pool()
    with pytest.raises(InputError, match="betas: expected at least 1, found none"):
        pareto(pool, 3, betas=[])
    with pytest.raises(InputError, match="evaluate: expected 60, found 2 rows"):
        pareto(pool, 3, evaluate=np.eye(2))
    with pytest.raises(InputError, match="quality: expected 'mean_logprob', found 'reward'"):
        pareto(pool, 3, quality="reward")
    with pytest.raises(InputError, match="method: expected 'map' or 'sample'"):
        pareto(pool, 3, method="refresh")


def test_best_pair_is_found_at_every_beta():
    """For two rows of three, greedy with exchange is the maximum over all pairs."""
    pool = even_pool(12, 4)
    for beta in (0.0, 0.05, 0.5):
        chosen = select(pool, 2, beta=beta, refine=True)
        quality = beta * pool.logprob

        def value(rows, quality=quality):
            f = pool.features[list(rows)]
            return quality[list(rows)].sum() + np.linalg.slogdet(f @ f.T)[1]

        others = [
            (row, other)
            for row, other in combinations(range(12), 2)
            if row in chosen.indices or other in chosen.indices
        ]
        assert value(chosen.indices) >= max(map(value, others)) - 1e-9
