"""HTML pages that need nothing but themselves, escaped by construction.

`tag` escapes whatever is not `Markup`, so that text from a user's file can only ever be text.
`page` carries the stylesheet inside and a policy under which the browser loads nothing else.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TypeGuard, cast

__all__ = ["Markup", "aligned", "join", "page", "show", "table", "tag"]

ROWS = 200  # of one table: a page is for reading, the whole is in result.json
LONG = 40  # characters, above which a cell is prose

_VOID = ("br", "img", "link", "meta")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
# What HTML cannot hold: control characters, and halves of surrogate pairs, which UTF-8 refuses.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Markup(str):
    """Text that is HTML already; `tag` escapes every other string."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as escaped text; Markup passes as it is."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(_UNFIT.sub("\ufffd", str(value))))


def join(parts: Sequence[object], between: str = "") -> Markup:
    """Parts one after the other, each escaped unless it is Markup."""
    return Markup(between.join(text(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: str | None) -> Markup:
    """One element.

    Parameters
    ----------
    name
        The element's name.
    children
        Its content, escaped unless `Markup`.
    attributes
        Escaped; an underscore stands for a hyphen, a last one is dropped (``class_``), and an
        attribute that is None is left out.
    """
    opened = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{opened}>")
    return Markup(f"<{name}{opened}>{join(children)}</{name}>")


def page(title: str, *body: object, class_: str | None = None) -> str:
    """A whole document, its main part of the given class."""
    sheet = files("armillary").joinpath("report.css").read_text("utf-8")
    head = (
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),  # else the browser asks for /favicon.ico
        tag("style", Markup(sheet)),
    )
    content = (tag("head", *head), tag("body", tag("main", *body, class_=class_)))
    return f"<!doctype html>\n{tag('html', *content, lang='en')}\n"


def show(value: object) -> str:
    """A value for a reader: four digits, a real minus, an en dash for what is not there."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _typeset(f"{value:,}")
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(show, cast(Sequence[object], value)))
    return json.dumps(value, ensure_ascii=False, default=str)


def aligned(values: Sequence[object]) -> list[str]:
    """A column of numbers with one number of decimals, where their range allows it."""
    sizes = [abs(value) for value in values if _finite(value) and value]
    if all(float(size).is_integer() for size in sizes):
        return [show(value) for value in values]
    if min(sizes) < 1e-4 or max(sizes) >= 1e5 or max(sizes) > 1e3 * min(sizes):
        return [show(value) for value in values]
    # Four digits of the largest, but three of the smallest.
    least = (3 - math.floor(math.log10(max(sizes))), 2 - math.floor(math.log10(min(sizes))), 0)
    decimals = max(least)
    while decimals and all(round(s, decimals - 1) == round(s, decimals) for s in sizes):
        decimals -= 1
    return [_typeset(f"{v:,.{decimals}f}") if _finite(v) else show(v) for v in values]


def table(rows: Sequence[Mapping[str, object]], title: str) -> Markup:
    """Rows as a table that scrolls in a box of its own where the page is too narrow for it."""
    shown = rows[:ROWS]
    columns: list[tuple[str, str | None, list[str]]] = []
    for name in dict.fromkeys(key for row in rows for key in row):
        values = [row.get(name) for row in shown]
        if all(value is None or _number(value) for value in values):
            columns.append((name, "number", aligned(values)))
        else:
            texts = [show(value) for value in values]
            prose = any(len(t) > LONG and not isinstance(t, Markup) for t in texts)
            columns.append((name, "prose" if prose else None, texts))
    head = [tag("th", name, scope="col", class_=kind) for name, kind, _ in columns]
    body = [
        tag("tr", *(tag("td", texts[place], class_=kind) for _, kind, texts in columns))
        for place in range(len(shown))
    ]
    grid = tag(
        "table",
        *([tag("caption", title)] if title else []),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
    )
    # The box takes the focus, so that it can be scrolled from the keyboard too.
    box = tag("div", grid, class_="wide", tabindex="0", role="region", aria_label=title or "Table")
    if len(rows) == len(shown):
        return box
    rest = f"The first {len(shown)} of {len(rows):,} rows; result.json holds all of them."
    return join([box, tag("p", rest, class_="quiet")])


def _number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value: object) -> TypeGuard[int | float]:
    return _number(value) and abs(value) < 1e300  # whole numbers may be larger than any float


def _float(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1e7 or abs(value) < 1e-4:
        mantissa, exponent = f"{value:.2e}".split("e")
        power = str(int(exponent)).translate(_SUPERSCRIPT)
        return f"{_typeset(f'{float(mantissa):g}')} × 10{power}"
    return _typeset(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}")


def _typeset(digits: str) -> str:
    return digits.replace("-", "−")
