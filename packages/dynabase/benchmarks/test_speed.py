"""The hot paths, how they grow, and what they hold in memory. One thread each.

What is promised in seconds is held against the time of this process, so that a busy machine does
not decide.
"""

import time

import numpy as np
import pytest

from armillary.measure import growth, one_thread, peak_memory_mib
from dynabase import DynaBase, fit_one_step, forecast_panel, rollout, train
from dynabase.claims.cost import torus

pytestmark = pytest.mark.unchecked
own_time = pytest.mark.benchmark(timer=time.process_time)


@own_time
@pytest.mark.parametrize("alpha", [0.0, 0.95, 1.0, 1.005])
def test_ten_thousand_steps(benchmark, lorenz, alpha):
    """Promised: at most 0.6 s at T = 2,000, d = 3."""
    with one_thread():
        radius = 0.3 if alpha > 1 else None
        benchmark(rollout, lorenz, 10_000, alpha, theiler=13, trust_radius=radius)
    assert benchmark.stats["median"] <= 0.6


@own_time
def test_the_panel(benchmark, panel):
    """Promised: 1,000 series of 512 samples and 3 coordinates, 96 steps, in at most 1 s."""
    with one_thread():
        benchmark.pedantic(
            forecast_panel, (panel, 96), {"n_neighbors": 1}, rounds=5, warmup_rounds=1
        )
    assert benchmark.stats["min"] <= 1.0


def test_the_panel_with_everything_chosen(benchmark, panel):
    with one_thread():
        benchmark.pedantic(forecast_panel, (panel, 96), rounds=3, warmup_rounds=1)


def test_an_interval(benchmark, lorenz):
    model = DynaBase(delays=3, tau=4, n_neighbors=1).fit(lorenz[:, 0])
    with one_thread():
        benchmark(model.predict_interval, 24)


def test_the_closed_form(benchmark, lorenz):
    with one_thread():
        benchmark(fit_one_step, lorenz, theiler=13)


def test_training_on_one_pair(benchmark, lorenz):
    with one_thread():
        benchmark.pedantic(train, ([(lorenz[:1000], lorenz[1000:])],), {"refine": False}, rounds=3)


def test_growth_with_the_context(report):
    """Fit and steps for contexts of up to a million samples."""
    sizes = [10**3, 10**4, 10**5, 10**6]
    fit_s, step_s = [], []
    with one_thread():
        for n in sizes:
            y = torus(n)
            begin = time.perf_counter()
            model = DynaBase().fit(y)
            fit_s.append(time.perf_counter() - begin)
            model.predict(1_000)
            begin = time.perf_counter()
            model.predict(1_000)
            step_s.append(time.perf_counter() - begin)
    slope = np.polyfit(np.log(sizes[1:]), np.log(fit_s[1:]), 1)[0]
    report(
        "growth with T = 1e3, 1e4, 1e5, 1e6: fit "
        + ", ".join(f"{s:.3g}" for s in fit_s)
        + f" s (T^{slope:.2f}); a step "
        + ", ".join(f"{1e3 * s:.3g}" for s in step_s)
        + " us"
    )
    assert slope < 1.4
    assert step_s[-1] < 100 * step_s[0]  # a thousand times the context


def test_growth_with_the_horizon(lorenz, report):
    model = DynaBase().fit(lorenz)
    with one_thread():
        slope, seconds = growth(model.predict, [100, 1_000, 10_000, 100_000])
    report(f"growth with the horizon: h^{slope:.2f}, 100,000 steps in {seconds[-1]:.2g} s")
    assert slope < 1.2


def test_memory_of_the_panel(report):
    """Promised: 1.5 GiB for 1,000 series x 512 x 3 x 96 steps."""
    code = (
        "import numpy as np\n"
        "from dynabase import forecast_panel\n"
        "x = np.random.default_rng(0).normal(size=(1000, 512, 3)).cumsum(axis=1)\n"
        "forecast_panel(x, 96, n_neighbors=1)\n"
    )
    peak = peak_memory_mib(code)
    report(f"peak memory of the panel: {peak:.0f} MiB, promised 1536")
    assert peak < 1536
