"""`report.html`: one result on one page; `gallery`: one page over many results.

A page is made from ``result.json`` and the figures beside it, and carries them inside: it can be
mailed, archived or opened from a disk. It has no script, and loads nothing. What came from a
user's file is escaped (see `_page`), so it is shown, never run.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import quote

from . import _result
from ._page import Markup, join, page, show, table, tag
from ._result import Record, items, tally
from .errors import InputError
from .files import atomic
from .method import GROUP, Method

__all__ = ["gallery", "write_report"]

CARD_METRICS = 4  # of a result, on its card in the gallery

# The sign and the border (report.css) say it in grey too.
_VERDICTS = {
    "holds": ("✓", "holds"),
    "does not hold": ("✕", "fails"),
    "undecided": ("?", "undecided"),
    "not measured": ("–", "unmeasured"),
}


def write_report(result: Record, folder: str | Path) -> Path:
    """Write ``report.html`` into the folder that holds the result's figures.

    Parameters
    ----------
    result
        A record of the schema ``armillary/result/1``.
    folder
        Where the figures named by its artefacts lie, and the page goes.

    Raises
    ------
    InputError
        If the record lacks a field of the schema.
    """
    folder = Path(folder)
    _result.check(result, "result")
    method = _card(result["package"])
    body = (
        _header(result, method),
        _warnings(result["warnings"]),
        _section("Claims of the paper", *map(_claim, items(result, "claims"))),
        _section("Numbers", *_numbers(result)),
        _section("Figures", *_figures(result, folder)),
        _section("Tables", *(table(t["rows"], t.get("title") or "") for t in _tables(result))),
        _section("How this was made", _record(result)),
        _section("The paper", *([tag("p", method.paper.citation)] if method else [])),
    )
    return _write(folder / "report.html", page(f"{result['package']} {result['command']}", *body))


def gallery(folders: Iterable[str | Path], out: str | Path) -> Path:
    """Write ``index.html`` over the results in several folders.

    Parameters
    ----------
    folders
        Each holds a ``result.json``; its ``report.html``, if there, is linked by relative path.
    out
        The folder that the page goes to; made if missing.

    Raises
    ------
    InputError
        If there is no folder, or a ``result.json`` is missing, broken or not of the schema.
    """
    out = Path(out)
    results = [(Path(folder), _result.load(Path(folder) / "result.json")) for folder in folders]
    if not results:
        raise InputError("gallery", found="no folder", expected="folders with a result.json each")
    packages = len({result["package"] for _, result in results})
    body = (
        tag("p", "Armillary", class_="over"),
        tag("h1", "Results"),
        tag("p", f"{_count(len(results), 'result')} of {_count(packages, 'package')}"),
        _verdicts(tally(result for _, result in results)),
        tag("ul", *(_result_card(folder, r, out) for folder, r in results), class_="cards"),
    )
    return _write(out / "index.html", page("Armillary: results", *body, class_="gallery"))


def _header(result: Record, method: Method | None) -> Markup:
    return tag(
        "header",
        tag("p", f"{result['package']} {result['version']} · {result['command']}", class_="over"),
        tag("h1", _title(result, method)),
        _verdicts(tally([result])),
    )


def _warnings(warnings: list[object]) -> Markup:
    if not warnings:
        return Markup()
    heading = tag("h2", "Warning" if len(warnings) == 1 else "Warnings", id="warnings")
    lines = tag("ul", *(tag("li", warning) for warning in warnings))
    return tag("section", heading, lines, class_="warnings", aria_labelledby="warnings")


def _numbers(result: Record) -> list[Markup]:
    tiles = [
        tag("div", tag("dt", name), tag("dd", value, class_="words" if len(value) > 12 else None))
        for name, metric in _result.metrics(result)
        for value in [show(metric)]
    ]
    return [tag("dl", *tiles, class_="numbers")] if tiles else []


def _figures(result: Record, folder: Path) -> list[Markup]:
    figures: list[Markup] = []
    for number, (stem, caption) in enumerate(_result.pictures(result).items(), start=1):
        source = _result.embedded(folder, stem)
        picture = (
            tag("div", tag("img", src=source, alt=caption or stem), class_="paper")
            if source
            else tag("p", f"{stem} is not in this folder.", class_="quiet")
        )
        label = tag("b", f"Figure {number}. ")
        figures.append(tag("figure", picture, tag("figcaption", label, caption or stem)))
    return figures


def _tables(result: Record) -> list[Record]:
    return [table for table in items(result, "tables") if table["rows"]]


def _claim(claim: Record) -> Markup:
    parts: list[Markup] = [
        tag("header", tag("h3", claim["id"]), _verdict(claim["verdict"])),
        tag("p", claim["says"], class_="says"),
        tag("p", "Expected here: ", claim["expected"], class_="quiet"),
    ]
    if claim.get("scope"):
        parts.append(tag("p", "Measured on: ", claim["scope"], class_="quiet"))
    if claim.get("why"):
        parts.append(tag("p", "Not measured: ", claim["why"]))
    if checks := items(claim, "checks"):
        alone = len(checks) == 1
        parts.append(table([_check_row(check, alone=alone) for check in checks], ""))
    if claim.get("notes"):
        parts.append(tag("ul", *(tag("li", note) for note in claim["notes"])))
    if rows := items(claim, "rows"):
        summary = tag("summary", f"The numbers behind it ({_count(len(rows), 'row')})")
        parts.append(tag("details", summary, table(rows, "")))
    closing = [] if claim.get("promised", True) else ["not promised by the package"]
    if claim.get("seconds"):
        closing.append(f"measured in {_duration(claim['seconds'])}")
    if closing:
        parts.append(tag("p", " · ".join(closing), class_="quiet"))
    return tag("article", *parts, class_="claim")


def _check_row(check: Record, *, alone: bool) -> dict[str, object]:
    name, note = check.get("name"), check.get("note")
    low, high, value = (check.get(key) for key in ("low", "high", "value"))
    interval = "" if low == high == value else f" [{show(low)}, {show(high)}]"
    row: dict[str, object] = {
        "check": join([name, tag("div", note, class_="quiet")]) if note else name,
        "measured": show(value) + interval,
        "allowed": _allowed(check.get("at_least"), check.get("at_most")),
    }
    if not alone:  # a single check's verdict is the claim's, which stands above
        row["verdict"] = _verdict(str(check.get("verdict")))
    return row


def _allowed(least: float | None, most: float | None) -> str:
    if least is None:
        return "any" if most is None else f"≤ {show(most)}"
    if most is None:
        return f"≥ {show(least)}"
    return show(least) if least == most else f"{show(least)} to {show(most)}"


def _record(result: Record) -> Markup:
    """How the result came about, verbatim, so that it can be done again."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    files = [
        tag("a", file["name"], href=f"./{quote(file['name'], errors='replace')}")
        for file in items(result, "artefacts")
        if file["name"] != "report.html"  # this page
    ]
    memory = f"{show(result['peak_memory_mib'])} MiB of memory"
    lines: dict[str, list[object]] = {
        "command": [tag("code", f"{result['package']} {result['command']}")],
        "parameters": [
            tag("code", f"{name} = {json.dumps(value, ensure_ascii=False, default=str)}")
            for name, value in result["params"].items()
        ],
        "seed": [] if result["seed"] is None else [tag("code", result["seed"])],
        "inputs": [
            join([file["name"], tag("br"), tag("code", f"sha256 {file['sha256']}")])
            for file in items(result, "inputs")
        ],
        "files": [join(files, " · ")] if files else [],
        "versions": [versions] if versions else [],
        "took": [f"{_duration(result['elapsed_s'])}, {memory}"],
    }
    entries = [
        join([tag("dt", name), tag("dd", tag("ul", *(tag("li", part) for part in parts)))])
        for name, parts in lines.items()
        if parts
    ]
    return tag("dl", *entries, class_="record")


def _result_card(folder: Path, result: Record, out: Path) -> Markup:
    title = _title(result, _card(result["package"]))
    report = folder / "report.html"
    if report.is_file():
        title = tag("a", title, href=quote(Path(os.path.relpath(report, out)).as_posix()))
    figures = (
        tag("div", tag("img", src=source, alt=caption or stem), class_="paper")
        for stem, caption in _result.pictures(result).items()
        if (source := _result.embedded(folder, stem))
    )
    numbers = [
        join([tag("dt", name), tag("dd", show(value))])
        for name, value in _result.metrics(result)
        if isinstance(value, int | float | None)
    ]
    about = tag(
        "div",
        tag("p", f"{result['package']} {result['version']} · {result['command']}", class_="over"),
        tag("h2", title),
        _verdicts(tally([result])),
        *([tag("dl", *numbers[:CARD_METRICS])] if numbers else []),
        tag("p", _duration(result["elapsed_s"]), class_="quiet"),
        class_="body",
    )
    main_figure = next(figures, Markup())
    return tag("li", main_figure, about, class_="card")


def _section(title: str, *parts: Markup) -> Markup:
    return tag("section", tag("h2", title), *parts) if parts else Markup()


def _verdict(verdict: str, count: int | None = None) -> Markup:
    sign, kind = _VERDICTS.get(verdict, ("–", "unmeasured"))
    words = f"{sign} {verdict}" if count is None else f"{sign} {verdict}: {count}"
    return tag("span", words, class_=f"verdict {kind}")


def _verdicts(counts: Mapping[str, int]) -> Markup:
    badges = [tag("li", _verdict(v, counts[v])) for v in _VERDICTS if counts.get(v)]
    return tag("ul", *badges, class_="verdicts", aria_label="Claims") if badges else Markup()


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _duration(seconds: float | None) -> str:
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _title(result: Record, method: Method | None) -> str:
    return method.title if method else f"{result['package']} {result['command']}"


def _card(package: str) -> Method | None:
    """The method's card, if it is installed here; a result from elsewhere has none."""
    for entry in entry_points(group=GROUP, name=package):
        method = entry.load()
        return method if isinstance(method, Method) else None
    return None


def _write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(content)
    return path
