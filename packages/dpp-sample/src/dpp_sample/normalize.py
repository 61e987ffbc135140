"""Canonical forms: which texts of a pool count as one string.

Each form is a function from text to text; `make_pool(normalize=...)` merges the candidates whose
results are equal. `FORMS` finds them by the name the command uses.
"""

import unicodedata
from collections.abc import Callable

from armillary import InputError, require


def strip(text: str) -> str:
    """Without white space at the ends, each inner run of it one blank."""
    return " ".join(text.split())


def nfkc(text: str) -> str:
    """Unicode compatibility composition (NFKC): accents composed, full-width letters narrow."""
    return unicodedata.normalize("NFKC", text)


def casefold(text: str) -> str:
    """Without distinction of upper and lower case, in composed form."""
    # folding can decompose and composing can unfold: the standard asks for this order (NFKC_CF)
    return nfkc(nfkc(text).casefold())


def sql(text: str) -> str:
    """One spelling of a SQLite query: key words, names and spacing; no comments, no semicolon.

    What sqlglot (extra `sql`) cannot read is only stripped, so that it merges with its equals
    alone.
    """
    sqlglot = require("sqlglot", extra="dpp-sample[sql]")
    try:
        statements = [s for s in sqlglot.parse(text, read="sqlite") if s is not None]
        if len(statements) != 1:
            return strip(text)
        return statements[0].sql(dialect="sqlite", normalize=True, comments=False)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return strip(text)


FORMS: dict[str, Callable[[str], str]] = {
    "strip": strip,
    "nfkc": nfkc,
    "casefold": casefold,
    "sql": sql,
}


def form(name: str) -> Callable[[str], str]:
    """The canonical form of that name.

    Raises
    ------
    InputError
        If there is none.
    """
    if name not in FORMS:
        raise InputError("normalize", found=repr(name), expected=" or ".join(FORMS))
    return FORMS[name]
