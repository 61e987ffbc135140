import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from armillary import InputError
from dpp_sample import KDPP, RankError, log_esp
from dpp_sample.symmetric import log_inclusion


def example(n=9, d=6, spread=2.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), spread * rng.normal(size=n)


# The law, against every set written out -----------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize(("n", "d"), [(9, 6), (7, 11)])
def test_law_equals_brute_force(brute_force, n, d, k):
    features, weight = example(n, d)
    law = brute_force(features, weight, k)
    dpp = KDPP(features, weight, k=k)

    assert dpp.log_normalizer == pytest.approx(law.log_normalizer, abs=1e-11)
    np.testing.assert_allclose(dpp.marginals(), law.marginals, atol=1e-12)
    np.testing.assert_allclose(np.exp(dpp.log_prob(law.sets)), law.probability, atol=1e-12)


def test_eigenvalues_are_those_of_l(brute_force):
    features, weight = example()
    factor = np.exp(weight / 2)[:, None] * features
    dpp = KDPP(features, weight, k=3)

    expected = np.sort(np.linalg.eigvalsh(factor @ factor.T))[::-1][:6]
    np.testing.assert_allclose(np.exp(dpp.eigenvalues), expected, rtol=1e-10)
    assert log_esp(dpp.eigenvalues, 3)[-1, 3] == pytest.approx(dpp.log_normalizer, abs=1e-12)


@pytest.mark.parametrize(("n", "d", "k"), [(9, 6, 3), (5, 4, 3), (6, 4, 2)])
def test_draws_follow_the_law(brute_force, fit_p_value, n, d, k):
    """False alarm probability 1e-4 each; few cells and alike rows find small faults."""
    features, weight = example(n, d, spread=0.5)
    features += 1
    draws = KDPP(features, weight, k=k).sample(40_000, rng=1)
    assert fit_p_value(draws, brute_force(features, weight, k)) > 1e-4


def test_single_draws_follow_the_law(brute_force, fit_p_value):
    """False alarm probability 1e-4."""
    features, weight = example(6, 4)
    dpp = KDPP(features, weight, k=2)
    rng = np.random.default_rng(2)
    draws = np.array([dpp.sample(rng=rng) for _ in range(3_000)])
    assert fit_p_value(draws, brute_force(features, weight, 2)) > 1e-4


@pytest.mark.parametrize("k", [1, 5, 17, 40])
def test_marginals_sum_to_k(k):
    features, weight = example(200, 40, spread=4)
    marginals = KDPP(features, weight, k=k).marginals()
    assert marginals.sum() == pytest.approx(k, abs=1e-9)
    assert marginals.min() >= 0
    assert marginals.max() <= 1


def test_all_rows_are_drawn_when_k_is_n():
    features, weight = example(5, 8)
    dpp = KDPP(features, weight, k=5)
    assert dpp.sample(rng=0).tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(dpp.marginals(), 1.0, atol=1e-12)
    assert dpp.log_prob(np.arange(5)) == pytest.approx(0.0, abs=1e-10)


def test_one_row_is_drawn_by_weight():
    features, weight = example(50, 3)
    expected = np.exp(weight) * (features**2).sum(axis=1)
    np.testing.assert_allclose(
        KDPP(features, weight, k=1).marginals(), expected / expected.sum(), atol=1e-13
    )


# What must not change the law ---------------------------------------------------------------


@given(st.permutations(range(8)), st.integers(1, 4))
@settings(max_examples=25)
def test_order_of_rows_does_not_matter(order, k):
    features, weight = example(8, 4)
    order = np.array(order)
    before, after = KDPP(features, weight, k=k), KDPP(features[order], weight[order], k=k)
    np.testing.assert_allclose(after.marginals(), before.marginals()[order], atol=1e-12)
    assert after.log_normalizer == pytest.approx(before.log_normalizer, abs=1e-11)


@given(st.floats(-1e5, 1e5), st.integers(1, 4))
@settings(max_examples=25)
def test_only_differences_of_log_weights_matter(shift, k):
    features, weight = example(8, 4)
    before, after = KDPP(features, weight, k=k), KDPP(features, weight + shift, k=k)
    # adding a large number costs the weights their last digits
    np.testing.assert_allclose(after.marginals(), before.marginals(), atol=1e-9)
    moved = after.log_normalizer - before.log_normalizer
    assert moved == pytest.approx(k * shift, rel=1e-12, abs=1e-9)


@given(st.lists(st.floats(-80, 80), min_size=8, max_size=8))
@settings(max_examples=25)
def test_norms_are_weights(log_scale):
    features, weight = example(8, 4)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    log_scale = np.array(log_scale)
    scaled = KDPP(np.exp(log_scale)[:, None] * features, weight, k=3)
    weighed = KDPP(features, weight + 2 * log_scale, k=3)
    np.testing.assert_allclose(scaled.marginals(), weighed.marginals(), atol=1e-9)
    assert scaled.log_normalizer == pytest.approx(weighed.log_normalizer, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_are_upcast(dtype):
    features, weight = example(20, 5)
    narrow = features.astype(dtype)
    expected = KDPP(narrow.astype(float), weight, k=3).marginals()
    np.testing.assert_array_equal(KDPP(narrow, weight, k=3).marginals(), expected)


# Draws --------------------------------------------------------------------------------------


def test_draws_are_sets_in_ascending_order():
    features, weight = example(300, 30)
    draws = KDPP(features, weight, k=12).sample(500, rng=0)
    assert draws.shape == (500, 12)
    assert (np.diff(draws, axis=1) > 0).all()
    assert draws.min() >= 0
    assert draws.max() < 300


def test_same_seed_same_draws():
    features, weight = example(60, 10)
    dpp, again = (KDPP(features, weight, k=4) for _ in range(2))
    np.testing.assert_array_equal(dpp.sample(50, rng=7), again.sample(50, rng=7))
    np.testing.assert_array_equal(dpp.sample(rng=7), again.sample(rng=np.random.default_rng(7)))
    assert (dpp.sample(50, rng=7) != dpp.sample(50, rng=8)).any()


def test_more_draws_than_fit_in_one_block(monkeypatch, brute_force, fit_p_value):
    """Many small blocks, proposals used up in many of them. False alarm probability 1e-4."""
    monkeypatch.setattr("dpp_sample.kdpp._BLOCK", 100)
    monkeypatch.setattr(KDPP, "_proposals", 2)
    features, weight = example(6, 5)
    draws = KDPP(features, weight, k=4).sample(3_000, rng=0)
    assert fit_p_value(draws, brute_force(features, weight, 4)) > 1e-4


def test_copies_are_never_drawn_together(pool_of_copies):
    dpp = KDPP(pool_of_copies, -np.arange(60.0), k=4)
    draws = dpp.sample(4_000, rng=0) // 10
    assert (np.diff(draws, axis=1) > 0).all()


def test_pool_of_copies(pool_of_copies):
    dpp = KDPP(pool_of_copies, k=6)
    assert dpp.log_normalizer == pytest.approx(8.46594639, abs=1e-8)
    np.testing.assert_allclose(dpp.marginals(), 0.1, atol=1e-12)
    blocks = dpp.sample(200, rng=0) // 10
    assert (blocks == np.arange(6)).all()
    with pytest.raises(RankError, match="rank 6 "):
        KDPP(pool_of_copies, k=7)


def test_probabilities_that_do_not_sum_to_one():
    """The errors of DPPy issues 61 and 70 came with ill-conditioned kernels."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 30)) * np.geomspace(1, 1e-6, 30)
    dpp = KDPP(features, k=12)
    assert dpp.marginals().sum() == pytest.approx(12, abs=1e-8)
    draws = dpp.sample(300, rng=0)
    assert np.isfinite(dpp.log_prob(draws)).all()


# log_prob -----------------------------------------------------------------------------------


def test_sets_of_no_volume_have_no_probability(pool_of_copies):
    dpp = KDPP(pool_of_copies, k=2)
    with np.errstate(all="raise"):
        logs = dpp.log_prob(np.array([[3, 3], [3, 7], [3, 13]]))
    assert logs[:2].tolist() == [-np.inf, -np.inf]
    assert np.isfinite(logs[2])


def test_log_prob_takes_any_shape_and_order():
    features, weight = example()
    dpp = KDPP(features, weight, k=3)
    sets = np.array([[[0, 1, 2], [3, 4, 5]], [[2, 1, 0], [5, 3, 4]]])
    logs = dpp.log_prob(sets)
    assert logs.shape == (2, 2)
    np.testing.assert_allclose(logs[0], logs[1], atol=1e-12)
    assert dpp.log_prob(sets[0, 0]).shape == ()
    assert dpp.log_prob(sets[:0]).shape == (0, 2)


@pytest.mark.unchecked
def test_log_prob_refuses_what_is_no_set_of_rows():
    dpp = KDPP(*example(), k=3)
    with pytest.raises(InputError, match=r"sets: expected \(\.\.\., 3\), found shape \(2,\)"):
        dpp.log_prob(np.array([0, 1]))
    with pytest.raises(InputError, match="sets: expected rows 0 to 8, found row 9"):
        dpp.log_prob(np.array([0, 1, 9]))
    with pytest.raises(InputError, match="found row -1"):
        dpp.log_prob(np.array([-1, 1, 2]))
    with pytest.raises(TypeError, match="whole numbers"):
        dpp.log_prob(np.array([0.0, 1.0, 2.0]))


# Elementary symmetric polynomials -----------------------------------------------------------


def test_symmetric_polynomials_in_many_digits():
    """DPPy issue 80: unstable where the values are spread; here over 200 nats."""
    rng = np.random.default_rng(0)
    logs = 40 * rng.normal(size=60)
    table = log_esp(logs, 8)
    with mpmath.workdps(80):
        exact = [mpmath.mpf(1)] + [mpmath.mpf(0)] * 8
        for value in logs:
            x = mpmath.exp(mpmath.mpf(float(value)))
            exact = [exact[0]] + [exact[i] + x * exact[i - 1] for i in range(1, 9)]
        expected = [float(mpmath.log(e)) for e in exact]
    np.testing.assert_allclose(table[-1], expected, rtol=1e-13, atol=1e-12)
    assert (np.isneginf(table) == (np.arange(9) > np.arange(61)[:, None])).all()


def test_symmetric_polynomials_of_ten_thousand_values():
    """Equal values give binomial coefficients."""
    n, orders = 10_000, np.arange(51)
    expected = gammaln(n + 1) - gammaln(orders + 1) - gammaln(n - orders + 1) - orders * 3.0
    np.testing.assert_allclose(log_esp(np.full(n, -3.0), 50)[-1], expected, rtol=1e-11, atol=1e-9)


def test_symmetric_polynomials_of_zeros():
    with np.errstate(all="raise"):
        table = log_esp(np.array([-np.inf, 0.0, -np.inf]), 2)
    np.testing.assert_array_equal(table[-1], [0.0, 0.0, -np.inf])
    assert not np.isnan(table).any()


@given(st.lists(st.floats(-300, 300), min_size=1, max_size=20), st.data())
@settings(max_examples=50)
def test_inclusion_probabilities_sum_to_k(logs, data):
    k = data.draw(st.integers(1, len(logs)))
    probability = np.exp(log_inclusion(np.array(logs), k))
    assert probability.sum() == pytest.approx(k, abs=1e-10)
    assert probability.max() <= 1 + 1e-11


# Bad input ----------------------------------------------------------------------------------


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("features", "weight", "k", "message"),
    [
        (np.eye(3), None, 0, "k: expected 1 to 3, the number of rows, found 0"),
        (np.eye(3), None, 4, "k: expected 1 to 3, the number of rows, found 4"),
        (np.ones(3), None, 1, "features: expected rows x dimensions, found shape (3,)"),
        (np.ones((0, 3)), None, 1, "features: expected rows x dimensions, found shape (0, 3)"),
        (
            np.array([[1.0, 0], [0, 0]]),
            None,
            1,
            "row 1: features: expected a finite norm above 0, found norm 0",
        ),
        (
            np.array([[1.0, np.nan], [0, 1]]),
            None,
            1,
            "row 0: features: expected a finite norm above 0, found norm nan",
        ),
        (np.eye(3), np.zeros(2), 1, "log_weight: expected (3,), one number per row, found shape"),
        (
            np.eye(3),
            np.array([0, -np.inf, 0]),
            1,
            "row 1: log_weight: expected a finite number, found -inf",
        ),
    ],
)
def test_bad_input_is_named(features, weight, k, message):
    with pytest.raises(InputError) as caught:
        KDPP(features, weight, k=k)
    assert message in str(caught.value)


@pytest.mark.unchecked
def test_what_is_no_number_is_a_type_error():
    with pytest.raises(TypeError, match="k: expected a whole number, found 2.5"):
        KDPP(np.eye(3), k=2.5)
    with pytest.raises(TypeError, match="features: expected real numbers"):
        KDPP(np.array([["a", "b"]]), k=1)
    with pytest.raises(TypeError, match="features: expected real numbers, found dtype complex"):
        KDPP(np.eye(2) * 1j, k=1)


def test_rank_error_names_rank_k_and_rows():
    with pytest.raises(RankError) as caught:
        KDPP(np.ones((5, 3)), k=2)
    assert str(caught.value) == (
        "features: expected a rank of at least k = 2, found rank 1 among 5 distinct rows"
        ' (add lexical features or fill="quality")'
    )
    assert caught.value.rank == 1
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, ValueError)
