"""The measures against dense or closed-form computations of the same definitions."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.neighbors import KernelDensity

from armillary import InputError
from dynabase import d_hellinger, d_stsp, itinerary_period, mase, rollout, systems, valid_time


def dense(true, gen, bins, a=1e-5):
    """The definition with every bin written out."""
    edges = [
        np.linspace(c.min(), c.max(), bins + 1)
        if c.min() < c.max()
        else np.linspace(c.min() - 0.5, c.max() + 0.5, bins + 1)
        for c in true.T
    ]
    p, q = (np.histogramdd(rows, bins=edges)[0] for rows in (true, gen))
    p, q = ((each + a) / (each.sum() + a * each.size) for each in (p, q))
    return np.sum(p * np.log(p / q))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 3),
    bins=st.integers(1, 12),
    kind=st.sampled_from(["normal", "integer", "constant", "far"]),
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sparse_histograms_equal_dense_ones(seed, d, bins, kind):
    rng = np.random.default_rng(seed)
    true, gen = rng.normal(size=(200, d)), rng.normal(size=(150, d)) * 1.2
    if kind == "integer":  # on the edges of bins
        true, gen = np.round(2 * true), np.round(2 * gen)
    elif kind == "constant":
        true[:, 0] = 0.3
    elif kind == "far":
        gen = gen + 50
    assert d_stsp(true, gen, bins=bins) == pytest.approx(dense(true, gen, bins), rel=1e-9, abs=1e-9)


def test_default_bins(rng):
    for d, bins in ((1, 30), (3, 30), (4, 8)):
        true, gen = rng.normal(size=(300, d)), np.clip(rng.normal(size=(300, d)), -1, 1)
        assert d_stsp(true, gen) == pytest.approx(dense(true, gen, bins), rel=1e-9)


def test_identical_trajectories_are_no_distance_apart():
    true = systems.generate("lorenz63", 3000)
    assert d_stsp(true, true) == pytest.approx(0, abs=1e-12)
    assert d_hellinger(true, true) == pytest.approx(0, abs=1e-7)
    assert d_stsp(true, true[::-1]) == pytest.approx(0, abs=1e-12)


def test_a_second_sample_of_the_same_system_is_not_at_zero():
    context, target = systems.split("lorenz63")
    assert 2 < d_stsp(target, context) < 3.5


def test_points_outside_are_dropped_with_a_warning(rng):
    true = rng.uniform(size=(500, 2))
    gen = np.concatenate([true, true[:50] + 10])
    with pytest.warns(UserWarning, match=r"9% of the generated points"):
        found = d_stsp(true, gen)
    assert found == pytest.approx(0, abs=1e-9)
    with pytest.warns(UserWarning, match="100% .* spread evenly"):
        far = d_stsp(true, true + 10)
    assert np.isfinite(far)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d_stsp(true, np.concatenate([true, true[:10] + 10]))


def test_compat_drops_the_bins_that_dynamix_drops():
    """By hand: 4 bins on [0, 4]; index 0 and the maximum are dropped, 1, 2, 3 remain."""
    true = np.array([0.0, 0.5, 1.5, 1.6, 2.5, 3.5, 4.0])[:, None]
    gen = np.array([0.2, 1.1, 2.2, 3.3, 3.4, 4.0])[:, None]
    a = 1e-5
    p = np.array([a, 2 + a, 1 + a, 1 + a]) / (4 + 4 * a)
    q = np.array([a, 1 + a, 1 + a, 2 + a]) / (4 + 4 * a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = d_stsp(true, gen, bins=4, compat="dynamix")
    assert found == pytest.approx(np.sum(p * np.log(p / q)), rel=1e-9)
    assert found != pytest.approx(d_stsp(true, gen, bins=4), rel=1e-3)


def test_mixture_equals_kernel_densities(rng):
    true, gen = rng.normal(size=(400, 6)), rng.normal(size=(300, 6)) + 0.5
    found = d_stsp(true, gen, rng=0)
    mean, sd = true.mean(axis=0), true.std(axis=0)
    p, q = ((rows - mean) / sd for rows in (true, gen))
    draw = np.random.default_rng(0)
    points = p[draw.integers(400, size=1000)]
    points = points + draw.normal(size=points.shape)
    densities = [KernelDensity(bandwidth=1.0).fit(rows).score_samples(points) for rows in (p, q)]
    assert found == pytest.approx(np.mean(densities[0] - densities[1]), rel=1e-9)
    assert found == d_stsp(true, gen, rng=0)
    assert found == pytest.approx(d_stsp(true * 100 + 7, gen * 100 + 7, rng=0), rel=1e-6)


def test_mixture_of_one_point_each_is_a_known_divergence(rng):
    """Unit Gaussians d apart: the divergence is d^2 / 2, its Monte Carlo error d / sqrt(1000)."""
    true, gen = np.zeros((1, 8)), np.full((1, 8), 0.5)
    distance = np.sqrt(8 * 0.25)
    found = d_stsp(true, gen, rng=1)
    assert abs(found - distance**2 / 2) < norm.isf(1e-6) * distance / np.sqrt(1000)


def test_hellinger_equals_a_plain_computation():
    from scipy.ndimage import gaussian_filter1d

    true, gen = systems.generate("lorenz63", 1000), systems.generate("rossler", 1200)
    expected = []
    for at in range(3):
        spectra = []
        for x in (true[:1000, at], gen[:1000, at]):
            power = np.abs(np.fft.rfft((x - x.mean()) / x.std())) ** 2
            power = gaussian_filter1d(power, 20)
            spectra.append(power / power.sum())
        bhattacharyya = np.sum(np.sqrt(spectra[0] * spectra[1]))
        expected.append(np.sqrt(1 - bhattacharyya))
    assert d_hellinger(true, gen) == pytest.approx(np.mean(expected), rel=1e-12)
    assert d_hellinger(true, gen) == d_hellinger(gen, true)


def test_hellinger_of_constants():
    x = systems.generate("lorenz63", 500)[:, :2]
    constant = x.copy()
    constant[:, 0] = 3.0
    assert d_hellinger(x, constant) == pytest.approx(0.5)
    assert d_hellinger(constant, constant) == pytest.approx(0, abs=1e-7)
    # Nearly one tone each, without smoothing: nothing in common.
    t = np.arange(1000)
    one, other = (np.sin(2 * np.pi * f * t / 1000)[:, None] for f in (20, 170))
    assert d_hellinger(one, other, smoothing=0) == pytest.approx(1, abs=1e-6)


def test_short_spectra_warn(rng):
    with pytest.warns(UserWarning, match="100 samples are few"):
        d_hellinger(rng.normal(size=(100, 1)), rng.normal(size=(100, 1)))


@pytest.mark.unchecked
def test_mase_takes_its_scale_from_the_training_series(rng):
    train, true = rng.normal(size=50), rng.normal(size=8)
    pred = true + 0.5
    scale = np.abs(train[4:] - train[:-4]).mean()
    assert mase(y_true=true, y_pred=pred, y_train=train, season=4) == pytest.approx(0.5 / scale)
    two = {"y_true": np.stack([true, true], 1), "y_pred": np.stack([pred, pred], 1)}
    both = mase(**two, y_train=np.stack([train, 10 * train], 1))
    one = mase(y_true=true, y_pred=pred, y_train=train)
    assert both == pytest.approx((one + one / 10) / 2)
    with pytest.raises(TypeError):
        mase(true, pred, train)  # a scale taken from the forecast is one swap away
    with pytest.raises(InputError, match="all equal"):
        mase(y_true=true, y_pred=pred, y_train=np.ones(9))
    with pytest.raises(InputError, match="y_pred"):
        mase(y_true=true, y_pred=pred[:3], y_train=train)


def test_valid_time_counts_the_steps_before_the_error():
    true = np.sin(np.arange(100) * 0.3)
    scale = true.std()
    pred = true.copy()
    pred[40:] += 0.41 * scale
    assert valid_time(true, pred) == 40
    assert valid_time(true, pred, threshold=0.5) == 100
    pred[10] = np.nan
    assert valid_time(true, pred) == 10
    assert valid_time(np.stack([true, true], 1), np.stack([pred, true], 1)) == 10


def test_itinerary_period():
    assert itinerary_period(np.tile(np.arange(7), 20)) == 7
    assert itinerary_period(np.concatenate([np.arange(500), np.tile([3, 4, 9], 200)])) == 3
    assert itinerary_period(np.arange(100)) is None
    assert itinerary_period(np.tile(np.arange(30), 2)) is None  # twice is no proof
    assert itinerary_period(np.full(40, 5)) == 1
    changed = np.tile(np.arange(7), 20)
    changed[75] = 99
    assert itinerary_period(changed) is None
    assert itinerary_period(np.array([], dtype=int)) is None


def test_a_copying_rollout_becomes_periodic():
    context = systems.generate("lorenz63", 600)
    _, index = rollout(context, 6000, 0.9, theiler=15, return_indices=True)
    period = itinerary_period(index)
    assert period is not None
    np.testing.assert_array_equal(index[-period:], index[-2 * period : -period])


@pytest.mark.unchecked
@pytest.mark.parametrize("measure", [d_stsp, d_hellinger])
def test_measures_refuse_nan_and_mismatches(measure, rng):
    x = rng.normal(size=(500, 2))
    gap = x.copy()
    gap[17, 1] = np.nan
    with pytest.raises(InputError, match="row 17"):
        measure(x, gap)
    with pytest.raises(InputError, match="coordinate"):
        measure(x, x[:, :1])
    with pytest.raises(InputError, match="no rows"):
        measure(x, x[:0])


def test_too_many_bins_are_refused(rng):
    x = rng.normal(size=(50, 20))
    with pytest.raises(InputError, match="mixture"):
        d_stsp(x, x, bins=30, method="histogram")
