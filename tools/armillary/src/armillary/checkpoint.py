"""Resumable loops: finished items kept in JSON Lines, one flushed line each.

A line is ``{"key": ..., "value": ...}``; the key is a digest of what defines the item. A process
killed while it writes leaves a torn last line, which is dropped: that item is computed again. A
torn line in the middle means that something else wrote to the file, and is an error.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from .errors import InputError
from .files import PathLike, excerpt, reading, writing
from .jsonl import jsonable

__all__ = ["Checkpoint", "digest_of", "resumable"]

T = TypeVar("T")


def digest_of(value: object) -> str:
    """A short name for what defines an item: the same for equal values, in every process.

    Mappings count without regard to order; arrays count with type and shape. Numbers that are
    not finite are told apart, and so are ``1``, ``1.0`` and ``"1"``.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=_describe)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Checkpoint:
    """Values by key that outlive the process.

    Parameters
    ----------
    path
        The file; it is made, with its folder, when the first value is added.

    Attributes
    ----------
    done
        What is finished. Values are as they come back from JSON, also those just added, so that
        a run that was interrupted and one that was not see the same.

    Raises
    ------
    InputError
        If the file holds something else, or a torn line that is not the last.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        self.done: dict[str, Any] = {}
        self._torn_at: int | None = None  # where a torn last line begins, until it is cut off
        if self.path.exists():
            self._read()

    def add(self, key: str, value: object) -> None:
        """Keep a finished value; it is on the disk when this returns.

        Parameters
        ----------
        key
            Its `digest_of` what defines it.
        value
            Anything that `armillary.files.jsonable` takes.
        """
        line = json.dumps({"key": key, "value": jsonable(value)}, allow_nan=False) + "\n"
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                if self._torn_at is not None:
                    file.truncate(self._torn_at)
                self._torn_at = file.seek(0, os.SEEK_END)
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
                self._torn_at = None
        self.done[key] = json.loads(line)["value"]

    def _read(self) -> None:
        size = 0
        with reading(self.path), self.path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if not raw.endswith(b"\n"):
                    self._torn_at = size
                    return
                size += len(raw)
                key, value = _entry(raw, f"{self.path}:{number}")
                self.done[key] = value


def resumable(
    function: Callable[[T], object],
    items: Iterable[T],
    path: PathLike,
    *,
    key: Callable[[T], object],
) -> Iterator[Any]:
    """Apply `function` to each item, in order, unless `path` holds its value from before.

    Parameters
    ----------
    function
        What to compute; its value must have a form in JSON.
    items
        What to compute it for.
    path
        The checkpoint file.
    key
        All that defines an item's value: the item's own settings, the seed, the version.

    Yields
    ------
    The values, as they come back from JSON, whether computed now or before.
    """
    kept = Checkpoint(path)
    for item in items:
        name = digest_of(key(item))
        if name not in kept.done:
            kept.add(name, function(item))
        yield kept.done[name]


def _entry(raw: bytes, where: str) -> tuple[str, Any]:
    try:
        entry = json.loads(raw)
        if entry.keys() == {"key", "value"} and isinstance(entry["key"], str):
            return entry["key"], entry["value"]
    except (ValueError, AttributeError, RecursionError):  # no JSON, or no object
        pass
    raise InputError(
        "expected a finished item with key and value",
        where=where,
        found=excerpt(raw.decode(errors="replace").strip()),
        instead="remove the file to start afresh",
    )


def _describe(value: Any) -> Any:
    if getattr(value, "shape", None) and hasattr(value, "tobytes") and not value.dtype.hasobject:
        content = hashlib.sha256(value.tobytes()).hexdigest()
        return ["array", value.dtype.str, list(value.shape), content]
    if hasattr(value, "tolist"):  # an array scalar, whose nan `jsonable` would lose
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return jsonable(value)
