"""The demo and the quickstart, as a new user runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart.py"
README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_demo(run_command, result_schema, tmp_path):
    """With the plain install; some 14 s of one core."""
    ended = run_command("mks-conformal", "demo", "--out", tmp_path / "o", timeout=600)
    record = json.loads((tmp_path / "o/result.json").read_text())
    result_schema(record)
    found = record["metrics"]
    assert 0.8 < found["coverage"] < 1
    assert found["volume_ratio_ellipsoid"] < 0.9
    assert found["volume_ratio_box"] < 0.5
    assert "Bonferroni" in ended.stdout
    for name in ("contest.png", "contest.svg", "slices.png", "slices.svg", "report.html"):
        assert (tmp_path / "o" / name).stat().st_size > 0
    repeat = run_command("mks-conformal", "demo", "--out", tmp_path / "p", timeout=600)
    assert repeat.stdout == ended.stdout


def run(code: str) -> str:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_quickstart():
    out = run(QUICKSTART.read_text())
    coverage = float(out.split("coverage on 200 new rows:")[1].split()[0])
    assert 0.8 < coverage < 0.98


@pytest.mark.slow
def test_the_example_of_the_readme():
    code = README.read_text().split("```python\n")[1].split("```")[0]
    assert "coverage" in run(code)
