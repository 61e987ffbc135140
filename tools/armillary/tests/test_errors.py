import pickle

import pytest

import armillary
from armillary import InputError, MissingExtra, require


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("k"), "k"),
        (InputError("k", found=0, expected="at least 1"), "k: expected at least 1, found 0"),
        (InputError("k", found="0 rows"), "k, found 0 rows"),
        (InputError("bad", where="f.csv:3:2", instead="mend it"), "f.csv:3:2: bad (mend it)"),
        (InputError("two\nlines", found="a\r\n b"), "two lines, found a b"),
        (InputError("empty", found=""), "empty, found "),
    ],
)
def test_an_input_error_is_one_line(error: InputError, line: str) -> None:
    assert str(error) == line.strip()


def test_an_input_error_is_a_value_error_and_keeps_its_fields() -> None:
    error = InputError("k", where="here", found=0, expected="more", instead="try")
    assert isinstance(error, ValueError)
    fields = (error.what, error.where, error.found, error.expected, error.instead)
    assert fields == ("k", "here", 0, "more", "try")


class RankError(InputError):
    pass


@pytest.mark.parametrize("kind", [InputError, RankError])
def test_errors_survive_pickling(kind: type[InputError]) -> None:
    error = kind("k", where="here", found=[1], expected="more")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.found == [1]


def test_a_missing_extra_names_the_pip_command_and_survives_pickling() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'toy\[x\]'") as caught:
        require("no_such_module.part", extra="toy[x]")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_require_gives_the_module_and_passes_other_failures_on(tmp_path, monkeypatch) -> None:
    assert require("json.decoder", extra="toy[x]").__name__ == "json.decoder"
    (tmp_path / "half.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError) as caught:
        require("half", extra="toy[x]")
    assert not isinstance(caught.value, MissingExtra)


def test_the_package_exports_the_errors_alone() -> None:
    assert {name for name in vars(armillary) if name[0].isupper()} == {
        "ArmillaryError",
        "InputError",
        "MissingExtra",
    }
