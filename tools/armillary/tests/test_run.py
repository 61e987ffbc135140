import errno
from pathlib import Path

import numpy as np
import pytest

from armillary import InputError
from armillary.method import Method, Paper
from armillary.run import Common, Run, format_table, peak_memory_mib, versions


def _disk_full() -> InputError:
    error = InputError("cannot be written")
    error.__cause__ = OSError(errno.ENOSPC, "no space left on device")
    return error


CARD = Method("armillary", "t", Paper("T", (), "V", 2026), "m:demo", "m:CLAIMS")


def test_tables_line_up_and_hide_nothing() -> None:
    rows = [{"name": "a\nb", "value": 1.23456, "ok": True}, {"name": "c", "value": None}]
    assert format_table(rows).splitlines() == [
        "name  value  ok",
        "a b   1.235  yes",
        "c         -  -",
    ]
    assert format_table([]) == "(no rows)"


def test_a_strangers_text_does_not_reach_the_terminal_as_orders() -> None:
    assert "\x1b" not in format_table([{"text": "\x1b[2J gone"}])
    assert "\x1b" not in str(InputError("text", found="\x1b]0;title\x07"))


def test_versions_name_what_the_package_needs() -> None:
    found = versions("armillary")
    assert found["numpy"] == np.__version__
    assert {"python", "armillary", "cyclopts"} <= set(found)


def test_peak_memory_is_in_mib() -> None:
    block = np.ones(2**26)  # 512 MiB
    assert peak_memory_mib() > block.nbytes / 2**20
    assert peak_memory_mib() < 2**14


def test_staged_files_appear_together_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "o"
    with pytest.raises(ZeroDivisionError), Run(CARD, "v", Common(out=out, quiet=True), {}) as run:
        run.path("a.txt").write_text("a")
        raise ZeroDivisionError
    assert not (tmp_path / "deep").exists()
    with Run(CARD, "v", Common(out=out, quiet=True), {}) as run:
        run.path("a.txt").write_text("a")
        assert not (out / "a.txt").exists()
    assert sorted(p.name for p in out.iterdir()) == ["a.txt", "result.json"]


def test_the_record_moves_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[str] = []
    move = Path.replace

    def noted(source: Path, target: Path) -> Path:
        if not target.parent.name.startswith(".partial"):
            moved.append(source.name)
        return move(source, target)

    with Run(CARD, "v", Common(out=tmp_path / "o", quiet=True), {}) as run:
        run.path("a.txt").write_text("a")
        run.path("b.txt").write_text("b")
        monkeypatch.setattr(Path, "replace", noted)
    assert moved == ["a.txt", "b.txt", "result.json"]


def test_direct_outputs_outlive_a_failure(tmp_path: Path) -> None:
    out = tmp_path / "o"
    with pytest.raises(ZeroDivisionError), Run(CARD, "v", Common(out=out, quiet=True), {}) as run:
        run.directly = True
        run.path("a.txt").write_text("a")
        raise ZeroDivisionError
    assert [p.name for p in out.iterdir()] == ["a.txt"]


def test_figures_become_artefacts_with_their_caption(tmp_path: Path) -> None:
    from armillary.figures import new

    with Run(CARD, "v", Common(out=tmp_path, quiet=True), {}) as run:
        figure, axes = new()
        axes.plot([0, 1], [0, 1])
        run.figure(figure, "sub/line", "A line.")
    assert run.artefacts == {"sub/line.png": "A line.", "sub/line.svg": "A line."}
    assert (tmp_path / "sub/line.png").exists()
    assert (tmp_path / "sub/line.svg").exists()


def test_progress_passes_items_on(tmp_path: Path) -> None:
    with Run(CARD, "v", Common(out=tmp_path), {}) as run:
        assert list(run.progress(range(3), description="x")) == [0, 1, 2]


def test_an_input_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"gone\.csv"),
        Run(CARD, "v", Common(out=tmp_path / "o", quiet=True), {}) as run,
    ):
        run.input(tmp_path / "gone.csv")


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (None, False),
        (InputError("bad"), False),
        (KeyboardInterrupt(), True),
        (_disk_full(), True),
    ],
)
def test_unfinished_work_outlives_an_interruption_and_a_full_disk_only(
    tmp_path: Path, error: BaseException | None, stays: bool
) -> None:
    out = tmp_path / "o"
    try:
        with Run(CARD, "v", Common(out=out, quiet=True), {}) as run:
            run.unfinished("items.jsonl", resume=False).write_text("one")
            if error is not None:
                raise error
    except (InputError, KeyboardInterrupt):
        assert out.exists() is stays
    assert (out / "items.jsonl").exists() is stays
    if stays:
        with Run(CARD, "v", Common(out=out, quiet=True), {}) as run:
            assert run.unfinished("items.jsonl", resume=True).read_text() == "one"


def test_a_bad_option_does_not_cost_a_resumed_run_what_was_finished(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text("one")
    with (
        pytest.raises(InputError),
        Run(CARD, "v", Common(out=tmp_path, quiet=True), {}) as run,
    ):
        run.unfinished("items.jsonl", resume=True)
        raise InputError("beta")
    assert (tmp_path / "items.jsonl").read_text() == "one"
