"""Against what a user would take otherwise: the same input, one run, A B A B, one thread each.

Peers: DPPy 0.3.3's exact k-DPP sampler on the dense kernel and in its dual form, and a NumPy greedy
that recomputes the determinant of every candidate set. A promised ratio must lie below the whole
interval of the measured one.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest

from armillary.measure import Comparison, compare, one_thread
from dpp_sample import KDPP, greedy_map

pytestmark = pytest.mark.unchecked


def line(what: str, found: Comparison, promised: float | None = None) -> str:
    goal = "" if promised is None else f", promised {promised:g}"
    return (
        f"{what}: {found.ours_s * 1e3:.3g} ms against {found.theirs_s * 1e3:.3g} ms,"
        f" {found.ratio:.1f} times faster ({found.low:.1f} to {found.high:.1f}{goal})"
    )


def dppy(**kernel: Any) -> Any:
    from dppy.finite_dpps import FiniteDPP

    return FiniteDPP("likelihood", **kernel)


def factor(features: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.exp(weight / 2)[:, None] * features


def naive_greedy(features: np.ndarray, quality: np.ndarray, k: int) -> list[int]:
    """Each step the candidate whose set has the largest determinant, all recomputed at once."""
    gram = features @ features.T
    chosen: list[int] = []
    for _ in range(k):
        candidates = np.array([row for row in range(len(features)) if row not in chosen])
        sets = np.column_stack([np.tile(chosen, (len(candidates), 1)), candidates]).astype(int)
        dets = np.linalg.slogdet(gram[sets[:, :, None], sets[:, None, :]])[1]
        chosen.append(int(candidates[np.argmax(dets + quality[candidates])]))
    return chosen


def test_setup_against_the_dense_kernel(weighted_rows, report):
    """From features to the first set: N = 2000, d = 256, K = 20."""
    features, weight = weighted_rows(2000, 256)

    def theirs():
        scaled = factor(features, weight)
        dpp = dppy(L=scaled @ scaled.T)
        return dpp.sample_exact_k_dpp(size=20, random_state=np.random.RandomState(0))

    def ours():
        return KDPP(features, weight, k=20).sample(rng=0)

    with one_thread():
        found = compare(ours, theirs, repeats=3)
    report(line("set-up and first draw, DPPy dense, N=2000 d=256 K=20", found, 10))
    assert found.low >= 10


def test_setup_against_the_dual_kernel(weighted_rows, report):
    features, weight = weighted_rows(2000, 256)

    def theirs():
        dpp = dppy(L_gram_factor=factor(features, weight).T)
        return dpp.sample_exact_k_dpp(size=20, random_state=np.random.RandomState(0))

    with one_thread():
        found = compare(lambda: KDPP(features, weight, k=20).sample(rng=0), theirs)
    report(line("set-up and first draw, DPPy dual, N=2000 d=256 K=20", found))


@pytest.mark.parametrize(("n", "d", "k"), [(1000, 64, 10), (2000, 256, 20)])
def test_draws_against_the_dual_kernel(weighted_rows, report, n, d, k):
    """One set a call, and a hundred a call; the eigendecomposition is done before."""
    features, weight = weighted_rows(n, d)
    dpp, peer = KDPP(features, weight, k=k), dppy(L_gram_factor=factor(features, weight).T)
    rng, state = np.random.default_rng(0), np.random.RandomState(0)
    theirs = partial(peer.sample_exact_k_dpp, size=k, random_state=state)

    def hundred():
        for _ in range(100):
            theirs()

    with one_thread():
        single = compare(lambda: dpp.sample(rng=rng), theirs, repeats=15)
        many = compare(lambda: dpp.sample(100, rng=rng), hundred)
    promised = 2.0 if n == 1000 else None
    report(line(f"one draw, DPPy dual, N={n} d={d} K={k}", single, promised))
    report(line(f"100 draws, DPPy dual, N={n} d={d} K={k}", many, promised))
    if promised:
        assert single.low >= promised
        assert many.low >= promised


def test_greedy_against_recomputed_determinants(weighted_rows, report):
    features, quality = weighted_rows(500, 64)
    assert greedy_map(features, quality, k=10).indices.tolist() == naive_greedy(
        features, quality, 10
    )
    with one_thread():
        found = compare(
            lambda: greedy_map(features, quality, k=10),
            lambda: naive_greedy(features, quality, 10),
        )
    report(line("greedy, determinants recomputed, N=500 d=64 K=10", found, 3))
    assert found.low >= 3
