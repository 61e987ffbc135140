"""JSON and JSON Lines: what is accepted, what is refused, and where."""

import datetime
import json
import math
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary import InputError
from armillary.files import jsonable, read_json, read_jsonl, write_json, write_jsonl
from armillary.measure import peak_memory_mib

LONE = "\ud83d"  # half of a surrogate pair


def refusal(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    with pytest.raises(InputError) as caught:
        list(read_jsonl(path))
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    return message.removeprefix(f"{path}:")


def test_rows_come_with_their_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  \r\n {"a": "\xc3\xa9"} \n{}')
    assert list(read_jsonl(path)) == [(1, {"a": 1}), (4, {"a": "é"}), (5, {})]
    path.write_bytes(b"")
    assert list(read_jsonl(path)) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1,2", "2: expected a JSON object, found '[1,2' (column 5: expecting ',' delimiter)"),
        ("[1,2]", "2: expected a JSON object, found '[1,2]'"),
        ("17", "2: expected a JSON object, found '17'"),
        ("{'a': 1}", "2: expected a JSON object, found \"{'a': 1}\" (column 2: expecting property"),
        ('{"a": 1} {}', "2: expected a JSON object, found '{\"a\": 1} {}' (column 10: extra data)"),
        ('{"NaN": NaN}', "2: expected a JSON object, found '{\"NaN\": NaN}' (column 9: NaN is not"),
        ('  {"x": -Infinity}', "(column 9: -Infinity is not a JSON number)"),
        ('{"x": [1e5, 1e999]}', "(column 13: 1e999 is beyond the range of float64)"),
        ('{"b": "a", "a": 1, "a": 2}', "(column 12: key 'a' stands twice in one object)"),
        ('{"a": "\\uD83D"}', "(column 8: half of a surrogate pair)"),
        ('{"a": "x\ty"}', "(column 9: invalid control character at)"),
        ('{"a": ' + "[" * 100_000, "nested too deeply)"),
        ('{"a": ' + "1" * 5_000 + "}", "(column 1: a number with too many digits)"),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_place(
    tmp_path: Path, line: str, message: str
) -> None:
    told = refusal(tmp_path / "a.jsonl", '{"a": 1}\n' + line + '\n{"a": 1}\n')
    assert told.startswith("2: expected a JSON object, found ")
    assert message in told
    assert len(told) < 200


def test_a_fault_in_a_long_line_is_shown_where_it_is(tmp_path: Path) -> None:
    line = json.dumps({"text": "x" * 1000, "n": 1})[:-2] + "?}"
    told = refusal(tmp_path / "a.jsonl", line)
    assert '"n": ?}' in told
    assert f"column {line.index('?') + 1}: expecting value" in told


def test_pairs_of_surrogates_are_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": "\\uD83D\\uDE00 \\\\ud83d"}')
    assert list(read_jsonl(path)) == [(1, {"a": "\U0001f600 \\ud83d"})]


def test_reading_and_writing_need_the_memory_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    start = "from armillary.files import read_jsonl, write_jsonl\n"
    work = (
        f"write_jsonl({str(path)!r}, ({{'i': i, 'x': 'x' * 300}} for i in range(100_000)))\n"
        f"total = sum(row['i'] for _, row in read_jsonl({str(path)!r}))\n"
        "assert total == 4_999_950_000, total\n"
    )
    more = peak_memory_mib(start + work) - peak_memory_mib(start)
    assert path.stat().st_size > 30 * 2**20
    assert more < 5


def test_json_documents_are_read_as_strictly(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n  "a": 1,\n  "b": NaN\n}\n')
    with pytest.raises(InputError, match=r"a\.json:3:8: expected JSON, .*NaN is not a JSON number"):
        read_json(path)
    path.write_text("")
    with pytest.raises(InputError, match=r"a\.json:1:1: expected JSON, found '' \(expecting value"):
        read_json(path)
    path.write_text("[1]")
    assert read_json(path) == [1]


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


@dataclass
class Record:
    a: Any
    b: Any


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        (-math.inf, None),
        (np.float32(0.5), 0.5),
        (np.float64("nan"), None),
        (np.int64(2**62), 2**62),
        (np.bool_(True), True),
        (np.array([[1.0, np.inf], [2.0, 3.0]]), [[1.0, None], [2.0, 3.0]]),
        (np.array(3), 3),
        ((1, (2, "x")), [1, [2, "x"]]),
        ({"b", "a"}, ["a", "b"]),
        ({1: np.int8(1), "x": {2.5: None}}, {"1": 1, "x": {"2.5": None}}),
        (Record(1, [math.nan]), {"a": 1, "b": [None]}),
        (Colour.RED, "red"),
        (Word.YES, "yes"),
        (Path("a") / "b", str(Path("a") / "b")),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (range(3), [0, 1, 2]),
        (True, True),
    ],
)
def test_values_become_json_types(value: Any, expected: Any) -> None:
    found = jsonable(value)
    assert found == expected
    assert type(found) is type(expected)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("value", [object(), 1j, b"x", np.array([1j]), [object()]])
def test_values_without_a_form_in_json_are_a_fault_of_the_code(value: object) -> None:
    with pytest.raises(TypeError, match="has no form in JSON"):
        jsonable(value)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(rows=st.lists(st.dictionaries(st.text(), JSON_VALUES, max_size=4), max_size=4))
def test_what_is_written_is_read_back(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / "a.jsonl"
    write_jsonl(path, rows)
    assert [row for _, row in read_jsonl(path)] == rows
    write_json(path, rows)
    assert read_json(path) == rows


def test_text_is_written_as_it_is_and_half_pairs_as_escapes(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_jsonl(path, [{"a": "né", "b": LONE}])
    assert path.read_bytes() == '{"a": "né", "b": "\\ud83d"}\n'.encode()
    assert json.loads(path.read_bytes())["b"] == LONE


def test_a_failing_row_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_jsonl(path, [{"a": 1}])
    with pytest.raises(TypeError):
        write_jsonl(path, [{"a": 2}, {"a": object()}])
    assert list(read_jsonl(path)) == [(1, {"a": 1})]
