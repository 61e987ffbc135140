"""The command `armillary`, through its real entry point."""

import json
from pathlib import Path


def test_list_agrees_with_the_entry_points(run_command) -> None:
    from armillary.method import methods

    rows = json.loads(run_command("armillary", "list", "--json").stdout)
    assert [row["package"] for row in rows] == list(methods())


def test_doctor_finds_nothing_wrong_here(run_command) -> None:
    result = run_command("armillary", "doctor", "--json")
    rows = json.loads(result.stdout)
    assert {row["what"] for row in rows} >= {"python", "armillary", "devices"}
    assert all(row["ok"] for row in rows)


def test_gallery_covers_the_folders_given(run_command, toy, tmp_path: Path) -> None:
    toy("demo", "--out", "a/demo")
    toy("work", "input.txt", "--out", "b/work")
    (tmp_path / "b/.partial-1").mkdir()
    (tmp_path / "b/.partial-1/result.json").write_text("left by a run that was killed")
    result = run_command(
        "armillary",
        "gallery",
        str(tmp_path / "a"),
        str(tmp_path / "b"),
        "--out",
        str(tmp_path / "g"),
    )
    page = (tmp_path / "g/index.html").read_text()
    assert "A toy" in page or "armillary" in page
    assert str(tmp_path / "g/index.html") in result.stdout


def test_bad_input_is_one_line(run_command, assert_bad_input, tmp_path: Path) -> None:
    assert_bad_input(run_command("armillary", "demo", "no-such", check=False), "no-such")
    empty = str(tmp_path)
    assert_bad_input(run_command("armillary", "gallery", empty, check=False), "result.json")
    assert_bad_input(run_command("armillary", "gallery", check=False), "no folder")
