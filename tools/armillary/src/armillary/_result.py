"""What a page takes from a ``result.json``: read, checked, and its figures found.

The record may come from anywhere, so nothing in it is trusted: what a page rests on is checked
first, and a figure is read from the record's own folder only.
"""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, cast

from .errors import InputError
from .run import SCHEMA

__all__ = ["Record", "check", "embedded", "items", "load", "metrics", "pictures", "tally"]

Record = Mapping[str, Any]

_NUMBER = int | float | None
_FIELDS: dict[str, Any] = {
    "package": str,
    "version": str,
    "command": str,
    "params": Mapping,
    "seed": int | None,
    "versions": Mapping,
    "inputs": list,
    "metrics": Mapping,
    "warnings": list,
    "artefacts": list,
    "elapsed_s": _NUMBER,
    "peak_memory_mib": _NUMBER,
}
_ITEMS: dict[str, dict[str, Any]] = {
    "inputs": {"name": str, "sha256": str},
    "artefacts": {"name": str},
    "tables": {"rows": list},
    "claims": {"id": str, "says": str, "expected": str, "verdict": str},
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
    record = _fields(result, {}, where, "result")
    if record.get("schema") != SCHEMA:
        raise InputError("schema", where=where, found=repr(record.get("schema")), expected=SCHEMA)
    _fields(record, _FIELDS, where, "result")
    for name, fields in _ITEMS.items():
        for item in _objects(record, name, where):
            _fields(item, fields, where, name)
            for inner in ("rows", "checks"):
                _objects(item, inner, where)


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
        path = (folder / f"{stem}{suffix}").resolve()
        if path.is_relative_to(folder.resolve()) and path.is_file():
            return f"data:{kind};base64,{b64encode(path.read_bytes()).decode()}"
    return None


def _objects(record: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    values = record.get(name, [])
    if not isinstance(values, list):
        raise InputError(name, where=where, found=repr(values)[:40], expected="a JSON array")
    return [_fields(value, {}, where, name) for value in cast(list[object], values)]


def _fields(value: object, fields: Mapping[str, Any], where: str, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(name, where=where, found=repr(value)[:40], expected="a JSON object")
    record = cast(dict[str, Any], value)
    for key, kind in fields.items():
        if key not in record or not isinstance(record[key], kind):
            found = repr(record[key])[:40] if key in record else "nothing"
            raise InputError(f"{name}.{key}", where=where, found=found, expected=f"as in {SCHEMA}")
    return record
