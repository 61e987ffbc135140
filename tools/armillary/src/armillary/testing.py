"""A pytest plugin for every package: real commands, bad input, no network, shapes checked.

Load it by ``-p armillary.testing`` (never a ``pytest11`` entry point: its guards would then stand
in every user's own test run). What it does by being loaded:

* one thread for BLAS, OpenMP and torch, so that timings and last digits repeat;
* sockets reach this machine alone, and child processes are told to stay offline;
* the shape annotations of `armillary` and of every installed method are checked by beartype;
* tests marked ``slow`` wait until ``-m slow`` asks for them, and a test marked ``unchecked`` (of
  our own validation, where beartype would answer first) runs without the shape checks.

Nothing of armillary but its errors is imported at load, since a module that was imported before
the import hook stands is never checked.
"""

import ipaddress
import json
import os
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, cast, get_args

# Before anything loads a BLAS or OpenMP library: they look once, when they are loaded.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    # Nothing listens on the discard port, so a child that tries the network fails at once.
    **{
        name: "http://127.0.0.1:9"
        for scheme in ("http", "https", "all")
        for name in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")
    },
    "no_proxy": "localhost,127.0.0.1,::1",
    "NO_PROXY": "localhost,127.0.0.1,::1",
}
os.environ.update(_ENVIRONMENT)

import pytest  # noqa: E402

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "AssertBadInput",
    "ImportedBy",
    "NetworkRefused",
    "RunCommand",
    "assert_bad_input",
    "check_types",
    "imported_by",
    "result_schema",
    "rng",
    "run_command",
]


class NetworkRefused(OSError):
    """A test tried to leave this machine. As an OSError it looks like a cut cable to libraries."""


class RunCommand(Protocol):
    """Runs a package's real command: see the fixture `run_command`."""

    def __call__(  # noqa: D102
        self,
        dist: str,
        /,
        *args: str | Path,
        cwd: Path | None = None,
        check: bool = True,
        env: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]: ...


class ImportedBy(Protocol):
    """Lists what a command imports: see the fixture `imported_by`."""

    def __call__(self, dist: str, /, *args: str | Path) -> set[str]: ...  # noqa: D102


AssertBadInput = Callable[..., None]


def check_types(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check a function's arguments and result by beartype, as static checkers read the hints.

    An int is welcome where a float is asked for (PEP 484). `typing.Self` is not checked: beartype
    knows it in whole classes alone, and jaxtyping decorates function by function.
    """
    from beartype import BeartypeConf, beartype

    function.__annotations__ = {
        name: Any if hint is Self or Self in get_args(hint) else hint
        for name, hint in function.__annotations__.items()
    }
    return beartype(conf=BeartypeConf(is_pep484_tower=True))(function)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Check shapes, from before the first test module or conftest is imported."""
    from jaxtyping import install_import_hook

    methods = {entry.module.split(".")[0] for entry in entry_points(group="armillary.methods")}
    install_import_hook(sorted(methods | {"armillary"}), f"{__name__}.{check_types.__name__}")
    _guard_sockets()


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and leave the slow tests for a run that asks for them."""
    config.addinivalue_line("markers", "slow: takes longer than a default run allows (-m slow)")
    config.addinivalue_line("markers", "unchecked: runs without the shape checks of beartype")
    config.option.markexpr = config.option.markexpr or "not slow"
    from hypothesis import settings

    # How long an example takes says more of the machine's load than of the code.
    settings.register_profile("armillary", deadline=None)
    settings.load_profile("armillary")


def pytest_runtest_setup() -> None:
    """Keep torch at one thread, if a test has brought it in."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _unchecked(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("unchecked") is None:
        yield
        return
    import jaxtyping

    config = cast(Any, jaxtyping.config)
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture
def rng() -> "np.random.Generator":
    """A generator that is the same in every run."""
    import numpy as np

    return np.random.default_rng(0)


@pytest.fixture
def run_command(tmp_path: Path) -> RunCommand:
    """Run the console script of an installed distribution, as a user would.

    ``run_command(dist, *args, cwd=None, check=True, env=None, timeout=300)`` gives the completed
    process, text in and out. It runs in the test's own folder unless `cwd` says otherwise; `env`
    adds to the environment; with `check`, a status other than 0 fails the test and shows why.
    """

    def run(
        dist: str,
        /,
        *args: str | Path,
        cwd: Path | None = None,
        check: bool = True,
        env: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [_script(dist), *map(str, args)],
            cwd=cwd or tmp_path,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and result.returncode != 0:
            shown = f"{dist} {' '.join(map(str, args))}: exit status {result.returncode}"
            pytest.fail(f"{shown}\n{result.stdout}\n{result.stderr}", pytrace=False)
        return result

    return run


@pytest.fixture
def assert_bad_input() -> AssertBadInput:
    """Check that a command refused its input in our manner.

    ``assert_bad_input(result, *words)``: exit status 2, one line on standard error that holds all
    the words, and no traceback.
    """

    def check(result: subprocess.CompletedProcess[str], *words: str) -> None:
        assert result.returncode == 2, f"exit status {result.returncode}\n{result.stderr}"
        assert "Traceback" not in result.stdout + result.stderr, result.stderr
        lines = result.stderr.splitlines()
        assert len(lines) == 1, f"expected one line on stderr, found {len(lines)}:\n{result.stderr}"
        missing = [word for word in words if word not in lines[0]]
        assert not missing, f"{missing} not in: {lines[0]}"

    return check


@pytest.fixture
def imported_by(tmp_path: Path) -> ImportedBy:
    """List the top-level modules that a command imports.

    ``imported_by(dist, *args)`` runs the function behind the console script in a fresh
    interpreter and gives the names in `sys.modules` afterwards, for tests such as "``--help``
    does not load torch".
    """

    def run(dist: str, /, *args: str | Path) -> set[str]:
        entry = _entry_point(dist)
        report = tmp_path / "imported.json"
        result = subprocess.run(
            [sys.executable, "-c", _LIST_IMPORTS, entry.value, report, dist, *map(str, args)],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return set(json.loads(report.read_text()))

    return run


@pytest.fixture(scope="session")
def result_schema() -> Callable[[Any], None]:
    """Check a result (the dict of ``result.json``) against the schema ``armillary/result/1``."""
    from jsonschema import Draft202012Validator

    text = files("armillary").joinpath("schema/result-1.json").read_text(encoding="utf-8")
    schema: Any = json.loads(text)
    validator: Any = Draft202012Validator(schema)

    def check(result: Any) -> None:
        json.dumps(result, allow_nan=False)  # NaN is a number to jsonschema, but not to JSON
        faults = [f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(result)]
        assert not faults, "\n".join(faults)

    return check


_LIST_IMPORTS = """
import json, sys
from importlib import import_module
from pathlib import Path

module, _, name = sys.argv[1].partition(":")
report, sys.argv = Path(sys.argv[2]), sys.argv[3:]
try:
    getattr(import_module(module), name)()
except SystemExit:
    pass
report.write_text(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def _entry_point(dist: str) -> Any:
    try:
        scripts = distribution(dist).entry_points.select(group="console_scripts", name=dist)
    except PackageNotFoundError:
        scripts = ()
    if not scripts:
        pytest.fail(f"no command {dist!r} is installed here", pytrace=False)
    return next(iter(scripts))


def _script(dist: str) -> str:
    name = _entry_point(dist).name
    folders = Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))
    for folder in folders:
        for script in (folder / name, folder / f"{name}.exe"):
            if script.is_file():
                return str(script)
    pytest.fail(f"{name} is not in {folders[0]}: install {dist} again", pytrace=False)


def _guard_sockets() -> None:
    """Make every way out of this machine raise `NetworkRefused`."""

    def guard_address(method: str, position: int) -> None:
        original = getattr(socket.socket, method)

        def guarded(self: socket.socket, *args: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                _refuse_remote(args[position])
            return original(self, *args)

        setattr(socket.socket, method, guarded)

    guard_address("connect", 0)
    guard_address("connect_ex", 0)
    guard_address("sendto", -1)

    def guard_name(function: str) -> None:
        original = getattr(socket, function)

        def guarded(host: Any, *args: Any, **options: Any) -> Any:
            _refuse_remote((host,))
            return original(host, *args, **options)

        setattr(socket, function, guarded)

    for function in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        guard_name(function)


def _refuse_remote(address: Any) -> None:
    host = cast(Any, address[0] if isinstance(address, tuple) else address)
    if isinstance(host, bytes):
        host = host.decode()
    if host in (None, "", "localhost", socket.gethostname()):
        return
    with suppress(ValueError):  # a name, and not this machine's
        number = ipaddress.ip_address(str(host).partition("%")[0])
        if number.is_loopback or number.is_unspecified:  # 0.0.0.0 is what servers bind to
            return
    raise NetworkRefused(f"tests use no network, but this one asked for {host!r}")
