"""Volumes against closed forms, with the closed forms switched off."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln

from mks_conformal import (
    MultivariateKernelScore,
    PlateauWarning,
    VolumeWarning,
    box_score,
    ellipsoid_score,
    region_volume,
)
from mks_conformal.bounds import intervals
from mks_conformal.kernel_score import generator_from
from mks_conformal.proposal import explore, proposal_for, sample_from
from mks_conformal.volume import volume_of


class Ball:
    """A user's own score: the norm."""

    def score_samples(self, R):
        return np.linalg.norm(R, axis=1)


def sampled(score, q, **options):
    """The volume by the sampler alone."""
    return volume_of(replace(score.body(q), closed=None), **options)


@pytest.mark.parametrize("d", [2, 5, 10, 16])
@pytest.mark.parametrize("kind", [ellipsoid_score, box_score])
def test_sampler_against_closed_forms(kind, d):
    """Within 3 se; the cube in 16 dimensions within 4."""
    rng = np.random.default_rng(d)
    R = rng.normal(size=(500, d)) * rng.lognormal(size=d)
    score = kind(R)
    q = float(np.quantile(score.score_samples(R), 0.9))
    exact = region_volume(score, q, R)
    assert exact.se == 0
    estimate = sampled(score, q, rtol=0.12 if d == 16 else 0.05, rng=3)
    limit = 4 if (d, kind) == (16, box_score) else 3
    assert estimate.se <= 0.12 * estimate.value
    assert abs(estimate.value - exact.value) <= limit * estimate.se


def test_closed_forms():
    rng = np.random.default_rng(0)
    R = rng.normal(size=(50, 3)) * [1.0, 2.0, 3.0]
    C = np.cov(R.T, bias=True)
    log_ball = 1.5 * np.log(np.pi) - gammaln(2.5)
    expected = log_ball + 0.5 * np.linalg.slogdet(C)[1] + 1.5 * np.log(4.0)
    assert region_volume(ellipsoid_score(R), 4.0, R).log_value == pytest.approx(expected, rel=1e-12)
    expected = np.prod(2 * 1.5 * R.std(0))
    assert region_volume(box_score(R), 1.5, R).value == pytest.approx(expected, rel=1e-12)


def test_a_linear_kernel_is_an_ellipsoid(rng):
    """The score is a quadratic everywhere, so nothing is sampled."""
    R = rng.normal(size=(80, 3))
    score = MultivariateKernelScore("linear", bandwidth=1.0, lam=0.1, gamma=1.0).fit(R)
    q = float(np.quantile(score.score_samples(R), 0.9))
    exact = region_volume(score, q, R)
    assert (exact.se, exact.plateau) == (0.0, False)
    estimate = sampled(score, q, rng=0)
    assert abs(estimate.value - exact.value) <= 4 * estimate.se


def test_a_users_score_needs_no_more_than_score_samples(rng):
    R = rng.normal(size=(100, 4))
    estimate = region_volume(Ball(), 2.0, R, rng=0)
    exact = np.pi**2 / 2 * 2.0**4
    assert abs(estimate.value - exact) <= 4 * estimate.se


@pytest.mark.parametrize("d", [2, 4])
def test_kernel_region_against_plain_monte_carlo(skewed, fixed_score, d):
    R = skewed(120, d, 0)
    score = fixed_score(R, bandwidth=1.5)
    q = float(np.quantile(score.score_samples(skewed(200, d, 1)), 0.9))
    estimate = region_volume(score, q, R, rng=0)
    low, high = -6.0, 12.0
    points = np.random.default_rng(1).uniform(low, high, size=(80_000, d))
    share = (score.score_samples(points) <= q).mean()
    value = share * (high - low) ** d
    se = value * np.sqrt((1 - share) / share / len(points))
    assert abs(estimate.value - value) <= 4 * np.hypot(se, estimate.se)


def test_log_value_survives_units_that_overflow(rng):
    R = rng.normal(size=(100, 16)) * 1e30
    estimate = region_volume(ellipsoid_score(R), 20.0, R)
    assert estimate.value == np.inf
    assert np.isfinite(estimate.log_value)
    assert estimate.bounded


def test_plateau_is_flagged_and_its_ellipsoid_counted(fixed_score, rng):
    """A narrow bandwidth and a high quantile: most of the region is far from the residuals."""
    R = rng.normal(size=(200, 2))
    score = fixed_score(R, bandwidth=0.15)
    q = 1.02 * score.far().minimum
    with pytest.warns(PlateauWarning):
        estimate = region_volume(score, q, R, rng=0)
    far = score.far().sublevel(q)
    assert estimate.plateau
    assert estimate.bounded
    assert estimate.log_value > far.log_volume - 4 * estimate.se / estimate.value
    # the far ellipsoid lies well beyond the data here, so a proposal blind to it would miss most
    points = far.center + 0.99 * np.eye(2) @ far.shape.T
    assert (score.score_samples(points) <= q).all()


def test_bounded_kernel_above_its_plateau_is_unbounded(fixed_score, rng):
    R = rng.normal(size=(100, 2))
    score = fixed_score(R, kernel="gaussian", bandwidth=0.3)
    plateau = score.far().constant
    assert not region_volume(score, plateau, R).bounded
    assert region_volume(score, plateau, R).value == np.inf
    assert region_volume(score, 0.9 * plateau, R, rng=0).bounded


def test_infinite_and_empty(rng):
    R = rng.normal(size=(100, 2))
    score = ellipsoid_score(R)
    everything = region_volume(score, np.inf, R)
    assert (everything.value, everything.bounded) == (np.inf, False)
    nothing = region_volume(score, -np.inf, R)
    assert (nothing.value, nothing.se, nothing.bounded) == (0.0, 0.0, True)
    with pytest.warns(VolumeWarning, match="0 points inside"):
        missed = region_volume(Ball(), -1.0, R, rng=0)
    assert (missed.value, missed.n_inside) == (0.0, 0)
    assert missed.se == np.inf  # no hit proves nothing


def test_same_seed_same_volume(skewed, fixed_score):
    R = skewed(100, 3, 0)
    score = fixed_score(R)
    assert region_volume(score, 0.3, R, rng=7) == region_volume(score, 0.3, R, rng=7)


@pytest.mark.unchecked
def test_bad_options(rng):
    R = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match="score: expected an object with score_samples"):
        region_volume("score", 1.0, R)
    with pytest.raises(ValueError, match="q: expected a number or inf"):
        region_volume(Ball(), np.nan, R)
    with pytest.raises(ValueError, match="rtol and max_points"):
        region_volume(Ball(), 1.0, R, rtol=0.0)


def test_more_than_16_outputs_warn(rng):
    R = rng.normal(size=(60, 17))
    with pytest.warns(VolumeWarning, match="17 dimensions"):
        region_volume(Ball(), 4.0, R, max_points=2000, rng=0)


class TestOneOutput:
    def test_union_of_intervals(self, rng):
        """Two clusters: two intervals, exact to rounding."""
        R = np.concatenate([rng.normal(-5, 0.3, 100), rng.normal(5, 0.3, 100)])[:, None]
        score = MultivariateKernelScore("gaussian", bandwidth=0.3, lam=1e-3).fit(R)
        q = float(np.quantile(score.score_samples(R), 0.9))
        ends = intervals(score.body(q))
        assert ends.shape == (2, 2)
        np.testing.assert_allclose(score.score_samples(ends.ravel()), q, rtol=1e-6)
        estimate = region_volume(score, q, R)
        assert estimate.se == 0
        assert estimate.value == pytest.approx((ends[:, 1] - ends[:, 0]).sum(), rel=1e-9)

    def test_ellipsoid_is_an_interval(self, rng):
        R = rng.normal(3.0, 2.0, size=(100, 1))
        score = ellipsoid_score(R)
        ends = intervals(replace(score.body(4.0), closed=None))
        expected = R.mean() + 2 * R.std() * np.array([[-1, 1]])
        np.testing.assert_allclose(ends, expected, rtol=1e-8)

    def test_half_line_of_everything(self, rng):
        R = rng.normal(size=(50, 1))
        ends = intervals(replace(ellipsoid_score(R).body(np.inf), closed=None))
        np.testing.assert_array_equal(ends, [[-np.inf, np.inf]])


def test_proposal_density_integrates_to_one(rng):
    """The mean of 1/g over proposals in a box is the volume of the box."""
    R = rng.normal(size=(60, 2))
    score = MultivariateKernelScore(bandwidth=0.15, lam=1e-3).fit(R)
    body = score.body(1.05 * score.far().minimum)
    proposal = proposal_for(body)
    assert proposal.far is not None
    z = proposal.draw(50_000, rng)
    inside = (np.abs(z) <= 2).all(axis=1)
    weights = np.where(inside, np.exp(-proposal.log_density(z)), 0)
    assert abs(weights.mean() - 16) <= 4 * weights.std() / np.sqrt(len(z))


def test_sample_is_uniform(rng):
    """Ellipsoid: the whitened radius to the power d is uniform on (0, 1)."""
    from scipy.stats import kstest

    R = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 3))
    score = ellipsoid_score(R)
    points = sample_from(score.body(3.0), 2000, rng)
    assert len(np.unique(points, axis=0)) == 2000
    share = (score.score_samples(points) / 3.0) ** 1.5
    assert kstest(share, "uniform").pvalue > 1e-6


def test_explore_weights_give_the_volume(rng):
    R = rng.normal(size=(100, 3))
    body = ellipsoid_score(R).body(3.0)
    weights = np.exp(explore(body, 40_000, rng)[1])
    assert weights.sum() / 40_000 == pytest.approx(np.exp(body.closed.log_volume), rel=0.05)


def test_random_states():
    assert generator_from(3).integers(100) == np.random.default_rng(3).integers(100)
    generator_from(None)
    generator_from(np.random.RandomState(0))
    with pytest.raises(ValueError, match="random_state"):
        generator_from("zero")


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 5, 10])
@pytest.mark.parametrize("kind", [ellipsoid_score, box_score])
def test_standard_errors_are_honest(kind, d):
    """+-2 se covers the truth in [.90, .99] of 200 seeds."""
    rng = np.random.default_rng(d)
    R = rng.normal(size=(500, d))
    score = kind(R)
    q = float(np.quantile(score.score_samples(R), 0.9))
    exact = region_volume(score, q, R).value
    hits = 0
    for seed in range(200):
        estimate = sampled(score, q, rtol=1.0, max_points=20_000, rng=seed)
        hits += abs(estimate.value - exact) <= 2 * estimate.se
    assert 0.90 <= hits / 200 <= 0.99
