"""Checkpoints: whatever moment the process dies at, finished items are not lost."""

import math
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary import InputError
from armillary.checkpoint import Checkpoint, digest_of, resumable


def test_values_outlive_the_object_as_json_has_them(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.jsonl"
    kept = Checkpoint(path)
    assert not path.parent.exists()
    kept.add("a", {"x": np.arange(2), "y": math.nan, "z": (1, "é\ud83d")})
    kept.add("b", None)
    expected = {"a": {"x": [0, 1], "y": None, "z": [1, "é\ud83d"]}, "b": None}
    assert kept.done == expected
    assert Checkpoint(path).done == expected


def test_a_line_torn_at_any_byte_costs_that_item_alone(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    kept = Checkpoint(path)
    kept.add("a", 1)
    whole = path.read_bytes()
    kept.add("b", {"text": "é" * 5, "n": [1, 2]})
    full = path.read_bytes()
    for cut in range(len(whole), len(full)):
        path.write_bytes(full[:cut])
        again = Checkpoint(path)
        assert again.done == {"a": 1}, cut
        assert path.read_bytes() == full[:cut]  # reading changes nothing
        again.add("c", 3)
        again.add("d", 4)
        assert Checkpoint(path).done == {"a": 1, "c": 3, "d": 4}, cut
        assert path.read_bytes().startswith(whole)
    path.write_bytes(full)
    assert len(Checkpoint(path).done) == 2


@pytest.mark.parametrize(
    "line", [b'{"key": "b", "val', b'\xff{"key"', b"{}", b"[1]", b'{"key": 1, "value": 1}', b""]
)
def test_a_bad_line_in_the_middle_is_an_error(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "kept.jsonl"
    good = b'{"key": "a", "value": 1}\n'
    path.write_bytes(good + line + b"\n" + good)
    with pytest.raises(InputError) as caught:
        Checkpoint(path)
    shown = repr(line.decode(errors="replace"))
    assert str(caught.value) == (
        f"{path}:2: expected a finished item with key and value, found {shown} "
        "(remove the file to start afresh)"
    )


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a file, found a folder"):
        Checkpoint(tmp_path)


def test_a_failed_write_does_not_spoil_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.jsonl"
    kept = Checkpoint(path)
    kept.add("a", 1)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            InputError, match=r"kept\.jsonl: cannot be written, found no space left"
        ):
            kept.add("b", 2)
    assert kept.done == {"a": 1}
    kept.add("c", 3)
    assert Checkpoint(path).done == {"a": 1, "c": 3}


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    calls: list[int] = []

    def square(x: int) -> dict[str, Any]:
        calls.append(x)
        if x == 3 and len(calls) < 6:
            raise KeyboardInterrupt
        return {"x": x, "square": np.float64(x * x)}

    def run(items: list[int]) -> list[dict[str, Any]]:
        return list(resumable(square, items, path, key=lambda x: ["square", x]))

    with pytest.raises(KeyboardInterrupt):
        run([1, 2, 2, 3])
    assert calls == [1, 2, 3]
    calls += [0, 0, 0]
    assert [row["square"] for row in run([3, 2, 1, 4])] == [9.0, 4.0, 1.0, 16.0]
    assert calls[6:] == [3, 4]


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_loop_resumes(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    code = (
        "import sys, time; from armillary.checkpoint import resumable\n"
        "def slow(x): time.sleep(0.05 * (x > 3)); return [x] * 1000\n"
        "for value in resumable(slow, range(1000), sys.argv[1], key=lambda x: x):\n"
        "    print(value[0], flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(5):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
    done = Checkpoint(path).done
    assert len(done) >= 5
    assert all(done[digest_of(x)] == [x] * 1000 for x in range(5))


@dataclass
class Setting:
    depth: int
    rate: Any


def test_digests_are_the_same_everywhere_and_differ_where_it_matters() -> None:
    """Checkpoints of earlier versions stay readable: the first digest may never change."""
    assert digest_of(["claim", True, 0, "0.1.0"]) == "52a416987b6ece63ca7cccd4dd6514c8"
    assert digest_of({"b": 1, "a": (1, 2)}) == digest_of({"a": [1, 2], "b": 1})
    assert digest_of(np.float64(0.5)) == digest_of(0.5)
    assert digest_of(np.int64(3)) == digest_of(3) == digest_of(np.array(3))
    assert digest_of(Path("a/b")) == digest_of("a/b")
    assert digest_of(Setting(1, np.ones(2))) == digest_of(Setting(1, np.ones(2)))
    different = [
        1, 1.0, "1", True, None, math.nan, math.inf, -math.inf, [], {}, [1], [[1]], "",
        np.float32("nan"), np.zeros(2), np.zeros(2, dtype="f4"), np.zeros((2, 1)), np.ones(2),
        Setting(1, 0.5), Setting(1, np.ones(2)), Setting(2, 0.5),
    ]  # fmt: skip
    digests = {digest_of(value) for value in different}
    assert len(digests) == len(different) - 1  # nan is nan, whatever its type
    with pytest.raises(TypeError, match="has no form in JSON"):
        digest_of(object())
