import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mks_conformal import MultivariateKernelScore, OnlineCalibrator, ellipsoid_score


class Norm:
    def score_samples(self, R):
        return np.linalg.norm(R, axis=1)


def errors(calibrator, residuals):
    out = []
    for residual in residuals:
        region = calibrator.region(np.zeros(len(residual)))
        out.append(not region.contains(residual[None])[0])
        calibrator.update(residual)
    return np.array(out)


@settings(max_examples=10, deadline=None)
@given(
    scales=st.lists(st.floats(1e-3, 1e3), min_size=20, max_size=60),
    step=st.sampled_from([0.01, 0.1, 0.5]),
    window=st.sampled_from([None, 5, 30]),
    alpha=st.sampled_from([0.1, 0.3]),
)
def test_errors_average_to_alpha_on_any_sequence(scales, step, window, alpha):
    """|mean err - alpha| <= (max(alpha, 1 - alpha) + step) / (step T): a theorem, not a law."""
    calibrator = OnlineCalibrator(Norm(), alpha, step=step, window=window)
    found = errors(calibrator, np.array(scales)[:, None] * np.ones((1, 2)))
    bound = (max(alpha, 1 - alpha) + step) / (step * len(scales))
    assert abs(found.mean() - alpha) <= bound + 1e-12


def test_alpha_follows_the_errors(rng):
    calibrator = OnlineCalibrator(Norm(), 0.1, step=0.05)
    found, expected = errors(calibrator, rng.normal(size=(100, 2))), 0.1
    for missed in found:
        expected += 0.05 * (0.1 - missed)
    assert calibrator.alpha_t == pytest.approx(expected)
    assert len(calibrator) == 100


def test_extreme_levels(rng):
    calibrator = OnlineCalibrator(Norm(), 0.1)
    for residual in rng.normal(size=(50, 2)):
        calibrator.region([0.0, 0.0])
        calibrator.update(residual)
    calibrator.alpha_t = 0.0
    assert calibrator.region([0.0, 0.0]).contains([[1e9, 1e9]])[0]
    assert calibrator.region([0.0, 0.0]).threshold[0] == np.inf
    calibrator.alpha_t = 1.0
    empty = calibrator.region([0.0, 0.0])
    assert not empty.contains([[0.0, 0.0]])[0]
    assert empty.threshold[0] == -np.inf
    assert (empty.volume().value, empty.volume().se) == (0.0, 0.0)


def test_window_forgets(rng):
    wide, narrow = rng.normal(size=(60, 2)) * 100, rng.normal(size=(60, 2))
    radii = {}
    for window in (None, 40):
        calibrator = OnlineCalibrator(Norm(), 0.1, step=0.0, window=window)
        errors(calibrator, np.concatenate([wide, narrow]))
        radii[window] = calibrator.region([0.0, 0.0]).threshold[0]
    assert radii[40] < 5 < 50 < radii[None]
    last = np.sort(np.linalg.norm(narrow[-40:], axis=1))
    assert radii[40] == last[36]  # ceil(41 * .9) = 37th of 40


def test_region_comes_first(rng):
    calibrator = OnlineCalibrator(Norm())
    with pytest.raises(ValueError, match=r"call region\(prediction\) first"):
        calibrator.update([0.0, 0.0])
    calibrator.region([1.0, 2.0])
    calibrator.update([0.0, 0.0])
    with pytest.raises(ValueError, match="first"):
        calibrator.update([0.0, 0.0])
    calibrator.region([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"residual: expected 2 column"):
        calibrator.update([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="NaN"):
        calibrator.update([0.0, np.nan])
    with pytest.raises(ValueError, match="one row"):
        calibrator.region(np.zeros((2, 2)))


def test_refit_uses_the_older_half_and_calibrates_on_the_newer(skewed):
    R = skewed(200, 2, 0)
    score = MultivariateKernelScore(bandwidth=1.0, lam=1e-3, random_state=0).fit(R[:20])
    calibrator = OnlineCalibrator(score, 0.1)
    errors(calibrator, R)
    calibrator.refit()
    assert len(calibrator) == 100
    expected = MultivariateKernelScore(bandwidth=1.0, lam=1e-3, random_state=0).fit(R[:100])
    np.testing.assert_allclose(calibrator.score.score_samples(R), expected.score_samples(R))
    assert score.references_.shape == (20, 2)  # the caller's score is left alone
    q = np.sort(expected.score_samples(R[100:]))[90]
    calibrator.alpha_t = 0.1
    assert calibrator.region([0.0, 0.0]).threshold[0] == pytest.approx(q)
    with pytest.raises(ValueError, match="MultivariateKernelScore"):
        OnlineCalibrator(ellipsoid_score(R)).refit()


@pytest.mark.unchecked
def test_bad_options():
    for options in ({"alpha": 0.0}, {"step": -1.0}, {"window": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            OnlineCalibrator(Norm(), **options)


def test_volume_of_a_users_score(rng):
    calibrator = OnlineCalibrator(Norm(), 0.1)
    errors(calibrator, rng.normal(size=(50, 2)))
    region = calibrator.region([3.0, 3.0])
    assert region.volume(rng=0).value == pytest.approx(np.pi * region.threshold[0] ** 2, rel=0.06)
