"""Trouble that users of comparable libraries reported in public, and what must come out here."""

import numpy as np
import pandas as pd
import pytest

from dynabase import DynaBase, forecast_panel, rollout
from dynabase._recording import Recording
from dynabase._run import Gains, run

# --- The interval of step 1 depends on the horizon asked (Nixtla/statsforecast issue 903) ---


def noisy_weekday(seed, n=408):
    r, t = np.random.default_rng(seed), np.arange(n)
    sd = np.where(t % 2 == 0, 3.0, 0.1)
    return np.where(t % 2 == 0, 0.0, 10.0) + sd * r.normal(size=n)


@pytest.mark.parametrize("seeds", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_step_one_is_covered_whatever_the_horizon(seeds):
    """Step 1 is a noisy one: coverage >= .84 at nominal .9 in both calls."""
    covered = {1: 0, 6: 0}
    for seed in range(seeds):
        y = noisy_weekday(seed)
        model = DynaBase().fit(y[:402])
        short, long = (model.predict_interval(h, coverage=0.9) for h in (1, 6))
        assert (np.diff(long.half_width) >= 0).all()
        # The calibration origins agree, and so do the widths of the step.
        assert long.half_width[0] >= 0.9 * short.half_width[0]
        for h, found in ((1, short), (6, long)):
            covered[h] += found.lower[0] <= y[402] <= found.upper[0]
    assert min(covered.values()) >= 0.84 * seeds


def test_one_noisy_day_of_seven_is_covered():
    """The same kind: the noisy day is one in seven, and no mean gives it away."""
    covered = 0
    for seed in range(12):
        r, t = np.random.default_rng(seed), np.arange(700)
        y = 5 + np.where(t % 7 == 0, 3.0, 0.1) * r.normal(size=700)
        found = DynaBase().fit(y[:693]).predict_interval(1, coverage=0.9)  # 693 = 7 * 99
        covered += found.lower[0] <= y[693] <= found.upper[0]
    assert covered >= 8  # fewer has probability .005 at coverage .9


# --- Frequencies that people have (sktime issues 1405 and 670, hierarchicalforecast 158) ---

FREQUENCIES = {
    "month end": (
        pd.date_range("2024-01-31", periods=24, freq="ME"),
        ["2026-01-31", "2026-02-28", "2026-03-31"],
    ),
    "month start": (
        pd.date_range("2024-01-01", periods=24, freq="MS"),
        ["2026-01-01", "2026-02-01", "2026-03-01"],
    ),
    "Wednesdays": (
        pd.date_range("2024-01-03", periods=24, freq="W-WED"),
        ["2024-06-19", "2024-06-26", "2024-07-03"],
    ),
    "quarter hours": (
        pd.date_range("2024-03-30 22:30", periods=24, freq="15min"),
        ["2024-03-31 04:30", "2024-03-31 04:45", "2024-03-31 05:00"],
    ),
    "business days": (
        pd.date_range("2024-03-01", periods=26, freq="B"),
        ["2024-04-08", "2024-04-09", "2024-04-10"],
    ),
}


@pytest.mark.parametrize("name", FREQUENCIES)
@pytest.mark.parametrize("known", [True, False])
def test_stamps_go_on_by_their_own_frequency(name, known):
    index, expected = FREQUENCIES[name]
    if not known:  # as read from a file
        index = pd.DatetimeIndex(index.to_numpy())
    y = pd.Series(np.sin(np.arange(len(index))), index=index, name="y")
    model = DynaBase().fit(y)
    forecast = model.predict(3)
    assert model.n_missing_ == 0
    assert isinstance(forecast, pd.Series)
    assert type(forecast.index) is type(index)
    assert forecast.index.tolist() == [pd.Timestamp(stamp) for stamp in expected]
    frame = DynaBase().fit(y.to_frame()).predict(3)
    assert isinstance(frame, pd.DataFrame)
    assert frame.index.equals(forecast.index)
    assert frame.columns.tolist() == ["y"]
    assert forecast_panel({"a": y}, 3)["a"].index.equals(forecast.index)


def test_holidays_stay_gaps_of_a_business_calendar():
    """The same kind: two closed days in a business calendar are two missing rows, not twenty."""
    index = pd.date_range("2024-03-01", periods=60, freq="B").delete([20, 41])
    y = pd.Series(np.sin(np.arange(58.0)), index=pd.DatetimeIndex(index.to_numpy()))
    model = DynaBase().fit(y)
    assert model.n_missing_ == 2
    assert model.predict(1).index[0] == pd.Timestamp("2024-05-24")


def test_zones_and_periods_are_kept():
    """The same kind: a summer time change inside the forecast, and a PeriodIndex."""
    hours = pd.date_range("2024-03-29", periods=48, freq="h", tz="Europe/Berlin")
    ahead = DynaBase().fit(pd.Series(np.sin(np.arange(48.0)), index=hours)).predict(5).index
    assert str(ahead.tz) == "Europe/Berlin"
    assert [stamp.hour for stamp in ahead] == [0, 1, 3, 4, 5]
    months = pd.period_range("2024-01", periods=24, freq="M")
    ahead = DynaBase().fit(pd.Series(np.sin(np.arange(24.0)), index=months)).predict(2).index
    assert ahead.tolist() == [pd.Period("2026-01"), pd.Period("2026-02")]


# --- Two recordings in one file (rEDM issue 37) ---

A, B = np.linspace(0, 5, 21), np.linspace(100, 105, 21)
GAPPED = np.concatenate([A, [np.nan] * 3, B])


def as_series():
    stamps = pd.date_range("2024-01-01", periods=45, freq="D")
    return pd.Series(GAPPED, index=stamps).dropna()


def test_a_gap_is_no_step():
    path = rollout(GAPPED[:, None], 2, 0.0, theiler=0, z0=[4.99])
    np.testing.assert_array_equal(path, [[5.0], [5.0]])


@pytest.mark.filterwarnings("ignore:the last value lies outside")
@pytest.mark.parametrize("delays", [1, 3])
@pytest.mark.parametrize("form", ["array", "series"])
def test_no_forecast_steps_from_one_recording_into_the_other(delays, form):
    model = DynaBase(delays=delays, alpha=0.0).fit(GAPPED if form == "array" else as_series())
    assert model.n_missing_ == 3
    start = A[-delays:] - 0.01
    path = model.simulate(30, z0=start)
    assert path.max() <= 5.01
    last = 20  # the last row of the first recording: it has no successor
    used = {i for record in model.explain(30) for i in record.neighbours}
    assert last not in used
    context = model._model.recording
    times = context.context.index + context.offset
    assert last not in times
    assert not ({21, 22, 23} & set(times.tolist()))


@pytest.mark.filterwarnings("ignore:the last value lies outside")
def test_missing_stamps_make_the_same_context():
    array, series = DynaBase(delays=1).fit(GAPPED), DynaBase(delays=1).fit(as_series())
    np.testing.assert_array_equal(
        array._model.recording.context.rows, series._model.recording.context.rows
    )
    np.testing.assert_array_equal(array.predict(4), series.predict(4).to_numpy())


# --- More than two equal neighbours (nolds issue 19, cppEDM pull request 1) ---

DIGITS = np.random.default_rng(0).integers(0, 10, 500).astype(float)[:, None]
TIES = {
    7.0: ([6, 5, 5, 9, 2, 8, 6, 0], range(15, 23)),
    8.0: ([6, 5, 2, 3, 0, 0, 0, 1], range(8)),
    9.0: ([5, 6, 9, 7, 6, 5, 5, 9], range(11, 19)),
    1.0: ([8, 6, 9, 5, 6, 9, 7, 6], range(8, 16)),
}
BETWEEN = ([3.25, 0.125, 0.0625, 0.03125, 1.015625, 8.0078125], range(3, 9))


@pytest.mark.parametrize("v", TIES)
def test_equal_rows_are_told_apart_by_index_then_continuation(v):
    values, indices = TIES[v]
    path, index = rollout(DIGITS, 8, 0.0, z0=[v], theiler=0, return_indices=True)
    np.testing.assert_array_equal(path[:, 0], values)
    np.testing.assert_array_equal(index, indices)


def test_a_state_between_rows():
    path, index = rollout(DIGITS, 6, 0.5, z0=[2.5], theiler=0, return_indices=True)
    np.testing.assert_array_equal(path[:, 0], BETWEEN[0])
    np.testing.assert_array_equal(index, BETWEEN[1])


def test_ties_are_the_same_in_a_batch():
    starts = np.array([[v] for v in TIES])
    path, index = rollout(DIGITS, 8, 0.0, z0=starts, theiler=0, return_indices=True)
    for at, (values, indices) in enumerate(TIES.values()):
        np.testing.assert_array_equal(path[:, at, 0], values)
        np.testing.assert_array_equal(index[:, at], indices)
    path = rollout(DIGITS, 6, 0.5, z0=[[2.5], [2.5]], theiler=0)
    np.testing.assert_array_equal(path[:, 1, 0], BETWEEN[0])


@pytest.mark.parametrize("held", [410, 470, 499])
def test_ties_are_the_same_after_an_update(held):
    """Rows that came later are searched beside the tree, or in a new one."""
    recording = Recording.of(DIGITS[:held])
    context = recording.context
    context.nearest_one(np.array([3.0]), -1)  # builds the tree
    context = context.extended(DIGITS[held : held + 1]).extended(DIGITS[held + 1 :])
    for v, (values, indices) in TIES.items():
        path = run(context, np.array([[v]]), 8, Gains.equal(0.0, 0.0, np.inf, 1))
        np.testing.assert_array_equal(path.values[:, 0, 0], values)
        np.testing.assert_array_equal(path.index[:, 0, 0], indices)


def test_ties_are_the_same_through_the_estimator():
    options = {"delays": 1, "theiler": 0, "n_neighbors": 1, "standardize": False}
    afresh = DynaBase(0.0, **options).fit(DIGITS[:, 0])
    updated = DynaBase(0.0, **options).fit(DIGITS[:450, 0])
    updated.predict(2)
    updated.update(DIGITS[450:480, 0]).update(DIGITS[480:, 0])
    for v, (values, _) in TIES.items():
        np.testing.assert_array_equal(afresh.simulate(8, z0=[v]), values)
        np.testing.assert_array_equal(updated.simulate(8, z0=[v]), values)


@pytest.mark.parametrize("v", [*TIES, 2.5])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_ten_neighbours_of_equal_rows_give_no_nan(v, alpha):
    assert np.isfinite(rollout(DIGITS, 50, alpha, z0=[v], theiler=0, n_neighbors=10)).all()
