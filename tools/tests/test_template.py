"""The template gives a package that works as it stands."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

NAME, MODULE = "some-name", "some_name"


def run(*command, cwd, env=None, expect=0):
    """Run a command and give its output, which a failure shows too."""
    words = [str(word) for word in command]
    ran = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ran.returncode == expect, f"{' '.join(words)}\n{ran.stdout}"
    return ran.stdout


@pytest.fixture
def rendered(new_package, tmp_path):
    return new_package.render(NAME, tmp_path / "packages")


def test_no_trace_of_the_template_is_left(rendered, root):
    files = [file for file in rendered.rglob("*") if file.is_file()]
    template = [file for file in (root / "tools" / "template").rglob("*") if file.is_file()]

    assert len(files) == sum("__pycache__" not in file.parts for file in template) + 1  # LICENSE
    assert [f for f in files if "template" in f"{f.relative_to(rendered)} {f.read_text()}"] == []
    assert (rendered / "src" / MODULE / "py.typed").is_file()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Some-Name", "lower case words joined by hyphens"),
        ("some_name", "lower case words joined by hyphens"),
        ("-name", "lower case words joined by hyphens"),
        ("../name", "lower case words joined by hyphens"),
        ("class", "would hide another module"),
        ("random", "would hide another module"),
        ("armillary", "would hide another module"),
    ],
)
def test_a_name_that_cannot_be(new_package, tmp_path, name, message):
    with pytest.raises(ValueError, match=message):
        new_package.render(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_exists_is_not_written_over(new_package, rendered):
    with pytest.raises(ValueError, match="exists already"):
        new_package.render(NAME, rendered.parent)


@pytest.mark.parametrize("rows", [[], ["m"], ["a", "m", "z"]])
@pytest.mark.parametrize("name", ["b", "zz"])
def test_the_row_goes_where_the_alphabet_has_it(new_package, rows, name):
    table = "".join(f"| [`{row}`](packages/{row}) | it |\n" for row in rows)
    readme = f"Before.\n\n| package | what |\n| --- | --- |\n{table}\nAfter.\n"

    longer = new_package.with_row(readme, name)

    assert [row[1] for row in new_package.ROW.finditer(longer)] == sorted([*rows, name])
    (added,) = set(longer.splitlines()) - set(readme.splitlines())
    assert longer.replace(f"{added}\n", "") == readme


def test_a_new_package_passes_its_own_tests(rendered, tmp_path):
    """Its wheel, built and installed offline beside this environment, with its tests copied."""
    away = tmp_path / "away"
    python = away / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", away, cwd=tmp_path)
    (site,) = away.glob("lib/python*/site-packages")
    beside = sysconfig.get_path("purelib")  # addsitedir: the core may be an editable in there
    (site / "beside.pth").write_text(f"import site; site.addsitedir({beside!r})\n")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", cwd=rendered)
    (wheel,) = (rendered / "dist").glob("*.whl")
    uv = [sys.executable, "-m", "uv", "pip", "install", "--offline", "--no-deps"]
    run(*uv, "--python", python, wheel, cwd=tmp_path)
    shutil.copytree(rendered / "tests", away / "tests")

    options = ["-p", "armillary.testing", "--import-mode=importlib", "--strict-markers", "-q"]
    shown = run(python, "-m", "pytest", *options, "tests", cwd=away)

    assert " passed" in shown
    assert "skipped" not in shown
    assert "template" not in shown


@pytest.mark.slow
def test_a_new_package_passes_every_session(root, tracked, tmp_path):
    """In a copy of the repository, from `nox -s new` on. Installs what is not cached yet."""
    copy = tmp_path / "copy"
    for file in tracked:
        if not file.is_relative_to(root / "packages"):
            (copy / file.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy / file.relative_to(root))
    readme = copy / "README.md"  # the other packages stay behind, to spare their installation
    lines = readme.read_text("utf-8").splitlines(keepends=True)
    readme.write_text("".join(line for line in lines if not line.startswith("| [`")), "utf-8")
    run("git", "init", "-q", cwd=copy)
    # the plugin's dead proxies keep tests off the network; an environment must be installed
    online = {name: "" for name in os.environ if name.lower().endswith("_proxy")}
    nox = [Path(sys.executable).with_name("nox"), "-s"]

    run(*nox, "new", "--", NAME, cwd=copy, env=online)
    shown = run(*nox, "lint", "types", f"isolated({NAME})", cwd=copy, env=online)
    assert " passed" in shown
    shown = run(*nox, "tests", "--", "tools/tests/test_workspace.py", cwd=copy, env=online)
    assert " passed" in shown
