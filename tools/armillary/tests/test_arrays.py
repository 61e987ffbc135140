"""NPY, NPZ and safetensors: no pickle, and broken files named."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary import InputError
from armillary.files import read_array, read_arrays, read_tensor, write_arrays


def saved(path: Path, array: Any, **options: Any) -> bytes:
    np.save(path, array, **options)
    return path.read_bytes()


def refusal(read: Any, path: Path, *args: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(path, *args, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "allow_pickle=True" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("mmap", [False, True])
def test_arrays_come_back(tmp_path: Path, rng: np.random.Generator, mmap: bool) -> None:
    path = tmp_path / "a.npy"
    array = rng.normal(size=(3, 4))
    saved(path, array)
    found = read_array(path, mmap=mmap)
    np.testing.assert_array_equal(found, array)
    assert isinstance(found, np.memmap) == mmap


@pytest.mark.parametrize("mmap", [False, True])
def test_broken_arrays_are_named(tmp_path: Path, mmap: bool) -> None:
    path = tmp_path / "a.npy"
    good = saved(path, np.arange(10.0))
    pickled = saved(path, np.array([{}], dtype=object), allow_pickle=True)
    archive = io.BytesIO()
    np.savez(archive, x=np.arange(3))
    for content, message in [
        (b"", "expected a NumPy array (.npy), found an empty file"),
        (b"x,y\n1,2\n", r"expected a NumPy array (.npy), found a file that begins with b'x,y\n1,'"),
        (archive.getvalue(), "expected a NumPy array (.npy), found a zip archive"),
        (good[:-5], "expected a whole NumPy array without pickled objects, found "),
        (good[:20], "expected a whole NumPy array without pickled objects, found "),
        (good[:10] + b"{" * 118 + good[128:], "expected a whole NumPy array without pickled"),
        (pickled, "expected a whole NumPy array without pickled objects, found "),
        (good.replace(b"(10,)", b"(9" + b"9" * 12 + b",)")[:140], "expected a whole NumPy array"),
    ]:
        path.write_bytes(content)
        assert refusal(read_array, path, mmap=mmap).startswith(message)
    assert refusal(read_array, tmp_path / "no.npy") == "no such file"
    assert refusal(read_array, tmp_path) == "expected a file, found a folder"


def test_archives_come_back_with_the_same_bytes(tmp_path: Path, rng: np.random.Generator) -> None:
    arrays = {
        "x": rng.normal(size=(2, 3)),
        "words": np.array(["a", "né"]),
        "file": np.array(3),
        "allow_pickle": np.zeros(0, dtype=bool),
        "path": np.asfortranarray(rng.normal(size=(2, 3))),
    }
    first, second = tmp_path / "a.npz", tmp_path / "b.npz"
    write_arrays(first, **arrays)
    write_arrays(second, **arrays)
    assert first.read_bytes() == second.read_bytes()
    for found in (read_arrays(first), dict(np.load(first))):
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype


def test_objects_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"array 'x': expected numbers or text, found dtype\('O'\)"
    ):
        write_arrays(tmp_path / "a.npz", x=np.array([None]))
    assert list(tmp_path.iterdir()) == []


def test_broken_archives_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.arange(1000.0))
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[60:80] = b"\xff" * 20
    np.savez(path, x=np.array([{}], dtype=object))
    pickled = path.read_bytes()
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "hello")
    for content, message in [
        (b"", "expected an archive of NumPy arrays (.npz), found an empty file"),
        (good[:-10], "expected a whole archive of NumPy arrays, found File is not a zip file"),
        (bytes(flipped), "expected array 'x' whole and without pickled objects, found Error -3"),
        (pickled, "expected array 'x' whole and without pickled objects, found Object arrays"),
        (other.getvalue(), "expected array 'a.txt' whole and without pickled objects, found some"),
        (
            saved(tmp_path / "b.npy", np.arange(3)),
            "expected an archive of NumPy arrays (.npz), foun",
        ),
    ]:
        path.write_bytes(content)
        assert refusal(read_arrays, path).startswith(message)
    assert refusal(read_arrays, tmp_path / "no.npz") == "no such file"


def test_a_tensor_is_read_alone(tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    path = tmp_path / "a.safetensors"
    save_file({"a": np.arange(6.0).reshape(2, 3), "b": np.ones(2, dtype=np.int8)}, path)
    np.testing.assert_array_equal(read_tensor(path, "a"), np.arange(6.0).reshape(2, 3))
    assert refusal(read_tensor, path, "c") == "no tensor 'c', found a, b"
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    assert refusal(read_tensor, path, "a").startswith("expected safetensors, found ")
    assert refusal(read_tensor, tmp_path, "a") == "expected a file, found a folder"
    # The header alone says the type: numpy has no bfloat16.
    path.write_bytes(content.replace(b'"I8"', b'"B8"'))
    header = b'{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    message = "tensor 'a': expected a number type that NumPy has, found BF16 (convert"
    assert refusal(read_tensor, path, "a").startswith(message)
