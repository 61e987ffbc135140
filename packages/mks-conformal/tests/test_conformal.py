import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mks_conformal import UnboundedRegionWarning, conformal_quantile
from mks_conformal.conformal import Calibration, misses_allowed, rows_needed

ALPHAS = [0.1, 0.05, 0.02, 0.07, 0.3, 1 - 0.9, 1 - 0.95]


def quiet_quantile(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnboundedRegionWarning)
        return conformal_quantile(*args, **options)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_quantile_is_the_rank_rule_in_exact_arithmetic(alpha):
    """Rank ceil((n+1)(1-alpha)) with alpha as the user meant it; inf beyond n, never clamped."""
    from fractions import Fraction
    from math import ceil

    meant = Fraction(str(round(alpha, 10)))
    for n in range(5, 401):
        rank = ceil((n + 1) * (1 - meant))
        expected = float(rank) if rank <= n else np.inf
        assert quiet_quantile(np.arange(1.0, n + 1), alpha) == expected
        assert np.isinf(expected) == (n < rows_needed(alpha))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_p_above_alpha_exactly_inside(alpha):
    """Integers decide: candidates at, just below and just above every calibration score."""
    for n in range(5, 401, 3):
        scores = np.arange(1.0, n + 1)
        calibration = Calibration(scores)
        s = np.concatenate([scores, scores - 0.5, scores + 0.5, [np.inf]])
        inside = calibration.inside(s, alpha)
        q = calibration.quantile(alpha)[0]
        np.testing.assert_array_equal(inside, s <= q)
        counts = np.rint(calibration.pvalue(s) * (n + 1)).astype(int)
        np.testing.assert_array_equal(inside, counts > misses_allowed(n, alpha))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_weighted_membership_agrees_with_the_weighted_quantile(alpha, rng):
    for n in (5, 19, 60):
        w, t = rng.exponential(size=n) * (rng.random(n) < 0.8), rng.exponential(size=7)
        w[0] += 0.1
        calibration = Calibration(np.arange(1.0, n + 1), w)
        q = calibration.quantile(alpha, t)
        for s in np.arange(0.5, n + 2, 0.5):
            candidate = np.full(7, s)
            inside = calibration.inside(candidate, alpha, t)
            np.testing.assert_array_equal(inside, candidate <= q)
            p = calibration.pvalue(candidate, t)
            expected = (t + w[np.arange(1, n + 1) >= s].sum()) / (t + w.sum())
            np.testing.assert_allclose(p, expected, rtol=1e-12)
            np.testing.assert_array_equal(inside, p > alpha + 1e-9)


def test_equal_weights_are_no_weights(rng):
    for n in (9, 19, 50):
        scores = rng.normal(size=n)
        for alpha in ALPHAS:
            plain = quiet_quantile(scores, alpha)
            assert quiet_quantile(scores, alpha, weights=np.full(n, 3.0), test_weight=3.0) == plain


def test_ties_within_rounding_count(rng):
    scores = np.repeat(rng.normal(size=5), 4)
    calibration = Calibration(scores)
    noisy = scores * (1 + 1e-15)
    expected = [(1 + (scores >= s).sum()) / 21 for s in scores]
    np.testing.assert_allclose(calibration.pvalue(noisy), expected)
    # rounding is relative to the size of the prior, not of a small score
    tiny = Calibration(np.array([1e-30, 2e-30]), None, resolution=1e-30)
    np.testing.assert_allclose(tiny.pvalue(np.array([1.5e-30])), 2 / 3)


@pytest.mark.parametrize(
    ("alpha", "needed"), [(0.1, 9), (1 - 0.9, 9), (0.05, 19), (0.02, 49), (0.07, 14)]
)
def test_too_few_rows_say_how_many(alpha, needed):
    assert rows_needed(alpha) == needed
    with pytest.warns(UnboundedRegionWarning, match=f"at least {needed} rows"):
        assert conformal_quantile(np.arange(needed - 1.0), alpha) == np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(conformal_quantile(np.arange(float(needed)), alpha))


class TestTheWeightsDecideWhetherTheQuantileExists:
    """cases.md; deel-ai/puncc issue 21 and pull request 30."""

    def test_a_few_rows_and_a_light_query(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            q = conformal_quantile(np.arange(1.0, 6), 0.1, weights=np.ones(5), test_weight=0.1)
        assert q == 5.0

    def test_a_few_rows_and_an_equal_query(self):
        with pytest.warns(UnboundedRegionWarning, match="weight"):
            q = conformal_quantile(np.arange(1.0, 6), 0.1, weights=np.ones(5), test_weight=1.0)
        assert q == np.inf

    def test_many_rows_and_a_heavy_query(self):
        s = np.arange(1.0, 101)
        with pytest.warns(UnboundedRegionWarning):
            assert conformal_quantile(s, 0.1, weights=np.ones(100), test_weight=20.0) == np.inf

    def test_rows_of_no_weight(self):
        w = np.repeat([0.0, 1.0], 50)
        assert conformal_quantile(np.arange(1.0, 101), 0.1, weights=w, test_weight=1.0) == 96.0

    @pytest.mark.parametrize("w", [np.zeros(5), [1, 1, np.nan, 1, 1], [1, 1, -1, 1, 1]])
    def test_useless_weights_are_refused(self, w):
        with pytest.raises(ValueError, match="weights"):
            conformal_quantile(np.arange(1.0, 6), 0.1, weights=w, test_weight=1.0)

    @pytest.mark.parametrize("t", [-1.0, np.nan, np.inf])
    def test_useless_query_weights_are_refused(self, t):
        with pytest.raises(ValueError, match="test_weight"):
            conformal_quantile(np.arange(1.0, 6), 0.1, weights=np.ones(5), test_weight=t)

    def test_one_without_the_other_is_refused(self):
        with pytest.raises(ValueError, match="weights alone"):
            conformal_quantile(np.arange(1.0, 6), 0.1, weights=np.ones(5))
        with pytest.raises(ValueError, match="test_weight alone"):
            conformal_quantile(np.arange(1.0, 6), 0.1, test_weight=1.0)
        with pytest.raises(ValueError, match="weights: expected 5 value"):
            conformal_quantile(np.arange(1.0, 6), 0.1, weights=np.ones(4), test_weight=1.0)


@pytest.mark.unchecked
@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, np.nan, "0.1"])
def test_alpha_out_of_range(alpha):
    with pytest.raises(ValueError, match="alpha: expected a number strictly between 0 and 1"):
        conformal_quantile(np.arange(20.0), alpha)


def test_nan_scores_are_refused():
    with pytest.raises(ValueError, match="scores: row 2.*NaN"):
        conformal_quantile([1.0, 2.0, np.nan], 0.1)


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.integers(0, 6), min_size=1, max_size=40),
    alpha=st.floats(0.01, 0.6),
    weight=st.floats(0.01, 5),
)
def test_mass_at_or_below_the_quantile(scores, alpha, weight):
    """The definition: the smallest score that leaves at most alpha of all mass above it."""
    s = np.sort(np.array(scores, dtype=float))
    q = quiet_quantile(s, alpha, weights=np.ones(len(s)), test_weight=weight)
    total = len(s) + weight
    assert (s > q).sum() + (weight if np.isfinite(q) else 0) <= alpha * total * (
        1 + 1e-6
    ) or q == np.inf
    below = s[s < q]
    if len(below):
        assert (s > below[-1]).sum() + weight > alpha * total * (1 - 1e-6)
