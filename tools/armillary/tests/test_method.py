from importlib.metadata import EntryPoint

import pytest

from armillary import method as module
from armillary.method import Method, Paper, methods


def card(dist: str) -> Method:
    return Method(dist, "t", Paper("T", (), "V 2026", 2026), "m:demo", "m:CLAIMS")


def test_a_citation_leaves_out_what_is_not_known() -> None:
    assert Paper("T", (), "V 2026", 2026).citation == "T. V 2026."
    full = Paper("T", ("A", "B"), "V", 2025, arxiv="1.2")
    assert full.citation == "A, B. T. V, 2025. arXiv:1.2."


def test_import_name_and_version() -> None:
    assert card("a-b-c").import_name == "a_b_c"
    assert card("armillary").version[0].isdigit()


def test_methods_come_by_name_in_order_and_must_be_cards(monkeypatch) -> None:
    class Entry:
        def __init__(self, name: str, value: object) -> None:
            self.name, self.value = name, value

        def load(self) -> object:
            return self.value

    entries = [Entry("z", card("z")), Entry("a", card("a"))]
    monkeypatch.setattr(module, "entry_points", lambda group: entries)
    assert list(methods()) == ["a", "z"]
    entries.append(Entry("bad", 3))
    with pytest.raises(TypeError, match="entry point bad"):
        methods()


def test_installed_entry_points_are_read_from_our_group() -> None:
    assert module.GROUP == "armillary.methods"
    assert EntryPoint("x", "json:loads", module.GROUP).load() is not None
