"""CSV and Parquet: types by declaration, and the place of every fault."""

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary import InputError
from armillary.files import parse_number, read_table, write_csv


def table(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


def test_columns_are_numbers_unless_declared_text(tmp_path: Path) -> None:
    path = table(tmp_path, 'id,x, y\n007, 1.5 ,-2e3\n\n"a, ""b""\nc",2,3\n')
    frame = read_table(path, text=["id", "absent"])
    assert list(frame.columns) == ["id", "x", "y"]
    assert list(frame["id"]) == ["007", 'a, "b"\nc']
    assert frame["x"].dtype == frame["y"].dtype == np.float64
    assert frame[["x", "y"]].to_numpy().tolist() == [[1.5, -2000.0], [2.0, 3.0]]

    frame = read_table(path, number=["x"])
    assert frame["x"].dtype == np.float64
    assert list(frame["y"]) == ["-2e3", "3"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n  \n"])
def test_marks_and_line_ends_do_not_matter(
    tmp_path: Path, line_end: str, mark: str, last: str
) -> None:
    content = (mark + "x,y\n1,2\n3,4" + last).replace("\n", line_end)
    assert read_table(table(tmp_path, content)).to_numpy().tolist() == [[1, 2], [3, 4]]


def test_tabs_and_gzip_are_known_by_suffix(tmp_path: Path) -> None:
    path = table(tmp_path, gzip.compress(b"x\ty\n1\t2\n"), "T.TSV.gz")
    assert read_table(path).to_numpy().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": expected column names, found an empty file"),
        ("\n\n", ": expected column names, found an empty file"),
        ("x,y\n", ": expected rows below the column names, found none"),
        ("x,y\n1,2\n1\n", ":3: expected 2 fields, found 1"),
        ("x,y\n1,2,3\n", ":2: expected 2 fields, found 3"),
        ("x,y\n1,2\n3,abc\n", ":3:2: column 'y': expected a number, found 'abc'"),
        ("x,y\n1,2\n\n\n3,abc\n", ":5:2: column 'y': expected a number, found 'abc'"),
        ("x,y\r\n1,\r\n", ":2:2: column 'y': expected a number, found an empty field"),
        ("x,y\n1,NA\n", ":2:2: column 'y': expected a number, found 'NA'"),
        ("x,y\n1,nan\n", ":2:2: column 'y': expected a number, found 'nan'"),
        ("x,y\n1,-inf\n", ":2:2: column 'y': expected a finite number, found '-inf'"),
        ("x,y\n1,1e999\n", ":2:2: column 'y': expected a finite number, found '1e999'"),
        ("x,y\n1,1_000\n", ":2:2: column 'y': expected a number, found '1_000'"),
        ('x,y\n1,"1,5"\n', ":2:2: column 'y': expected a number, found '1,5'"),
        ("x,y,x\n1,2,3\n", ":1: column 3: the name 'x' stands twice"),
        (",x\n0,1\n", ":1: column 1 has no name (name it, or write the table without its index)"),
        ("x;y\n1;2\n", ":1: expected fields separated by ',', found ';' in 'x;y'"),
        ("1.5,2.5\n3,4\n", ":1: expected column names in the first line, found '1.5,2.5'"),
        (
            "2020-01-01,3\n2020-01-02,4\n",
            ":1: expected column names in the first line, found '2020-01-01,3'",
        ),
        (
            "2020-01-01 10:00,3.5\n2020-01-01 11:00,4\n",
            ":1: expected column names in the first line, found '2020-01-01 10:00,3.5'",
        ),
        ('x,y\n1,"2\n3,4\n', ":2: expected CSV, found unexpected end of data"),
        ('x,y\n1,"2"3\n', ":2: expected CSV, found ',' expected after '\"'"),
        ('"a\nb",y\n1,2\nx,2\n', ":4:1: column 'a\\nb': expected a number, found 'x'"),
        (b"x,y\n1,\xe9\n", ":2:3: expected UTF-8 text, found the byte 0xe9"),
        (b"x,y\n1,2\0\n", ":2:4: expected text, found a NUL byte"),
    ],
)
def test_faults_of_a_csv_file_are_named_with_their_place(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    assert refusal(table(tmp_path, content)).startswith(message)


def test_place_is_right_far_into_the_file(tmp_path: Path) -> None:
    rows = [f"{i},{i}" for i in range(25_000)]
    rows[23_456] = "1,x"
    path = table(tmp_path, "a,b\n" + "\n".join(rows))
    assert refusal(path) == ":23458:2: column 'b': expected a number, found 'x'"
    rows[23_456] = "1,2"
    frame = read_table(table(tmp_path, "a,b\n" + "\n".join(rows)))
    assert frame["a"].sum() == sum(range(25_000)) - 23_455


def test_missing_and_infinite_numbers_are_taken_where_allowed(tmp_path: Path) -> None:
    path = table(tmp_path, "x\n1\nNaN\nnull\n-inf\n1e999\n")
    found = read_table(path, nan="allow", inf="allow")["x"].to_numpy()
    np.testing.assert_array_equal(found, [1, math.nan, math.nan, -math.inf, math.inf])
    assert refusal(path, nan="allow") == ":5:1: column 'x': expected a finite number, found '-inf'"
    assert refusal(path, inf="allow") == ":3:1: column 'x': expected a number, found 'NaN'"


def test_columns_that_must_be_there_are_asked_for(tmp_path: Path) -> None:
    path = table(tmp_path, "price,size\n1,2\n")
    message = ":1: no column 'prices', found price, size (did you mean 'price'?)"
    assert refusal(path, required=["size", "prices"]) == message
    assert refusal(path, number=["prices"]) == message
    assert refusal(path, required=["q"]) == ":1: no column 'q', found price, size"


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.csv") == ": no such file"
    assert refusal(tmp_path / "a.xlsx").endswith(
        "(.csv, .tsv or .parquet), found the suffix '.xlsx'"
    )
    assert refusal(tmp_path / "a").endswith("found no suffix")
    (tmp_path / "d.parquet").mkdir()
    assert refusal(tmp_path / "d.parquet") == ": expected a file, found a folder"
    path = table(tmp_path, "x\n1\n", "t.parquet")
    assert refusal(path).startswith(": expected a whole Parquet file, found ")


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    columns = {
        "whole": pa.array([1, 2, None]),
        "real": pa.array([0.5, math.inf, math.nan]),
        "flag": pa.array([True, False, True]),
        "exact": pa.array([1, 2, 3]).cast(pa.decimal128(25, 2)),
        "word": pa.array(["1.5", "x", None]),
        "big": pa.array([2**60, 1, 2]),
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_columns_follow_the_same_rules(parquet: Path) -> None:
    frame = read_table(parquet, text=["word"], nan="allow", inf="allow")
    assert list(frame["word"]) == ["1.5", "x", ""]
    assert {str(frame[name].dtype) for name in frame if name != "word"} == {"float64"}
    np.testing.assert_array_equal(frame["whole"], [1, 2, math.nan])
    np.testing.assert_array_equal(frame["real"], [0.5, math.inf, math.nan])
    np.testing.assert_array_equal(frame["flag"], [1, 0, 1])
    np.testing.assert_array_equal(frame["exact"], [1, 2, 3])
    assert frame["big"][0] == 2**60
    assert list(read_table(parquet, number=["big"])["whole"]) == ["1", "2", ""]

    assert refusal(parquet, text=["word"]) == ":3:1: column 'whole': expected a number, found 'nan'"
    options: dict[str, Any] = {"nan": "allow", "number": ["real", "word"]}
    assert refusal(parquet, **options).startswith(":2:2: column 'real': expected a finite number")
    options["inf"] = "allow"
    assert refusal(parquet, **options) == ":2:5: column 'word': expected a number, found 'x'"
    assert refusal(parquet, required=["words"]).startswith(": no column 'words', found whole, real")


def test_a_parquet_file_cut_short_is_named(parquet: Path) -> None:
    parquet.write_bytes(parquet.read_bytes()[:-30])
    assert refusal(parquet).startswith(": expected a whole Parquet file")


@given(
    rows=st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_read_back(
    rows: list[tuple[float, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    write_csv(path, [{"x": x, "word": word} for x, word in rows])
    frame = read_table(path, text=["word"])
    assert frame["x"].tolist() == [x for x, _ in rows]
    assert frame["word"].tolist() == [word for _, word in rows]


def test_csv_has_the_fields_of_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows: list[dict[str, object]] = [
        {"a": 1, "b": math.nan},
        {"c": [1, "x"], "a": np.float64(0.1), "b": None},
    ]
    write_csv(path, rows)
    assert path.read_text() == 'a,b,c\n1,,\n0.1,,"[1, ""x""]"\n'
    pd.read_csv(path)
    write_csv(path, [])
    assert path.read_text() == ""


def test_numbers_are_parsed_strictly() -> None:
    assert parse_number(" -1.5e3 ", where="a:1", what="x") == -1500
    for text, found in [
        ("", "an empty field"),
        ("nan", "'nan'"),
        ("1_0", "'1_0'"),
        ("inf", "'inf'"),
    ]:
        with pytest.raises(InputError) as caught:
            parse_number(text, where="a:1", what="x")
        assert str(caught.value) == f"a:1: x: expected a finite number, found {found}"


@pytest.mark.parametrize("header", ["ds,0.1,0.5", "1990,1991,1992", "2020-01,2020-02,2020-03"])
def test_quantiles_years_and_months_may_name_columns(tmp_path: Path, header: str) -> None:
    frame = read_table(table(tmp_path, f"{header}\n1,2,3\n"))
    assert list(frame) == header.split(",")
