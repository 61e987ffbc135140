from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armillary import InputError
from dpp_sample import RankError, greedy_map


def log_det(features, rows):
    return np.linalg.slogdet(features[rows] @ features[rows].T)[1]


def objective(features, quality, rows):
    return quality[rows].sum() + log_det(features, rows)


def naive_greedy(features, quality, k):
    """Every candidate's determinant anew at each step."""
    chosen = []
    for _ in range(k):
        gains = [
            -np.inf if row in chosen else objective(features, quality, [*chosen, row])
            for row in range(len(features))
        ]
        chosen.append(int(np.argmax(gains)))
    return chosen


def example(n=40, d=8, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), spread * rng.normal(size=n)


@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_greedy_that_recomputes_determinants(spread, seed):
    features, quality = example(spread=spread, seed=seed)
    found = greedy_map(features, quality, k=6)
    assert found.indices.tolist() == naive_greedy(features, quality, 6)
    assert found.log_det == pytest.approx(log_det(features, found.indices), abs=1e-10)
    assert found.gains.sum() == found.log_det
    for step in range(1, 6):
        grown = log_det(features, found.indices[: step + 1]) - log_det(
            features, found.indices[:step]
        )
        assert found.gains[step] == pytest.approx(grown, abs=1e-9)


def test_any_range_of_quality(unit_rows):
    """Exponentials of these leave floats; the order of choice is still exact."""
    features = unit_rows(np.random.default_rng(0), 30, 5)
    quality = -1e4 * np.arange(30.0)
    assert greedy_map(features, quality, k=5).indices.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(greedy_map(features, quality + 1e8, k=5).indices, [0, 1, 2, 3, 4])


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("slope", [None, -1, -5])
def test_pool_of_copies(pool_of_copies, slope, refine):
    quality = None if slope is None else slope * np.arange(60)
    found = greedy_map(pool_of_copies, quality, k=6, refine=refine)
    assert found.log_det == pytest.approx(-5.34956417, abs=1e-8)
    assert sorted(found.indices // 10) == [0, 1, 2, 3, 4, 5]
    if slope is not None:
        assert found.indices.tolist() == [0, 10, 20, 30, 40, 50]
    with pytest.raises(RankError, match="rank 6 "):
        greedy_map(pool_of_copies, quality, k=7, refine=refine)


def test_filling_a_pool_of_copies(pool_of_copies):
    found = greedy_map(pool_of_copies, -5 * np.arange(60), k=8, fill="quality")
    assert found.indices.tolist() == [0, 10, 20, 30, 40, 50, 1, 2]
    assert found.log_det == -np.inf
    assert np.isfinite(found.gains[:6]).all()
    assert np.isneginf(found.gains[6:]).all()


def test_filling_changes_nothing_where_the_rank_suffices():
    features, quality = example()
    found = greedy_map(features, quality, k=8, fill="quality")
    np.testing.assert_array_equal(found.indices, greedy_map(features, quality, k=8).indices)


def test_light_rows_beat_the_rounding_noise_of_heavy_copies(unit_rows):
    """A copy's residual is 1e-16, log -37: it must not beat an honest row 100 nats below."""
    features = unit_rows(np.random.default_rng(3), 3, 3)[[0, 0, 0, 0, 1, 2]]
    quality = np.array([0.0, 0, 0, 0, -100, -200])
    assert greedy_map(features, quality, k=3).indices.tolist() == [0, 4, 5]


def test_ties_go_to_the_lowest_index():
    assert greedy_map(np.eye(5), k=3).indices.tolist() == [0, 1, 2]
    assert greedy_map(np.eye(5)[[0, 0, 1, 1, 2]], k=3).indices.tolist() == [0, 2, 4]


def test_one_row():
    found = greedy_map(np.array([[3.0, 4.0]]), k=1)
    assert found.indices.tolist() == [0]
    assert found.log_det == pytest.approx(np.log(25))
    assert greedy_map(np.array([[3.0, 4.0]]), k=1, refine=True).indices.tolist() == [0]


@given(st.permutations(range(12)))
@settings(max_examples=25)
def test_order_of_rows_does_not_matter(order):
    features, quality = example(12, 5)
    order = np.array(order)
    found = greedy_map(features[order], quality[order], k=4)
    np.testing.assert_array_equal(order[found.indices], greedy_map(features, quality, k=4).indices)


@given(st.floats(-50, 50), st.floats(-1e3, 1e3))
@settings(max_examples=25)
def test_scale_and_shift_do_not_matter(log_scale, shift):
    features, quality = example(12, 5)
    found = greedy_map(np.exp(log_scale) * features, quality + shift, k=4)
    expected = greedy_map(features, quality, k=4)
    np.testing.assert_array_equal(found.indices, expected.indices)
    assert found.log_det == pytest.approx(expected.log_det + 8 * log_scale, abs=1e-9)


# Kept rows ----------------------------------------------------------------------------------


def test_kept_rows_come_first_and_the_rest_is_greedy_given_them():
    features, quality = example()
    found = greedy_map(features, quality, k=5, keep=[7, 3])
    chosen = [7, 3]
    while len(chosen) < 5:
        gains = [
            -np.inf if row in chosen else objective(features, quality, [*chosen, row])
            for row in range(40)
        ]
        chosen.append(int(np.argmax(gains)))
    assert found.indices.tolist() == chosen
    assert found.log_det == pytest.approx(log_det(features, chosen), abs=1e-10)


def test_keeping_all_k_rows_chooses_nothing():
    features, quality = example()
    assert greedy_map(features, quality, k=2, keep=[9, 4], refine=True).indices.tolist() == [9, 4]


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ([40], "keep: expected rows 0 to 39, found row 40"),
        ([-1], "keep: expected rows 0 to 39, found row -1"),
        ([3, 5, 3], "keep: expected each row once, found row 3 twice"),
        ([1, 2, 3, 4], "keep: expected at most k = 3, found 4 rows"),
    ],
)
def test_bad_keep_is_named(keep, message):
    features, quality = example()
    with pytest.raises(InputError) as caught:
        greedy_map(features, quality, k=3, keep=keep)
    assert str(caught.value) == message


def test_two_kept_rows_of_one_direction_are_a_rank_error():
    features, quality = example()
    features[5] = -2 * features[3]
    for fill in ("error", "quality"):
        with pytest.raises(RankError, match="keep: .* found row 5, a combination of the kept rows"):
            greedy_map(features, quality, k=3, keep=[3, 5], fill=fill)


# Exchange -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_no_exchange_of_one_row_improves_a_refined_set(seed):
    features, quality = example(25, 6, spread=0.5, seed=seed)
    plain = greedy_map(features, quality, k=4)
    refined = greedy_map(features, quality, k=4, refine=True)
    reached = objective(features, quality, refined.indices)
    assert reached >= objective(features, quality, plain.indices) - 1e-12
    for place in range(4):
        for row in set(range(25)) - set(refined.indices.tolist()):
            other = refined.indices.copy()
            other[place] = row
            assert objective(features, quality, other) <= reached + 2e-9


def test_exchange_repairs_a_greedy_mistake():
    """The best single row is in no best pair."""
    angle = np.deg2rad([0, 48, -48])
    features = np.column_stack([np.cos(angle), np.sin(angle)])
    quality = np.array([0.2, 0.0, 0.0])
    assert 0 in greedy_map(features, quality, k=2).indices
    refined = greedy_map(features, quality, k=2, refine=True)
    best = max(combinations(range(3), 2), key=lambda rows: objective(features, quality, list(rows)))
    assert sorted(refined.indices) == list(best) == [1, 2]


def test_exchange_leaves_kept_rows_alone():
    angle = np.deg2rad([0, 48, -48])
    features = np.column_stack([np.cos(angle), np.sin(angle)])
    assert 0 in greedy_map(features, k=2, keep=[0], refine=True).indices


@pytest.mark.unchecked
def test_bad_options_are_named():
    with pytest.raises(InputError, match="fill: expected 'error' or 'quality', found 'best'"):
        greedy_map(np.eye(2), k=1, fill="best")
    with pytest.raises(InputError, match=r"log_quality: expected \(2,\), one number per row"):
        greedy_map(np.eye(2), np.zeros(3), k=1)
    with pytest.raises(InputError, match="k: expected 1 to 2"):
        greedy_map(np.eye(2), k=3, fill="quality")
