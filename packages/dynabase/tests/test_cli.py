"""The command: what each verb writes, the field's cases, and every row of bad input."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest

from dynabase import recordings
from dynabase.cli import main
from dynabase.systems import generate


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    """Run the function behind the console script in this process: the same, but quicker."""
    monkeypatch.chdir(tmp_path)

    def run(*args, check=True):
        status = main([str(arg) for arg in args])
        out, err = capfd.readouterr()
        assert not check or status == 0, err
        return subprocess.CompletedProcess(args, status, out, err)

    return run


@pytest.fixture
def lorenz(tmp_path):
    """A file with 1,200 samples of Lorenz-63."""
    frame = pd.DataFrame(generate("lorenz63", 1_200, seed=1), columns=list("xyz"))
    frame.insert(0, "t", np.round(0.02 * np.arange(len(frame)), 4))
    frame.to_csv(tmp_path / "lorenz.csv", index=False)
    return tmp_path / "lorenz.csv"


def write(path, values, start="2024-01-01"):
    days = pd.date_range(start, periods=len(values)).strftime("%Y-%m-%d")
    lines = (f"{day},{value}" for day, value in zip(days, values, strict=True))
    path.write_text("\n".join(["ds,y", *lines]) + "\n")
    return path.name


def metrics(folder):
    return json.loads((folder / "result.json").read_text())["metrics"]


# --- Each verb, through the real console script or as it calls it -----------------------------


def test_forecast_of_one_series(run_command, result_schema, tmp_path):
    sea = recordings.path("elnino")
    ran = run_command("dynabase", "forecast", sea, "--horizon", "6", "--json", "--out", "out")
    result = json.loads(ran.stdout)

    result_schema(result)
    assert result["metrics"]["n_neighbors"] == 10 and result["metrics"]["alpha"] == 0.95
    assert result["metrics"]["seconds_per_step"] < 1
    table = pd.read_csv(tmp_path / "out" / "forecast.csv")
    assert list(table) == ["unique_id", "ds", "step", "y", "y_lo_90", "y_hi_90"]
    assert table["ds"].tolist() == [f"2011-{month:02}-01" for month in range(1, 7)]
    assert (table["y_lo_90"] < table["y"]).all() and (table["y"] < table["y_hi_90"]).all()


def test_forecast_of_many_series_of_unequal_length(call, tmp_path):
    many(tmp_path)
    call("forecast", "many.csv", "--horizon", "4", "--coverage", "none", "--out", "one", "--plot")

    one = pd.read_csv(tmp_path / "one" / "forecast.csv")
    assert list(one) == ["unique_id", "ds", "step", "y"] and len(one) == 160
    assert one.loc[one["unique_id"] == "s39", "ds"].tolist() == [1979, 1980, 1981, 1982]
    assert metrics(tmp_path / "one")["n_series"] == 40
    assert (tmp_path / "one" / "forecast.svg").is_file()
    assert not list((tmp_path / "one").glob("unfinished*"))


@pytest.mark.slow
def test_more_jobs_change_nothing(call, tmp_path):
    many(tmp_path)
    for jobs in (1, 2):
        call("forecast", "many.csv", "--horizon", "4", "--jobs", jobs, "--out", jobs)
    first, second = (tmp_path / str(jobs) / "forecast.csv" for jobs in (1, 2))
    assert first.read_bytes() == second.read_bytes()


def many(folder):
    """A long table of 40 series of unequal length."""
    lines = ["unique_id,ds,y"]
    for number in range(40):
        lines += [f"s{number},{1900 + i},{np.sin(i + number):.6f}" for i in range(40 + number)]
    (folder / "many.csv").write_text("\n".join(lines))


def test_an_interrupted_forecast_resumes(call, tmp_path, monkeypatch):
    from dynabase import batch

    lines = ["unique_id,ds,y", *(f"s{k},{i},{np.sin(i + k)}" for k in range(70) for i in range(12))]
    (tmp_path / "many.csv").write_text("\n".join(lines))
    command = ("forecast", "many.csv", "--horizon", "3", "--coverage", "none", "--resume")
    whole = call(*command, "--out", "whole")
    calls, real = [], batch.forecast_chunk

    def counting(chunk):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(len(chunk[0]))
        return real(chunk)

    monkeypatch.setattr(batch, "forecast_chunk", counting)
    assert call(*command, "--out", "part", check=False).returncode == 130
    assert calls == [32, 32] and (tmp_path / "part" / "unfinished.jsonl").is_file()
    calls.clear()
    assert call(*command, "--out", "part").stdout == whole.stdout
    assert calls == [6]
    first, second = (tmp_path / name / "forecast.csv" for name in ("whole", "part"))
    assert first.read_bytes() == second.read_bytes()


def test_forecast_of_a_system_and_of_each_of_its_columns(call, lorenz, tmp_path):
    call("forecast", lorenz, "--horizon", "5", "--out", "joint")
    call("forecast", lorenz, "--horizon", "5", "--each", "--alpha", "mse", "--out", "each")

    joint = pd.read_csv(tmp_path / "joint" / "forecast.csv")
    assert [c for c in joint if "_" not in c] == ["ds", "step", "x", "y", "z"]
    assert joint["ds"].tolist() == pytest.approx([24.0, 24.02, 24.04, 24.06, 24.08])
    each = pd.read_csv(tmp_path / "each" / "forecast.csv")
    assert each["unique_id"].unique().tolist() == ["x", "y", "z"]
    assert np.abs(joint["x"] - each.loc[each["unique_id"] == "x", "y"]).max() < 1


def test_reconstruct_beside_the_context_and_parroting(call, lorenz, tmp_path):
    ran = call("reconstruct", lorenz, "--steps", "1000", "--out", "out")
    found, arrays = metrics(tmp_path / "out"), np.load(tmp_path / "out" / "trajectory.npz")

    assert arrays["trajectory"].shape == (1000, 3) and arrays["context"].shape == (600, 3)
    assert arrays["indices"].max() < 600
    assert found["alpha"] == 1.005 and found["trust_radius"] > 0
    for name in ("d_stsp", "d_h", "d_stsp_parrot", "d_h_parrot", "d_stsp_context", "d_h_context"):
        assert np.isfinite(found[name])
    assert "parrot" in ran.stdout and "context" in ran.stdout
    assert {"attractor.png", "attractor.svg", "spectrum.png", "spectrum.svg"} <= {
        file.name for file in (tmp_path / "out").iterdir()
    }


def test_reconstruct_one_coordinate(call, lorenz, tmp_path):
    call("reconstruct", lorenz, "--target", "x", "--steps", "500", "--holdout", 0, "--out", "out")
    found = metrics(tmp_path / "out")
    assert found["delays"] > 1 and found["d_stsp_context"] == 0


def test_fit_by_each_objective(call, lorenz, tmp_path):
    ran = call("fit", lorenz, "--out", "mse")
    call("fit", lorenz, "--objective", "horizon", "--horizon", "20", "--out", "horizon")
    call("fit", lorenz, "--each", "--out", "each")

    found = metrics(tmp_path / "mse")
    assert 0.9 < found["alpha"] < 1.05 and abs(found["beta"]) < 0.2 and found["r2"] > 0.8
    assert found["se_alpha"] > 0 and found["map_exponent"] == pytest.approx(np.log(found["alpha"]))
    assert "deviations from a neighbour" in found["advice"] and "advice" in ran.stdout
    assert metrics(tmp_path / "horizon")["beta"] == 0
    assert pd.read_csv(tmp_path / "each" / "fit.csv")["unique_id"].tolist() == ["x", "y", "z"]


def test_train_on_systems_and_on_a_file(call, lorenz, tmp_path):
    small = ("--context", 300, "--target", 500, "--seeds", 1, "--grid-only")
    call("train", "--systems", "selkov", *small, "--out", "systems")
    call("train", lorenz, "--objective", "mse", "--context", "800", "--out", "file")

    table = pd.read_csv(tmp_path / "systems" / "train.csv")
    assert {"alpha", "loss", "d_stsp", "d_hellinger"} <= set(table) and len(table) == 15
    assert metrics(tmp_path / "systems")["alpha"] in set(table["alpha"])
    assert (tmp_path / "systems" / "train.png").is_file()
    assert 0.9 < metrics(tmp_path / "file")["alpha"] < 1.05


def test_score_of_a_forecast_with_its_intervals(call, lorenz, tmp_path):
    frame = pd.read_csv(lorenz)
    frame[:1100].to_csv("past.csv", index=False)
    frame[1100:].to_csv("true.csv", index=False)
    call("forecast", "past.csv", "--horizon", "20", "--out", "out")
    call("score", "--true", "true.csv", "--pred", "out/forecast.csv", "--past", "past.csv")
    folder = tmp_path / "armillary-out" / "dynabase" / "score"
    found = metrics(folder)

    made = pd.read_csv("out/forecast.csv")[["x", "y", "z"]].to_numpy()
    truth = frame[["x", "y", "z"]].to_numpy()[1100:1120]
    assert found["n"] == 20 and 0 <= found["coverage"] <= 1
    assert found["mae"] == pytest.approx(np.abs(made - truth).mean())
    assert found["valid_time"] == 20 and found["mase"] > 0
    assert (folder / "scores.csv").is_file()


def test_score_of_anybody_s_trajectory(call, tmp_path):
    whole = generate("lorenz63", 1_000)
    np.save("true.npy", whole[:500])
    np.savez("pred.npz", trajectory=whole[500:])
    call("score", "--true", "true.npy", "--pred", "pred.npz", "--out", "out")
    assert metrics(tmp_path / "out")["d_stsp"] > 0 and metrics(tmp_path / "out")["d_h"] < 0.2


def test_explain_adds_up_to_the_forecast(call, tmp_path):
    sea = recordings.path("elnino")
    call("explain", sea, "--horizon", "4", "--out", "why")
    call("forecast", sea, "--horizon", "4", "--out", "out")

    rows = pd.read_csv(tmp_path / "why" / "explain.csv")
    parts = rows["successor"] + rows["deviation"] + rows["velocity"]
    assert parts.to_numpy() == pytest.approx(rows["value"].to_numpy())
    nearest = rows[rows["rank"] == 1]
    forecast = pd.read_csv(tmp_path / "out" / "forecast.csv")["y"]
    assert nearest["value"].tolist() == pytest.approx(forecast.tolist())
    assert rows.groupby("step")["weight"].sum().tolist() == pytest.approx([1.0] * 4)
    assert nearest["neighbour_ds"].str.endswith("-01").all()


# --- The field's cases ----------------------------------------------------------------------

FREQUENCIES = {
    "month end": (
        pd.date_range("2024-01-31", periods=24, freq="ME").strftime("%Y-%m-%d"),
        ["2026-01-31", "2026-02-28", "2026-03-31"],
    ),
    "month start": (
        pd.date_range("2024-01-01", periods=24, freq="MS").strftime("%Y-%m-%d"),
        ["2026-01-01", "2026-02-01", "2026-03-01"],
    ),
    "Wednesdays": (
        pd.date_range("2024-01-03", periods=24, freq="W-WED").strftime("%Y-%m-%d"),
        ["2024-06-19", "2024-06-26", "2024-07-03"],
    ),
    "15 minutes": (
        pd.date_range("2024-03-30 22:30", periods=24, freq="15min").strftime("%Y-%m-%d %H:%M"),
        ["2024-03-31 04:30", "2024-03-31 04:45", "2024-03-31 05:00"],
    ),
    "business days": (
        pd.bdate_range("2024-03-01", periods=26).strftime("%Y-%m-%d"),
        ["2024-04-08", "2024-04-09", "2024-04-10"],
    ),
}


@pytest.mark.parametrize("name", FREQUENCIES)
@pytest.mark.parametrize("long", [False, True])
def test_frequencies_that_people_have(call, tmp_path, name, long):
    stamps, expected = FREQUENCIES[name]
    frame = pd.DataFrame({"ds": stamps, "y": np.sin(np.arange(len(stamps)))})
    if long:
        frame.insert(0, "unique_id", "a")
    frame.to_csv("data.csv", index=False)
    call("forecast", "data.csv", "--horizon", "3", "--out", "out")

    assert pd.read_csv(tmp_path / "out" / "forecast.csv")["ds"].tolist() == expected
    assert metrics(tmp_path / "out")["n_missing"] == 0


@pytest.mark.parametrize("delays", [1, 3])
def test_two_recordings_in_one_file(call, tmp_path, delays):
    """No step leads from the end of the first recording to the start of the second."""
    values = np.concatenate([np.linspace(0, 5, 21), np.linspace(100, 105, 21)])
    days = pd.date_range("2024-01-01", periods=45).delete([21, 22, 23])
    frame = pd.DataFrame({"unique_id": "a", "ds": days.strftime("%Y-%m-%d"), "y": values})
    frame.to_csv("data.csv", index=False)
    options = ("--alpha", "parrot", "--delays", delays, "--n-neighbors", 1, "--theiler", 0)
    call("explain", "data.csv", "--horizon", "30", *options, "--out", "out")

    rows = pd.read_csv(tmp_path / "out" / "explain.csv")
    assert not set(rows["neighbour"]) & {20, 21, 22, 23}
    steps = np.diff(rows["value"])
    assert not ((rows["value"][:-1].to_numpy() < 10) & (steps > 50)).any()
    assert metrics(tmp_path / "out")["n_missing"] == 3
    assert metrics(tmp_path / "out")["n_missing_stamps"] == 3


def test_the_interval_of_step_one_does_not_depend_on_the_horizon(call, tmp_path):
    rng = np.random.default_rng(0)
    t = np.arange(402)
    sd = np.where(t % 2 == 0, 3.0, 0.1)
    name = write(tmp_path / "shop.csv", np.where(t % 2 == 0, 0, 10) + sd * rng.normal(size=402))
    call("forecast", name, "--horizon", "1", "--out", "short")
    call("forecast", name, "--horizon", "6", "--out", "long")

    short, long = (pd.read_csv(tmp_path / n / "forecast.csv") for n in ("short", "long"))
    width = (short["y_hi_90"] - short["y_lo_90"])[0]
    widths = long["y_hi_90"] - long["y_lo_90"]
    assert widths[0] >= 0.9 * width
    assert (np.diff(widths) >= -1e-9).all()


# --- Bad input: the design's table, row by row -----------------------------------------------


def forecast(call, name, *options, horizon=3, check=True):
    return call("forecast", name, "--horizon", horizon, "--out", "out", *options, check=check)


def nothing_written(tmp_path):
    return not (tmp_path / "out").exists()


def test_nan_in_the_middle_is_counted_and_never_serves(call, tmp_path):
    y = np.sin(np.arange(80) / 3)
    y[30:33] = np.nan
    forecast(call, write(tmp_path / "y.csv", y))
    assert metrics(tmp_path / "out")["n_missing"] == 3
    assert pd.read_csv(tmp_path / "out" / "forecast.csv")["y"].notna().all()


def test_more_than_half_nan(call, tmp_path, assert_bad_input):
    y = np.where(np.arange(80) < 50, np.nan, 1.0)
    ran = forecast(call, write(tmp_path / "y.csv", y), check=False)
    assert_bad_input(ran, "y.csv", "50", "at least half")
    assert nothing_written(tmp_path)


def test_nan_as_the_last_value(run_command, tmp_path, assert_bad_input):
    """Through the real console script."""
    y = np.sin(np.arange(80) / 3)
    y[-1] = np.nan
    name = write(tmp_path / "y.csv", y)
    ran = run_command("dynabase", "forecast", name, "--horizon", "3", "--out", "out", check=False)
    assert_bad_input(ran, "y.csv", "the last value", "z0")
    assert nothing_written(tmp_path)


@pytest.mark.parametrize(("cell", "found"), [("inf", "inf"), ("fast", "fast"), ("1_000", "1_000")])
def test_what_is_no_number(call, tmp_path, assert_bad_input, cell, found):
    name = write(tmp_path / "y.csv", [1.0, 2.0, cell, 4.0])
    assert_bad_input(forecast(call, name, check=False), "y.csv:4:2", found, "number")
    assert nothing_written(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--delays", 9, "--tau", 2), ("8 row(s)", "delay(s) would fit")),
        (("--n-neighbors", 12), ("8 row(s)", "at least")),
        (("--theiler", 30), ("8 row(s)", "Theiler window of 30")),
    ],
)
def test_too_short(call, tmp_path, assert_bad_input, options, words):
    name = write(tmp_path / "y.csv", np.arange(8.0) % 3)
    assert_bad_input(forecast(call, name, *options, check=False), "y.csv", *words)
    assert nothing_written(tmp_path)


def test_a_constant_series(call, tmp_path):
    ran = forecast(call, write(tmp_path / "y.csv", [4.2] * 60))
    table = pd.read_csv(tmp_path / "out" / "forecast.csv")
    assert "constant" in ran.stderr
    assert (table[["y", "y_lo_90", "y_hi_90"]] == 4.2).all().all()


def test_a_constant_coordinate_among_others(call, tmp_path):
    frame = pd.DataFrame({"x": np.sin(np.arange(90) / 3), "flat": 7.0})
    frame.to_csv("y.csv", index=False)
    forecast(call, "y.csv")
    table = pd.read_csv(tmp_path / "out" / "forecast.csv")
    assert (table["flat"] == 7.0).all() and table["x"].notna().all()


def test_exactly_periodic_data(call, tmp_path):
    y = np.tile([0.0, 1.0, 3.0, 2.0, -1.0], 40)
    name = write(tmp_path / "y.csv", y)
    call("fit", name, "--out", "fit")
    assert metrics(tmp_path / "fit")["degenerate"] and metrics(tmp_path / "fit")["alpha"] == 0
    for alpha in ("forecast", "reconstruct", "parrot"):
        forecast(call, name, "--alpha", alpha, horizon=10)
        made = pd.read_csv(tmp_path / "out" / "forecast.csv")["y"].to_numpy()
        assert made == pytest.approx(y[:10], abs=1e-12)


def test_plateaus_do_not_freeze(call, tmp_path):
    y = np.round(3 * np.maximum(np.sin(np.arange(600) * 2 * np.pi / 37), 0)) / 3
    name = write(tmp_path / "y.csv", y)
    for delays in (1, 4):
        forecast(call, name, "--delays", delays, "--n-neighbors", 1, horizon=370)
        made = pd.read_csv(tmp_path / "out" / "forecast.csv")["y"]
        assert made.std() > 0.8 * y.std()


@pytest.mark.parametrize("kind", ["noise", "short", "alternating"])
def test_series_that_say_little(call, tmp_path, kind):
    y = {
        "noise": np.random.default_rng(0).normal(size=200),
        "short": np.random.default_rng(1).normal(size=12),
        "alternating": np.tile([1.0, -1.0], 50),
    }[kind]
    name = write(tmp_path / "y.csv", y)
    call("fit", name, "--out", "fit")
    forecast(call, name, "--alpha", "mse")
    assert metrics(tmp_path / "fit")["alpha"] >= 0
    assert metrics(tmp_path / "fit")["theiler"] == 1
    assert pd.read_csv(tmp_path / "out" / "forecast.csv")["y"].notna().all()


def test_trending_data_are_told_of_detrend(call, tmp_path):
    y = np.sin(np.arange(120) / 4) + 0.2 * np.arange(120)
    name = write(tmp_path / "y.csv", y)
    assert "--detrend" in forecast(call, name).stderr
    assert "--detrend" not in forecast(call, name, "--detrend", "linear").stderr
    made = pd.read_csv(tmp_path / "out" / "forecast.csv")["y"]
    assert made.to_numpy() == pytest.approx(
        np.sin(np.arange(120, 123) / 4) + 0.2 * np.arange(120, 123), abs=0.5
    )


def test_doubled_and_unsorted_time_stamps(run_command, call, tmp_path, assert_bad_input):
    (tmp_path / "y.csv").write_text("ds,y\n2024-01-01,1\n2024-01-02,2\n2024-01-02,3\n")
    ran = run_command(
        "dynabase", "forecast", "y.csv", "--horizon", "1", "--out", "out", check=False
    )
    assert_bad_input(ran, "y.csv:3 and 4", "2024-01-02 twice")
    (tmp_path / "y.csv").write_text("ds,y\n2024-01-01,1\n2024-01-03,2\n2024-01-02,3\n")
    assert_bad_input(forecast(call, "y.csv", check=False), "y.csv:3 and 4", "2024-01-02 after")
    assert nothing_written(tmp_path)


def test_an_unguarded_orbit_says_where_it_diverged(call, lorenz, tmp_path):
    options = ("--alpha", 1.5, "--trust-radius", "none", "--coverage", "none")
    ran = forecast(call, lorenz, *options, horizon=200)
    table = pd.read_csv(tmp_path / "out" / "forecast.csv")
    assert "diverged at step" in ran.stderr
    last = int(table["x"].last_valid_index())
    assert f"diverged at step {last + 1}" in ran.stderr
    assert table["x"][last + 1 :].isna().all() and last < 199


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("forecast", "none.csv", "--horizon", 3), ("none.csv", "no such file")),
        (("forecast", "y.txt", "--horizon", 3), ("y.txt", ".csv")),
        (("forecast", "y.csv"), ("--horizon",)),
        (("forecast", "y.csv", "--horizon", 0), ("horizon", "0", ">= 1")),
        (("forecast", "y.csv", "--horizon", 3, "--alpha", -1), ("alpha", "-1")),
        (("forecast", "y.csv", "--horizon", 3, "--alpha", "best"), ("alpha", "best")),
        (("forecast", "y.csv", "--horizon", 3, "--coverage", 1.5), ("--coverage", "1.5")),
        (("forecast", "y.csv", "--horizon", 3, "--detrend", "cubic"), ("detrend", "cubic")),
        (("forecast", "y.csv", "--horizon", 3, "--log"), ("y.csv", "positive", "--log")),
        (("forecast", "y.csv", "--horizon", 3, "--target", "z"), ("y.csv:1", "'z'")),
        (("reconstruct", "y.csv", "--holdout", 1), ("--holdout", "1")),
        (("reconstruct", "two.csv"), ("two.csv", "--series")),
        (("fit", "y.csv", "--objective", "horizon"), ("--horizon",)),
        (("train", "--systems", "lorenz"), ("--systems", "lorenz63")),
        (("train", "y.csv"), ("y.csv", "--context")),
        (("reconstruct", "y.csv", "--steps", "0"), ("--steps", ">= 1")),
        (("forecast", "broken.parquet", "--horizon", "3"), ("broken.parquet", "Parquet")),
        (("forecast", "semicolons.csv", "--horizon", "3"), ("semicolons.csv:1", "commas")),
        (("forecast", "huge.csv", "--horizon", "3"), ("huge.csv", "row 1", "1e+150")),
        (("score", "--true", "y.csv", "--pred", "later.csv"), ("later.csv", "no time stamp")),
        (("score", "--true", "y.csv", "--pred", "gap.csv"), ("gap.csv", "missing")),
        (("explain", "two.csv"), ("two.csv", "--series")),
    ],
)
def test_other_mistakes(call, tmp_path, assert_bad_input, args, words):
    write(tmp_path / "y.csv", np.sin(np.arange(60) / 3))
    write(tmp_path / "gap.csv", [1.0, np.nan, *[2.0] * 58])
    write(tmp_path / "later.csv", np.ones(20), start="2030-01-01")
    (tmp_path / "y.txt").write_text("1\n2\n")
    (tmp_path / "broken.parquet").write_text("hi")
    (tmp_path / "semicolons.csv").write_text("ds;y\n2024-01-01;1\n2024-01-02;2\n")
    write(tmp_path / "huge.csv", [1.0, 1e299, *np.ones(30)])
    (tmp_path / "two.csv").write_text("unique_id,ds,y\na,1,1\nb,1,2\na,2,3\nb,2,4\n")

    assert_bad_input(call(*args, "--out", "out", check=False), *words)
    assert nothing_written(tmp_path)


def test_a_constant_recording_is_reconstructed_too(call, tmp_path):
    write(tmp_path / "flat.csv", np.full(80, 5.5))
    call("reconstruct", "flat.csv", "--steps", "50", "--out", "out", "--quiet")

    with np.load(tmp_path / "out" / "trajectory.npz") as arrays:
        assert (arrays["trajectory"] == 5.5).all()
    assert (tmp_path / "out" / "spectrum.png").exists()
