"""JSON and JSON Lines: strict reading with the place of every fault, atomic writing.

JSON has no NaN and no Infinity. Reading refuses them; writing puts null in their place.
"""

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, cast

from .errors import InputError
from .files import PathLike, atomic, excerpt, text_lines

__all__ = ["jsonable", "read_json", "read_jsonl", "write_json", "write_jsonl"]


def read_jsonl(path: PathLike) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of a JSON Lines file with their line numbers, one at a time.

    A byte order mark and CRLF line ends are accepted, blank lines skipped, ``.jsonl.gz`` unpacked.

    Raises
    ------
    InputError
        With the line, if it does not hold one JSON object. NaN, Infinity, a number beyond float64,
        a key that stands twice in one object and half of a surrogate pair are refused too.
    """
    for number, line in enumerate(text_lines(path), start=1):
        if line.strip():
            yield number, _object(line, where=f"{os.fspath(path)}:{number}")


def _object(text: str, *, where: str) -> dict[str, Any]:
    text = text.rstrip()
    try:
        value = _decode(text)
    except _NotJsonError as error:
        raise InputError(
            "expected a JSON object",
            where=where,
            found=excerpt(text, error.position),
            instead=f"column {error.position + 1}: {error.reason}",
        ) from error
    if not isinstance(value, dict):
        raise InputError("expected a JSON object", where=where, found=excerpt(text))
    return cast(dict[str, Any], value)


def read_json(path: PathLike) -> Any:
    """The value in a JSON file, as strict as `read_jsonl`."""
    text = "".join(text_lines(path))
    try:
        return _decode(text)
    except _NotJsonError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        raise InputError(
            "expected JSON",
            where=f"{os.fspath(path)}:{line}:{column}",
            found=excerpt(text, error.position),
            instead=error.reason,
        ) from error


def write_jsonl(path: PathLike, rows: Iterable[Mapping[str, object]]) -> None:
    """Write one JSON object a line, atomically, as the rows come; `jsonable` converts them."""
    with atomic(path, "wb") as file:
        for row in rows:
            file.write(_encode(row) + b"\n")


def write_json(path: PathLike, value: object) -> None:
    """Write a value as indented JSON, atomically; `jsonable` converts it."""
    with atomic(path, "wb") as file:
        file.write(_encode(value, indent=2) + b"\n")


def jsonable(value: Any) -> Any:
    """The same value in JSON's own types.

    Numbers that are not finite become None. Arrays, tensors and columns become lists; mappings
    and dataclasses become dicts with text keys; enum members their value; paths and dates text.

    Raises
    ------
    TypeError
        If there is no such form: a fault of the calling code.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, AbstractSet):
        # Sets of text come in another order in each process.
        return sorted((jsonable(item) for item in cast(AbstractSet[Any], value)), key=repr)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [jsonable(item) for item in cast(Sequence[Any], value)]
    if isinstance(value, os.PathLike):
        return os.fspath(cast(os.PathLike[str], value))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    # Arrays, array scalars, tensors and columns of frames have the one, dates the other.
    for convert in ("tolist", "isoformat"):
        if hasattr(cast(object, value), convert):
            return jsonable(getattr(cast(object, value), convert)())
    raise TypeError(f"{type(cast(object, value)).__name__} has no form in JSON: {value!r}")


class _NotJsonError(Exception):
    """Why a text is not JSON, and at which character."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class _RefusedError(Exception):
    """Raised by the decoder's hooks, which know the token but not its place."""

    def __init__(self, reason: str, token: re.Pattern[str]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.token = token


_STRING = r'"(?:[^"\\]|\\.)*"'
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _refuse_constant(literal: str) -> None:
    raise _RefusedError(f"{literal} is not a JSON number", _token(literal))


def _finite(literal: str) -> float:
    if math.isinf(value := float(literal)):
        raise _RefusedError(f"{literal} is beyond the range of float64", _token(literal))
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        key = re.compile(f"({re.escape(json.dumps(twice, ensure_ascii=False))})" + r"\s*:")
        raise _RefusedError(f"key {twice!r} stands twice in one object", key)
    return found


def _token(literal: str) -> re.Pattern[str]:
    # Strings are matched too, so that a literal inside one is stepped over.
    return re.compile(rf"{_STRING}|({re.escape(literal)})")


_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique
)


def _decode(text: str) -> Any:
    try:
        value = _DECODER.decode(text)
        if (half := _SURROGATE.search(text)) is not None:
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError as error:
                raise _NotJsonError("half of a surrogate pair", half.start()) from error
        return value
    except json.JSONDecodeError as error:
        raise _NotJsonError(error.msg[0].lower() + error.msg[1:], error.pos) from error
    except _RefusedError as error:
        places = (match.start() for match in error.token.finditer(text) if match.group(1))
        raise _NotJsonError(error.reason, next(places, 0)) from error
    except RecursionError as error:
        raise _NotJsonError("nested too deeply", 0) from error
    except ValueError as error:  # Python's limit on the digits of an integer
        raise _NotJsonError("a number with too many digits", 0) from error


def _encode(value: object, *, indent: int | None = None) -> bytes:
    text = json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False, indent=indent)
    # What UTF-8 cannot hold is a lone surrogate, and Python's escape of it is JSON's too.
    return text.encode("utf-8", "backslashreplace")
