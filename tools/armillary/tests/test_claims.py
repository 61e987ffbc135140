import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.claims import Check, Verdict, worst


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (Check("a", 1.0, at_least=1.0), Verdict.HOLDS),
        (Check("a", 0.999, at_least=1.0), Verdict.FAILS),
        (Check("a", 1.5, 0.9, 2.0, at_least=1.0), Verdict.UNDECIDED),
        (Check("a", 1.5, 1.0, 2.0, at_least=1.0), Verdict.HOLDS),
        (Check("a", 1.5, 1.0, 2.0, at_most=2.0), Verdict.HOLDS),
        (Check("a", 1.5, 1.0, 2.0, at_most=0.5), Verdict.FAILS),
        (Check("a", 1.5, 1.0, 2.0, at_least=1.1, at_most=1.9), Verdict.UNDECIDED),
        (Check("a", math.nan, at_least=0.0), Verdict.UNDECIDED),
        (Check("a", 1.0, math.nan, 2.0, at_least=0.0), Verdict.UNDECIDED),
        (Check("a", 1.0), Verdict.HOLDS),
    ],
)
def test_the_rule(check: Check, verdict: Verdict) -> None:
    assert check.verdict is verdict


@given(*[st.floats(-10, 10)] * 4)
def test_the_rule_follows_from_the_interval_alone(a: float, b: float, c: float, d: float) -> None:
    (low, high), (at_least, at_most) = sorted((a, b)), sorted((c, d))
    verdict = Check("a", low, low, high, at_least, at_most).verdict
    inside = at_least <= low and high <= at_most
    overlaps = low <= at_most and high >= at_least
    assert (verdict is Verdict.HOLDS) == inside
    assert (verdict is Verdict.FAILS) == (not overlaps)


def test_a_claim_is_as_good_as_its_worst_check() -> None:
    assert worst([Verdict.HOLDS, Verdict.UNDECIDED]) is Verdict.UNDECIDED
    assert worst([Verdict.UNDECIDED, Verdict.FAILS, Verdict.HOLDS]) is Verdict.FAILS
    assert worst([Verdict.HOLDS]) is Verdict.HOLDS


def records(folder: Path) -> dict[str, dict]:
    return {c["id"]: c for c in json.loads((folder / "result.json").read_text())["claims"]}


def test_reproduce_measures_all_and_fails_on_a_promise(toy, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "o/go").touch()
    result = toy("reproduce", "--out", "o", "--quick")
    assert result.returncode == 1, result.stderr
    assert {name: record["verdict"] for name, record in records(tmp_path / "o").items()} == {
        "count": "holds",
        "stop": "undecided",
        "unpromised": "does not hold",
        "cannot": "not measured",
        "fails": "does not hold",
    }
    assert records(tmp_path / "o")["cannot"]["why"] == "no such data here"
    assert "no such data here" in result.stdout
    assert (tmp_path / "o/report.html").exists()


def test_a_promise_alone_decides_the_status(toy) -> None:
    assert toy("reproduce", "unpromised", "cannot").returncode == 0
    assert toy("reproduce", "fails").returncode == 1


def test_an_interrupted_run_keeps_what_is_finished_and_resumes(toy, tmp_path: Path) -> None:
    assert toy("reproduce", "count", "stop", "--out", "o").returncode == 130
    assert (tmp_path / "o/calls").read_text() == "x"
    assert (tmp_path / "o/kept.txt").read_text() == "kept"
    (tmp_path / "o/go").touch()
    assert toy("reproduce", "count", "stop", "--out", "o", "--resume").returncode == 0
    assert (tmp_path / "o/calls").read_text() == "x"  # not measured twice
    record = json.loads((tmp_path / "o/result.json").read_text())
    assert {"name": "kept.txt", "caption": "a caption"} in record["artefacts"]


def test_resume_measures_again_what_differs(toy, tmp_path: Path) -> None:
    toy("reproduce", "count", "--out", "o")
    toy("reproduce", "count", "--out", "o", "--resume", "--quick")
    toy("reproduce", "count", "--out", "o", "--resume", "--seed", "1")
    toy("reproduce", "count", "--out", "o")  # without --resume everything is measured
    assert (tmp_path / "o/calls").read_text() == "xxxx"
