"""Every installed method keeps the common manners. What a package does is tested in the package."""

import json
import resource
from pathlib import Path

import pytest

from armillary.method import methods

METHODS = methods()
VERBS = [(name, verb.name) for name, card in METHODS.items() for verb in card.verbs] + [
    (name, verb) for name in METHODS for verb in ("demo", "reproduce", "info")
]


@pytest.fixture(params=METHODS)
def method(request):
    """The card of each installed method in turn."""
    return METHODS[request.param]


def test_every_package_is_installed():
    root = Path(__file__).parents[2]
    folders = {file.parent.name for file in root.glob("packages/*/pyproject.toml")}
    assert set(METHODS) == folders


def test_help_is_quick(method, run_command):
    """Within a second of one core's time: what the user waits for on a machine that is idle."""
    spent = []
    for _ in range(3):  # the first may compile modules
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_command(method.dist, "--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 1


def test_help_names_the_verbs_and_the_paper(method, run_command):
    shown = " ".join(run_command(method.dist, "--help").stdout.split())
    for verb in ("demo", "reproduce", "info", *(verb.name for verb in method.verbs)):
        assert verb in shown
    assert method.title.split(",")[0] in shown
    assert method.paper.title.split(":")[0] in shown


@pytest.mark.parametrize(("name", "verb"), VERBS)
def test_help_of_a_verb_has_the_common_options(name, verb, run_command):
    shown = run_command(name, verb, "--help").stdout
    for option in ("--out", "--seed", "--json", "--device", "--jobs", "--quiet", "--debug"):
        assert option in shown


@pytest.mark.parametrize(("name", "verb"), VERBS)
def test_help_loads_no_heavy_library(name, verb, imported_by):
    heavy = {"torch", "transformers", "pennylane", "qiskit", "sktime", "statsmodels", "matplotlib"}
    assert imported_by(name, verb, "--help") & heavy == set()


def test_version(method, run_command):
    assert run_command(method.dist, "--version").stdout.strip() == method.version


def test_a_mistyped_verb_is_bad_usage(method, run_command, assert_bad_input):
    assert_bad_input(run_command(method.dist, "dmeo", check=False), "dmeo")


def test_an_error_in_json_fits_the_schema(method, run_command, result_schema):
    ran = run_command(method.dist, "demo", "--seed", "minus-one", "--json", check=False)
    assert ran.returncode == 2
    result_schema(json.loads(ran.stdout))


def test_the_demo_prints_just_its_result_as_json(method, run_command, result_schema, tmp_path):
    ran = run_command(method.dist, "demo", "--json", "--out", tmp_path / "out")
    result = json.loads(ran.stdout)

    result_schema(result)
    assert result == json.loads((tmp_path / "out" / "result.json").read_text("utf-8"))
    assert result["package"] == method.dist
    assert result["version"] == method.version
    assert result["metrics"]
    for artefact in result["artefacts"]:
        assert (tmp_path / "out" / artefact["name"]).stat().st_size > 0


def test_list_and_doctor_know_them(run_command):
    listed = json.loads(run_command("armillary", "list", "--json").stdout)
    assert {row["package"]: row["version"] for row in listed} == {
        name: card.version for name, card in METHODS.items()
    }
    plain = run_command("armillary", "list").stdout
    checked = json.loads(run_command("armillary", "doctor", "--json").stdout)
    for name in METHODS:
        assert name in plain
        assert any(row["what"] == name and row["ok"] for row in checked)


def test_all_the_results_make_one_gallery(run_command, tmp_path):
    names = list(METHODS)[:2]  # the demos themselves run above
    ran = run_command("armillary", "demo", *names, "--out", tmp_path / "out")

    page = tmp_path / "out" / "index.html"
    assert str(page) in ran.stdout
    html = page.read_text("utf-8")
    for name in names:
        assert METHODS[name].title in html
        assert f"{name}/demo/report.html" in html
