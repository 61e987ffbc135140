import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary import InputError
from dpp_sample.metrics import (
    coverage,
    distinct_n,
    hypervolume,
    pass_at_k,
    self_bleu,
    vendi_score,
)


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0, 2.0, np.inf])
def test_vendi_counts_equal_groups(q):
    """Rows in m groups of one size, orthogonal between groups, count m at every order."""
    rows = np.repeat(np.eye(7)[:4], 5, axis=0)
    assert vendi_score(rows, q) == pytest.approx(4)
    assert vendi_score(np.ones((6, 3)), q) == pytest.approx(1)


def test_vendi_is_the_entropy_of_the_kernel_matrix(rng):
    x = rng.normal(size=(12, 30)) * 5
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(unit @ unit.T / 12)
    assert vendi_score(x) == pytest.approx(np.exp(-np.sum(values * np.log(values))), rel=1e-10)


def test_vendi_falls_with_the_order(rng):
    x = rng.normal(size=(20, 4))
    scores = [vendi_score(x, q) for q in (0, 0.5, 1, 1.5, 2, 5, np.inf)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(4)
    assert vendi_score(x, 1 + 1e-7) == pytest.approx(vendi_score(x), rel=1e-5)


def test_vendi_agrees_with_the_reference_package(rng):
    from vendi_score import vendi

    x = rng.normal(size=(25, 10))
    for q in (0.5, 1, 2, 5):
        assert vendi_score(x, q) == pytest.approx(vendi.score_dual(x, q=q, normalize=True))


@pytest.mark.unchecked
def test_vendi_refuses():
    with pytest.raises(InputError, match="q"):
        vendi_score(np.eye(2), -1.0)
    with pytest.raises(InputError, match="0 rows"):
        vendi_score(np.zeros((0, 2)))


def test_distinct_n_counts_words_and_marks():
    assert distinct_n(["a b", "A b c"]) == pytest.approx(2 / 3)
    assert distinct_n(["Hi, you!"], n=1) == 1
    assert distinct_n(["a a a"], n=1) == pytest.approx(1 / 3)
    assert math.isnan(distinct_n(["one", ""], n=2))


SENTENCES = [
    "the cat sat on the mat",
    "the cat sat on a mat today",
    "dogs run in the park , fast",
    "a cat and a dog",
    "mat",
]


def test_self_bleu_agrees_with_sacrebleu():
    from sacrebleu.metrics import BLEU

    bleu = BLEU(
        smooth_method="add-k",
        smooth_value=1,
        tokenize="none",
        effective_order=False,
        lowercase=True,
    )
    scores = [
        bleu.sentence_score(text, SENTENCES[:i] + SENTENCES[i + 1 :]).score / 100
        for i, text in enumerate(SENTENCES)
    ]
    assert self_bleu(SENTENCES) == pytest.approx(np.mean(scores), abs=1e-12)


def test_self_bleu_extremes():
    assert self_bleu(["one two three four five"] * 3) == pytest.approx(1)
    assert self_bleu(["alpha beta", "gamma delta"]) == 0
    assert self_bleu(["", "a"]) == 0
    assert math.isnan(self_bleu(["alone"]))


def test_coverage_ignores_failures_and_repeats():
    assert coverage(np.array([0, 0, 5, -1]), np.array([0, 1, 1, -1])) == 0.5
    assert coverage(np.array([-1]), np.array([2])) == 0
    with pytest.raises(InputError, match="targets"):
        coverage(np.array([1]), np.array([-1]))


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_pass_at_k_is_the_mean_over_all_draws(correct, data):
    k = data.draw(st.integers(1, len(correct)))
    draws = [any(draw) for draw in combinations(correct, k)]
    assert pass_at_k(np.array(correct), k) == pytest.approx(np.mean(draws))


def test_pass_at_k_refuses():
    for k in (0, 4):
        with pytest.raises(InputError, match="k: expected a number from 1 to the 3 answers"):
            pass_at_k(np.ones(3, dtype=bool), k)


def test_hypervolume_by_hand():
    assert hypervolume([(1, 3), (2, 2), (3, 1)], (0, 0)) == 6
    assert hypervolume([(2, 2), (1, 1), (2, 2)], (0, 0)) == 4  # dominated, and a copy
    assert hypervolume([(5, 0), (-1, 9), (0, 0)], (0, 0)) == 0  # none exceeds the reference
    assert hypervolume([(-1, -1)], (-2, -3)) == 2
    assert hypervolume(np.zeros((0, 2)), (0, 0)) == 0
    with pytest.raises(InputError, match="finite"):
        hypervolume([(np.nan, 1)], (0, 0))


@given(
    st.lists(st.tuples(st.integers(-2, 8), st.integers(-2, 8)), min_size=1, max_size=9),
)
def test_hypervolume_counts_the_dominated_cells(points):
    cells = sum(any(x > a and y > b for x, y in points) for a in range(8) for b in range(8))
    assert hypervolume(points, (0, 0)) == cells
