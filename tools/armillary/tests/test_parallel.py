"""Loops over independent items: same results whatever runs them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from armillary import InputError
from armillary.parallel import map_jobs, one_thread


def test_each_position_has_its_own_stream() -> None:
    def draw(_: object, rng: np.random.Generator) -> float:
        return rng.normal()

    children = np.random.SeedSequence(5).spawn(4)
    expected = [np.random.default_rng(child).normal() for child in children]
    assert map_jobs(draw, "abcd", seed=5) == expected
    assert map_jobs(draw, "zz", seed=5) == expected[:2]
    assert map_jobs(draw, "abcd", seed=6) != expected


def test_results_are_ordered_and_do_not_depend_on_the_number_of_jobs() -> None:
    def work(item: int, rng: np.random.Generator) -> Any:
        time.sleep(0.02 * (item == 0))
        a = rng.normal(size=(150, 150))  # whose spectrum has other last digits on more threads
        return (item, np.linalg.svd(a @ a.T, compute_uv=False).tolist()), os.getpid()

    one = map_jobs(work, range(8), seed=1)
    two = map_jobs(work, (i for i in range(8)), jobs=2, seed=1)
    assert [result for result, _ in one] == [result for result, _ in two]
    assert [result[0] for result, _ in two] == list(range(8))
    assert {pid for _, pid in one} == {os.getpid()}
    assert os.getpid() not in {pid for _, pid in two}


@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_to_do_gives_nothing(jobs: int) -> None:
    assert map_jobs(abs, [], jobs=jobs) == []


def test_a_cluster_takes_over_by_joblibs_own_backend() -> None:
    """Two worker processes of a local Dask cluster, as a user would point joblib at a real one."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")

    def work(item: int, rng: np.random.Generator) -> Any:
        a = rng.normal(size=(150, 150))
        return np.linalg.svd(a @ a.T, compute_uv=False).tolist(), os.getpid()

    def refuse(item: int) -> None:
        raise InputError("item", found=item, expected="another")

    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    )
    with cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        there = map_jobs(work, range(6), seed=1)
        with pytest.raises(InputError, match="item: expected another, found 0"):
            map_jobs(refuse, [0])
    here = map_jobs(work, range(6), seed=1)
    assert [result for result, _ in there] == [result for result, _ in here]
    assert os.getpid() not in {pid for _, pid in there}


def test_other_backends_are_honoured_too() -> None:
    def whereabouts(_: int) -> tuple[int, int]:
        import threading

        time.sleep(0.05)
        return os.getpid(), threading.get_ident()

    with joblib.parallel_config(backend="threading", n_jobs=2):
        seen = map_jobs(whereabouts, range(8))
    assert {pid for pid, _ in seen} == {os.getpid()}
    assert len({thread for _, thread in seen}) == 2


def pools() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info()}


def test_one_thread_restores_what_was_there() -> None:
    np.linalg.svd(np.eye(3))
    with threadpool_limits(2):
        before = pools()
        with pytest.raises(ZeroDivisionError), one_thread():
            assert pools() == {1}
            raise ZeroDivisionError
        assert pools() == before == {2}


def test_torch_is_limited_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        n = 7

        def get_num_threads(self) -> int:
            return self.n

        def set_num_threads(self, n: int) -> None:
            self.n = n

    torch: Any = Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert map_jobs(lambda _: torch.n, [0]) == [1]
    assert torch.n == 7


@pytest.mark.parametrize("jobs", [1, 2])
def test_inner_libraries_get_one_thread(jobs: int) -> None:
    def inner(_: int) -> Any:
        import numpy
        import threadpoolctl

        numpy.linalg.svd(numpy.eye(3))
        threads = {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
        return threads, os.environ["OMP_NUM_THREADS"]

    with threadpool_limits(2):
        seen = map_jobs(inner, range(4), jobs=jobs)
    assert all(result == ({1}, "1") for result in seen)


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_arrive_as_they_were_raised(jobs: int) -> None:
    def work(item: int) -> int:
        if item == 3:
            raise InputError("item", where="row 3", found=item, expected="another")
        return item

    with pytest.raises(InputError, match="row 3: item: expected another, found 3") as caught:
        map_jobs(work, range(6), jobs=jobs)
    assert (caught.value.where, caught.value.found) == ("row 3", 3)


def test_no_jobs_are_refused() -> None:
    with pytest.raises(InputError, match="jobs: expected a number of processes, or -1"):
        map_jobs(abs, [1], jobs=0)


def test_progress_sees_each_result_as_it_comes() -> None:
    seen: list[object] = []

    def progress(
        items: Iterable[Any], total: float | None = None, description: str = ""
    ) -> Iterator[Any]:
        seen.append((total, description))
        for item in items:
            seen.append(item)
            yield item

    assert map_jobs(abs, [-1, -2], progress=progress, description="look") == [1, 2]
    assert seen == [(2, "look"), 1, 2]
    map_jobs(abs, iter([-1]), progress=progress)
    assert seen[3:] == [(None, ""), 1]


def test_the_bar_is_for_a_terminal_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert map_jobs(abs, [-1, -2], description="look") == [1, 2]
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert map_jobs(abs, [-1, -2]) == [1, 2]
    assert capsys.readouterr() == ("", "")
    assert map_jobs(abs, [-1, -2], description="look") == [1, 2]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "look" in shown.err


def test_workers_leave_ctrl_c_to_this_process() -> None:
    before = signal.getsignal(signal.SIGINT)
    handlers = map_jobs(lambda _: signal.getsignal(signal.SIGINT), range(4), jobs=2)
    assert set(handlers) == {signal.SIG_IGN}
    assert signal.getsignal(signal.SIGINT) is before is not signal.SIG_IGN


@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
def test_ctrl_c_leaves_no_worker_and_no_tracebacks(tmp_path: Path) -> None:
    """Ctrl-C in a terminal reaches the parent and its workers; all must go, and quietly."""
    code = (
        "import os, sys, time\n"
        "from armillary.parallel import map_jobs\n"
        "def work(i):\n"
        f"    open({str(tmp_path)!r} + f'/{{os.getpid()}}', 'w').close()\n"
        "    time.sleep(60 * (i > 1))\n"
        "try: map_jobs(work, range(8), jobs=2)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (out, err, child.returncode) == ("interrupted\n", "", 0)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert len(workers) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
