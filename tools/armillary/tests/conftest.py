"""A toy method, written to a folder, on which the command's manners are tested."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TOY = '''
from pathlib import Path
from typing import Annotated
import sys, time, warnings
from cyclopts import Parameter
from armillary import InputError, require
from armillary.claims import Check, Claim, Measured, NotMeasured
from armillary.cli import Common, CommonOptions, command
from armillary.method import Method, Paper, Verb
from armillary.run import Run

METHOD = Method(
    dist="armillary",  # a distribution that is installed, since the toy is not
    title="A toy",
    paper=Paper("Toys", ("A. Child",), "Journal of Play", 2026),
    demo="toy:show",
    claims="toy:CLAIMS",
    verbs=(
        Verb("work", "toy:work", "Do some work."),
        Verb("broken", "no_such_module:f", "Broken."),
    ),
    extras={"none": ("no_such_module",), "np": ("numpy",)},
)

def work(
    file: Path, /, *, mode: str = "fine",
    size: Annotated[int, Parameter(name=["--size", "-n"])] = 3,
    common: CommonOptions = Common(),
) -> int | None:
    """Do some work.

    Parameters
    ----------
    file
        Read it.
    mode
        What happens.
    size
        How much.
    """
    with Run(METHOD, "work", common, {"mode": mode, "size": size}) as run:
        run.input(file)
        run.path("a.txt").write_text("new a")
        if mode == "bad":
            raise InputError("mode", found=mode, expected="a better one")
        if mode == "fault":
            raise ZeroDivisionError("two\\nlines")
        if mode == "extra":
            require("no_such_module.sub", extra="toy[none]")
        if mode == "over":
            run.path(file.name).write_text("gone")
        if mode == "sleep":
            print("ready", file=sys.stderr, flush=True)
            time.sleep(60)
        run.path("sub/b.txt").write_text("new b")
        run.metrics["infinite"] = float("inf")
        run.metrics["size"] = size
        warnings.warn("look\\nout", UserWarning)
        warnings.warn("look out", UserWarning)
        run.table([{"x": 1, "y": float("nan")}] * size, "T")
    return 1 if mode == "no" else None

def show(run):
    run.metrics["seed"] = run.seed

def _count(effort):
    with open(effort.run.out / "calls", "a") as handle:
        handle.write("x")
    effort.run.path("kept.txt", "a caption").write_text("kept")
    return Measured([Check("one", 1.0, at_least=0.5)], rows=[{"n": 1}])

def _stop(effort):
    if not (effort.run.out / "go").exists():
        raise KeyboardInterrupt
    return Measured([Check("two", 1.0, low=0.0, high=2.0, at_least=0.5)])

def _fails(effort):
    return Measured([Check("three", 0.0, at_least=0.5), Check("four", 1.0)])

def _cannot(effort):
    raise NotMeasured("no such data here")

CLAIMS = (
    Claim("count", "says", "expected", _count),
    Claim("stop", "says", "expected", _stop),
    Claim("unpromised", "says", "expected", _fails, promised=False),
    Claim("cannot", "says", "expected", _cannot),
    Claim("fails", "says", "expected", _fails),
)

main = command(METHOD)
if __name__ == "__main__":
    sys.exit(main())
'''

Toy = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def toy_script(tmp_path: Path) -> Path:
    """The toy's module, to be run as a script."""
    script = tmp_path / "toy.py"
    script.write_text(TOY)
    return script


@pytest.fixture
def toy(toy_script: Path, tmp_path: Path) -> Toy:
    """Run the toy's command in a process of its own, in `tmp_path`."""
    (tmp_path / "input.txt").write_text("input")

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(toy_script), *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )

    return run
