import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armillary import InputError
from dpp_sample import KDPP, PoolWarning, make_pool
from dpp_sample.weights import (
    effective_size,
    log_sum_by,
    map_beta,
    pareto_smoothed,
    sampling_beta,
)

A, B, C = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8]


def pool_of(texts, logprob, **options):
    features = np.array([{"a": A, "b": B, "c": C}[text[0].lower()] for text in texts])
    return make_pool(texts, features, kernel=None, logprob=np.array(logprob), **options)


# Merging ------------------------------------------------------------------------------------


def test_copies_are_merged_in_order_of_first_appearance():
    pool = pool_of(["b", "a", "b", "c", "a", "b"], [-1.0, -2.0, -1.0, -3.0, -2.0, -1.0])
    assert pool.texts == ["b", "a", "c"]
    assert pool.index == [0, 1, 3]
    assert pool.counts.tolist() == [3, 2, 1]
    assert pool.row.tolist() == [0, 1, 0, 2, 1, 0]
    np.testing.assert_array_equal(pool.features, [B, A, C])
    weights = pool.at(2.0)
    np.testing.assert_allclose(weights.log_quality, [-2.0, -4.0, -6.0])
    np.testing.assert_allclose(weights.log_weight, [-1 + np.log(3), -2 + np.log(2), -3])
    np.testing.assert_allclose(weights.share2, [1 / 3, 1 / 2, 1])


@given(st.lists(st.integers(0, 4), min_size=4, max_size=14), st.integers(0, 1000))
@settings(max_examples=40)
def test_merging_is_exact(rows, seed):
    """The merged law is that of the copies as rows of their own, summed over which copy it was."""
    rng = np.random.default_rng(seed)
    rows = np.array([0, 1, *rows])
    directions, log_w = rng.normal(size=(5, 4)), 3 * rng.normal(size=len(rows))
    pool = make_pool(
        [str(row) for row in rows],
        directions[rows],
        kernel=None,
        logprob=np.full(len(rows), -1.0),
        proposal_logprob=-30.0 - log_w,  # log w = beta * -1 + 30 + log_w, copies differ
    )
    merged = KDPP(pool.features, pool.at(1.0).log_weight, k=2)
    apart = KDPP(directions[rows], pool.draw_log_weight(1.0), k=2)
    assert merged.log_normalizer == pytest.approx(apart.log_normalizer, abs=1e-10)
    np.testing.assert_allclose(
        merged.marginals(), np.bincount(pool.row, apart.marginals()), atol=1e-10
    )


def test_token_ids_tell_strings_apart_where_there_are_any():
    pool = pool_of(["a", "a", "a"], [-1.0, -2.0, -1.0], token_ids=[[5], [3, 2], [5]])
    assert pool.counts.tolist() == [2, 1]
    assert pool.texts == ["a", "a"]
    np.testing.assert_allclose(pool.at(1.0).log_quality, [-1.0, -2.0])


def test_canonical_forms_add_their_distinct_strings():
    """Two spellings, one of them drawn twice: quality counts each once, weight each draw."""
    pool = pool_of(["A", "b", "a", "A"], [-2.0, -3.0, -1.0, -2.0], normalize="casefold")
    assert pool.texts == ["a", "b"]
    assert pool.index == [2, 1]
    assert pool.counts.tolist() == [3, 1]
    weights = pool.at(2.0)
    np.testing.assert_allclose(weights.log_quality, [np.logaddexp(-4, -2), -6])
    np.testing.assert_allclose(weights.log_weight, [np.logaddexp.reduce([-2.0, -1.0, -2.0]), -3.0])


def test_a_function_is_a_canonical_form():
    pool = pool_of(["a1", "a2", "b1"], [-1.0, -1.0, -1.0], normalize=lambda text: text[0])
    assert pool.texts == ["a1", "b1"]


def test_unicode_forms_are_distinct_unless_merged():
    texts, logprob = ["a\u00e9", "ae\u0301"], [-1.0, -2.0]
    assert len(pool_of(texts, logprob)) == 2
    assert len(pool_of(texts, logprob, normalize="nfkc")) == 1


def test_empty_text_is_a_string_of_its_own():
    pool = make_pool(["", "a", ""], np.eye(3)[[0, 1, 0]], logprob=np.array([-1.0, -2.0, -1.0]))
    assert pool.texts == ["", "a"]


# Kinds of pool ------------------------------------------------------------------------------


def test_proposal_is_divided_out():
    pool = pool_of(["a", "b"], [-1.0, -4.0], proposal_logprob=np.array([-2.0, -3.0]))
    np.testing.assert_allclose(pool.at(1.5).log_weight, [-1.5 + 2, -6 + 3])
    np.testing.assert_allclose(pool.at(1.5).log_quality, [-1.5, -6])


def test_rewards_are_added():
    pool = pool_of(["a", "b"], [-1.0, -4.0], reward=np.array([0.0, 2.0]))
    weights = pool.at(1.0, lam=3.0)
    np.testing.assert_allclose(weights.log_quality, [-1, 2])
    np.testing.assert_allclose(weights.log_weight, [0, 6])
    assert weights.logprob_sd == pytest.approx(1.5)
    assert weights.reward_sd == pytest.approx(3.0)


def test_an_enumerated_pool_ignores_copies_and_has_no_diagnostics():
    pool = pool_of(["a", "b", "a"], [-1.0, -4.0, -1.0], pool_kind="enumerated")
    weights = pool.at(2.0)
    np.testing.assert_allclose(weights.log_weight, [-2, -8])
    assert math.isnan(weights.ess)
    assert math.isnan(weights.pareto_k)


def test_no_logprobs_mean_equal_quality_and_a_warning():
    with pytest.warns(PoolWarning, match="counts as enumerated"):
        pool = make_pool(["a", "b", "a"], np.eye(3)[[0, 1, 0]])
    assert pool.kind == "enumerated"
    np.testing.assert_array_equal(pool.at(1.0).log_weight, [0, 0])


def test_gumbel_top_k_weights_are_unbiased():
    """E of the sum of w over the pool is the sum of q; false alarm probability 1e-6."""
    rng = np.random.default_rng(0)
    log_r = rng.normal(size=12)
    log_r -= np.logaddexp.reduce(log_r)
    log_p = log_r - rng.uniform(0, 1, size=12)
    totals = []
    for _ in range(600):
        perturbed = log_r + rng.gumbel(size=12)
        order = np.argsort(-perturbed)
        drawn = order[:6]
        pool = make_pool(
            [str(row) for row in drawn],
            np.eye(12)[drawn],
            kernel=None,
            logprob=log_p[drawn],
            proposal_logprob=log_r[drawn],
            pool_kind="gumbel_topk",
            kappa=float(perturbed[order[6]]),
        )
        totals.append(np.exp(pool.at(1.0).log_weight).sum())
    error = np.std(totals) / math.sqrt(len(totals))
    assert abs(np.mean(totals) - np.exp(log_p).sum()) < 4.9 * error


def test_gumbel_inclusion_of_rare_strings_loses_no_digits():
    pool = pool_of(["a", "b", "c"], [-20.0, -50.0, -0.5], pool_kind="gumbel_topk", kappa=-10.0)
    exact = [math.log(-math.expm1(-math.exp(-10))), -40.0, 0.0]
    np.testing.assert_allclose(pool.at(0.0).log_weight, -np.array(exact), rtol=1e-12, atol=1e-12)


def test_gumbel_inclusion_beyond_float64_is_finite():
    pool = pool_of(["a", "b"], [-900.0, -0.5], pool_kind="gumbel_topk", kappa=-10.0)
    # log w = log q - (log r - kappa), r = p at beta 1
    assert pool.at(1.0).log_weight[0] == pytest.approx(-10.0, abs=1e-9)


def test_length_normalisation_divides_the_quality_alone():
    pool = pool_of(["a", "b"], [-6.0, -4.0], length_normalize=True, n_tokens=np.array([3, 1]))
    np.testing.assert_allclose(pool.at(2.0).log_quality, [-4, -8])
    np.testing.assert_allclose(pool.at(2.0).log_weight, [-4 + 6, -8 + 4])


# Feature maps -------------------------------------------------------------------------------


def test_kernels_are_applied_to_embeddings():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 4))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    texts, logprob = list("abcdef"), np.full(6, -1.0)

    def gram(kernel):
        features = make_pool(texts, x, kernel=kernel, logprob=logprob).features
        return features @ features.T

    np.testing.assert_allclose(gram("cosine"), unit @ unit.T, atol=1e-12)
    np.testing.assert_allclose(gram("shifted"), (1 + unit @ unit.T) / 2, atol=1e-12)
    np.testing.assert_allclose(np.diag(gram("rbf")), 1, atol=1e-9)
    np.testing.assert_allclose(gram(None), x @ x.T, atol=1e-12)
    np.testing.assert_allclose(gram(lambda rows: 2 * rows), 4 * x @ x.T, atol=1e-12)


# Effective size and tail --------------------------------------------------------------------


def test_effective_size():
    assert effective_size(np.full(50, -1e5)) == pytest.approx(50)
    assert effective_size(np.array([0.0, -1e4, -1e4])) == pytest.approx(1)
    w = np.random.default_rng(0).gamma(1, size=30)
    assert effective_size(np.log(w) - 700) == pytest.approx(w.sum() ** 2 / (w**2).sum())


# ArviZ 0.23.4's psislw on `scale * default_rng(n).gumbel(size=n)`; test_theory asks it itself.
ARVIZ_SHAPES = {
    (40, 0.3): 0.08366186027288805,
    (40, 3.0): 0.8443951273297997,
    (200, 1.0): 0.5329620236747762,
    (1000, 1.0): 0.8700214689595517,
    (1000, 30.0): 21.694989740466827,
}


@pytest.mark.parametrize(("n", "scale"), ARVIZ_SHAPES)
def test_pareto_shape_is_that_of_arviz(n, scale):
    shape, _ = pareto_smoothed(scale * np.random.default_rng(n).gumbel(size=n))
    assert shape == pytest.approx(ARVIZ_SHAPES[n, scale], rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 10, 24, 400])
def test_equal_weights_have_no_tail(n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        k, smoothed = pareto_smoothed(np.full(n, -3.0))
    assert math.isnan(k)
    np.testing.assert_array_equal(smoothed, np.full(n, -3.0))


def test_ties_with_the_cutoff_leave_the_tail():
    """Copies tie: 196 equal draws and four above leave too few for a tail."""
    logs = np.concatenate([np.zeros(196), [1.0, 2.0, 3.0, 4.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(pareto_smoothed(logs)[0])
        # six above: a tail of six, whose quartile is not zero
        assert math.isfinite(pareto_smoothed(np.append(logs, [5.0, 6.0]))[0])
        # and all of the tail tied
        assert math.isfinite(pareto_smoothed(np.repeat([0.0, 1.0], [190, 10]))[0])
        # most weights below the smallest float
        assert not math.isinf(pareto_smoothed(-900.0 * np.arange(100))[0])


def test_smoothing_is_what_psis_asks_for():
    rng = np.random.default_rng(0)
    texts = [f"{row}" for row in range(200)]
    pool = make_pool(texts, rng.normal(size=(200, 5)), logprob=-10 * rng.gamma(2, size=200))
    plain, smooth = pool.at(1.4), pool.at(1.4, smooth="psis")
    assert smooth.pareto_k == plain.pareto_k
    assert not np.allclose(smooth.log_weight, plain.log_weight)
    expected = pareto_smoothed(pool.draw_log_weight(1.4))[1]
    np.testing.assert_allclose(smooth.log_weight, expected)
    with pytest.raises(InputError, match="smooth: expected 'none' or 'psis', found 'psi'"):
        pool.at(1.0, smooth="psi")


# Automatic beta -----------------------------------------------------------------------------


def test_sampling_beta_is_the_largest_that_keeps_the_weights_even():
    log_p = -10 * np.random.default_rng(0).gamma(3, size=400)
    beta, reached = sampling_beta(lambda beta: (beta - 1) * log_p, 5)
    assert reached
    assert 1 < beta < 4
    assert effective_size((beta - 1) * log_p) == pytest.approx(100, rel=1e-6)


def test_sampling_beta_takes_the_last_crossing():
    """An effective size that dips below the mark and returns."""

    def weights(beta):
        return np.where(np.arange(100) < (5 if 1.2 < beta < 1.5 or beta > 2 else 60), 0.0, -50.0)

    beta, reached = sampling_beta(weights, 5)
    assert reached
    assert beta == pytest.approx(2, abs=1e-6)


def test_sampling_beta_at_its_ends():
    assert sampling_beta(lambda _: np.zeros(100), 5) == (4.0, True)
    assert sampling_beta(lambda _: np.zeros(20), 5) == (4.0, True)  # exactly 4 k draws
    assert sampling_beta(lambda _: np.zeros(19), 5) == (1.0, False)
    steep = np.arange(100.0)
    assert sampling_beta(lambda beta: beta * steep, 5) == (1.0, False)


def test_weights_equal_but_for_rounding_reach_the_size_asked_for():
    logs = 30 * np.random.default_rng(0).normal(size=20)
    equal = (logs - 0.3) - logs  # 20 draws, k = 5: all of them are needed
    assert effective_size(equal) < 20
    assert sampling_beta(lambda beta: equal, 5) == (4.0, True)


def test_map_beta():
    log_p = np.array([-10.0, -20.0, -30.0, -40.0, -50.0])
    assert map_beta(log_p, 4) == pytest.approx(4 / 30 / 4)
    assert map_beta(np.full(5, -3.0), 4) == 1.0
    assert map_beta(1e9 * log_p, 4) == 1e-3
    assert map_beta(1e-9 * log_p, 4) == 4.0


def test_sums_by_group_keep_any_range():
    sums = log_sum_by(np.array([0, 1, 0, 1]), np.array([-2000.0, 5.0, -2000.0, -1e6]), 2)
    np.testing.assert_allclose(sums, [-2000 + np.log(2), 5.0])


# Bad input ----------------------------------------------------------------------------------


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"logprob": [-1, 3.2]}, "row 1: logprob: expected a finite number <= 0, found 3.2"),
        ({"logprob": [-1, None]}, "row 1: logprob: expected a finite number, found nan"),
        ({"logprob": [-1, -math.inf]}, "row 1: logprob: expected a finite number, found -inf"),
        ({"logprob": [-1]}, "logprob: expected (2,), one number per row, found shape (1,)"),
        (
            {"proposal_logprob": [0.5, -1]},
            "row 0: proposal_logprob: expected a finite number <= 0, found 0.5",
        ),
        ({"reward": [0, math.nan]}, "row 1: reward: expected a finite number, found nan"),
        ({"pool_kind": "beam"}, "pool_kind: expected 'iid' or 'enumerated' or 'gumbel_topk'"),
        ({"pool_kind": "gumbel_topk"}, 'kappa: expected a number for "gumbel_topk", else None'),
        ({"kappa": -3.0}, 'kappa: expected a number for "gumbel_topk", else None, found -3.0'),
        ({"normalize": "sqll"}, "normalize: expected strip or nfkc or casefold or sql"),
        ({"length_normalize": True}, "n_tokens: expected the tokens of each draw"),
        (
            {"length_normalize": True, "n_tokens": [2, 0]},
            "row 1: n_tokens: expected >= 1, found 0.0",
        ),
        ({"token_ids": [[1]]}, "token_ids: expected 2, one a text, found 1 rows"),
        ({"kernel": "linear"}, "kernel: expected 'shifted' or 'cosine' or 'rbf', found 'linear'"),
    ],
)
def test_bad_input_is_named(options, message):
    options = {"logprob": [-1.0, -2.0], **options}
    with pytest.raises(InputError) as caught:
        make_pool(["a", "b"], np.eye(2), **options)
    assert message in str(caught.value)


@pytest.mark.unchecked
def test_bad_features_are_named():
    logprob = [-1.0, -2.0]
    with pytest.raises(InputError, match="row 1: features: .* found norm 0"):
        make_pool(["a", "b"], np.array([[1.0, 0], [0, 0]]), logprob=logprob)
    with pytest.raises(InputError, match="row 0: features: .* found norm inf"):
        make_pool(["a", "b"], np.array([[np.inf, 0], [0, 1]]), logprob=logprob)
    with pytest.raises(InputError, match="features: expected 3, one a text, found 2 rows"):
        make_pool(["a", "b", "c"], np.eye(2), logprob=[-1.0] * 3)
    with pytest.raises(TypeError, match="found one str"):
        make_pool("ab", np.eye(2), logprob=logprob)


def test_a_repeated_string_cannot_be_drawn_without_replacement():
    with pytest.raises(InputError, match="the same string in rows 0 and 2"):
        pool_of(["a", "b", "a"], [-1.0, -2.0, -1.0], pool_kind="gumbel_topk", kappa=-1.0)


def test_rounding_above_zero_is_zero():
    pool = pool_of(["a", "b"], [9e-5, -1.0])
    assert pool.logprob.tolist() == [0.0, -1.0]


@pytest.mark.parametrize(("beta", "lam"), [(-1.0, 1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_bad_beta_and_lam_are_named(beta, lam):
    with pytest.raises(InputError, match="finite number"):
        pool_of(["a", "b"], [-1.0, -2.0]).at(beta, lam)
