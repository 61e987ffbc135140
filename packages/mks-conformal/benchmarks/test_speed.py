"""The hot paths, how they grow, and what they hold in memory. One thread each."""

import time

import numpy as np
import pytest

from armillary.measure import growth, one_thread, peak_memory_mib
from mks_conformal import MultivariateKernelScore, full_conformal_pvalues, region_volume
from mks_conformal.kernels import Gaussian

pytestmark = pytest.mark.unchecked

FIXED = {"bandwidth": 2.0, "lam": 1e-3, "random_state": 0}


def cpu_seconds(function) -> float:
    """Processor time: on a busy machine the wall clock times the others too."""
    start = time.process_time()
    function()
    return time.process_time() - start


def test_selection(residuals, report):
    """8 bandwidths and 7 ridges, 900 rows in 8 dimensions: at most 15 s."""
    R = residuals(900, 8, 0)
    with one_thread():
        seconds = cpu_seconds(lambda: MultivariateKernelScore(random_state=0).fit(R))
    report(f"selection, 900 rows, d=8: {seconds:.1f} s (promised 15)")
    assert seconds <= 15


@pytest.mark.parametrize("n", [900, 2000])
def test_score(benchmark, residuals, n):
    score = MultivariateKernelScore(**FIXED).fit(residuals(n, 8, 0))
    points = residuals(4000, 8, 1)
    with one_thread():
        benchmark(score.score_samples, points)


def test_volume(benchmark, residuals):
    R = residuals(900, 8, 0)
    score = MultivariateKernelScore(**FIXED).fit(R)
    q = float(np.quantile(score.score_samples(residuals(900, 8, 1)), 0.9))
    with one_thread():
        benchmark.pedantic(
            lambda: region_volume(score, q, R, rtol=1.0, max_points=20_000, rng=0), rounds=3
        )


def test_full_conformal(benchmark, residuals):
    R, new = residuals(500, 4, 0), residuals(1000, 4, 1)
    with one_thread():
        benchmark(full_conformal_pvalues, R, new, kernel=Gaussian(1.0), lam=1e-3)


def test_growth_with_the_references(residuals, report):
    """Default path to 8000: landmarks keep a query's cost, the fit grows about as n."""
    sizes = [500, 1000, 2000, 4000, 8000]
    inputs = {n: residuals(n, 8, 0) for n in sizes}
    points = residuals(4000, 8, 1)
    with one_thread():
        ready = {n: MultivariateKernelScore(**FIXED).fit(inputs[n]) for n in sizes}
        fit, fits = growth(lambda n: MultivariateKernelScore(**FIXED).fit(inputs[n]), sizes)
        query, queries = growth(lambda n: ready[n].score_samples(points), sizes)
    shown = ", ".join(
        f"{n}: {a:.2f} and {b:.2f} s" for n, a, b in zip(sizes, fits, queries, strict=True)
    )
    report(f"growth in n (d=8): fit n^{fit:.2f}, 4000 queries n^{query:.2f} ({shown})")
    assert fit < 2
    assert query < 1


def test_a_million_membership_queries(report):
    """1e6 rows stream: the memory beyond the rows themselves stays small."""
    prepare = (
        "import numpy as np; from mks_conformal import MultivariateKernelScore;"
        "rng = np.random.default_rng(0);"
        "s = MultivariateKernelScore(bandwidth=2.0, lam=1e-3).fit(rng.exponential(size=(2000, 8)));"
        "R = rng.exponential(size=({n}, 8));"
    )
    base = peak_memory_mib(prepare.format(n=1_000_000))
    code = prepare.format(n=1_000_000) + "s.score_samples(R)"
    start = time.perf_counter()
    peak = peak_memory_mib(code)
    seconds = time.perf_counter() - start
    report(f"1e6 queries, 2000 references: {seconds:.0f} s, {peak:.0f} MiB, {base:.0f} without")
    assert peak - base < 300
