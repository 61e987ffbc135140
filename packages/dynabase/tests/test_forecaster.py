"""`DynaBase`: what goes in comes out in kind, and nothing awkward breaks it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from armillary import InputError
from dynabase import PRESETS, DynaBase, delay_embed, rollout, systems, theiler_window
from dynabase._model import Model
from dynabase._recording import Recording


@pytest.fixture(scope="module")
def lorenz():
    return systems.generate("lorenz63", 900)


def test_it_is_an_estimator():
    model = DynaBase(0.9, delays=3, mode="vector", detrend="diff")
    params = model.get_params()
    assert params["alpha"] == 0.9
    assert params["mode"] == "vector"
    copy = clone(model).set_params(alpha="mse")
    assert copy.get_params() == params | {"alpha": "mse"}
    for call in (lambda m: m.predict(1), lambda m: m.explain(1), lambda m: m.one_step_):
        with pytest.raises(NotFittedError):
            call(copy)


@pytest.mark.parametrize("alpha", [*PRESETS, 0.5])
def test_prediction_is_a_rollout_in_scaled_units(lorenz, alpha):
    model = DynaBase(alpha, n_neighbors=1).fit(lorenz)
    mean, sd = lorenz.mean(axis=0), lorenz.std(axis=0)
    scaled = (lorenz - mean) / sd
    gain = PRESETS[alpha][0] if isinstance(alpha, str) else alpha
    path = rollout(
        scaled, 80, gain, theiler=theiler_window(scaled), trust_radius=model.trust_radius_
    )
    np.testing.assert_array_equal(model.predict(80), path * sd + mean)
    assert (model.trust_radius_ is None) == (gain <= 1)
    assert model.alpha_ == gain


def test_vector_mode_is_a_rollout_of_delay_vectors(lorenz):
    y = lorenz[:, 0]
    model = DynaBase(0.9, delays=4, tau=3, mode="vector", n_neighbors=1, standardize=False).fit(y)
    path = rollout(delay_embed(y, 4, 3), 60, 0.9, theiler=model.theiler_)
    np.testing.assert_array_equal(model.predict(60), path[:, 0])


def test_shift_mode_is_the_definition(lorenz):
    """The newest value moves by the map, the rest is read from the history: plain loops."""
    y, m, tau, alpha = lorenz[:500, :2], 3, 2, 0.8
    model = DynaBase(alpha, delays=m, tau=tau, n_neighbors=1, standardize=False).fit(y)
    vectors, last = delay_embed(y, m, tau), None
    history = list(y)
    for _ in range(40):
        state = np.concatenate([history[-1 - j * tau] for j in range(m)])
        distance = np.linalg.norm(vectors[: len(vectors) - 1 - model.theiler_] - state, axis=1)
        i = int(distance.argmin())
        if last is not None and last + 1 < len(distance) and distance[last + 1] == distance[i]:
            i = last + 1
        now, then = vectors[i, :2], vectors[i + 1, :2]
        history.append(then + alpha * (history[-1] - now))
        last = i
    np.testing.assert_allclose(model.predict(40), np.array(history[500:]), atol=1e-10)


def test_kinds_go_in_and_out(lorenz):
    frame = pd.DataFrame(lorenz, columns=list("xyz"))
    expected = DynaBase().fit(lorenz).predict(7)
    assert expected.shape == (7, 3)
    out = DynaBase().fit(frame).predict(7)
    assert out.columns.tolist() == ["x", "y", "z"]
    assert out.index.tolist() == list(range(900, 907))
    np.testing.assert_array_equal(out.to_numpy(), expected)
    one = DynaBase().fit(lorenz[:, 0]).predict(7)
    assert one.shape == (7,)
    column = DynaBase().fit(lorenz[:, :1]).predict(7)
    assert column.shape == (7, 1)
    np.testing.assert_array_equal(column[:, 0], one)
    series = DynaBase().fit(frame["x"]).predict(7)
    assert series.name == "x"
    np.testing.assert_array_equal(series.to_numpy(), one)
    listed = DynaBase().fit(lorenz[:, 0].tolist()).predict(7)
    np.testing.assert_array_equal(listed, one)


@pytest.mark.parametrize(
    "options",
    [{"n_neighbors": 1}, {"n_neighbors": 3}, {"delays": 3, "mode": "vector", "n_neighbors": 2}],
)
def test_explanations_add_up_to_the_forecast(lorenz, options):
    index = pd.date_range("2020-01-01", periods=900, freq="h")
    frame = pd.DataFrame(lorenz, index=index)
    model = DynaBase(1.2, 0.1, trust_radius=0.05, **options).fit(frame)
    records = model.explain(20)
    assert [record.step for record in records] == list(range(1, 21))
    forecast = model.predict(20).to_numpy()
    for record, value in zip(records, forecast, strict=True):
        np.testing.assert_array_equal(record.value, value)
        total = record.successor + record.deviation + record.velocity
        np.testing.assert_allclose(total, value, atol=1e-9)
        assert sum(record.weights) == pytest.approx(1)
        assert record.times == tuple(index[i] for i in record.neighbours)
        expected = np.asarray(record.weights) @ lorenz[np.array(record.neighbours) + 1]
        np.testing.assert_allclose(record.successor, expected, atol=1e-9)
        assert list(record.distances) == sorted(record.distances)


def test_z0_replaces_the_last_observations(lorenz):
    y = lorenz[:, 0]
    model = DynaBase(delays=3, tau=2).fit(y)
    np.testing.assert_array_equal(model.predict(9, z0=y[-5:]), model.predict(9))
    np.testing.assert_array_equal(model.predict(9, z0=y[-50:]), model.predict(9))
    with pytest.raises(InputError, match=r"z0: expected at least 5, the newest last, found 4 row"):
        model.predict(9, z0=y[-4:])
    several = DynaBase().fit(lorenz)
    np.testing.assert_array_equal(several.predict(3, z0=lorenz[-1]), several.predict(3))
    trend = DynaBase(detrend="diff", delays=2, tau=1).fit(np.cumsum(y))
    np.testing.assert_allclose(trend.predict(5, z0=np.cumsum(y)[-3:]), trend.predict(5))


@pytest.mark.parametrize("detrend", [None, "linear", "diff", "seasonal:12"])
@pytest.mark.parametrize("delays", [1, 3])
def test_update_equals_a_fit_with_the_parameters_kept(lorenz, detrend, delays):
    """The context grows; scale, trend and parameters stay those of the first fit."""
    y = lorenz[:, 0] + 50
    options = {"delays": delays, "tau": 1, "theiler": 10, "n_neighbors": 1, "detrend": detrend}
    model = DynaBase(0.9, **options).fit(y[:700])
    model.predict(3)  # builds the tree
    for low, high in ((700, 703), (703, 780), (780, 900)):
        model.update(y[low:high])
    first = DynaBase(0.9, **options).fit(y[:700])._model
    afresh = Recording.of(first.preparation.apply(y[:, None]), m=delays, theiler=10)
    expected = Model(y[:, None], first.settings, first.preparation, afresh, first.choices)
    np.testing.assert_array_equal(model.predict(60), expected.forecast(60)[0][:, 0, 0])


def test_update_continues_an_index():
    index = pd.date_range("2024-01-01", periods=60, freq="D")
    y = pd.Series(np.sin(np.arange(60) * 0.5), index=index, name="y")
    model = DynaBase(delays=2).fit(y[:40])
    model.update(y[40:45]).update(y[47:50])  # two days were not observed
    assert model.n_missing_ == 2
    assert model.predict(2).index.tolist() == [index[50], index[51]]
    with pytest.raises(InputError, match="y_new"):
        model.update(y[45:47])
    with pytest.raises(InputError, match="kind"):
        model.update(y[50:].to_numpy())
    numbers = DynaBase(delays=1).fit(np.sin(np.arange(30.0)))
    numbers.update(0.3).update([0.4, 0.5])
    assert len(numbers._model.y) == 33


def test_gaps_are_counted_and_never_served(rng):
    y = np.sin(np.arange(300) * 0.2)
    y[[50, 51, 120]] = np.nan
    model = DynaBase(0.0, delays=2, n_neighbors=1).fit(y)
    assert model.n_missing_ == 3
    used = {i for record in model.explain(250) for i in record.neighbours}
    assert not used & {49, 50, 51, 52, 119, 120, 121}
    assert np.isfinite(model.predict(300)).all()
    gapped = y.copy()
    gapped[-1] = np.nan
    late = DynaBase(delays=2).fit(gapped)
    with pytest.raises(InputError, match=r"NaN among the last 2 row.*z0"):
        late.predict(3)
    assert np.isfinite(late.predict(3, z0=[0.1, 0.2])).all()
    gapped[:160] = np.nan
    with pytest.raises(InputError, match="161 of them with NaN"):
        DynaBase().fit(gapped)


@pytest.mark.parametrize("value", [0.1, 1e9, 0.0, -3.7e-5])
def test_constants_are_forecast_as_themselves(value):
    y = np.full(60, value)
    with pytest.warns(UserWarning, match="constant"):
        model = DynaBase().fit(y)
    found = model.predict_interval(5)
    for part in (found.forecast, found.lower, found.upper):
        np.testing.assert_array_equal(part, value)
    assert model.one_step_.degenerate


def test_a_constant_coordinate_stays_and_does_no_harm(lorenz):
    y = np.column_stack([lorenz[:, 0], np.full(900, 0.1), lorenz[:, 1:]])
    model = DynaBase("reconstruct").fit(y)
    path = model.simulate(500)
    np.testing.assert_array_equal(path[:, 1], 0.1)
    np.testing.assert_array_equal(
        path[:, [0, 2, 3]], DynaBase("reconstruct").fit(lorenz).simulate(500)
    )


@pytest.mark.parametrize("alpha", [*PRESETS, "mse", "dsr", "horizon"])
@pytest.mark.parametrize("delays", ["auto", 3])
def test_periodic_data_go_on_exactly(alpha, delays):
    y = np.tile(np.random.default_rng(3).normal(size=12), 15)
    model = DynaBase(alpha, delays=delays, horizon=6).fit(y)
    np.testing.assert_allclose(model.predict(40), np.resize(y[:12], 40), atol=1e-12)
    assert model.one_step_.degenerate
    if alpha == "mse":
        assert model.alpha_ == 0.0


def test_quantised_plateaus_do_not_freeze():
    """A rectified sine in six levels: the smallest index alone gave a constant forecast."""
    wave = np.maximum(np.sin(np.arange(900) * 2 * np.pi / 53.7), 0)
    y = np.round(wave * 5) / 5
    for delays in (1, 2, 5, 8):
        forecast = DynaBase("parrot", delays=delays).fit(y).predict(250)
        assert forecast.std() > 0.95 * y.std()
    assert DynaBase().fit(y).predict(250).std() > 0.9 * y.std()


def test_the_parrot_copies_noisy_data_too(rng):
    """An average over ten neighbours would be no copy."""
    y = rng.normal(size=200)
    assert DynaBase().fit(y).n_neighbors_ == 10
    copied = DynaBase("parrot").fit(y).predict(20)
    assert np.isclose(copied[:, None], y).any(axis=1).all()


@pytest.mark.parametrize("n", [4, 7, 19])
@pytest.mark.parametrize("kind", ["noise", "alternating"])
def test_short_awkward_series(n, kind, rng):
    y = rng.normal(size=n) if kind == "noise" else np.resize([1.0, -1.0], n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DynaBase("mse").fit(y)
        assert model.theiler_ == 1
        assert model.alpha_ >= 0
        assert np.isfinite(model.predict(6)).all()


def test_trending_data_are_warned_of():
    with pytest.warns(UserWarning, match="detrend='linear'"):
        DynaBase().fit(np.arange(50.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DynaBase(detrend="diff").fit(np.arange(50.0) + np.sin(np.arange(50.0) * 2))


@pytest.mark.filterwarnings("ignore:the last value")
def test_advice_on_sampling_and_noise(lorenz):
    fine = systems.generate("lorenz63", 3000, dt=0.002, transient=0)
    assert any("keep every" in remark for remark in DynaBase().fit(fine).advice_)
    coarse = lorenz[::8]
    assert any("times as often" in remark for remark in DynaBase().fit(coarse).advice_)
    assert DynaBase().fit(lorenz).advice_ == []
    assert not any("sample" in remark for remark in DynaBase(0.9).fit(coarse).advice_)


def test_unguarded_divergence_warns(lorenz):
    model = DynaBase(1.6, trust_radius=None, n_neighbors=1).fit(lorenz)
    with pytest.warns(RuntimeWarning, match="diverged at step"):
        path = model.simulate(400, z0=lorenz[5] * 1.5)
    assert np.isnan(path[-1]).all()
    wild = DynaBase(60.0, trust_radius=None, n_neighbors=1).fit(lorenz)
    with pytest.warns(RuntimeWarning, match="diverged at step"):
        assert np.isnan(wild.predict_interval(40, 0.5).forecast[-1]).all()


def test_scenarios_start_from_the_nearest_neighbours(lorenz):
    model = DynaBase(0.9, n_neighbors=1).fit(lorenz)
    paths = model.sample_paths(30, 5)
    assert paths.shape == (5, 30, 3)
    np.testing.assert_array_equal(paths[0], model.predict(30))
    assert len(np.unique(paths[:, 0], axis=0)) == 5
    offsets = np.linalg.norm((paths[:, 0] - paths[0, 0]) / lorenz.std(axis=0), axis=1)
    assert offsets[1:].min() > 0
    np.testing.assert_array_equal(model.sample_paths(4, 6, rng=1), model.sample_paths(4, 6, rng=1))
    assert not np.array_equal(model.sample_paths(4, 6, rng=1), model.sample_paths(4, 6, rng=2))
    flat = DynaBase(delays=3, n_neighbors=4).fit(lorenz[:, 0]).sample_paths(8, 3)
    assert flat.shape == (3, 8)
    with pytest.raises(InputError, match="at most"):
        model.sample_paths(3, 10_000)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 80),
    alpha=st.sampled_from([0.0, 0.95, 1.005, 1.5]),
    detrend=st.sampled_from([None, "linear", "diff"]),
    k=st.sampled_from([1, 3]),
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_forecasts_scale_and_shift_with_the_data(seed, n, alpha, detrend, k):
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.normal(size=n))
    options = {"delays": 2, "theiler": 2, "n_neighbors": k, "detrend": detrend}
    plain = DynaBase(alpha, **options).fit(y).predict(8)
    assert np.isfinite(plain).all()
    moved = DynaBase(alpha, **options).fit(8.0 * y).predict(8)
    np.testing.assert_allclose(moved, 8.0 * plain, rtol=1e-9, atol=1e-9)


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": "best"}, ["alpha", "'best'", "'reconstruct'", "'mse'"]),
        ({"alpha": -1.0}, ["alpha", "-1"]),
        ({"alpha": np.inf}, ["alpha", "inf", "finite"]),
        ({"alpha": "horizon"}, ["horizon", "None"]),
        ({"beta": "auto"}, ["beta", "'auto'", "'mse'"]),
        ({"mode": "both"}, ["mode", "'shift' or 'vector'"]),
        ({"delays": 0}, ["delays", "0"]),
        ({"delays": "many"}, ["delays", "'auto'"]),
        ({"tau": 1.5}, ["tau", "1.5"]),
        ({"theiler": -2}, ["theiler", "-2"]),
        ({"n_neighbors": 0}, ["n_neighbors", "0"]),
        ({"n_neighbors": 60}, ["50 row(s)", "60 neighbour(s)"]),
        ({"trust_radius": -0.5}, ["trust_radius", "-0.5"]),
        ({"trust_radius": "big"}, ["trust_radius", "'big'"]),
        ({"delays": 20, "tau": 4}, ["50 row(s)", "20 delay(s) 4 apart", "at most 12 delay(s)"]),
        ({"detrend": "loess"}, ["detrend", "seasonal:P"]),
        ({"detrend": "seasonal:80"}, ["detrend", "80"]),
    ],
)
def test_refusals_name_what_is_wrong(options, words):
    y = np.sin(np.arange(50.0))
    with pytest.raises(InputError) as caught:
        DynaBase(**options).fit(y)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array([1.0, np.inf, 2.0, 3.0]), ["row 1", "inf", "finite"]),
        (np.array(["a", "b", "c"]), ["numbers"]),
        (np.zeros((4, 4, 4)), ["(4, 4, 4)"]),
        (np.array([]), ["0 row(s)"]),
        (np.array([1.0]), ["1 row(s)", "at least 3"]),
        (pd.DataFrame({"a": [1.0, 2, 3], "b": ["x", "y", "z"]}), ["'b'", "numbers"]),
        (pd.Series([1.0, 2, 3], pd.to_datetime(["2024-01-01", "2024-01-03", "2024-01-02"])),
         ["rows 1 and 2", "increasing"]),
        (pd.Series([1.0, 2, 3], pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-02"])),
         ["rows 1 and 2", "twice"]),
        (pd.Series([1.0] * 4, pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-09",
                                             "2024-03-03"])), ["regular grid"]),
    ],
)  # fmt: skip
def test_bad_series_are_refused(y, words):
    with pytest.raises(InputError) as caught:
        DynaBase().fit(y)
    for word in words:
        assert word in str(caught.value)


def test_horizon_must_be_positive(lorenz):
    with pytest.raises(InputError, match="horizon"):
        DynaBase().fit(lorenz).predict(0)
