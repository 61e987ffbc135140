"""Trend, season, logarithm and scale: removed, and restored exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armillary import InputError
from dynabase import DynaBase
from dynabase.preprocess import (
    Line,
    Preparation,
    Season,
    location_and_scale,
    outside_earlier_range,
    season_period,
)

TRENDS = [None, "linear", "diff", "seasonal:7"]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    detrend=st.sampled_from(TRENDS),
    log=st.booleans(),
    standardize=st.booleans(),
    gaps=st.booleans(),
)
def test_what_follows_is_restored(seed, detrend, log, standardize, gaps):
    """Prepare a series and its future together; undoing the future gives it back."""
    rng = np.random.default_rng(seed)
    y = np.exp(rng.normal(size=(60, 2)))
    y += 0.05 * np.arange(60)[:, None]
    context = y[:45].copy()
    if gaps:
        context[3:6] = np.nan
    preparation = Preparation.fit(context, detrend=detrend, log=log, standardize=standardize)
    future = preparation.apply(y)[45 - preparation.lost :]
    back = preparation.finish(preparation.undo(future[:, None], 45, y[44:45]))
    np.testing.assert_allclose(back[:, 0], y[45:], rtol=1e-12)


@pytest.mark.parametrize("detrend", TRENDS)
def test_parts_of_a_series_are_prepared_as_the_whole(detrend, rng):
    y = rng.normal(size=(50, 1))
    preparation = Preparation.fit(y, detrend=detrend, log=False, standardize=True)
    lost = preparation.lost
    np.testing.assert_allclose(
        preparation.apply(y[20:], 20), preparation.apply(y)[20:], atol=1e-13
    ) if not lost else np.testing.assert_allclose(
        preparation.apply(y[19:], 19), preparation.apply(y)[19:], atol=1e-13
    )


def test_line_is_least_squares_of_what_is_seen(rng):
    y = rng.normal(size=(40, 1)) + 0.3 * np.arange(40)[:, None]
    y[5:9] = np.nan
    seen = np.isfinite(y[:, 0])
    slope, intercept = np.polyfit(np.arange(40)[seen], y[seen, 0], 1)
    line = Line.fit(y)
    np.testing.assert_allclose([line.slope[0], line.intercept[0]], [slope, intercept], rtol=1e-10)


def test_season_is_the_mean_of_each_phase(rng):
    y = rng.normal(size=(20, 1))
    y[3] = np.nan
    season = Season.fit(y, 3)
    np.testing.assert_allclose(season.profile[0, 0], np.nanmean(y[0::3]))
    np.testing.assert_array_equal(season.at(4, 2)[:, 0], season.profile[[1, 2], 0])
    with pytest.raises(InputError, match="phase 1"):
        Season.fit(np.array([[1.0], [np.nan], [2.0], [np.nan]]), 2)


def test_a_line_plus_a_wave_is_continued():
    t = np.arange(240.0)
    y = 0.5 * t + np.sin(2 * np.pi * t / 24)
    y_true = y[200:]
    found = DynaBase(detrend="linear", alpha=0.0).fit(y[:200]).predict(40)
    assert np.abs(found - y_true).max() < 0.3
    found = DynaBase(detrend="diff", alpha=0.0).fit(y[:200]).predict(40)
    np.testing.assert_allclose(found, y_true, atol=1e-9)
    with pytest.warns(UserWarning, match="detrend"):
        plain = DynaBase(alpha=0.0).fit(y[:200]).predict(40)
    assert plain.max() < y[:200].max() + 1


def test_growth_is_continued_on_the_logarithm():
    t = np.arange(120.0)
    y = np.exp(0.03 * t) * (2 + np.sin(2 * np.pi * t / 12))
    found = DynaBase(log=True, detrend="diff", alpha=0.0).fit(y[:96]).predict(24)
    np.testing.assert_allclose(found, y[96:], rtol=1e-9)


def test_scale_of_constant_coordinates(rng):
    y = np.column_stack([np.full(10, 0.1), rng.normal(size=10), [np.nan] * 9 + [4.0]])
    mean, scale = location_and_scale(y)
    assert mean[0] == 0.1
    np.testing.assert_array_equal(scale[[0, 2]], 1.0)
    assert mean[1] == pytest.approx(y[:, 1].mean())
    assert scale[1] == pytest.approx(y[:, 1].std())
    assert mean[2] == 4.0


def test_last_values_out_of_range():
    y = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, 4.0]])
    assert outside_earlier_range(y) == [0, 1]
    assert outside_earlier_range(y[:1]) == []
    assert outside_earlier_range(np.array([[1.0], [2.0], [2.0]])) == []


@pytest.mark.unchecked
@pytest.mark.parametrize("detrend", ["cubic", "seasonal", "seasonal:1", "seasonal:x", 3])
def test_unknown_trends_are_refused(detrend):
    with pytest.raises(InputError, match="seasonal:P"):
        season_period(detrend)


def test_logarithm_refuses_what_is_not_positive():
    y = np.array([1.0, 2.0, 0.0, 3.0])
    with pytest.raises(InputError, match=r"row 2, coordinate 0: y: expected positive.*found 0"):
        DynaBase(log=True).fit(y)
