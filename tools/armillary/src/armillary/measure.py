"""Time and memory: ours against theirs, growth with size, peak of a fresh process.

A ratio is measured in pairs, A B A B, so that a machine that slows down slows both, and carries
the interval that the pairs themselves give. Timings say something only with one thread each:
`one_thread` sees to it.
"""

import gc
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import linear_regression

import numpy as np

from .errors import ArmillaryError, InputError
from .parallel import one_thread as one_thread

__all__ = ["Comparison", "compare", "growth", "one_thread", "peak_memory_mib"]

_SHORTEST_S = 0.005  # a timed stretch is at least this long, so that the clock does not matter


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many times slower theirs is than ours, with what is needed to doubt it.

    The interval is made of order statistics of the paired ratios. It holds their median with
    probability `confidence` whatever their distribution: 0.984 for 7 pairs.
    """

    ratio: float  # theirs / ours: median over the pairs; above 1, ours is faster
    low: float
    high: float
    ours_s: float  # median seconds a call
    theirs_s: float
    names: tuple[str, str]
    repeats: int
    confidence: float

    def row(self) -> dict[str, object]:
        """The comparison as a row of a table."""
        ours, theirs = self.names
        return {
            f"{ours} (s)": self.ours_s,
            f"{theirs} (s)": self.theirs_s,
            f"{theirs} / {ours}": self.ratio,
            "low": self.low,
            "high": self.high,
        }


def compare(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    repeats: int = 7,
    names: tuple[str, str] = ("ours", "peer"),
) -> Comparison:
    """Time two calls in turn, after one call of each that does not count.

    Parameters
    ----------
    ours, theirs
        What to time, both on the same input. Short calls are repeated within a measurement.
    repeats
        Pairs of measurements.
    names
        What to call the two in a table.

    Raises
    ------
    InputError
        If there are fewer than 3 pairs.
    """
    if repeats < 3:
        raise InputError("repeats", found=repeats, expected="at least 3 pairs for an interval")
    calls = [(_calls_needed(ours), ours), (_calls_needed(theirs), theirs)]
    seconds = np.array([[_seconds(f, n) for n, f in calls] for _ in range(repeats)])
    ratios = np.sort(seconds[:, 1] / seconds[:, 0])
    rank, confidence = _median_rank(repeats)
    ours_s, theirs_s = np.median(seconds, axis=0)
    return Comparison(
        ratio=float(np.median(ratios)),
        low=float(ratios[rank]),
        high=float(ratios[repeats - 1 - rank]),
        ours_s=float(ours_s),
        theirs_s=float(theirs_s),
        names=names,
        repeats=repeats,
        confidence=confidence,
    )


def growth(function: Callable[[int], object], sizes: Sequence[int]) -> tuple[float, list[float]]:
    """How the time of ``function(size)`` grows: the exponent of a power law, and the times.

    Parameters
    ----------
    function
        What to time. What it prepares counts, so prepare before.
    sizes
        At least two different sizes, positive.

    Returns
    -------
    The least-squares slope of log time on log size, and the seconds a call for each size: the
    best of three passes over all sizes, since disturbances only ever add.

    Raises
    ------
    InputError
        If the sizes do not allow a slope.
    """
    if len(set(sizes)) < 2 or min(sizes) < 1:
        raise InputError("sizes", found=list(sizes), expected="two or more different sizes >= 1")
    calls = [(_calls_needed(lambda size=size: function(size)), size) for size in sizes]
    passes = [
        [_seconds(lambda size=size: function(size), number) for number, size in calls]
        for _ in range(3)
    ]
    times = [min(of_one_size) for of_one_size in zip(*passes, strict=True)]
    slope = linear_regression([math.log(size) for size in sizes], [math.log(t) for t in times])[0]
    return slope, times


def peak_memory_mib(code: str) -> float:
    """Largest resident memory of a fresh Python process that runs `code`, in MiB.

    About 10 MiB of it are Python itself: subtract the peak of ``"import ..."`` where that matters.

    Raises
    ------
    ArmillaryError
        If the code fails, with the last line that it said.
    """
    out, into = os.pipe()
    with os.fdopen(out) as report:
        try:
            result = subprocess.run(
                [sys.executable, "-c", _REPORT_PEAK, str(into), code],
                pass_fds=[into],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        finally:
            os.close(into)
        if result.returncode != 0:
            said = result.stderr.strip().splitlines() or [f"exit status {result.returncode}"]
            raise ArmillaryError(f"the measured code failed: {said[-1]}")
        return int(report.read()) / 2**20


# getrusage counts from the fork on Linux: a child of a large process would seem as large. The
# high-water mark of the address space is new in a new program.
_REPORT_PEAK = """
import os, resource, sys
exec(compile(sys.argv[2], "<measured>", "exec"), {"__name__": "__main__"})
if sys.platform == "linux":
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak *= 1 if sys.platform == "darwin" else 1024
os.write(int(sys.argv[1]), str(peak).encode())
"""


def _seconds(function: Callable[[], object], number: int) -> float:
    collecting = gc.isenabled()
    gc.disable()  # a collection of the one's garbage could fall into the other's time
    try:
        start = time.perf_counter()
        for _ in range(number):
            function()
        return (time.perf_counter() - start) / number
    finally:
        if collecting:
            gc.enable()


def _calls_needed(function: Callable[[], object]) -> int:
    function()  # imports, caches and compilation are not what is measured
    return max(1, math.ceil(_SHORTEST_S / max(_seconds(function, 1), 1e-9)))


def _median_rank(n: int) -> tuple[int, float]:
    """The innermost order statistics that hold the median with 95 %, counted from 0.

    P(x[r] <= median <= x[n-1-r]) = 1 - 2 P(Binomial(n, 1/2) <= r). With fewer than 6 the extremes
    must do, and hold it less often.
    """
    chances = [math.comb(n, r) / 2**n for r in range(n // 2)]
    confidences = [1 - 2 * sum(chances[: r + 1]) for r in range(len(chances))]
    rank = max((r for r, held in enumerate(confidences) if held >= 0.95), default=0)
    return rank, confidences[rank]
