import json

import numpy as np
import pytest

from template_package.newcomb import PASSAGE_TIMES


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "times.csv"
    file.write_text("day,ns\n" + "".join(f"{i // 20},{t}\n" for i, t in enumerate(PASSAGE_TIMES)))
    return file


def test_estimate_writes_what_it_found(run_command, result_schema, table, tmp_path):
    arguments = ("estimate", str(table), "--column", "ns", "--blocks", "11", "--json")
    ran = run_command("template-package", *arguments, cwd=tmp_path)
    result = json.loads(ran.stdout)

    result_schema(result)
    assert result["inputs"][0]["name"].endswith("times.csv")
    assert result["metrics"]["mean"] == pytest.approx(PASSAGE_TIMES.mean())
    assert 26.3 < result["metrics"]["median_of_means"] < 29  # near the clean mean, 27.75
    out = tmp_path / "armillary-out" / "template-package" / "estimate"
    means = np.loadtxt(out / "block_means.csv", delimiter=",", skiprows=1)[:, 1]
    assert np.median(means) == pytest.approx(result["metrics"]["median_of_means"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("day,time\n1,2\n", ("times.csv", "ns")),
        ("day,ns\n1,2\n1,fast\n", ("times.csv:3", "fast")),
        ("day,ns\n1,2\n1,nan\n", ("times.csv:3", "nan")),
        ("day,ns\n1,2\n", ("at least one for each of 37 blocks",)),
        ("", ("times.csv",)),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    run_command, assert_bad_input, tmp_path, content, words
):
    (tmp_path / "times.csv").write_text(content)
    arguments = ("estimate", "times.csv", "--column", "ns")
    ran = run_command("template-package", *arguments, cwd=tmp_path, check=False)

    assert_bad_input(ran, *words)
    assert [file.name for file in tmp_path.iterdir()] == ["times.csv"]


def test_the_demo_shows_the_wild_values_at_work(run_command, result_schema, tmp_path):
    ran = run_command("template-package", "demo", "--json", "--out", str(tmp_path))
    result = json.loads(ran.stdout)

    result_schema(result)
    assert result["metrics"]["mean"] == pytest.approx(26.21, abs=0.005)
    assert 27 < result["metrics"]["median_of_means"] < 28
    for name in ("result.json", "report.html", "blocks.svg", "blocks.png"):
        assert (tmp_path / name).stat().st_size > 0


def test_the_claims_hold(run_command, tmp_path):
    ran = run_command("template-package", "reproduce", "--quick", "--json", "--out", str(tmp_path))
    verdicts = {claim["id"]: claim["verdict"] for claim in json.loads(ran.stdout)["claims"]}

    assert verdicts == {"bound": "holds", "tails": "holds"}
