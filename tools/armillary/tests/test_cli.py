"""The manners of every command, on the toy of conftest.py, each in a process of its own."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest


def one_line(result: "subprocess.CompletedProcess[str]") -> str:
    assert "Traceback" not in result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


def test_a_clean_run_writes_everything_and_prints_the_table(toy, tmp_path: Path) -> None:
    result = toy("work", "input.txt", "-n", "2", "--out", "o")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[:3] == ["T", "x  y", "1  -"]
    assert (tmp_path / "o/a.txt").read_text() == "new a"
    assert (tmp_path / "o/sub/b.txt").read_text() == "new b"
    record = json.loads((tmp_path / "o/result.json").read_text())
    assert record["params"] == {"mode": "fine", "size": 2}
    assert record["metrics"] == {"infinite": None, "size": 2}
    assert record["warnings"] == ["look out"]
    assert [a["name"] for a in record["artefacts"]] == ["a.txt", "sub/b.txt"]
    assert record["inputs"][0]["name"] == "input.txt"
    assert not list((tmp_path / "o").glob(".partial*"))


def test_json_prints_the_same_object_as_the_file_and_nothing_else(toy, tmp_path: Path) -> None:
    result = toy("work", "input.txt", "--json", "--out", "o")
    assert json.loads(result.stdout) == json.loads((tmp_path / "o/result.json").read_text())


def test_the_default_folder_is_named_after_package_and_verb(toy, tmp_path: Path) -> None:
    toy("work", "input.txt", "--quiet")
    assert (tmp_path / "armillary-out/armillary/work/result.json").exists()


def test_quiet_says_nothing_on_stderr(toy) -> None:
    assert toy("work", "input.txt", "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["work", "input.txt", "--mode", "bad"], 2, "mode: expected a better one, found bad"),
        (["work", "input.txt", "--mode", "extra"], 2, "pip install 'toy[none]'"),
        (["work", "input.txt", "--mode", "fault"], 70, "ZeroDivisionError: two lines"),
        (["work", "missing.txt"], 2, "missing.txt"),
        (["work", "."], 2, "folder"),
        (["work"], 2, "FILE"),
        (["work", "input.txt", "--size", "three"], 2, "three"),
        (["work", "input.txt", "--sice", "3"], 2, "--size"),
        (["wrk", "input.txt"], 2, "--help"),
        (["work", "input.txt", "--seed", "-1"], 2, "--seed"),
        (["work", "input.txt", "--jobs", "0"], 2, "--jobs"),
        (["work", "input.txt", "--out", "input.txt"], 2, "--out"),
        (["work", "input.txt", "--out", "input.txt/below"], 2, "--out"),
        (["work", "input.txt", "--out", "x" * 300], 2, "name too long"),
        (["work", "/dev/null"], 2, "pipe"),
        (["reproduce", "nope"], 2, "count"),
        (["reproduce", "--quick", "--bad"], 2, "--bad"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    toy, tmp_path: Path, arguments: list[str], status: int, words: str
) -> None:
    result = toy(*arguments)
    assert result.returncode == status, result.stderr
    assert words in one_line(result)
    assert result.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == [
        "input.txt",
        "toy.py",
    ]


def test_the_answer_no_is_status_1(toy) -> None:
    assert toy("work", "input.txt", "--mode", "no").returncode == 1


def test_an_output_never_replaces_an_input(toy, tmp_path: Path) -> None:
    result = toy("work", "input.txt", "--mode", "over", "--out", ".")
    assert result.returncode == 2
    assert (tmp_path / "input.txt").read_text() == "input"
    assert not (tmp_path / "a.txt").exists()


def test_a_failed_run_leaves_the_old_outputs_whole(toy, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "o/a.txt").write_text("old a")
    assert toy("work", "input.txt", "--mode", "bad", "--out", "o").returncode == 2
    assert [p.name for p in (tmp_path / "o").iterdir()] == ["a.txt"]
    assert (tmp_path / "o/a.txt").read_text() == "old a"


def test_debug_shows_the_traceback(toy) -> None:
    result = toy("work", "input.txt", "--mode", "fault", "--debug")
    assert result.returncode == 70
    assert "Traceback" in result.stderr


def test_an_error_with_json_is_an_envelope(toy) -> None:
    result = toy("work", "input.txt", "--mode", "bad", "--json")
    record = json.loads(result.stdout)
    assert record["error"] == {
        "kind": "InputError",
        "message": "mode: expected a better one, found bad",
    }
    assert record["command"] == "work"
    assert json.loads(toy("work", "--json").stdout)["error"]["kind"].endswith("Error")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_is_130_and_leaves_nothing(
    toy_script: Path, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "input.txt").write_text("input")
    command = [sys.executable, str(toy_script), "work", "input.txt", "--mode", "sleep"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        process.send_signal(number)
        assert process.stderr.read().strip() == "interrupted"
    assert process.returncode == 130
    assert not (tmp_path / "armillary-out").exists()


def test_a_closed_pipe_is_no_error(toy_script: Path, tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("input")
    line = f"{sys.executable} {toy_script} work input.txt -n 200000 --quiet | head -n 1"
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "T\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["info"], ["work", "input.txt", "--json", "--quiet"]])
def test_a_full_disk_behind_stdout_is_no_fault(
    toy_script: Path, tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "input.txt").write_text("input")
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, str(toy_script), *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    assert result.returncode == 2
    assert "No space left" in one_line(result)


def test_a_folder_in_the_place_of_an_output_is_refused_before_any_moves(
    toy, tmp_path: Path
) -> None:
    (tmp_path / "o/result.json").mkdir(parents=True)
    result = toy("work", "input.txt", "--out", "o", "--quiet")
    assert result.returncode == 2
    assert "result.json" in one_line(result)
    assert [p.name for p in (tmp_path / "o").iterdir()] == ["result.json"]


def test_help_lists_every_verb_and_imports_none(toy) -> None:
    text = toy("--help").stdout
    for verb in ("work", "broken", "demo", "reproduce", "info"):
        assert verb in text
    assert "Do some work." in text
    assert toy("work", "--help").returncode == 0
    assert "--seed" in toy("demo", "--help").stdout


def test_version(toy) -> None:
    assert toy("--version").stdout.strip()[0].isdigit()


def test_info_names_the_paper_the_extras_and_the_devices(toy) -> None:
    record = json.loads(toy("info", "--json").stdout)
    assert "Journal of Play" in record["paper"]
    assert record["extras"]["np"] == "installed"
    assert "pip install 'armillary[none]'" in record["extras"]["none"]
    assert record["devices"].startswith("cpu")


def test_demo_takes_the_seed_and_writes_the_report(toy, tmp_path: Path) -> None:
    result = toy("demo", "--seed", "7", "--out", "d")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "d/result.json").read_text())["metrics"] == {"seed": 7}
    assert "<html" in (tmp_path / "d/report.html").read_text()


def test_json_records_keep_to_the_schema(toy, result_schema) -> None:
    for arguments in (
        ["work", "input.txt"],
        ["work", "nothing"],
        ["demo"],
        ["reproduce", "count", "cannot"],
    ):
        result_schema(json.loads(toy(*arguments, "--json").stdout))
