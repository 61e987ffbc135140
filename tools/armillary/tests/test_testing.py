"""The pytest plugin: its guards on a test run of their own, its fixtures here."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from armillary.testing import ImportedBy, NetworkRefused, RunCommand

METHOD = '''
"""A method's module with shapes, as a package would write it."""
from typing import Self
import numpy as np
from jaxtyping import Float

def first(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], scale: float = 1.0) -> float:
    return float(x.flat[0]) * scale

class Fluent:
    def me(self, n: int) -> Self:
        return self
    def maybe(self, n: int) -> Self | None:
        return self

def main() -> int:
    import colorsys
    print("hello")
    return 0

def broken() -> None:
    raise RuntimeError("broken indeed")
'''

TESTS = """
import os, socket, subprocess, sys
import jaxtyping, numpy as np, pytest
from toy_method.work import Fluent, first

def test_shapes_are_checked():
    assert first(np.ones((3, 2)), np.ones(3), scale=2) == 2  # an int where a float is asked for
    with pytest.raises(jaxtyping.TypeCheckError):
        first(np.ones((3, 2)), np.ones(2))

@pytest.mark.unchecked
def test_shapes_are_not_checked_where_asked():
    assert first(np.ones((3, 2)), np.ones(2)) == 1

def test_shapes_are_checked_again():
    with pytest.raises(jaxtyping.TypeCheckError):
        first(np.ones(3), np.ones(3))

def test_methods_may_return_self():
    fluent = Fluent()
    assert fluent.me(1) is fluent is fluent.maybe(1)
    with pytest.raises(jaxtyping.TypeCheckError):
        fluent.me("1")

def test_the_core_is_checked_too():
    from armillary.randomness import spawn
    with pytest.raises(jaxtyping.TypeCheckError):
        spawn(0, "3")

def test_torch_is_held_at_one_thread():
    assert sys.modules["torch"].n == 1

@pytest.mark.slow
def test_slow():
    pass
"""

CONFTEST = """
import sys, types
class Torch(types.ModuleType):
    n = 5
    def get_num_threads(self): return self.n
    def set_num_threads(self, n): self.n = n
sys.modules["torch"] = Torch("torch")
"""


@pytest.fixture
def toy_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed distribution `toy-method`, on the path here and in children."""
    folder = tmp_path / "site"
    package, info = folder / "toy_method", folder / "toy_method-0.1.dist-info"
    package.mkdir(parents=True)
    info.mkdir()
    (package / "__init__.py").touch()
    (package / "work.py").write_text(METHOD)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-method\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        "[armillary.methods]\ntoy-method = toy_method.work:METHOD\n"
        "[console_scripts]\ntoy-method = toy_method.work:main\n"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    return folder


def run_pytest(folder: Path, *arguments: str) -> str:
    (folder / "test_toy.py").write_text(TESTS)
    (folder / "conftest.py").write_text(CONFTEST)
    options = ["-p", "armillary.testing", "--import-mode=importlib", "--strict-markers", "-rA"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments, "test_toy.py"],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_shapes_are_checked_and_slow_tests_wait(toy_method: Path) -> None:
    said = run_pytest(toy_method)
    assert "6 passed, 1 deselected" in said
    assert "warning" not in said


def test_slow_tests_run_when_asked_for(toy_method: Path) -> None:
    said = run_pytest(toy_method, "-m", "slow")
    assert "PASSED test_toy.py::test_slow" in said
    assert "1 passed, 6 deselected" in said


def test_a_users_own_test_run_is_left_alone() -> None:
    """The plugin is asked for by name: pytest loads by itself what stands under pytest11."""
    assert not distribution("armillary").entry_points.select(group="pytest11")


# --- the network -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "leave",
    [
        lambda: socket.create_connection(("example.org", 80), timeout=1),
        lambda: socket.create_connection(("192.0.2.1", 80), timeout=1),
        lambda: socket.socket().connect(("192.0.2.1", 80)),
        lambda: socket.socket().connect_ex(("192.0.2.1", 80)),
        lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80, 0, 0)),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", 0, ("192.0.2.1", 53)),
        lambda: socket.gethostbyname("example.org"),
        lambda: socket.getaddrinfo(b"example.org", 80),
        lambda: __import__("urllib.request").request.urlopen("http://192.0.2.1/", timeout=1),
    ],
)
def test_this_machine_cannot_be_left(leave: Callable[[], object]) -> None:
    with pytest.raises(OSError, match="no network|Connection refused"):
        leave()


def test_the_refusal_says_what_was_asked_for() -> None:
    with pytest.raises(NetworkRefused, match=r"but this one asked for 'example\.org'"):
        socket.create_connection(("example.org", 443))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.8.8.8"])
def test_this_machine_itself_is_reached(host: str) -> None:
    with socket.create_server(("127.0.0.1" if host == "localhost" else host, 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].sendall(b"hello"))
        thread.start()
        with socket.create_connection((host, server.getsockname()[1]), timeout=5) as client:
            assert client.recv(5) == b"hello"
        thread.join()


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no Unix sockets")
def test_unix_sockets_are_reached(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        path = os.path.relpath(tmp_path / "s")  # such paths are limited to about 100 bytes
        server.bind(path)
        server.listen()
        client.connect(path)


def test_children_are_told_to_stay_offline() -> None:
    code = (
        "import os, urllib.request\n"
        "assert os.environ['HF_HUB_OFFLINE'] == os.environ['TRANSFORMERS_OFFLINE'] == '1'\n"
        "assert os.environ['OMP_NUM_THREADS'] == os.environ['OPENBLAS_NUM_THREADS'] == '1'\n"
        "assert urllib.request.getproxies()['https'] == 'http://127.0.0.1:9'\n"
        "assert all(urllib.request.proxy_bypass(host) for host in ('localhost', '127.0.0.1'))\n"
        "try: urllib.request.urlopen('http://example.org', timeout=5)\n"
        "except OSError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Connection refused" in result.stdout, result.stderr


# --- the fixtures ----------------------------------------------------------------------------


def test_the_real_command_runs_in_the_tests_own_folder(
    run_command: RunCommand, tmp_path: Path
) -> None:
    result = run_command("armillary", "--version")
    assert result.returncode == 0
    assert "0." in result.stdout
    assert Path(result.args[0]).name.startswith("armillary")
    assert Path(result.args[0]).parent.samefile(Path(sys.executable).parent)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert run_command("armillary", "gallery", folder, cwd=folder, check=False).returncode == 2


def test_a_failing_command_fails_the_test_and_shows_why(run_command: RunCommand) -> None:
    with pytest.raises(
        pytest.fail.Exception, match="(?s)armillary nonsense: exit status 2.*error: "
    ):
        run_command("armillary", "nonsense")
    for missing in ("no-such-distribution", "numpy-no"):
        with pytest.raises(pytest.fail.Exception, match=f"no command '{missing}' is installed"):
            run_command(missing)


def test_a_command_that_is_not_beside_python_is_named(
    run_command: RunCommand, toy_method: Path
) -> None:
    with pytest.raises(pytest.fail.Exception, match="toy-method is not in .*: install toy-method"):
        run_command("toy-method")


def test_the_environment_is_added_to(run_command: RunCommand) -> None:
    result = run_command("armillary", "--version", env={"PYTHONVERBOSE": "1"})
    assert "import 'armillary'" in result.stderr


def done(status: int, err: str, out: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.CompletedProcess(["x"], status, out, err)


def test_bad_input_is_recognised(assert_bad_input: Callable[..., None]) -> None:
    assert_bad_input(done(2, "error: a.csv:3: expected 2 fields, found 1\n"), "a.csv:3", "found 1")
    for result in [
        done(1, "error: a.csv:3\n"),
        done(0, "error: a.csv:3\n"),
        done(2, ""),
        done(2, "error: a.csv:3\nmore\n"),
        done(2, "error: a.csv:4\n"),
        done(2, "Traceback (most recent call last): a.csv:3\n"),
        done(2, "error: a.csv:3\n", out="Traceback (most recent call last):"),
    ]:
        with pytest.raises(AssertionError):
            assert_bad_input(result, "a.csv:3")


def test_what_a_command_imports_is_listed(imported_by: ImportedBy, toy_method: Path) -> None:
    found = imported_by("toy-method", "--help")
    assert {"toy_method", "colorsys", "numpy"} <= found
    assert "torch" not in found
    entry_points = next(toy_method.glob("*.dist-info")) / "entry_points.txt"
    entry_points.write_text("[console_scripts]\ntoy-method = toy_method.work:broken\n")
    with pytest.raises(AssertionError, match="broken indeed"):
        imported_by("toy-method")


def test_help_of_the_core_is_quick(imported_by: ImportedBy) -> None:
    heavy = {"torch", "pandas", "pyarrow", "matplotlib", "scipy", "sklearn", "joblib", "numpy"}
    assert not imported_by("armillary", "--help") & heavy


def test_the_generator_is_the_same_in_every_test(rng: Any) -> None:
    assert rng.integers(2**32, size=2).tolist() == [3653403231, 2735729615]
