"""Many series at once: each forecast is the one that its series gets alone."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest

from armillary import InputError
from armillary.measure import peak_memory_mib
from dynabase import DynaBase, _batch, forecast_panel, systems


@pytest.fixture(scope="module")
def rows():
    return systems.generate("lorenz63", 4000)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"alpha": "reconstruct", "n_neighbors": 1},
        {"alpha": "mse", "detrend": "linear"},
        {"alpha": 0.9, "delays": 3, "mode": "vector", "n_neighbors": 2},
        {"alpha": 0.9, "delays": 3, "n_neighbors": 5, "standardize": False},
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_panel_is_its_series_one_by_one(rows, params):
    rng = np.random.default_rng(1)
    series = {
        f"s{at}": rows[start : start + int(length)] * 10.0**at
        for at, (start, length) in enumerate(
            zip(rng.integers(0, 3000, 9), rng.integers(120, 900, 9), strict=True)
        )
    }
    found = forecast_panel(series, 15, **params)
    assert list(found) == list(series)
    for name, y in series.items():
        expected = DynaBase(**params).fit(y).predict(15)
        np.testing.assert_allclose(found[name], expected, rtol=1e-12, atol=1e-12)


def test_a_gain_fitted_for_the_horizon_of_the_forecast(rows):
    found = forecast_panel({"a": rows[:150]}, 4, alpha="horizon", n_neighbors=1)["a"]
    alone = DynaBase("horizon", horizon=4, n_neighbors=1).fit(rows[:150])
    np.testing.assert_array_equal(found, alone.predict(4))


def test_one_neighbour_gives_the_same_bits(rows):
    series = np.stack([rows[a : a + 300] for a in range(0, 1500, 100)])
    found = forecast_panel(series, 40, n_neighbors=1)
    assert found.shape == (15, 40, 3)
    for y, forecast in zip(series, found, strict=True):
        np.testing.assert_array_equal(DynaBase(n_neighbors=1).fit(y).predict(40), forecast)


def test_long_series_go_through_their_tree(rows, monkeypatch):
    monkeypatch.setattr(_batch, "LARGE", 5000)
    together = _batch._forecast_together
    widths = []
    monkeypatch.setattr(
        _batch,
        "_forecast_together",
        lambda models, n: widths.extend(len(m.y) for m in models) or together(models, n),
    )
    series = {"long": rows, "short": rows[:200]}
    found = forecast_panel(series, 10, alpha="reconstruct", n_neighbors=1)
    assert widths == [200]
    for name, y in series.items():
        np.testing.assert_array_equal(
            found[name], DynaBase("reconstruct", n_neighbors=1).fit(y).predict(10)
        )


def test_jobs_and_chunks_change_nothing(rows, monkeypatch):
    series = rows[:3000].reshape(30, 100, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = forecast_panel(series, 6)
        two = forecast_panel(series, 6, jobs=2)
        monkeypatch.setattr("dynabase.panel.CHUNK", 7)
        small = forecast_panel(series, 6)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, small)


def test_kinds_and_shapes(rows):
    index = pd.date_range("2024-01-01", periods=60, freq="D")
    frames = {
        "frame": pd.DataFrame(rows[:60], index=index, columns=list("xyz")),
        "series": pd.Series(rows[:60, 0], index=index),
        "array": rows[:80, 0],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = forecast_panel(frames, 3)
        flat = forecast_panel(rows[:240, 0].reshape(3, 80), 4)
        widths = forecast_panel(rows[:240, 0].reshape(3, 80), 4, coverage=0.8)
    assert found["frame"].columns.tolist() == ["x", "y", "z"]
    assert found["series"].index[0] == pd.Timestamp("2024-03-01")
    assert found["array"].shape == (3,)
    assert flat.shape == widths.lower.shape == (3, 4)
    assert forecast_panel({}, 3) == {}
    assert forecast_panel(np.empty((0, 50, 2)), 3).shape == (0, 3, 2)
    assert forecast_panel(np.empty((0, 50, 2)), 3, coverage=0.9).upper.shape == (0, 3, 2)


@pytest.mark.filterwarnings("ignore:1 of 2 series. the series is constant")
def test_remarks_are_told_once_with_a_count(rows):
    series = {"a": np.arange(30.0), "b": np.arange(40.0), "c": np.sin(np.arange(50.0) * 0.9)}
    with pytest.warns(UserWarning, match="2 of 3 series.*detrend") as caught:
        forecast_panel(series, 2, delays=1)
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="1 of 2 series: the forecast diverged"):
        forecast_panel(
            {"a": np.zeros(40), "b": rows[:100]}, 60, alpha=60.0, trust_radius=None, n_neighbors=1
        )


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("series", "options", "words"),
    [
        ({"a": np.ones(50), "bad": np.array([1.0, np.inf, 2.0])}, {}, ["series 'bad', row 1"]),
        ({"gap": np.array([1.0, 2.0, 3.0, np.nan])}, {"theiler": 0}, ["series 'gap'", "z0"]),
        ({"short": np.array([1.0])}, {}, ["series 'short'", "1 row(s)"]),
        (np.zeros(5), {}, ["(5,)", "mapping"]),
        ({"a": np.arange(9.0)}, {"alphas": 3}, ["alphas", "trust_radius"]),
        ({"a": np.arange(9.0)}, {"alpha": -1.0}, ["alpha", "-1"]),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_refusals_name_the_series(series, options, words):
    with pytest.raises(InputError) as caught:
        forecast_panel(series, 2, **options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.slow
@pytest.mark.unchecked
def test_a_thousand_series_are_quick_and_small(rows):
    """1,000 series of 512 x 3, 96 steps: at most 1 s of one core, and 1.5 GiB."""
    starts = np.random.default_rng(0).integers(0, 3400, 1000)
    series = np.stack([rows[a : a + 512] for a in starts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecast_panel(series[:5], 3)
        spent = []
        for _ in range(3):
            before = time.process_time()
            forecast_panel(series, 96, n_neighbors=1)
            spent.append(time.process_time() - before)
    assert min(spent) <= 1.0
    code = (
        "import numpy as np, warnings; warnings.simplefilter('ignore')\n"
        "from dynabase import forecast_panel\n"
        "forecast_panel(np.random.default_rng(0).normal(size=(1000, 512, 3)), 96)"
    )
    assert peak_memory_mib(code) <= 1536
