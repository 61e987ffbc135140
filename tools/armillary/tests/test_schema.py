"""The schema of ``result.json``."""

import json
import math
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

Check = Callable[[Any], None]


@pytest.fixture
def result() -> dict[str, Any]:
    return {
        "schema": "armillary/result/1",
        "package": "dpp-sample",
        "version": "0.1.0",
        "command": "select",
        "params": {"k": 5, "nested": {"a": [1, None]}},
        "seed": 0,
        "versions": {"python": "3.11.7", "numpy": "2.2.0"},
        "inputs": [{"name": "pools.jsonl", "sha256": "0" * 64}],
        "metrics": {"rate": 0.5, "undefined": None},
        "warnings": ["look out"],
        "artefacts": [{"name": "a.png", "caption": "A."}, {"name": "b.csv"}],
        "elapsed_s": 0.25,
        "peak_memory_mib": 100,
    }


def test_the_schema_is_itself_valid() -> None:
    text = files("armillary").joinpath("schema/result-1.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) <= set(schema["properties"])


def test_a_result_is_accepted(result: dict[str, Any], result_schema: Check) -> None:
    result_schema(result)
    result["seed"] = None
    result["tables"] = [{"title": "", "rows": [{"x": 1, "y": None}]}]
    result["claims"] = [{"id": "C1", "verdict": "holds"}]
    result["error"] = {"kind": "InputError", "message": "k: expected 1"}
    result_schema(result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "armillary/result/2"}, r"\$\.schema: "),
        ({"package": "Dpp_Sample"}, r"\$\.package: "),
        ({"seed": 1.5}, r"\$\.seed: "),
        ({"seed": -1}, r"\$\.seed: "),
        ({"params": []}, r"\$\.params: "),
        ({"versions": {"numpy": 2}}, r"\$\.versions\.numpy: "),
        ({"inputs": [{"name": "a"}]}, r"\$\.inputs\[0\]: 'sha256' is a required property"),
        ({"inputs": [{"name": "a", "sha256": "xyz"}]}, r"\$\.inputs\[0\]\.sha256: "),
        ({"warnings": "look out"}, r"\$\.warnings: "),
        ({"artefacts": ["a.png"]}, r"\$\.artefacts\[0\]: "),
        ({"artefacts": [{"name": "a", "size": 3}]}, r"\$\.artefacts\[0\]: Additional properties"),
        ({"tables": [{"rows": []}]}, r"\$\.tables\[0\]: 'title' is a required property"),
        ({"error": {"kind": "x"}}, r"\$\.error: 'message' is a required property"),
        ({"elapsed_s": None}, r"\$\.elapsed_s: "),
        ({"peak_memory_mib": "1"}, r"\$\.peak_memory_mib: "),
        ({"extra": 1}, r"\$: Additional properties are not allowed \('extra'"),
    ],
)
def test_what_differs_is_named(
    result: dict[str, Any], result_schema: Check, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        result_schema(result | change)


def test_every_common_field_is_required(result: dict[str, Any], result_schema: Check) -> None:
    for field in result:
        less = {key: value for key, value in result.items() if key != field}
        with pytest.raises(AssertionError, match=f"'{field}' is a required property"):
            result_schema(less)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_no_json(
    result: dict[str, Any], result_schema: Check, value: float
) -> None:
    result["metrics"]["rate"] = value
    with pytest.raises(ValueError, match="not JSON compliant"):
        result_schema(result)
