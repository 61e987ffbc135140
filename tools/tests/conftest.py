"""What the repository's own tests share: the tree, and the tools loaded from their files."""

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """Every text and data file that git tracks or would track, which the tree still has."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [file for name in listed.split("\0") if name and (file := ROOT / name).is_file()]


@pytest.fixture(scope="session")
def new_package() -> ModuleType:
    return load("armillary_tools_new_package", ROOT / "tools" / "new_package.py")


@pytest.fixture(scope="session")
def check_tag() -> ModuleType:
    return load("armillary_tools_check_tag", ROOT / "tools" / "check_tag.py")


@pytest.fixture
def noxfile(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The noxfile, loaded afresh; what it would tell uv does not leave the test."""
    monkeypatch.setattr("nox.registry._REGISTRY", {})
    return load("armillary_noxfile", ROOT / "noxfile.py")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `package` once for each package, for `dist` with the core too."""
    packages = sorted(file.parent for file in ROOT.glob("packages/*/pyproject.toml"))
    if "package" in metafunc.fixturenames:
        metafunc.parametrize("package", packages, ids=lambda folder: folder.name)
    if "dist" in metafunc.fixturenames:
        core = ROOT / "tools" / "armillary"
        metafunc.parametrize("dist", [core, *packages], ids=lambda folder: folder.name)


@pytest.fixture
def project(request: pytest.FixtureRequest) -> dict:
    """The `[project]` table of the distribution that the test looks at."""
    folder = request.node.callspec.params.get("dist") or request.node.callspec.params["package"]
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
