"""The command: files in, files out, and one line for whatever is wrong with them.

Most tests call the console script's own function in this process; a few start the real script.
"""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from mks_conformal import MultivariateKernelScore, RegionSet
from mks_conformal.cli import main
from mks_conformal.data import synthetic
from mks_conformal.storage import load_region


class Ended(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Ended]
PAIRS = ("--pred", "p1,p2", "--true", "y1,y2")


@pytest.fixture
def mks(tmp_path: Path, monkeypatch, capsys) -> Run:
    """Run the command in `tmp_path`."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ended:
        status = main(list(arguments))
        return Ended(status, *capsys.readouterr())

    return run


def frame(n: int = 200, seed: int = 0) -> pd.DataFrame:
    """Predictions, and targets that are off by skewed residuals."""
    prediction = np.random.default_rng(seed).normal(size=(n, 2))
    target = prediction + synthetic("exp", n, 2, seed + 1)
    return pd.DataFrame(np.hstack([prediction, target]), columns=["p1", "p2", "y1", "y2"])


@pytest.fixture
def pairs(tmp_path: Path) -> pd.DataFrame:
    table = frame()
    table.to_csv(tmp_path / "pairs.csv", index=False)
    return table


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A region of the pairs, made once."""
    folder = tmp_path_factory.mktemp("saved")
    frame().to_csv(folder / "pairs.csv", index=False)
    model, out = str(folder / "region.npz"), str(folder / "made")
    arguments = ["calibrate", str(folder / "pairs.csv"), *PAIRS, "--model", model, "--out", out]
    assert main(arguments) == 0
    return folder


@pytest.fixture
def model(saved: Path, pairs: pd.DataFrame, tmp_path: Path) -> RegionSet:
    shutil.copytree(saved / "made", tmp_path / "made")
    shutil.copy(saved / "region.npz", tmp_path / "region.npz")
    return load_region(tmp_path / "region.npz")


def metrics(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())["metrics"]


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_calibrate_is_the_library_on_a_random_half(model, pairs, tmp_path: Path) -> None:
    found = metrics(tmp_path / "made")
    assert found["n_cal"] == found["n_score"] == 100
    assert (found["alpha"], found["guarantee"], found["bounded"]) == (0.1, 0.9, True)
    assert found["coverage"] is None
    assert found["volume_ratio_ellipsoid"] < 1  # the residuals are skewed
    score = model.law.rule
    residuals = pairs[["y1", "y2"]].to_numpy() - pairs[["p1", "p2"]].to_numpy()
    again = MultivariateKernelScore(alpha=0.1, random_state=0).fit(score.references_)
    np.testing.assert_array_equal(again.score_samples(residuals), score.score_samples(residuals))
    rest = [row for row in residuals.tolist() if row not in score.references_.tolist()]
    scores = np.sort(again.score_samples(np.array(rest)))
    np.testing.assert_allclose(model.law.calibrations[0].scores, scores, rtol=1e-12)
    assert model.law.thresholds()[0] == scores[90]  # the 91st of 100
    assert model.names == ("y1", "y2")


def test_coverage_is_measured_on_rows_kept_aside(mks: Run, tmp_path: Path) -> None:
    frame(600).to_parquet(tmp_path / "pairs.parquet")
    options = ("--model", "m.npz", "--test-size", "0.5", "--out", "o")
    assert mks("calibrate", "pairs.parquet", *PAIRS, *options).status == 0
    found = metrics(tmp_path / "o")
    assert (found["n_test"], found["n_cal"], found["n_score"]) == (300, 150, 150)
    assert 0.82 < found["coverage"] < 0.97
    share = found["coverage"]
    assert found["coverage_se"] == pytest.approx((share * (1 - share) / 300) ** 0.5)


def test_contains_answers_for_each_row(mks: Run, model, pairs, tmp_path: Path) -> None:
    ended = mks("contains", "pairs.csv", "--model", "region.npz", *PAIRS, "--out", "o")
    assert ended.status == 0, ended.err
    rows = lines(tmp_path / "o/contains.csv")
    assert [int(row["row"]) for row in rows] == list(range(200))
    targets = pairs[["y1", "y2"]].to_numpy()
    assert [row["inside"] == "1" for row in rows] == model.contains(targets).tolist()
    np.testing.assert_array_equal([float(r["pvalue"]) for r in rows], model.pvalue(targets))
    np.testing.assert_array_equal([float(r["score"]) for r in rows], model.score(targets))
    assert metrics(tmp_path / "o")["coverage"] == model.contains(targets).mean()


def test_columns_are_matched_by_name(mks: Run, model, pairs, tmp_path: Path) -> None:
    swapped = ("--pred", "p2,p1", "--true", "y2,y1")
    mks("contains", "pairs.csv", "--model", "region.npz", *PAIRS, "--out", "a")
    mks("contains", "pairs.csv", "--model", "region.npz", *swapped, "--out", "b")
    assert lines(tmp_path / "a/contains.csv") == lines(tmp_path / "b/contains.csv")
    pairs.rename(columns={"y1": "c1", "y2": "c2"}).to_csv(tmp_path / "c.csv", index=False)
    ended = mks("contains", "c.csv", "--model", "region.npz", "--pred", "p1,p2",
                "--true", "c1,c2", "--out", "c")  # fmt: skip
    assert "by position: y1, y2" in ended.err
    assert lines(tmp_path / "a/contains.csv") == lines(tmp_path / "c/contains.csv")


def test_many_candidates_pass_in_chunks(mks: Run, model, monkeypatch, tmp_path: Path) -> None:
    from mks_conformal import fitting

    mks("contains", "pairs.csv", "--model", "region.npz", *PAIRS, "--out", "a")
    monkeypatch.setattr(fitting, "CHUNK", 7)
    mks("contains", "pairs.csv", "--model", "region.npz", *PAIRS, "--out", "b")
    whole, chunks = (lines(tmp_path / f"{name}/contains.csv") for name in "ab")
    assert [(r["row"], r["pvalue"], r["inside"]) for r in whole] == [
        (r["row"], r["pvalue"], r["inside"]) for r in chunks
    ]


def test_volume_reaches_the_precision_asked_for(mks: Run, model, tmp_path: Path) -> None:
    mks("volume", "--model", "region.npz", "--rtol", "0.01", "--out", "o")
    found = metrics(tmp_path / "o")
    assert found["volume_se"] <= 0.01 * found["volume"]
    assert found["volume"] == model.volume(rtol=0.01, rng=0).value
    assert found["log_value"] == pytest.approx(np.log(found["volume"]))


def test_plot_draws_and_gives_the_box(mks: Run, model, tmp_path: Path) -> None:
    ended = mks("plot", "--model", "region.npz", "--dims", "y2,0", "--row", "3", "--out", "o")
    assert ended.status == 0, ended.err
    assert {"region.png", "region.svg", "result.json"} == {p.name for p in Path("o").iterdir()}
    (table,) = json.loads((tmp_path / "o/result.json").read_text())["tables"]
    box = model.bounding_box(3)
    assert [row["low"] for row in table["rows"]] == pytest.approx(box[0])
    assert [row["output"] for row in table["rows"]] == ["y1", "y2"]


def test_compare_puts_every_method_on_the_same_splits(mks: Run, pairs, tmp_path: Path) -> None:
    ended = mks("compare", "pairs.csv", *PAIRS, "--splits", "2", "--out", "o")
    assert ended.status == 0, ended.err
    rows = {row["method"]: row for row in lines(tmp_path / "o/compare.csv")}
    assert list(rows) == ["MKS", "KDE", "ellipsoid", "box", "Bonferroni"]
    assert float(rows["ellipsoid"]["ratio"]) == 1
    assert all(0.75 < float(row["coverage"]) <= 1 for row in rows.values())
    found = metrics(tmp_path / "o")
    assert (found["n_cal"], found["n_test"]) == (60, 60)
    assert found["volume_ratio_ellipsoid"] == pytest.approx(float(rows["MKS"]["ratio"]))
    assert (tmp_path / "o/compare.svg").exists()


@pytest.mark.parametrize("method", ["split", "full"])
def test_fit_saves_region_and_predictions(mks: Run, pairs, tmp_path: Path, method: str) -> None:
    ended = mks("fit", "pairs.csv", "--targets", "y1,y2", "--estimator", "ridge", "--model",
                "m.npz", "--method", method, "--test-size", "0.3", "--out", "o")  # fmt: skip
    assert ended.status == 0, ended.err
    found = metrics(tmp_path / "o")
    assert found["n_test"] == 60
    assert found["n_cal"] == 35  # a quarter of the other 140
    region = load_region(tmp_path / "m.npz")
    rows = lines(tmp_path / "o/predictions.csv")
    assert list(rows[0]) == ["row", "pred_y1", "pred_y2"]
    np.testing.assert_array_equal(
        [[float(row["pred_y1"]), float(row["pred_y2"])] for row in rows], region.prediction
    )
    # residuals are centred at 1 - 1 = 0, so ridge finds the predictions that made the targets
    assert np.abs(region.prediction - pairs[["p1", "p2"]].to_numpy()).max() < 0.6


def test_fit_of_one_target_predicts_other_rows(mks: Run, pairs, tmp_path: Path) -> None:
    pairs[["p2", "p1"]][:5].to_csv(tmp_path / "new.csv", index=False)
    ended = mks("fit", "pairs.csv", "--targets", "y1", "--features", "p1,p2", "--estimator", "hgb",
                "--predict", "new.csv", "--model", "m.npz", "--out", "o")  # fmt: skip
    assert ended.status == 0, ended.err
    assert load_region(tmp_path / "m.npz").prediction.shape == (5, 1)
    assert mks("plot", "--model", "m.npz", "--out", "p").status == 0


def test_too_few_rows_make_a_region_of_everything(mks: Run, tmp_path: Path) -> None:
    frame(16).to_csv(tmp_path / "few.csv", index=False)
    ended = mks("calibrate", "few.csv", *PAIRS, "--model", "m.npz", "--out", "o")
    assert ended.status == 0
    assert "at least 9 rows are needed" in ended.err
    found = metrics(tmp_path / "o")
    assert found["bounded"] is False
    assert found["volume"] is None
    assert found["n_cal_needed"] == 9
    mks("contains", "few.csv", "--model", "m.npz", *PAIRS, "--out", "c")
    assert metrics(tmp_path / "c")["coverage"] == 1


BAD = {
    "none.csv": None,
    "nan.csv": "p1,p2,y1,y2\n" + "1,2,3,4\n" * 20 + "1,2,nan,4\n",
    "inf.csv": "p1,p2,y1,y2\n1,2,3,inf\n",
    "word.csv": "p1,p2,y1,y2\n1,2,three,4\n",
    "short.csv": "p1,p2,y1,y2\n1,2,3\n",
    "names.csv": "p1,p2,y1\n1,2,3\n",
    "empty.csv": "p1,p2,y1,y2\n",
    "few.csv": "p1,p2,y1,y2\n" + "1,2,3,4\n2,3,4,7\n",
}


@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        ("none.csv", PAIRS, ["none.csv"]),
        ("nan.csv", PAIRS, ["nan.csv:22:3", "y1", "nan"]),
        ("inf.csv", PAIRS, ["inf.csv:2:4", "y2", "inf"]),
        ("word.csv", PAIRS, ["word.csv:2:3", "three"]),
        ("short.csv", PAIRS, ["short.csv:2", "4 fields", "3"]),
        ("names.csv", PAIRS, ["y2"]),
        ("empty.csv", PAIRS, ["empty.csv", "rows"]),
        ("few.csv", PAIRS, ["at least 4 for the score", "found 2:", "--score-size"]),
        ("pairs.csv", ("--pred", "p1,p2", "--true", "y1"), ["p1, p2", "--true y1"]),
        ("pairs.csv", ("--pred", "p1,p1", "--true", "y1,y2"), ["--pred", "'p1' twice"]),
        ("pairs.csv", ("--pred", "p1,", "--true", "y1,y2"), ["--pred", "separated by commas"]),
        ("pairs.csv", ("--pred", "p1,y1", "--true", "y1,y2"), ["'y1' in both"]),
        ("pairs.csv", (*PAIRS, "--alpha", "1.5"), ["--alpha", "between 0 and 1", "1.5"]),
        ("pairs.csv", (*PAIRS, "--score-size", "1"), ["--score-size", "between 0 and 1"]),
        ("pairs.csv", (*PAIRS, "--test-size", "1"), ["--test-size", "below 1"]),
        ("pairs.csv", (*PAIRS, "--model", "m.npy"), ["--model", ".npz"]),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    mks: Run, pairs, tmp_path: Path, file: str, options: tuple[str, ...], words: list[str]
) -> None:
    if BAD.get(file) is not None:
        (tmp_path / file).write_text(BAD[file])
    before = {path.name for path in tmp_path.iterdir()}
    chosen = () if "--model" in options else ("--model", "m.npz")
    ended = mks("calibrate", file, *options, *chosen)
    assert ended.status == 2, ended
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1, ended.err
    for word in words:
        assert word in ended.err
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.assign(y2=t["p2"] + 0.5), ["'y2'", "constant residuals", "leave it out"]),
        (
            lambda t: t.assign(y2=t["p2"] + 2 * (t["y1"] - t["p1"])),
            ["linearly dependent along", "y1, y2"],
        ),
    ],
)
def test_degenerate_outputs_are_named(mks: Run, pairs, tmp_path: Path, change, words) -> None:
    change(pairs).to_csv(tmp_path / "bad.csv", index=False)
    ended = mks("calibrate", "bad.csv", *PAIRS, "--model", "m.npz")
    assert ended.status == 2
    assert all(word in ended.err for word in words), ended.err
    assert not (tmp_path / "m.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plot", "--dims", "0"), ["--dims", "two of y1, y2, 0, 1"]),
        (("plot", "--dims", "0,y1"), ["--dims", "two different"]),
        (("plot", "--row", "200"), ["--row", "0 to 199"]),
        (("volume", "--rtol", "0"), ["rtol", "positive"]),
        (("contains", "pairs.csv", "--pred", "p1", "--true", "y1"), ["--true", "y1, y2"]),
        (("contains", "pairs.csv", "--pred", "p1,y1", "--true", "y2,p2"), ["--true", "y1, y2"]),
    ],
)
def test_bad_questions_to_a_region(mks: Run, model, arguments, words) -> None:
    ended = mks(*arguments, "--model", "region.npz")
    assert ended.status == 2, ended
    assert all(word in ended.err for word in words), ended.err


def test_a_model_does_not_replace_the_input(mks: Run, pairs, tmp_path: Path) -> None:
    (tmp_path / "pairs.npz").symlink_to(tmp_path / "pairs.csv")
    ended = mks("calibrate", "pairs.csv", *PAIRS, "--model", "pairs.npz")
    assert ended.status == 2, ended
    assert (tmp_path / "pairs.csv").read_text().startswith("p1,p2")


def test_compare_wants_enough_rows(mks: Run, tmp_path: Path) -> None:
    frame(12).to_csv(tmp_path / "few.csv", index=False)
    ended = mks("compare", "few.csv", *PAIRS)
    assert ended.status == 2
    assert "at least 15 for 2 output(s)" in ended.err
    assert mks("compare", "few.csv", *PAIRS, "--splits", "1").status == 2


def test_targets_and_features(mks: Run, pairs) -> None:
    for options, word in [
        (("--targets", "y1", "--features", "y1"), "'y1' in both"),
        (("--targets", "p1,p2,y1,y2"), "a column left as a feature"),
        (("--targets", "z"), "z"),
    ]:
        ended = mks("fit", "pairs.csv", "--model", "m.npz", *options)
        assert ended.status == 2
        assert word in ended.err


def test_the_real_command(run_command, assert_bad_input, result_schema, tmp_path: Path) -> None:
    frame(60).to_csv(tmp_path / "pairs.csv", index=False)
    arguments = ("calibrate", "pairs.csv", *PAIRS, "--model", "r.npz", "--json")
    record = json.loads(run_command("mks-conformal", *arguments).stdout)
    result_schema(record)
    assert record["inputs"][0]["name"] == "pairs.csv"
    bad = run_command("mks-conformal", "volume", "--model", "none.npz", check=False)
    assert_bad_input(bad, "none.npz")


def test_help_loads_no_heavy_library(imported_by) -> None:
    loaded = imported_by("mks-conformal", "fit", "--help")
    assert not loaded & {"torch", "sklearn", "matplotlib", "pandas", "scipy"}
