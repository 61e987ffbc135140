"""The hot paths, how they grow, and what they hold in memory. One thread each."""

import time

import numpy as np
import pytest

from armillary.measure import growth, one_thread, peak_memory_mib
from dpp_sample import KDPP, greedy_map, make_pool, select

pytestmark = pytest.mark.unchecked


def test_setup(benchmark, weighted_rows):
    features, weight = weighted_rows(2000, 256)
    with one_thread():
        benchmark(KDPP, features, weight, k=20)


def test_setup_with_weights_of_hundreds_of_nats(benchmark, weighted_rows):
    features, weight = weighted_rows(2000, 256)
    with one_thread():
        benchmark(KDPP, features, 50 * weight, k=20)


def test_one_draw(benchmark, weighted_rows):
    dpp = KDPP(*weighted_rows(1000, 64), k=10)
    rng = np.random.default_rng(0)
    with one_thread():
        benchmark(dpp.sample, rng=rng)


def test_a_thousand_draws(benchmark, weighted_rows):
    dpp = KDPP(*weighted_rows(1000, 64), k=10)
    rng = np.random.default_rng(0)
    with one_thread():
        benchmark(dpp.sample, 1000, rng=rng)


def test_greedy(benchmark, weighted_rows):
    features, weight = weighted_rows(2000, 256)
    with one_thread():
        benchmark(greedy_map, features, weight, k=20)


@pytest.mark.parametrize("method", ["map", "sample"])
def test_select_from_a_pool_of_256(benchmark, method):
    """One prompt from candidates to the chosen texts."""
    rng = np.random.default_rng(0)
    features, logprob = rng.normal(size=(256, 96)), -5 * rng.gamma(3, size=256)
    texts = [f"text {row}" for row in range(256)]

    def prompt():
        return select(make_pool(texts, features, logprob=logprob), 8, method=method, rng=0)

    with one_thread():
        benchmark(prompt)


def test_growth_with_the_pool(weighted_rows, report):
    """Set-up and greedy choice are linear in N, a draw hardly depends on it."""
    sizes = [2_000, 4_000, 8_000, 16_000]
    inputs = {n: weighted_rows(n, 64) for n in sizes}
    ready = {n: KDPP(*inputs[n], k=10) for n in sizes}
    rng = np.random.default_rng(0)
    for dpp in ready.values():
        dpp.sample(rng=rng)
    with one_thread():
        setup, _ = growth(lambda n: KDPP(*inputs[n], k=10), sizes)
        greedy, _ = growth(lambda n: greedy_map(*inputs[n], k=10), sizes)
        draw, _ = growth(lambda n: ready[n].sample(200, rng=rng), sizes)
    report(
        f"growth in N (d=64, K=10): set-up N^{setup:.2f}, greedy N^{greedy:.2f}, draw N^{draw:.2f}"
    )
    assert setup < 1.7
    assert greedy < 1.7
    assert draw < 0.5


def test_growth_with_the_set(weighted_rows, report):
    """Greedy choice is linear in k as long as k is below d; a draw costs k^2 log k numbers."""
    features, weight = weighted_rows(2_000, 256)
    sizes = [5, 10, 20, 40]
    ready = {k: KDPP(features, weight, k=k) for k in sizes}
    rng = np.random.default_rng(0)
    with one_thread():
        greedy, _ = growth(lambda k: greedy_map(features, weight, k=k), sizes)
        draw, _ = growth(lambda k: ready[k].sample(100, rng=rng), sizes)
    report(f"growth in K (N=2000, d=256): greedy K^{greedy:.2f}, draw K^{draw:.2f}")
    assert greedy < 1.7
    assert draw < 3.3


def test_greedy_of_a_hundred_thousand(report):
    """N = 100,000, d = 384, K = 20: below 3 s and below 1 GB, the embeddings themselves counted."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((100_000, 384), dtype=np.float32)
    quality = rng.normal(size=100_000)
    seconds = []
    with one_thread():
        for _ in range(3):
            start = time.process_time()  # on a busy machine the wall clock times the others too
            greedy_map(features, quality, k=20)
            seconds.append(time.process_time() - start)
    peak = peak_memory_mib(
        "import numpy as np; from dpp_sample import greedy_map; rng = np.random.default_rng(0);"
        "greedy_map(rng.standard_normal((100_000, 384), dtype=np.float32), k=20)"
    )
    report(f"greedy N=100000, d=384, K=20: {min(seconds):.2f} s, peak {peak:.0f} MiB")
    assert min(seconds) < 3
    assert peak < 1000
