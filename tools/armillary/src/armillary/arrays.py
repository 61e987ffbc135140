"""Arrays on disk: NPY and NPZ without pickle, single tensors of a safetensors file.

Reading refuses pickled objects, since they run code. Writing is atomic, and the same arrays give
the same bytes.
"""

import os
import tokenize
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from .errors import InputError, require
from .files import PathLike, atomic, reading

__all__ = ["read_array", "read_arrays", "read_tensor", "write_arrays"]

_NPY, _ZIP = b"\x93NUMPY", b"PK"

# All that NumPy and zipfile were seen to raise on broken files; a header may ask for any size.
_BROKEN = (
    ValueError,
    EOFError,
    OSError,
    SyntaxError,
    MemoryError,
    NotImplementedError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_array(path: PathLike, *, mmap: bool = False) -> Shaped[np.ndarray, "..."]:
    """The array in an NPY file.

    Parameters
    ----------
    path
        The file.
    mmap
        Map the file instead of reading it, read-only, for arrays that outgrow memory.

    Raises
    ------
    InputError
        If the file is missing, broken, pickled, or not NPY.
    """
    _check_magic(path, _NPY, "a NumPy array (.npy)")
    with _whole(path, "a whole NumPy array without pickled objects"):
        return np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)


def read_arrays(path: PathLike) -> dict[str, Shaped[np.ndarray, "..."]]:
    """All arrays of an NPZ file, by name.

    Raises
    ------
    InputError
        If the file is missing, broken, not NPZ, or one of its arrays is pickled.
    """
    _check_magic(path, _ZIP, "an archive of NumPy arrays (.npz)")
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    with _whole(path, "a whole archive of NumPy arrays"):
        archive = np.load(path, allow_pickle=False)
    with archive:
        for name in archive.files:
            with _whole(path, f"array {name!r} whole and without pickled objects"):
                found = archive[name]
                if not isinstance(found, np.ndarray):  # another file in the zip
                    raise ValueError("something that is no array")
                arrays[name] = found
    return arrays


def read_tensor(path: PathLike, name: str) -> Shaped[np.ndarray, "..."]:
    """One tensor of a safetensors file, without reading the others.

    Raises
    ------
    InputError
        If the file is missing or broken, has no such tensor, or NumPy has no such number type
        (bfloat16, float8).
    MissingExtra
        If safetensors is not installed.
    """
    safetensors = require("safetensors", extra="safetensors")
    where = os.fspath(path)
    with reading(path):
        Path(path).open("rb").close()  # safetensors itself is vague about folders
    try:
        file = safetensors.safe_open(where, "np")
    except safetensors.SafetensorError as error:
        raise InputError("expected safetensors", where=where, found=str(error)) from error
    with file:
        if name not in (names := list(file.keys())):
            raise InputError(f"no tensor {name!r}", where=where, found=", ".join(names))
        try:
            return file.get_tensor(name)
        except (TypeError, AttributeError) as error:
            raise InputError(
                f"tensor {name!r}: expected a number type that NumPy has",
                where=where,
                found=file.get_slice(name).get_dtype(),
                instead="convert the tensor to float32",
            ) from error


def write_arrays(path: PathLike, /, **arrays: Shaped[np.ndarray, "..."]) -> None:
    """Write arrays into one NPZ file, atomically; the same arrays give the same bytes.

    Raises
    ------
    InputError
        If an array holds Python objects.
    """
    # np.savez would take arrays named "file" or "allow_pickle" for its own arguments.
    with atomic(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            array = np.asanyarray(array)
            if array.dtype.hasobject:
                raise InputError(f"array {name!r}", found=array.dtype, expected="numbers or text")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _check_magic(path: PathLike, magic: bytes, expected: str) -> None:
    with reading(path), Path(path).open("rb") as file:
        head = file.read(len(_NPY))
    if not head.startswith(magic):
        raise InputError(f"expected {expected}", where=os.fspath(path), found=_kind(head))


def _kind(head: bytes) -> str:
    if not head:
        return "an empty file"
    if head.startswith(_NPY):
        return "a single array (.npy)"
    return "a zip archive" if head.startswith(_ZIP) else f"a file that begins with {head!r}"


@contextmanager
def _whole(path: PathLike, expected: str) -> Generator[None, None, None]:
    try:
        yield
    except _BROKEN as error:
        raise InputError(f"expected {expected}", where=os.fspath(path), found=str(error)) from error
