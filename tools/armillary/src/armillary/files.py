"""Files in and out: text with the place of every fault, atomic writes, digests.

What is wrong in a user's file is an `InputError` that begins with ``file:line`` or
``file:line:column``, counted from 1. What is written appears whole or not at all. JSON lives in
`armillary.jsonl`, tables (CSV, Parquet) in `armillary.tables`, arrays (NPY, NPZ, safetensors) in
`armillary.arrays`; their readers and writers are reached from here too, loaded when asked for.
"""

import codecs
import errno
import gzip
import hashlib
import io
import os
import shutil
import uuid
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, overload

from .errors import InputError

if TYPE_CHECKING:
    from .arrays import read_array as read_array
    from .arrays import read_arrays as read_arrays
    from .arrays import read_tensor as read_tensor
    from .arrays import write_arrays as write_arrays
    from .jsonl import jsonable as jsonable
    from .jsonl import read_json as read_json
    from .jsonl import read_jsonl as read_jsonl
    from .jsonl import write_json as write_json
    from .jsonl import write_jsonl as write_jsonl
    from .tables import parse_number as parse_number
    from .tables import read_table as read_table
    from .tables import write_csv as write_csv

__all__ = [
    "PathLike",
    "atomic",
    "excerpt",
    "jsonable",
    "parse_number",
    "read_array",
    "read_arrays",
    "read_json",
    "read_jsonl",
    "read_table",
    "read_tensor",
    "reading",
    "refuse_overwrite",
    "sha256",
    "text_lines",
    "write_arrays",
    "write_csv",
    "write_json",
    "write_jsonl",
    "writing",
]

PathLike = str | os.PathLike[str]

_ELSEWHERE = {
    "read_array": ".arrays",
    "read_arrays": ".arrays",
    "read_tensor": ".arrays",
    "write_arrays": ".arrays",
    "jsonable": ".jsonl",
    "read_json": ".jsonl",
    "read_jsonl": ".jsonl",
    "write_json": ".jsonl",
    "write_jsonl": ".jsonl",
    "parse_number": ".tables",
    "read_table": ".tables",
    "write_csv": ".tables",
}


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(import_module(_ELSEWHERE[name], __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextmanager
def reading(path: PathLike) -> Generator[None, None, None]:
    """Turn what the system says about an input file into one line for the user."""
    where = os.fspath(path)
    try:
        yield
    except FileNotFoundError as error:
        raise InputError("no such file", where=where) from error
    except IsADirectoryError as error:
        raise InputError("expected a file, found a folder", where=where) from error
    except PermissionError as error:
        raise InputError("no permission to read this file", where=where) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError("expected whole gzip data", where=where, found=str(error)) from error
    except OSError as error:
        raise InputError("cannot be read", where=where, found=_reason(error)) from error


def excerpt(text: str, position: int = 0, *, width: int = 40) -> str:
    """The part of a user's text around `position`, quoted, short enough for one line."""
    if len(text) <= width:
        return repr(text)
    start = min(max(position - width // 2, 0), len(text) - width)
    head, tail = "..." * (start > 0), "..." * (start + width < len(text))
    return f"{head}{text[start : start + width]!r}{tail}"


def text_lines(path: PathLike) -> Iterator[str]:
    """Lines of a UTF-8 file, one at a time, their ends kept; ``.gz`` is unpacked on the way.

    A byte order mark is dropped. Bytes that are not UTF-8 and NUL bytes are refused with their
    place, since they mean another encoding or a broken copy.
    """
    where = os.fspath(path)
    with reading(path), _open(path) as file:
        for number, raw in enumerate(file, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                column = len(raw[: error.start].decode()) + 1
                raise InputError(
                    "expected UTF-8 text",
                    where=f"{where}:{number}:{column}",
                    found=f"the byte 0x{raw[error.start]:02x}",
                    instead="save the file as UTF-8",
                ) from error
            if "\0" in line:
                place = f"{where}:{number}:{line.index(chr(0)) + 1}"
                raise InputError("expected text", where=place, found="a NUL byte")
            yield line


@overload
def atomic(path: PathLike, mode: Literal["w"] = "w") -> AbstractContextManager[IO[str]]: ...
@overload
def atomic(path: PathLike, mode: Literal["wb"]) -> AbstractContextManager[IO[bytes]]: ...
def atomic(path: PathLike, mode: Literal["w", "wb"] = "w") -> AbstractContextManager[IO[Any]]:
    r"""Open a file that replaces `path` when the block ends well, and vanishes when it raises.

    The bytes go to a temporary file in the same folder, reach the disk, and are then renamed, so
    that a reader finds the old content or the new one, never a part, whenever the writer dies.
    The mode of an existing file is kept and a link is followed. A device or pipe is written to
    as it is. Text is UTF-8 with ``\n`` line ends everywhere.

    Raises
    ------
    InputError
        If the file cannot be written, or the disk is full.
    """
    return _atomic(path, mode)


@contextmanager
def _atomic(path: PathLike, mode: Literal["w", "wb"]) -> Generator[IO[Any], None, None]:
    text: dict[str, Any] = {} if mode == "wb" else {"encoding": "utf-8", "newline": "\n"}
    target = Path(path).resolve()
    # Replacing a device by a plain file would break it for everybody.
    special = target.exists() and not target.is_file() and not target.is_dir()
    staged = target if special else target.with_name(f".armillary-{uuid.uuid4().hex}.tmp")
    with writing(path):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "a folder of that name")
        if target.is_file() and not os.access(target, os.W_OK):  # else a rename would go through
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        file = staged.open(mode if special else mode.replace("w", "x"), **text)
    try:
        with writing(path, only_full=True), file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            with writing(path):
                if target.exists():
                    shutil.copymode(target, staged)
                staged.replace(target)
    except BaseException:
        if not special:
            with suppress(OSError):
                staged.unlink()
        raise


@contextmanager
def writing(path: PathLike, *, only_full: bool = False) -> Generator[None, None, None]:
    """Turn what the system says about an output file into one line for the user.

    With `only_full`, nothing but a full disk: inside a caller's block an OSError may be about
    something else.
    """
    try:
        yield
    except OSError as error:
        if only_full and error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            "cannot be written", where=os.fspath(path), found=_reason(error)
        ) from error


def sha256(path: PathLike) -> str:
    """Hexadecimal SHA-256 digest of a file, read piece by piece."""
    with reading(path), Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_overwrite(output: PathLike, inputs: Iterable[PathLike]) -> None:
    """Refuse an output that is one of the inputs, by whatever name or link it is reached.

    Raises
    ------
    InputError
        If `output` and an input are the same file.
    """
    for given in inputs:
        with suppress(OSError):  # one of the two does not exist: then they are not the same
            if Path(output).samefile(given):
                raise InputError(
                    f"would overwrite the input {os.fspath(given)}",
                    where=os.fspath(output),
                    instead="write to another folder or name",
                )


def _open(path: PathLike) -> io.BufferedReader | gzip.GzipFile:
    path = Path(path)
    return gzip.GzipFile(path) if path.suffix == ".gz" else path.open("rb")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
