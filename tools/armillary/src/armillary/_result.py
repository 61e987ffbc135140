"""What a page takes from a ``result.json``: read, checked, and its figures found.

The record may come from anywhere, so nothing in it is trusted: what a page rests on is checked
first, and a figure is read from the record's own folder only.
"""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, cast

from .errors import InputError
from .run import SCHEMA

__all__ = ["Record", "check", "embedded", "items", "load", "metrics", "pictures", "tally"]

Record = Mapping[str, Any]

Shape = Any  # of JSON: see _SHAPE

_ANY: Shape = {}
_NUMBER: Shape = int | float | None
_CHECK: Shape = {
    "name": str,
    **dict.fromkeys(("value", "low", "high", "at_least", "at_most"), _NUMBER),
    "verdict": str,
    "note?": str,
}
_CLAIM: Shape = {
    **dict.fromkeys(("id", "says", "expected", "verdict"), str),
    "checks": [_CHECK],
    "rows": [_ANY],
    "notes": list,
    **dict.fromkeys(("scope?", "why?"), str),
    "promised?": bool,
    "seconds?": _NUMBER,
}
# As far as a page rests on it: a name with a question mark may be absent, a dict stands for an
# object with these fields and any others, a list of one shape for an array of such.
_SHAPE: Shape = {
    **dict.fromkeys(("package", "version", "command"), str),
    **dict.fromkeys(("params", "versions", "metrics"), _ANY),
    "seed": int | None,
    "inputs": [{"name": str, "sha256": str}],
    "warnings": list,
    "artefacts": [{"name": str, "caption?": str}],
    "tables?": [{"title?": str, "rows": [_ANY]}],
    "claims?": [_CLAIM],
    **dict.fromkeys(("elapsed_s", "peak_memory_mib"), _NUMBER),
}
_IMAGES = {".svg": "image/svg+xml", ".png": "image/png"}  # in the order of preference
_VERDICT_COUNTS = ("holds", "does_not_hold", "undecided", "not_measured")


def load(path: Path) -> Record:
    """Read a ``result.json``.

    Raises
    ------
    InputError
        If it is missing, not JSON, or not a record of the schema.
    """
    try:
        result = json.loads(path.read_text("utf-8"))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError("expected a result", where=str(path), found=why) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected JSON: {error}", where=str(path)) from error
    check(result, str(path))
    return result


def check(result: object, where: str) -> None:
    """Refuse what is not a record of the schema, as far as a page rests on it."""
    _match(result, {}, where, "result")
    name = cast(Record, result).get("schema")
    if name != SCHEMA:
        raise InputError("schema", where=where, found=repr(name)[:40], expected=SCHEMA)
    _match(result, _SHAPE, where, "result")


def items(result: Record, name: str) -> list[Record]:
    """A list of the record; empty where the record has none."""
    return list(result.get(name) or [])


def tally(results: Iterable[Record]) -> Counter[str]:
    """How many claims came out with each verdict."""
    return Counter(str(claim["verdict"]) for r in results for claim in items(r, "claims"))


def metrics(result: Record) -> list[tuple[str, object]]:
    """Metrics as a reader meets them, nested ones after the name of what holds them."""
    found: list[tuple[str, object]] = []

    def walk(values: Record, above: str) -> None:
        for key, value in values.items():
            name = above + key.replace("_", " ")
            if isinstance(value, Mapping):
                walk(cast(Record, value), f"{name}: ")
            else:
                found.append((name, value))

    # `reproduce` counts its verdicts among the metrics; a page shows them as such.
    known = result["metrics"].items()
    claims = bool(items(result, "claims"))
    walk({k: v for k, v in known if not (claims and k in _VERDICT_COUNTS)}, "")
    return found


def pictures(result: Record) -> dict[str, str]:
    """Captions of the figures by name without suffix: PNG and SVG are one figure."""
    captions: dict[str, str] = {}
    for artefact in items(result, "artefacts"):
        name = PurePosixPath(artefact["name"])
        if name.suffix in _IMAGES:
            stem = str(name.with_suffix(""))
            captions[stem] = captions.get(stem) or artefact.get("caption") or ""
    return captions


def embedded(folder: Path, stem: str) -> str | None:
    """The figure as a ``data:`` address, the SVG before the PNG; None where there is neither."""
    for suffix, kind in _IMAGES.items():
        with suppress(OSError, ValueError):  # a name that no file can have, a file without access
            path = (folder / f"{stem}{suffix}").resolve()
            if path.is_relative_to(folder.resolve()) and path.is_file():
                return f"data:{kind};base64,{b64encode(path.read_bytes()).decode()}"
    return None


def _match(value: Any, shape: Shape, where: str, name: str) -> None:
    if isinstance(shape, dict):
        kind, what = dict, "an object"
    elif isinstance(shape, list):
        kind, what = list, "an array"
    else:
        kind, what = shape, f"as in {SCHEMA}"
    if not isinstance(value, kind):
        raise InputError(name, where=where, found=repr(value)[:40], expected=what)
    if isinstance(shape, dict):
        record = cast(Record, value)
        for key, inner in cast(dict[str, Shape], shape).items():
            field = key.removesuffix("?")
            if field in record:
                _match(record[field], inner, where, field)
            elif field == key:
                raise InputError(name, where=where, found="none", expected=f"a field {field!r}")
    elif isinstance(shape, list):
        for item in cast(list[Any], value):
            _match(item, shape[0], where, name)
