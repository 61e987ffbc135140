import sqlite3
import time
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary import InputError
from dpp_sample.clusters import last_number, number_clusters, one_hot, sql_clusters


@pytest.fixture
def database(tmp_path):
    """A table of three wines, in a folder of its own."""
    path = tmp_path / "data base?#%41.sqlite"  # a name that a careless URI would not survive
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE wine (id INTEGER, name TEXT, strength REAL)")
        connection.executemany(
            "INSERT INTO wine VALUES (?, ?, ?)", [(1, "a", 0.1), (2, "b", 0.2), (3, "c", None)]
        )
    connection.close()
    return path


def test_queries_with_equal_rows_share_a_cluster(database):
    found = sql_clusters(
        [
            "SELECT id FROM wine",
            "select w.id AS other from wine w order by id desc;",
            "SELECT id FROM wine WHERE id < 3",
            "SELECT id, name FROM wine",
            "SELECT name, id FROM wine",
            "SELECT id FROM wine UNION ALL SELECT id FROM wine",
            "SELECT id FROM wine WHERE 0",
            "SELECT name FROM wine WHERE 0",
            "WITH s AS (SELECT * FROM wine) SELECT id FROM s -- the same again",
            "VALUES (3), (2), (1)",
        ],
        database,
    )
    assert found.tolist() == [0, 0, 1, 2, 3, 4, 5, 5, 0, 0]


def test_numbers_are_equal_at_nine_digits(database):
    found = sql_clusters(
        [
            "SELECT 0.1 + 0.2",
            "SELECT 0.3",
            "SELECT 0.30000001",
            "SELECT 3",
            "SELECT 3.0",
            "SELECT 2.9999999999999996",
            "SELECT '3'",
            "SELECT NULL",
            "SELECT x'33'",
            "SELECT 12345678901",
            "SELECT 12345678901.0",
            "SELECT 12345678902",
            "SELECT 9e999",
        ],
        database,
    )
    assert found.tolist() == [0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 6, 7, 8]


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
HOSTILE = {
    "drop": "DROP TABLE wine",
    "two statements": "SELECT 1; DROP TABLE wine",
    "insert": "INSERT INTO wine VALUES (9, 'x', 1)",
    "update returning": "UPDATE wine SET id = 9 RETURNING id",
    "create": "CREATE TABLE t (a)",
    "temporary table": "CREATE TEMP TABLE t AS SELECT * FROM wine",
    "attach": "ATTACH DATABASE 'other.sqlite' AS other",
    "pragma": "PRAGMA writable_schema = 1",
    "pragma that only reads": "PRAGMA table_info(wine)",
    "pragma as a table": "SELECT * FROM pragma_database_list",
    "vacuum into": "VACUUM INTO 'copy.sqlite'",
    "transaction": "BEGIN EXCLUSIVE",
    "savepoint": "SAVEPOINT s",
    "analyze": "ANALYZE",
    "virtual table": "CREATE VIRTUAL TABLE temp.t USING fts5(a)",
    "extension": "SELECT load_extension('libc.so.6')",
    "read a file": "SELECT readfile('/etc/hostname')",
    "write a file": "SELECT writefile('written.txt', 'x')",
    "editor": "SELECT edit('x', 'touch written.txt')",
    "endless": f"{ENDLESS} SELECT max(i) FROM n",
    "endless rows": f"{ENDLESS} SELECT i FROM n",
    "endless sort": f"{ENDLESS} SELECT i FROM n ORDER BY -i",
    "endless memory": f"{ENDLESS} SELECT group_concat(hex(zeroblob(1000)), '') OVER () FROM n",
    "900 MB": "SELECT zeroblob(900000000)",
    "one call of seconds": "SELECT printf('%.2000000000c', 'x')",
    "many wide columns": "SELECT " + ", ".join(["zeroblob(1000000)"] * 500),
    "wide join": "SELECT a.* FROM wine a, wine b, wine c, wine d, wine e, wine f, wine g, wine h, "
    "wine i, wine j, wine k, wine l, wine m, wine n, wine o, wine p, wine q, wine r",
    "deep": "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "huge text": "SELECT '" + "x" * 2_000_000 + "'",
    "parameter": "SELECT ?",
    "null character": "SELECT 1\0",
    "lone surrogate": "SELECT '\ud800'",
    "comment": "-- nothing",
    "empty": "",
    "no such table": "SELECT * FROM bottles",
    "prose": "The answer is SELECT 1",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_queries_fail_and_leave_everything_as_it_was(name, database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = database.read_bytes()
    started = time.monotonic()
    found = sql_clusters([HOSTILE[name], "SELECT 1"], database, timeout_s=0.5)
    assert found.tolist() == [-1, 0]
    assert time.monotonic() - started < 10  # 0.5 s asked for; the rest is for a busy machine
    assert database.read_bytes() == before
    assert list(tmp_path.iterdir()) == [database]


def test_row_limit_is_exact(database):
    sqls = ["SELECT id FROM wine", "SELECT id FROM wine LIMIT 2"]
    assert sql_clusters(sqls, database, max_rows=2).tolist() == [-1, 0]
    assert sql_clusters(sqls, database, max_rows=3).tolist() == [0, 1]


def test_text_that_is_not_utf8_can_be_compared(database):
    sqls = ["SELECT CAST(x'ff41' AS TEXT)", "SELECT CAST(x'ff42' AS TEXT)"]
    assert sql_clusters(sqls, database).tolist() == [0, 1]


@pytest.mark.parametrize("content", [None, b"id,name\n1,a\n" * 50])
def test_what_is_no_database_is_refused(tmp_path, content, capfd):
    path = tmp_path / "wine.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"wine\.csv: not a readable SQLite database"):
        sql_clusters(["SELECT 1"], path)
    assert path.exists() == (content is not None)  # nor is one created
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The total is 1,234.50 dollars.", "1234.5"),
        ("12 + 7 = 19", "19"),
        ("so it is -4", "-4"),
        ("minus sign \u2212 no, \u22127", "-7"),
        ("10-3", "3"),
        ("f(2)-5", "5"),
        ("$-5.25", "-5.25"),
        (".5", "0.5"),
        ("version 1.2.3", "3"),
        ("1,2345", "2345"),
        ("It is 42.", "42"),
        ("9" * 40, "9" * 40),
        ("no number, or \u0664\u0662", None),
        ("", None),
    ],
)
def test_last_number(text, number):
    assert last_number(text) == (None if number is None else Decimal(number))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1e9, max_value=1e9))
def test_last_number_reads_what_was_written(value):
    assert last_number(f"1 and then {value:,f}") == value


def test_number_clusters_share_values_and_failures():
    texts = ["it is 12.50", "no idea", "= 12.5", "12", "unclear", "12.0"]
    assert number_clusters(texts).tolist() == [0, -1, 0, 1, -1, 1]


def test_one_hot_gives_failures_a_column_like_others():
    assert one_hot(np.array([2, -1, 2, 0])).tolist() == [
        [0, 0, 1],
        [1, 0, 0],
        [0, 0, 1],
        [0, 1, 0],
    ]
