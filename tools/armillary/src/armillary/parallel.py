"""Loops over independent items: on this machine's cores, or wherever joblib is told to go.

`map_jobs` gives the same results in the same order for any number of jobs: each item draws from
its own random stream, fixed by its position, and linear algebra runs on one thread, since a sum
split over threads has other last digits. Where a joblib backend is active, for example inside
``joblib.parallel_config(backend="dask")``, the items go there and `jobs` is not used.
"""

# joblib and threadpoolctl come without types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from .errors import InputError

__all__ = ["Progress", "map_jobs", "one_thread"]

T = TypeVar("T")


@runtime_checkable
class Progress(Protocol):
    """Passes items on and shows how many have passed, as `armillary.run.Run.progress` does."""

    def __call__(  # noqa: D102
        self, items: Iterable[T], total: float | None = None, description: str = ""
    ) -> Iterator[T]: ...


def map_jobs(
    function: Callable[..., T],
    items: Iterable[Any],
    *,
    jobs: int = 1,
    description: str = "",
    progress: Progress | None = None,
    seed: int | None = None,
) -> list[T]:
    """Apply `function` to each item, in `jobs` processes, and give the results in order.

    Parameters
    ----------
    function
        Called as ``function(item)``, or ``function(item, rng)`` when a seed is given. It and the
        items travel to other processes; large arrays arrive there read-only.
    items
        Independent items.
    jobs
        Number of processes; 1 stays in this one, -1 takes every core.
    description
        What a progress bar on standard error says, if that is a terminal; none when it is empty.
    progress
        Shows the progress instead of that bar, for example `armillary.run.Run.progress`.
    seed
        Makes each item's generator, together with the item's position.

    Raises
    ------
    InputError
        If `jobs` is 0. What `function` raises arrives as it was raised.
    """
    if jobs == 0:
        raise InputError("jobs", found=0, expected="a number of processes, or -1 for all cores")
    total = len(items) if isinstance(items, Sized) else None
    calls = (
        joblib.delayed(_call)(function, item, seed, position) for position, item in enumerate(items)
    )
    # The outer limit spares the threads of a threading backend a race to restore it. An exception
    # in the progress bar, such as Ctrl-C, must close the loop and with it the workers.
    with one_thread(), closing(_results(calls, jobs)) as results:
        return list((progress or _bar)(results, total=total, description=description))


@contextmanager
def one_thread() -> Generator[None, None, None]:
    """Limit BLAS, OpenMP and torch to one thread, and restore what they had."""
    torch = sys.modules.get("torch")  # never imported for this
    before: int = torch.get_num_threads() if torch else 1
    with _pools(len(sys.modules)).limit(limits=1):
        if torch and before != 1:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch and before != 1:
                torch.set_num_threads(before)


def _call(function: Callable[..., T], item: Any, seed: int | None, position: int) -> T:
    with one_thread():
        if seed is None:
            return function(item)
        # The child that SeedSequence(seed).spawn would give to this position.
        child = np.random.SeedSequence(seed, spawn_key=(position,))
        return function(item, np.random.default_rng(child))


def _results(calls: Iterable[Any], jobs: int) -> Generator[Any, None, None]:
    backend, configured = cast(tuple[Any, int | None], get_active_backend())
    if configured is None:  # a cluster's backend asks for all its workers, a local one for 1
        configured = jobs if backend.default_n_jobs == 1 else backend.default_n_jobs
    kind = "generator" if backend.supports_return_generator else "list"
    # Only loky takes the limit for its processes' environment, which also holds for libraries
    # that are yet to be loaded; elsewhere the limit in `_call` must do.
    loky = type(backend) is joblib.parallel.LokyBackend
    inner = {"backend": backend, "inner_max_num_threads": 1} if loky else {}
    with joblib.parallel_config(**inner):
        parallel = joblib.Parallel(n_jobs=configured, return_as=kind)
    with _workers_ignore_interrupts():
        results = parallel(calls)
    yield from results


@contextmanager
def _workers_ignore_interrupts() -> Generator[None, None, None]:
    # Ctrl-C in a terminal reaches every process. This one stops its workers when it comes; those
    # started here inherit that it is ignored, and do not die with tracebacks of their own.
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> ThreadpoolController:
    # Looking for the loaded libraries takes 2 ms, so it is done again only when a module has come.
    del n_modules
    return ThreadpoolController()


def _bar(items: Iterable[T], total: float | None = None, description: str = "") -> Iterator[T]:
    if not description or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(items, description, total=total, console=console, transient=True)
