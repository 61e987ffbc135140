"""A package's command: `demo`, `reproduce`, `info` and the package's own verbs, one manner for all.

`command(METHOD)` gives the function behind a package's console script. It parses with cyclopts,
turns every error into one line on standard error, and keeps to the exit statuses: 0 done, 1 the
answer is no, 2 bad usage, bad input or a missing extra, 70 a fault of ours, 130 interrupted.
Verbs are named by strings, so that ``--help`` imports nothing that it does not show.
"""

import errno
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Group, Parameter

from .errors import ArmillaryError, one_line
from .method import Method
from .run import Common, Run, envelope

__all__ = ["Common", "CommonOptions", "command", "load", "run_app"]

CommonOptions = Annotated[
    Common, Parameter(name="*", group=Group("Common options", sort_key=99), show_default=True)
]
"""The annotation of a verb's last parameter: ``common: CommonOptions = Common()``."""

_DONE, _BAD, _FAULT, _INTERRUPTED = 0, 2, 70, 130


def command(method: Method) -> Callable[[Sequence[str] | None], int]:
    """Make the function behind the console script of a package.

    Parameters
    ----------
    method
        The package's card.

    Returns
    -------
    A function of the arguments (default: the process's own) that returns the exit status.
    """

    def main(arguments: Sequence[str] | None = None) -> int:
        tokens = list(sys.argv[1:] if arguments is None else arguments)

        def fault(kind: str, message: str) -> dict[str, object]:
            record = envelope(method, next((t for t in tokens if not t.startswith("-")), ""))
            return record | {"error": {"kind": kind, "message": message}}

        return run_app(_app(method), tokens, f"{method.dist} {method.version}", fault)

    return main


def run_app(
    app: App, tokens: list[str], who: str, fault: Callable[[str, str], dict[str, object]]
) -> int:
    """Run a cyclopts app in our manner and return the exit status.

    Parameters
    ----------
    app
        The app.
    tokens
        Its arguments.
    who
        Name and version, for the line about a fault of ours.
    fault
        Builds the JSON record of an error from its kind and message, for ``--json``.
    """
    # Parsing itself may have failed, so these two are looked for in the arguments as they came.
    debug, as_json = "--debug" in tokens, "--json" in tokens
    try:
        with _termination_interrupts():
            status = app(
                tokens, exit_on_error=False, print_error=False, result_action="return_value"
            )
        sys.stdout.flush()
        return status if isinstance(status, int) else _DONE
    except BrokenPipeError:
        # The reader (`| head`) has what it wanted.
        _drop_stdout()
        return _DONE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (CycloptsError, ArmillaryError) as caught:
        error, status, line = caught, _BAD, _one_line(caught)
    except Exception as caught:  # noqa: BLE001 - a fault of ours must not look like status 1
        error, status = caught, _FAULT
        line = f"a fault in {who}: {type(caught).__name__}: {_one_line(caught)}"
        if isinstance(caught, OSError) and caught.errno in (errno.ENOSPC, errno.EDQUOT):
            # Files say their own name (`armillary.files`); what is left is standard output.
            status, line, as_json = _BAD, f"cannot write: {_one_line(caught)}", False
            _drop_stdout()
        elif not debug:
            line += " (please report it with the output of --debug)"
    if debug:
        traceback.print_exception(error)
    print(f"error: {line}", file=sys.stderr)
    if as_json:
        print(json.dumps(fault(type(error).__name__, line)))
    return status


@contextmanager
def _termination_interrupts() -> Generator[None, None, None]:
    # What a batch system sends must end a run as Ctrl-C does: workers stopped, nothing left staged.
    number, main = signal.SIGTERM, threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(number) is not signal.SIG_DFL:
        yield
        return
    signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL)


def _drop_stdout() -> None:
    # What is left in the buffer would make Python complain once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(error: Exception) -> str:
    try:
        return one_line(str(error))
    except Exception as failed:  # noqa: BLE001
        # To name the verbs of its "did you mean", cyclopts imports them all, and one may be broken.
        return f"{type(error).__name__}, and then {type(failed).__name__}: {failed}; see --help"


def load(reference: str) -> Any:
    """The object that ``"module:name"`` names."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def _app(method: Method) -> App:
    app = App(
        name=method.dist,
        help=f"{method.title}\n\nPaper: {method.paper.citation}",
        version=lambda: method.version,
        help_format="plaintext",
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,
    )
    for verb in method.verbs:
        app.command(verb.function, name=verb.name, help=verb.help)

    @app.command
    def demo(*, common: CommonOptions = Common()) -> None:
        """Show the method on real data that comes with the package, in under a minute."""
        with Run(method, "demo", common, {}) as run:
            run.report = True
            load(method.demo)(run)

    @app.command
    def reproduce(
        *claims: str, quick: bool = False, resume: bool = False, common: CommonOptions = Common()
    ) -> int:
        """Measure the paper's claims at laptop scale, against real baselines.

        Parameters
        ----------
        claims
            Ids of the claims to measure; all of them when none is named.
        quick
            Smaller sizes: minutes instead of the full measurement.
        resume
            Keep the claims that `--out` holds as finished, measure the others.
        """
        from .claims import reproduce as measure

        params = {"claims": list(claims), "quick": quick}
        with Run(method, "reproduce", common, params) as run:
            run.report = True
            return measure(run, load(method.claims), claims, quick=quick, resume=resume)

    @app.command
    def info(*, common: CommonOptions = Common()) -> None:
        """Show the version, the paper and how to cite it, the extras present, the devices."""
        record = _info(method)
        if common.json:
            print(json.dumps(record))
            return
        extras: dict[str, str] = record.pop("extras")
        for name, value in record.items():
            print(f"{name + ':':12}{value}")
        for extra, state in extras.items():
            print(f"{'[' + extra + ']:':12}{state}")

    return app


def _info(method: Method) -> dict[str, Any]:
    extras = {
        extra: "installed"
        if not (missing := [name for name in modules if find_spec(name) is None])
        else f"missing {', '.join(missing)}: pip install '{method.dist}[{extra}]'"
        for extra, modules in method.extras.items()
    }
    return {
        "package": method.dist,
        "version": method.version,
        "title": method.title,
        "paper": method.paper.citation,
        "cite": f"{method.dist} {method.version}, and the paper above",
        "extras": extras,
        "devices": ", ".join(devices()),
    }


def devices() -> list[str]:
    """Where models could run here: cpu, and what torch sees if it is installed."""
    if find_spec("torch") is None:
        return ["cpu"]
    torch = import_module("torch")
    found = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    mps: list[str] = ["mps"] if torch.backends.mps.is_available() else []
    return ["cpu", *found, *mps]
