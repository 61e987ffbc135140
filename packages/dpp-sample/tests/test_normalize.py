import sqlite3
import unicodedata

import pytest

from armillary import InputError
from dpp_sample.normalize import FORMS, casefold, form, nfkc, sql, strip


def test_strip_joins_white_space():
    assert strip("  a \n\t b ") == "a b"
    assert strip(" \n") == ""


def test_nfkc_joins_what_unicode_writes_in_two_ways():
    composed, decomposed = "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")
    assert composed != decomposed
    assert nfkc(composed) == nfkc(decomposed) == composed
    assert nfkc("\uff11\ufb01") == "1fi"
    assert nfkc("A") != nfkc("a")


def test_casefold_is_for_all_scripts():
    assert casefold("STRASSE") == casefold("straße")
    assert casefold("\u03a3") == casefold("\u03c2") == casefold("\u03c3")
    assert casefold("\u1fb3\u0345") == casefold(casefold("\u1fb3\u0345"))


SAME = [
    "SELECT id FROM wine WHERE hue < 1 AND NOT ash > 2",
    "select  ID\nfrom Wine where hue<1 and not ash>2;",
    "SELECT id FROM wine WHERE hue < 1 /* pale */ AND NOT ash > 2 -- done",
]
DIFFERENT = [
    "SELECT id FROM wine WHERE hue < 1 AND ash > 2",
    "SELECT id FROM wine WHERE hue < 1 AND NOT ash > 3",
    "SELECT id FROM wine WHERE NOT ash > 2 AND hue < 1",
    "SELECT 'Wine'",
    "SELECT 'wine'",
    "SELECT 1; SELECT 2",
    "SELECT FROM WHERE ((",
    "no sql at all",
    "",
]


def test_sql_has_one_spelling():
    assert len({sql(text) for text in SAME}) == 1
    assert len({sql(text) for text in [SAME[0], *DIFFERENT]}) == 1 + len(DIFFERENT)


def test_canonical_sql_returns_the_same_rows():
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE wine (id INTEGER, hue REAL, ash REAL)")
        connection.executemany("INSERT INTO wine VALUES (?, ?, ?)", [(1, 0.5, 1), (2, 0.7, 3)])
        for text in [*SAME, *DIFFERENT[:5]]:
            rows = connection.execute(text).fetchall()
            assert connection.execute(sql(text)).fetchall() == rows


def test_sql_survives_what_no_parser_should_see():
    for text in ["(" * 3000, "SELECT " + "-" * 5000, "\0", "SELECT '", "{{ x }}", "\ud800"]:
        assert isinstance(sql(text), str)


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_idempotent(name):
    for text in [*SAME, *DIFFERENT, " Stra\u00dfe \ufb01", "\u01f0\u0323"]:
        assert FORMS[name](FORMS[name](text)) == FORMS[name](text)


def test_form_by_name():
    assert form("nfkc") is nfkc
    with pytest.raises(InputError, match="normalize: expected strip or nfkc or casefold or sql"):
        form("lower")
