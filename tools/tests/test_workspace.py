"""The repository is in step with itself: every package whole, every list complete."""

import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

WHOLE = ("README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "tests")
HOSTS = (
    "pypi.org",
    "pythonhosted.org",
    "npmjs.org",
    "debian.org",
    "anaconda.org",
    "pytorch.org/whl",
)
MACHINE = re.compile(r"(?<![\w.$}~/-])/(?:home|root|Users|work|opt|mnt|tmp)/\w")
DATA = (".jsonl", ".csv", ".svg", ".json")


def test_every_folder_under_packages_is_a_package(root):
    strays = [
        folder.name
        for folder in root.glob("packages/*/")
        if not (folder / "pyproject.toml").is_file()
    ]
    assert strays == []


def test_the_workspace_covers_every_distribution(root):
    uv = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]
    assert uv["workspace"]["members"] == ["tools/armillary", "packages/*"]
    assert uv["sources"] == {"armillary": {"workspace": True}}
    assert uv["package"] is False


def test_the_readme_lists_the_packages_in_order(root, new_package):
    listed = [row[1] for row in new_package.ROW.finditer((root / "README.md").read_text("utf-8"))]
    assert listed == sorted(file.parent.name for file in root.glob("packages/*/pyproject.toml"))


def test_a_distribution_is_whole(dist):
    assert [name for name in WHOLE if not (dist / name).exists()] == []


def test_a_package_has_benchmarks_and_an_example(package):
    assert list(package.glob("benchmarks/*.py"))
    assert (package / "examples" / "quickstart.py").is_file()


def test_names_follow_the_folder(dist, project):
    module = dist.name.replace("-", "_")
    assert project["name"] == dist.name
    assert dist.name in project["scripts"]
    assert (dist / "src" / module / "py.typed").is_file()
    assert [folder.name for folder in (dist / "src").iterdir() if folder.name != module] == []


def test_a_package_shows_its_card(package, project):
    module = package.name.replace("-", "_")
    methods = project["entry-points"]["armillary.methods"]
    assert methods == {package.name: f"{module}.method:METHOD"}
    assert project["scripts"] == {package.name: f"{module}.cli:main"}


def test_a_range_admits_the_core_in_the_tree(package, project, root):
    core = tomllib.loads((root / "tools" / "armillary" / "pyproject.toml").read_text("utf-8"))
    needs = [Requirement(text) for text in project["dependencies"]]
    (armillary,) = [need for need in needs if need.name == "armillary"]

    assert armillary.url is None
    assert armillary.specifier.contains(core["project"]["version"])
    major, minor = Version(core["project"]["version"]).release[:2]
    assert not armillary.specifier.contains(f"{major}.{minor + 1}.0")


def test_no_package_needs_another(package, project, root):
    packages = {file.parent.name for file in root.glob("packages/*/pyproject.toml")}
    optional = project.get("optional-dependencies", {}).values()
    needs = [*project["dependencies"], *(need for extra in optional for need in extra)]
    named = {Requirement(text).name.replace("_", "-") for text in needs}
    assert named & (packages - {package.name}) == set()


def test_one_licence_for_all(dist, project, root):
    assert project["license"] == "Apache-2.0"
    assert (dist / "LICENSE").read_bytes() == (root / "LICENSE").read_bytes()


def test_one_floor_of_python(dist, project):
    assert project["requires-python"] == ">=3.11"


def test_changelog_and_citation_know_the_version(dist, project):
    version = project["version"]
    sections = re.findall(r"^## (\S+)", (dist / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (\S+)", (dist / "CITATION.cff").read_text("utf-8"), re.MULTILINE)

    assert version in sections
    assert sections[0] in (version, "Unreleased")
    assert cited is not None
    assert cited[1].strip("\"'") == version


def test_tags_name_versions_that_were_reached(root):
    listed = subprocess.run(["git", "tag"], cwd=root, capture_output=True, text=True, check=True)
    for tag in listed.stdout.split():
        name, _, version = tag.rpartition("-v")
        folder = root / ("tools" if name == "armillary" else "packages") / name
        stated = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["version"]
        assert Version(version) <= Version(stated), tag


def test_constraints_pin_one_version_each(root):
    lines = (root / "tools" / "constraints.txt").read_text("utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    names = [pin.name for pin in pins]

    assert names == sorted(set(names))
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) for pin in pins)
    assert "torch==2.13.0" in lines


def test_constraints_meet_every_range(dist, project, root):
    lines = (root / "tools" / "constraints.txt").read_text("utf-8").splitlines()
    pins = {
        pin.name: str(pin.specifier).removeprefix("==")
        for pin in (Requirement(line) for line in lines if line and not line.startswith("#"))
    }
    needs = [
        Requirement(text)
        for group in [project["dependencies"], *project.get("optional-dependencies", {}).values()]
        for text in group
    ]
    missed = [
        str(need)
        for need in needs
        if need.name in pins and not need.specifier.contains(pins[need.name])
    ]
    assert missed == []


def test_no_file_names_a_machine_or_a_registry(tracked, root):
    """A path of one machine or a registry's host works for its author alone."""
    found = []
    for file in tracked:
        if file.suffix in DATA or file.name == "test_workspace.py":
            continue
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if MACHINE.search(line) or any(host in line for host in HOSTS):
                found.append(f"{file.relative_to(root)}:{number}: {line.strip()[:80]}")
    assert found == []


@pytest.mark.parametrize("name", ["LICENSE", "CONTRIBUTING.md", "RELEASING.md", "CITATION.cff"])
def test_the_root_is_whole(root, name):
    assert (root / name).is_file()


def test_the_readme_gives_the_two_commands_as_they_are_run(root):
    """`.ci/run` calls the tests as the README says, word for word."""
    start = 'python3 -m venv .venv && .venv/bin/pip install "nox[uv]" && .venv/bin/nox -s '
    readme = (root / "README.md").read_text("utf-8")
    assert f"    {start}demo\n" in readme
    assert f"    {start}tests\n" in readme
    assert f"{start}tests" in (root / ".ci" / "run").read_text("utf-8")


def test_workflows_grant_nothing_by_default_and_pin_by_hash(root):
    for file in (root / ".github" / "workflows").glob("*.yml"):
        text = file.read_text("utf-8")
        assert "\npermissions: {}\n" in text, file.name
        used = re.findall(r"uses: (\S+)", text)
        assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in used), file.name
