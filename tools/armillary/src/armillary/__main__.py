"""The command `armillary`: what is installed here, all demos in one go, one gallery, a check-up.

Each method keeps its own command; this one only looks over all of them.
"""

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cyclopts import App, Parameter

from .cli import devices, run_app
from .errors import InputError
from .method import GROUP, Method, methods
from .run import format_table

__all__ = ["main"]

app = App(
    name="armillary",
    help="Look over the Armillary methods that are installed here.",
    version=lambda: version("armillary"),
    help_format="plaintext",
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)

    def fault(kind: str, message: str) -> dict[str, object]:
        return {"error": {"kind": kind, "message": message}}

    return run_app(app, tokens, f"armillary {version('armillary')}", fault)


@app.command(name="list")
def list_methods(*, json_: bool = False) -> None:
    """List the methods installed here.

    Parameters
    ----------
    json_
        As JSON.
    """
    rows = [
        {"package": m.dist, "version": m.version, "what it does": m.title}
        for m in methods().values()
    ]
    if json_:
        print(json.dumps(rows))
    elif rows:
        print(format_table(rows))
    else:
        print("no Armillary method is installed here", file=sys.stderr)


@app.command
def demo(*packages: str, out: Path = Path("armillary-out"), seed: int = 0) -> int:
    """Run the demos one by one and write the gallery.

    Parameters
    ----------
    packages
        Which ones; all that are installed when none is named.
    out
        Folder for the results; the gallery is its index.html.
    seed
        Seed of every demo.
    """
    known = methods()
    for name in packages:
        if name not in known:
            raise InputError(
                "package", found=repr(name), expected="one of " + (", ".join(known) or "none here")
            )
    folders: list[Path] = []
    failed: list[str] = []
    chosen = list(packages or known)
    for number, name in enumerate(chosen, start=1):
        print(f"[{number}/{len(chosen)}] {name}: {known[name].title}", file=sys.stderr)
        folder = out / name / "demo"
        # A process of its own, so that one demo's memory, threads or fault are not another's.
        command = [console_script(name), "demo", "--out", str(folder), "--seed", str(seed)]
        if subprocess.run(command, check=False).returncode == 0:
            folders.append(folder)
        else:
            failed.append(name)
    if folders:
        _gallery(folders, out)
    if failed:
        print(f"error: these demos failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


@app.command
def gallery(*folders: Path, out: Path = Path("armillary-out")) -> None:
    """Write one page over the results in several folders.

    Parameters
    ----------
    folders
        Folders that hold a result.json each, or hold such folders below them.
    out
        Where to write index.html.
    """
    found = [
        result.parent
        for folder in folders
        for result in sorted(folder.rglob("result.json"))
        if not result.parent.name.startswith(".partial-")  # left by a run that was killed
    ]
    if not found:
        raise InputError(
            "gallery",
            found=", ".join(map(str, folders)) or "no folder",
            expected="folders with a result.json in or below them",
        )
    _gallery(found, out)


@app.command
def doctor(*, json_: bool = False) -> int:
    """Check what is installed: methods, extras, devices, and what is wrong.

    Parameters
    ----------
    json_
        As JSON.
    """
    rows: list[dict[str, object]] = []

    def check(what: str, state: str, *, wrong: bool = False) -> None:
        rows.append({"what": what, "state": state, "ok": not wrong})

    check("python", platform.python_version())
    check("armillary", version("armillary"))
    check("devices", ", ".join(devices()))
    for entry in entry_points(group=GROUP):
        try:
            method = entry.load()
            if not isinstance(method, Method):
                raise TypeError(f"{entry.value} is not an armillary Method")
        except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is the finding
            check(entry.name, f"{type(error).__name__}: {error}", wrong=True)
            continue
        script = _script(method.dist)
        check(method.dist, method.version if script else "its command is missing", wrong=not script)
        for extra, modules in method.extras.items():
            missing = [name for name in modules if find_spec(name) is None]
            state = "installed" if not missing else f"not installed ({', '.join(missing)})"
            check(f"{method.dist}[{extra}]", state)
    print(json.dumps(rows) if json_ else format_table(rows))
    return 0 if all(row["ok"] for row in rows) else 1


def console_script(dist: str) -> str:
    """Path of a method's command in this environment.

    Raises
    ------
    InputError
        If it is not there.
    """
    script = _script(dist)
    if script is None:
        raise InputError(
            "package", found=dist, expected="its command beside this Python", instead="reinstall it"
        )
    return script


def _script(dist: str) -> str | None:
    beside = Path(sys.executable).parent
    return shutil.which(dist, path=str(beside)) or shutil.which(dist)


def _gallery(folders: list[Path], out: Path) -> None:
    from .report import gallery as write

    write_gallery: Callable[[list[Path], Path], Any] = write
    print(f"gallery: {write_gallery(folders, out)}")


if __name__ == "__main__":
    sys.exit(main())
