import copy
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armillary import InputError, report
from armillary._page import ROWS, aligned, show
from armillary.method import Method, Paper

HOSTILE = (
    """"'><script>alert(1)</script><img src=x onerror=alert(2)>&amp;]]>--><style>*{}</style>"""
)
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'


@pytest.fixture
def result() -> dict[str, Any]:
    """A record in which every field of the schema is filled."""
    claim: dict[str, Any] = {
        "id": "law",
        "says": "It draws from the law.",
        "expected": "No rejection.",
        "promised": False,
        "verdict": "does not hold",
        "checks": [
            {"name": "ratio", "value": 1.21, "low": 1.08, "high": 1.35, "at_least": 1.5,
             "at_most": None, "verdict": "does not hold", "note": "on two cores"},
            {"name": "share", "value": 1.0, "low": 1.0, "high": 1.0, "at_least": 1.0,
             "at_most": 1.0, "verdict": "holds", "note": ""},
            {"name": "gap", "value": None, "low": None, "high": None, "at_least": None,
             "at_most": 0.5, "verdict": "undecided", "note": ""},
        ],
        "rows": [{"set": "a", "seen": 3}],
        "notes": ["a note"],
        "scope": "24 prompts",
        "seconds": 184.0,
    }  # fmt: skip
    missing: dict[str, Any] = {
        "id": "large",
        "says": "It wins at scale.",
        "expected": "Nothing.",
        "verdict": "not measured",
        "why": "no such model here",
        "checks": [],
        "rows": [],
        "notes": [],
        "seconds": 0.0,
    }
    return {
        "schema": "armillary/result/1",
        "package": "some-method",
        "version": "1.2.3",
        "command": "demo",
        "params": {"k": 5, "text": "ä\n", "nothing": None},
        "seed": 7,
        "versions": {"python": "3.11.9"},
        "inputs": [{"name": "in put.csv", "sha256": "0" * 64}],
        "metrics": {"log_det": -2.34567, "deep": {"er": 12345}, "not_known": None},
        "warnings": ["the pool is small"],
        "artefacts": [
            {"name": "main.png", "caption": "The main figure."},
            {"name": "main.svg", "caption": "The main figure."},
            {"name": "sub/only.png", "caption": ""},
            {"name": "rows #1.csv", "caption": ""},
            {"name": "report.html"},
        ],
        "tables": [{"title": "Rows", "rows": [{"name": "x", "value": 1.5}]}],
        "claims": [claim, missing],
        "elapsed_s": 12.34,
        "peak_memory_mib": 100.5,
    }


@pytest.fixture
def folder(result: dict[str, Any], tmp_path: Path) -> Path:
    """A result's folder: record, figures, report."""
    here = tmp_path / "out" / "some-method" / "a demo"
    (here / "sub").mkdir(parents=True)
    (here / "main.svg").write_text(PICTURE)
    (here / "main.png").write_bytes(b"png of main")
    (here / "sub" / "only.png").write_bytes(b"png of only")
    (here / "result.json").write_text(json.dumps(result))
    report.write_report(result, here)
    return here


class Outline(HTMLParser):
    """A page's elements with their attributes, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of all elements of one name."""
        return [attributes for name, attributes in self.elements if name == tag]


def every_string(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with each of its strings changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): every_string(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [every_string(item, change) for item in value]
    return value


def poisoned(result: dict[str, Any]) -> dict[str, Any]:
    """Hostile text wherever the schema lets a string stand, in keys too where it lets them."""
    bad = every_string(result, lambda text: text + HOSTILE)
    fields = {key: bad[key + HOSTILE] for key in result}
    for name in ("inputs", "artefacts", "tables", "claims"):
        fields[name] = [
            {key.removesuffix(HOSTILE): value for key, value in item.items()}
            for item in fields[name]
        ]
    for claim in fields["claims"]:
        claim["checks"] = [
            {key.removesuffix(HOSTILE): value for key, value in check.items()}
            for check in claim["checks"]
        ]
    return fields | {"schema": result["schema"]}


def test_the_sample_is_of_the_schema(
    result: dict[str, Any], result_schema: Callable[[Any], None]
) -> None:
    result_schema(result)


def test_everything_in_the_record_is_on_the_page(folder: Path) -> None:
    text = Outline(folder / "report.html").text
    for words in (
        "some-method 1.2.3 · demo",
        "the pool is small",
        "log det", "−2.346", "deep: er", "12,345", "not known", "–",
        "Figure 1. ", "The main figure.",
        "✕ does not hold", "It draws from the law.", "No rejection.", "24 prompts", "a note",
        "1.21 [1.08, 1.35]", "≥ 1.5", "on two cores", "✓ holds", "≤ 0.5", "? undecided",
        "not promised by the package · measured in 3 min 4 s",
        "– not measured", "no such model here", "The numbers behind it (1 row)",
        "k = 5", 'text = "ä\\n"', "nothing = null", "7",
        "in put.csv", f"sha256 {'0' * 64}", "python 3.11.9", "12.3 s, 100.5 MiB of memory",
    ):  # fmt: skip
        assert f"{words}\n" in text, words


def test_the_page_needs_nothing_but_itself(folder: Path) -> None:
    outline = Outline(folder / "report.html")
    policies = [m["content"] for m in outline.all("meta") if m.get("http-equiv")]
    assert policies == [
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
    ]
    assert outline.all("link") == [{"rel": "icon", "href": "data:,"}]
    assert not outline.all("script")
    assert all((image["src"] or "").startswith("data:image/") for image in outline.all("img"))
    sheet = (folder / "report.html").read_text().partition("<style>")[2].partition("</style>")[0]
    assert ":root" in sheet
    assert not re.search(r"url\(|@import|//", sheet)


def test_the_page_can_be_read_by_a_screen_reader(folder: Path) -> None:
    outline = Outline(folder / "report.html")
    assert outline.all("html") == [{"lang": "en"}]
    levels = [int(name[1]) for name, _ in outline.elements if re.fullmatch(r"h\d", name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(heading["scope"] == "col" for heading in outline.all("th"))
    assert [image["alt"] for image in outline.all("img")] == ["The main figure.", "sub/only"]
    boxes = [box for box in outline.all("div") if box.get("class") == "wide"]
    assert all(box["tabindex"] == "0" and box["aria-label"] for box in boxes)


def test_a_figure_is_its_svg_else_its_png_else_said_to_be_missing(
    result: dict[str, Any], folder: Path
) -> None:
    kinds = [image["src"] for image in Outline(folder / "report.html").all("img")]
    assert [kind and kind.partition(";")[0] for kind in kinds] == [
        "data:image/svg+xml",
        "data:image/png",
    ]
    (folder / "main.svg").unlink()
    (folder / "sub" / "only.png").unlink()
    outline = Outline(report.write_report(result, folder))
    assert len(outline.all("img")) == 1
    assert "sub/only is not in this folder." in outline.text


def test_a_figure_outside_the_folder_is_not_read(result: dict[str, Any], folder: Path) -> None:
    (folder.parent / "secret.svg").write_text(PICTURE)
    (folder / "link.svg").symlink_to(folder.parent / "secret.svg")
    result["artefacts"] = [{"name": "../secret.svg"}, {"name": "link.svg"}]
    result["artefacts"].append({"name": str(folder.parent / "secret.svg")})
    result["artefacts"] += [{"name": "nul\0.svg"}, {"name": "long" * 99 + ".svg"}]
    assert not Outline(report.write_report(result, folder)).all("img")


def test_files_are_linked_beside_the_page(folder: Path) -> None:
    links = [link["href"] for link in Outline(folder / "report.html").all("a")]
    assert links == ["./main.png", "./main.svg", "./sub/only.png", "./rows%20%231.csv"]


def test_hostile_text_stays_text(result: dict[str, Any], folder: Path) -> None:
    clean = Outline(folder / "report.html")
    bad = poisoned(result)
    (folder / "result.json").write_text(json.dumps(bad))
    pages = [report.write_report(bad, folder), report.gallery([folder], folder)]
    for page in pages:
        outline = Outline(page)
        allowed = {name for name, _ in clean.elements} | {"ul", "li"}
        assert {name for name, _ in outline.elements} <= allowed - {"script"}
        assert len(outline.all("style")) == 1
        for name, attributes in outline.elements:
            assert not [key for key in attributes if key.startswith("on")], name
        assert "<script>alert(1)</script>" in outline.text
    assert pages[0].read_text().count(escaped := "&lt;script&gt;alert(1)") > 40, escaped


def test_text_that_no_page_can_hold_is_replaced(result: dict[str, Any], tmp_path: Path) -> None:
    result["warnings"] = ["a\0b\ud800c\x1bd"]
    assert "a�b�c�d" in Outline(report.write_report(result, tmp_path)).text


def test_the_method_gives_title_and_citation(
    result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = Paper("On <Methods>", ("A. Author",), "Venue", 2026)
    card = Method("some-method", "Do it & well", paper, "m:d", "m:c")

    class Entry:
        def load(self) -> Method:
            return card

    monkeypatch.setattr(report, "entry_points", lambda *, group, name: [Entry()])
    text = Outline(report.write_report(result, tmp_path)).text
    assert "Do it & well\n" in text
    assert "A. Author. On <Methods>. Venue, 2026." in text


def test_an_empty_result_has_no_empty_sections(result: dict[str, Any], tmp_path: Path) -> None:
    empty = {key: type(value)() if key != "schema" else value for key, value in result.items()}
    outline = Outline(report.write_report(empty | {"package": "p"}, tmp_path))
    assert len(outline.all("h2")) == 1, "how it was made"
    assert not outline.all("table")


def test_a_long_table_says_where_the_rest_is(result: dict[str, Any], tmp_path: Path) -> None:
    result["claims"] = []
    result["tables"] = [{"title": "", "rows": [{"n": n} for n in range(ROWS + 1)]}]
    outline = Outline(report.write_report(result, tmp_path))
    assert len(outline.all("tr")) == ROWS + 1
    assert "The first 200 of 201 rows; result.json holds all of them." in outline.text


def test_same_record_same_page(result: dict[str, Any], folder: Path) -> None:
    before = (folder / "report.html").read_bytes()
    assert report.write_report(copy.deepcopy(result), folder).read_bytes() == before


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"), (float("nan"), "–"), (float("-inf"), "–"), (True, "yes"), (False, "no"),
        (0, "0"), (-1234567, "−1,234,567"), (0.0, "0"), (-2.34567, "−2.346"), (0.5, "0.5"),
        (12345.6, "12,346"), (9999.99, "10,000"), (1e-4, "0.0001"), (9.99999e-5, "1 × 10⁻⁴"),
        (-3.2e-7, "−3.2 × 10⁻⁷"), (1e7, "1 × 10⁷"), (6.022e23, "6.02 × 10²³"),
        ([1, 2.5, "x", None], "1, 2.5, x, –"), ({"a": [1]}, '{"a": [1]}'), ("as it is", "as it is"),
    ],
)  # fmt: skip
def test_values_are_typeset(value: object, shown: str) -> None:
    assert show(value) == shown


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.25, 0.5, -1.0], ["0.25", "0.50", "−1.00"]),
        ([1.23456, 22.0, None], ["1.23", "22.00", "–"]),
        ([100.0, 3], ["100", "3"]),
        ([0.003, 118.5], ["0.003", "118.5"]),  # no false zeros where the range is wide
        ([0.00001, 0.5], ["1 × 10⁻⁵", "0.5"]),
        ([1500.5, 20.25], ["1,500.5", "20.2"]),
        ([float("nan"), 1.5], ["–", "1.5"]),
        ([0.0, 0.125], ["0.000", "0.125"]),
        ([], []),
    ],
)
def test_columns_line_up(values: list[object], shown: list[str]) -> None:
    assert aligned(values) == shown


def test_the_gallery_links_to_reports_that_lie_there(
    result: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "result.json").write_text(json.dumps(result | {"claims": [], "artefacts": []}))
    page = report.gallery([folder, other], tmp_path / "out")
    assert page == tmp_path / "out" / "index.html"
    outline = Outline(page)
    assert [link["href"] for link in outline.all("a")] == ["some-method/a%20demo/report.html"]
    assert [image["alt"] for image in outline.all("img")] == ["The main figure."]
    for words in ("2 results of 1 package", "✕ does not hold: 1", "log det", "−2.346", "12.3 s"):
        assert f"{words}\n" in outline.text, words
    below = report.gallery([folder], tmp_path / "out" / "some" / "where")
    link = Outline(below).all("a")[0]["href"]
    assert link == "../../some-method/a%20demo/report.html"


def test_the_counts_of_verdicts_are_no_metrics(result: dict[str, Any], tmp_path: Path) -> None:
    result["metrics"] = {"does_not_hold": 1, "holds": 0, "effort": 3}
    names = re.findall("<dt>(.*?)</dt>", report.write_report(result, tmp_path).read_text())
    assert names[0] == "effort"
    assert "does not hold" not in names


BROKEN = {
    "missing": (None, "expected a result, found no such file or directory"),
    "cut": ('{"schema": ', "expected JSON: Expecting value: line 1 column 12 (char 11)"),
    "binary": (b"\xff\xfe", "expected JSON: 'utf-8' codec can't decode byte 0xff"),
    "array": ("[]", "result: expected an object, found []"),
    "other": ('{"schema": "x/1"}', "schema: expected armillary/result/1, found 'x/1'"),
    "deep": ("[" * 100_000, "expected JSON: "),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_record_is_named(kind: str, folder: Path, tmp_path: Path) -> None:
    content, message = BROKEN[kind]
    bad = tmp_path / "bad"
    bad.mkdir()
    if content is not None:
        (bad / "result.json").write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
    with pytest.raises(InputError) as error:
        report.gallery([folder, bad], tmp_path / "page")
    assert str(error.value).startswith(f"{bad / 'result.json'}: {message}")
    assert not (tmp_path / "page").exists()


def test_fields_of_the_wrong_kind_are_named(result: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        report.write_report(result | {"metrics": [1]}, tmp_path)
    assert str(error.value) == "result: metrics: expected an object, found [1]"
    with pytest.raises(InputError) as error:
        report.write_report(result | {"seed": "7"}, tmp_path)
    assert str(error.value) == "result: seed: expected as in armillary/result/1, found '7'"
    del result["claims"][0]["says"]
    with pytest.raises(InputError) as error:
        report.write_report(result, tmp_path)
    assert str(error.value) == "result: claims: expected a field 'says', found none"
    with pytest.raises(InputError, match="no folder"):
        report.gallery([], tmp_path)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_record_with_anything_anywhere_gives_a_page_or_a_clear_refusal(
    data: st.DataObject, result: dict[str, Any], folder: Path
) -> None:
    changed = copy.deepcopy(result)
    *above, last = data.draw(st.sampled_from(list(places(changed))))
    inner = changed
    for key in above:
        inner = inner[key]
    inner[last] = data.draw(JSON)
    (folder / "result.json").write_text(json.dumps(changed))
    try:
        pages = [report.write_report(changed, folder), report.gallery([folder], folder)]
    except InputError:
        return
    assert all(page.read_text("utf-8").endswith("</html>\n") for page in pages)
