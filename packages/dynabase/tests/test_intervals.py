"""Conformal intervals: the order statistic, the origins, and what they cover."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from armillary import InputError
from dynabase import DynaBase, forecast_panel, systems
from dynabase.intervals import calibration_origins, origins_needed, season_length


@pytest.fixture(scope="module")
def elnino():
    return sm.datasets.elnino.load_pandas().data.iloc[:, 1:].to_numpy().ravel()


@pytest.mark.parametrize("options", [{}, {"log": True}, {"detrend": "linear"}, {"detrend": "diff"}])
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_widths_are_order_statistics_of_earlier_errors(elnino, options, coverage):
    """By the definition: separate models on truncated series, sorted errors, running maximum."""
    y, h = elnino[:200], 5
    model = DynaBase(**options).fit(y)
    origins = calibration_origins(model._model, h, 25)
    assert len(origins) == 25
    assert origins.min() >= 100
    assert origins.max() + h <= 199
    space = np.log if options.get("log") else np.asarray
    settled = {
        "delays": model.delays_,
        "tau": model.tau_,
        "theiler": model.theiler_,
        "n_neighbors": model.n_neighbors_,
    }
    errors = []
    for origin in origins:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forecast = DynaBase(**options, **settled).fit(y[: origin + 1]).predict(h)
        errors.append(np.abs(space(forecast) - space(y[origin + 1 : origin + 1 + h])))
    rank = int(np.ceil(26 * coverage - 1e-9))
    width = np.maximum.accumulate(np.sort(errors, axis=0)[rank - 1])
    found = model.predict_interval(h, coverage)
    np.testing.assert_allclose(found.half_width, width, rtol=1e-9)
    np.testing.assert_array_equal(found.forecast, model.predict(h))
    back = np.exp if options.get("log") else np.asarray
    np.testing.assert_allclose(found.lower, back(space(found.forecast) - width))
    np.testing.assert_allclose(found.upper, back(space(found.forecast) + width))
    assert found.n_origins == 25


def test_too_few_origins_give_an_infinite_width_and_say_how_many(elnino):
    model = DynaBase().fit(elnino[:120])
    with pytest.warns(UserWarning, match=r"0\.95 needs 19 calibration errors"):
        found = model.predict_interval(3, 0.95, n_origins=18)
    assert np.isinf(found.half_width).all()
    assert np.isfinite(found.forecast).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.predict_interval(3, 0.95, n_origins=19).half_width).all()
        assert np.isfinite(model.predict_interval(3, 0.9, n_origins=9).half_width).all()
    assert [origins_needed(c) for c in (0.5, 0.8, 0.9, 0.95, 0.99)] == [1, 4, 9, 19, 99]


def test_a_horizon_too_long_for_calibration_still_forecasts():
    y = np.sin(np.arange(40) * 0.7)
    with pytest.warns(UserWarning, match="infinite"):
        found = DynaBase().fit(y).predict_interval(30)
    assert np.isfinite(found.forecast).all()
    assert found.n_origins == 0


def test_calibration_does_not_look_past_its_origins():
    """The errors of an early origin are those of a series that ends there."""
    y = np.concatenate([np.tile([0.0, 1.0, 2.0, 1.0], 50), np.full(4, 50.0)])
    with pytest.warns(UserWarning, match="outside"):
        model = DynaBase(0.0, delays=2, n_neighbors=1).fit(np.append(y, 60.0))
    found = model.predict_interval(1, coverage=0.5)
    assert found.half_width[0] < 1e-9  # parroting was perfect before all but the last origins


def test_origins_stand_in_phase_with_the_end():
    rng = np.random.default_rng(0)
    for season, n in ((2, 402), (7, 700), (12, 733)):
        y = 5 * np.sin(2 * np.pi * np.arange(n) / season + 0.3) + rng.normal(size=n)
        model = DynaBase(delays=2).fit(y)
        assert season_length(model._model.recording.series) == season
        for h in (1, 6):
            origins = calibration_origins(model._model, h, 25)
            assert len(origins) == 25
            assert ((n - 1 - origins) % season == 0).all()


def test_white_noise_has_no_season(rng):
    assert season_length(rng.normal(size=(400, 1))) == 1
    assert season_length(np.ones((50, 1))) == 1
    assert season_length(rng.normal(size=(5, 1))) == 1


def test_stronger_coverage_is_wider_and_shapes_are_kept(elnino):
    index = pd.date_range("1950-01-01", periods=300, freq="MS")
    frame = pd.DataFrame({"a": elnino[:300], "b": elnino[300:600]}, index=index)
    model = DynaBase().fit(frame)
    narrow, wide = model.predict_interval(6, 0.5), model.predict_interval(6, 0.9)
    assert (wide.half_width >= narrow.half_width).to_numpy().all()
    for part in (wide.forecast, wide.lower, wide.upper):
        assert part.columns.tolist() == ["a", "b"]
        assert part.index[0] == pd.Timestamp("1975-01-01")
    assert ((wide.lower <= wide.forecast) & (wide.forecast <= wide.upper)).to_numpy().all()


def test_gaps_and_diverged_forecasts_are_no_small_errors(elnino):
    gapped = elnino[:300].copy()
    gapped[200:206] = np.nan
    found = DynaBase(delays=2).fit(gapped).predict_interval(4, 0.8)
    assert np.isfinite(found.half_width).all()
    assert found.n_origins < 25
    x = systems.generate("lorenz63", 400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wild = DynaBase(50.0, trust_radius=None, n_neighbors=1).fit(x).predict_interval(12, 0.5)
    assert np.isinf(wild.half_width[-1]).all()


@pytest.mark.parametrize("coverage", [0.0, 1.0, 1.5, np.nan])
def test_coverage_is_a_probability(coverage, elnino):
    with pytest.raises(InputError, match="coverage"):
        DynaBase().fit(elnino[:100]).predict_interval(3, coverage)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n", "h"), [("elnino", 400, 12), ("lorenz", 800, 20)])
def test_intervals_cover(name, n, h, elnino):
    """25 forecasts that calibration never saw: coverage of all steps in [.85, .99] at .9."""
    y = elnino if name == "elnino" else systems.generate("lorenz63", 3000)[:, 0]
    hits = []
    for cut in np.linspace(n, len(y) - h, 25).astype(int):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = DynaBase().fit(y[cut - n : cut]).predict_interval(h, 0.9)
        hits.append((found.lower <= y[cut : cut + h]) & (y[cut : cut + h] <= found.upper))
    assert 0.85 <= np.mean(hits) <= 0.99


def test_panel_intervals_are_those_of_each_series(elnino):
    series = {"a": elnino[:150], "b": elnino[150:330], "c": elnino[400:520]}
    found = forecast_panel(series, 5, coverage=0.8)
    for name, y in series.items():
        alone = DynaBase().fit(y).predict_interval(5, 0.8)
        for part in ("forecast", "lower", "upper", "half_width"):
            np.testing.assert_allclose(getattr(found[name], part), getattr(alone, part), atol=1e-12)
