"""Timings, growth and memory, against costs that are known."""

import math
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from armillary import ArmillaryError, InputError
from armillary.measure import (
    _median_rank,  # pyright: ignore[reportPrivateUsage]
    compare,
    growth,
    one_thread,
    peak_memory_mib,
)


class Clock:
    """A clock that stands still but for the work that is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_ratio_is_theirs_over_ours(clock: Clock) -> None:
    found = compare(lambda: clock.work(0.1), lambda: clock.work(0.3), names=("a", "b"))
    assert (found.low, found.ratio, found.high) == pytest.approx((3, 3, 3))
    assert (found.ours_s, found.theirs_s) == pytest.approx((0.1, 0.3))
    assert (found.repeats, found.confidence) == (7, 1 - 2 / 2**7)
    row = found.row()
    assert list(row) == ["a (s)", "b (s)", "b / a", "low", "high"]
    assert row["b / a"] == pytest.approx(3)


def test_pairs_cancel_a_machine_that_slows_down(clock: Clock) -> None:
    slow = [1.0]

    def ours() -> None:
        slow[0] *= 1.5
        clock.work(slow[0])

    found = compare(ours, lambda: clock.work(2 * slow[0]))
    assert found.low == pytest.approx(2)
    assert found.high == pytest.approx(2)


def test_calls_alternate_after_one_uncounted_call_each(clock: Clock) -> None:
    calls: list[str] = []

    def ours() -> None:
        calls.append("a")
        clock.work(10 if len(calls) == 1 else 0.01)

    def theirs() -> None:
        calls.append("b")
        clock.work(0.02)

    found = compare(ours, theirs, repeats=3)
    assert found.ratio == pytest.approx(2)
    assert "".join(calls[4:]) == "ababab"  # before: one uncounted, one to see how long it takes


def test_short_calls_are_repeated_until_the_clock_can_tell(clock: Clock) -> None:
    calls = [0]

    def short() -> None:
        calls[0] += 1
        clock.work(1e-4)

    found = compare(short, lambda: clock.work(1), repeats=3)
    assert found.ours_s == pytest.approx(1e-4)
    assert calls[0] == 2 + 3 * 50


def test_the_interval_covers_the_median_as_often_as_it_says(rng: np.random.Generator) -> None:
    """Order statistics of skewed samples around their median; false alarm 1e-6 a row."""
    trials = 20_000
    for n in (3, 6, 7, 8, 15, 25):
        rank, confidence = _median_rank(n)
        samples = np.sort(rng.exponential(size=(trials, n)), axis=1)
        covered = (samples[:, rank] <= math.log(2)) & (math.log(2) <= samples[:, n - 1 - rank])
        slack = 5 * math.sqrt(confidence * (1 - confidence) / trials)
        assert abs(covered.mean() - confidence) <= slack
        assert confidence >= 0.95 or (n < 6 and rank == 0)
    assert _median_rank(25) == (7, pytest.approx(0.9567, abs=1e-4))


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(InputError, match="repeats: expected at least 3 pairs"):
        compare(lambda: None, lambda: None, repeats=2)


@pytest.mark.parametrize("exponent", [0, 1, 2.5])
def test_growth_is_the_exponent(clock: Clock, exponent: float) -> None:
    slope, times = growth(lambda n: clock.work(0.01 * n**exponent), [1, 2, 8])
    assert slope == pytest.approx(exponent)
    assert times == pytest.approx([0.01 * n**exponent for n in (1, 2, 8)])


@pytest.mark.parametrize("sizes", [[], [5], [5, 5], [0, 5]])
def test_sizes_without_a_slope_are_refused(sizes: list[int]) -> None:
    with pytest.raises(InputError, match="sizes: expected two or more different sizes >= 1"):
        growth(lambda _: None, sizes)


def test_real_time_is_in_seconds() -> None:
    found = compare(lambda: time.sleep(0.01), lambda: time.sleep(0.03), repeats=3)
    assert 0.01 <= found.ours_s < 0.03 <= found.theirs_s
    assert found.ratio > 1


def test_memory_is_that_of_the_code_alone() -> None:
    """A large parent must not show: on Linux getrusage would count it in."""
    held = np.ones(30 * 2**20)  # 240 MiB
    empty = peak_memory_mib("pass")
    assert 2 < empty < 100
    assert peak_memory_mib("x = bytearray(100 * 2**20)") - empty == pytest.approx(100, abs=5)
    assert held.sum() == held.size


def test_measured_code_may_print_and_its_failure_is_told() -> None:
    assert peak_memory_mib("print('x' * 10)\nimport sys; sys.stderr.write('y')") > 2
    with pytest.raises(ArmillaryError, match="the measured code failed: ZeroDivisionError: div"):
        peak_memory_mib("1 / 0")
    with pytest.raises(ArmillaryError, match="the measured code failed: exit status 3"):
        peak_memory_mib("import os; os._exit(3)")


def test_one_thread_is_here_too() -> None:
    with one_thread():
        pass
    code: Any = [
        sys.executable,
        "-c",
        "import armillary.measure, sys; print('torch' in sys.modules)",
    ]
    assert subprocess.run(code, capture_output=True, text=True, check=True).stdout == "False\n"
