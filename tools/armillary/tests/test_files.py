"""Text lines, atomic writes, digests and the guard against overwriting an input."""

import gzip
import hashlib
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import armillary.files
from armillary import InputError
from armillary.files import (
    atomic,
    excerpt,
    reading,
    refuse_overwrite,
    sha256,
    text_lines,
    write_json,
)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- reading ---------------------------------------------------------------------------------


def test_lines_drop_the_byte_order_mark_and_keep_their_ends(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"\xef\xbb\xbfone\r\n\xef\xbb\xbftwo\n\nthr\xc3\xa9e")
    assert list(text_lines(path)) == ["one\r\n", "\ufefftwo\n", "\n", "thrée"]


def test_lines_unpack_gzip_and_name_a_broken_one(tmp_path: Path) -> None:
    whole = gzip.compress(b"one\ntwo\n" * 1000)
    assert len(list(text_lines(written(tmp_path / "a.gz", whole)))) == 2000
    for name, content in [("cut.gz", whole[:-20]), ("no.gz", b"one\n")]:
        with pytest.raises(InputError, match=rf"{name}: expected whole gzip data, found "):
            list(text_lines(written(tmp_path / name, content)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ok\nna\xefve\n", ":2:3: expected UTF-8 text, found the byte 0xef (save the file as"),
        ("é".encode() + b"\xff\n", ":1:2: expected UTF-8 text, found the byte 0xff"),
        ("x\n".encode("utf-16"), ":1:1: expected UTF-8 text, found the byte 0xff"),
        ("a\nb\n".encode("utf-16-le"), ":1:2: expected text, found a NUL byte"),
        (b"ok\nok\na\0b", ":3:2: expected text, found a NUL byte"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_their_place(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = written(tmp_path / "a.txt", content)
    with pytest.raises(InputError) as caught:
        list(text_lines(path))
    assert str(caught.value).startswith(f"{path}{message}")


def test_what_the_system_says_of_an_input_becomes_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.txt: no such file$"):
        sha256(tmp_path / "no.txt")
    with pytest.raises(InputError, match=r": expected a file, found a folder$"):
        sha256(tmp_path)
    with pytest.raises(InputError, match=r"^a: no permission to read this file$"), reading("a"):
        raise PermissionError(13, "Permission denied")  # root, who may read all, runs this too
    with pytest.raises(InputError, match=r"^a: cannot be read, found stale handle$"), reading("a"):
        raise OSError(116, "Stale handle")


@pytest.mark.skipif(os.name != "posix", reason="needs another user's identity")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "secret.txt", b"x")
    path.chmod(0)
    code = (
        "import os, sys; from armillary.files import sha256\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "try: sha256(sys.argv[1])\n"
        "except ValueError as error: print(error)\n"
    )
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(folder.stat().st_mode | 0o055)
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"{path}: no permission to read this file\n"


def test_an_excerpt_is_short_and_holds_the_place() -> None:
    assert excerpt("a\nb") == r"'a\nb'"
    text = "".join(chr(33 + i % 90) for i in range(500))
    for place in (0, 10, 250, 499):
        shown = excerpt(text, place)
        assert len(shown) < 60
        assert repr(text[place])[1:-1] in shown
        assert shown.startswith("...") == (place > 20)
        assert shown.endswith("...") == (place < 480)


def test_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    content = os.urandom(3_000_001)
    assert sha256(written(tmp_path / "a", content)) == hashlib.sha256(content).hexdigest()


def test_every_promised_name_is_reached_and_loaded_late() -> None:
    for name in armillary.files.__all__:
        assert getattr(armillary.files, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        armillary.files.nothing  # noqa: B018
    code = (
        "import sys; from armillary.files import atomic; import armillary.run\n"
        "print(sorted({'numpy', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "[]\n", result.stderr


# --- writing ---------------------------------------------------------------------------------


def test_atomic_replaces_on_a_clean_end_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"old")
    with pytest.raises(ZeroDivisionError), atomic(path) as file:
        file.write("half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    with atomic(path) as file:
        file.write("né\n")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == "né\n".encode()
    with atomic(path, "wb") as file:
        file.write(b"\xff")
    assert path.read_bytes() == b"\xff"
    assert names(tmp_path) == ["a.txt"]


def test_atomic_keeps_the_mode_and_makes_new_files_as_usual(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"old")
    path.chmod(0o640)
    usual = written(tmp_path / "usual", b"")
    for target, mode in [(path, 0o640), (tmp_path / "new", stat.S_IMODE(usual.stat().st_mode))]:
        with atomic(target) as file:
            file.write("x")
        assert stat.S_IMODE(target.stat().st_mode) == mode


def test_atomic_follows_links(tmp_path: Path) -> None:
    target = written(tmp_path / "a.txt", b"old")
    link = tmp_path / "link"
    link.symlink_to(target)
    write_json(link, 1)
    assert link.is_symlink()
    assert target.read_bytes() == b"1\n"


def test_atomic_says_why_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, reason in [
        (tmp_path / "no" / "a", "no such file or directory"),
        (tmp_path, "a folder of that name"),
    ]:
        with pytest.raises(InputError, match=f"^{path}: cannot be written, found {reason}$"):
            write_json(path, 1)
    path = written(tmp_path / "a", b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # what a user who is not root would see
    with pytest.raises(InputError, match="a: cannot be written, found permission denied"):
        write_json(path, 1)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_other_errors_of_the_callers_block_pass_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic(tmp_path / "a"):
        (tmp_path / "other").read_bytes()
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_line_and_a_device_stays_a_device() -> None:
    with pytest.raises(InputError, match=r"^/dev/full: cannot be written, found no space left"):
        write_json("/dev/full", 1)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_writer_killed_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"old")
    code = (
        "import sys; from armillary.files import atomic\n"
        "with atomic(sys.argv[1]) as file:\n"
        "    while True:\n"
        "        file.write('new' * 100_000); file.flush(); print('x', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(3):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
    assert path.read_bytes() == b"old"


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    """A reader looks again and again while a writer replaces the file: always one whole text."""
    path = written(tmp_path / "a.txt", b"0" * 100_000)
    code = (
        "import sys; from armillary.files import atomic\n"
        "for digit in '123456789' * 5:\n"
        "    with atomic(sys.argv[1]) as file:\n"
        "        for _ in range(100): file.write(digit * 1000)\n"
    )
    seen: set[bytes] = set()
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as child:
        while child.poll() is None:
            seen.add(path.read_bytes())
            time.sleep(0.001)
    assert child.returncode == 0
    assert all(len(text) == 100_000 and len(set(text)) == 1 for text in seen)


def test_outputs_that_are_inputs_are_refused_by_any_name(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", b"x")
    link, hard, other = tmp_path / "link", tmp_path / "hard", tmp_path / "b.csv"
    link.symlink_to(path)
    hard.hardlink_to(path)
    for output in (
        path,
        link,
        hard,
        tmp_path / "." / "a.csv",
        f"{tmp_path}/../{tmp_path.name}/a.csv",
    ):
        with pytest.raises(InputError, match=r"would overwrite the input .*/a\.csv \(write to"):
            refuse_overwrite(output, [other, path])
    refuse_overwrite(other, [path])
    refuse_overwrite(written(other, b"x"), [path, tmp_path / "gone"])
