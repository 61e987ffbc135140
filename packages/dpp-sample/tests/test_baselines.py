from itertools import product

import numpy as np
import pytest

from armillary import InputError
from dpp_sample.baselines import (
    Beam,
    diverse_beam,
    kmeans_rerank,
    llm_select,
    mmr,
    sample_k,
    top_k,
)
from dpp_sample.grammar import Grammar

A, B, C, END = range(4)


def chain(prefixes):
    """Log p of the next token: a, then b, then the end, are likely."""
    likely = {0: A, 1: B}
    rows = np.log(np.full((len(prefixes), 4), 0.1))
    for row, prefix in zip(rows, prefixes, strict=True):
        row[likely.get(len(prefix), END)] = np.log(0.7)
    return rows


def test_without_penalty_all_groups_are_greedy():
    beams = diverse_beam(chain, n_groups=3, eos=END, max_length=9, penalty=0)
    assert beams == [Beam((A, B, END), beams[0].logprob, complete=True)] * 3
    assert beams[0].logprob == pytest.approx(3 * np.log(0.7))


def test_a_penalty_turns_later_groups_away():
    """Worked by hand: log .7 - log .1 = 1.95, so that a penalty of 2 forbids a second use."""
    beams = diverse_beam(chain, n_groups=3, eos=END, max_length=9, penalty=2)
    assert [b.tokens[0] for b in beams] == [A, B, C]
    assert [b.tokens[1] for b in beams] == [B, A, C]
    # groups that have ended do not penalise: the second takes the end token one step later
    assert [b.tokens[2] for b in beams] == [END, A, B]
    assert beams[1].tokens[3] == END
    assert beams[1].logprob == pytest.approx(np.log([0.1, 0.1, 0.1, 0.7]).sum())


def test_a_small_penalty_changes_nothing():
    beams = diverse_beam(chain, n_groups=2, eos=END, max_length=9, penalty=1.9)
    assert beams[0].tokens == beams[1].tokens == (A, B, END)


def test_what_does_not_end_is_cut_and_marked():
    beams = diverse_beam(chain, n_groups=1, eos=[7, 8], max_length=2)
    assert [(b.tokens, b.complete) for b in beams] == [((A, B), False)]


def test_the_model_is_asked_for_all_running_groups_at_once():
    asked = []

    def spy(prefixes):
        asked.append([len(p) for p in prefixes])
        return chain(prefixes)

    diverse_beam(spy, n_groups=3, eos=END, max_length=9, penalty=2)
    assert asked[:3] == [[0] * 3, [1] * 3, [2] * 3]
    assert asked[3] == [3, 3]


def test_beams_of_a_grammar_are_its_strings():
    grammar = Grammar(
        {
            "start": [(0.7, ["noun", " runs"]), (0.3, ["noun", " and ", "noun", " run"])],
            "noun": [(0.6, ["cat"]), (0.3, ["dog"]), (0.1, ["cow"])],
        }
    )
    laws = dict(grammar.strings())
    for penalty in (0.2, 0.5, 1.0, 5.0):
        beams = diverse_beam(
            grammar.step_logprobs, n_groups=3, eos=grammar.eos, max_length=20, penalty=penalty
        )
        assert all(b.logprob == pytest.approx(laws[b.tokens]) for b in beams)
    assert len({b.tokens for b in beams}) == 3


def test_diverse_beam_refuses():
    def dead_end(prefixes):
        return np.full((len(prefixes), 2), -np.inf)

    with pytest.raises(InputError, match="step_logprobs"):
        diverse_beam(dead_end, n_groups=1, eos=1, max_length=3)
    for wrong in ({"n_groups": 0}, {"max_length": 0}, {"penalty": -1.0}, {"penalty": np.inf}):
        arguments = {"n_groups": 1, "eos": 1, "max_length": 3, **wrong}
        with pytest.raises(InputError, match=next(iter(wrong))):
            diverse_beam(chain, **arguments)


def test_sample_k_draws_without_replacement():
    drawn = sample_k(6, 6, rng=0)
    assert sorted(drawn.tolist()) == list(range(6))
    assert sample_k(50, 5, rng=3).tolist() == sample_k(50, 5, rng=3).tolist()


def test_top_k_breaks_ties_by_row():
    assert top_k(np.array([0.0, 2.0, 2.0, -1.0, 2.0]), 3).tolist() == [1, 2, 4]


def test_kmeans_rerank_takes_the_best_of_each_cluster(rng):
    centres = 10 * np.eye(3)
    features = np.repeat(centres, 5, axis=0) + rng.normal(size=(15, 3)) * 0.1
    quality = np.arange(15.0)
    assert kmeans_rerank(features, quality, 3, rng=0).tolist() == [14, 9, 4]


def test_kmeans_rerank_fills_empty_clusters_by_the_best():
    features = np.repeat(np.eye(2), 4, axis=0)
    quality = np.array([0.0, 9, 8, 1, 7, 2, 3, 4])
    assert kmeans_rerank(features, quality, 4, rng=0).tolist() == [1, 4, 2, 7]


def brute_mmr(features, quality, k, lam):
    """The definition, in plain Python."""
    unit = [f / np.linalg.norm(f) for f in features]
    z = [(q - min(quality)) / (max(quality) - min(quality)) for q in quality]
    chosen = [int(np.argmax(z))]
    while len(chosen) < k:
        rest = [i for i in range(len(z)) if i not in chosen]
        scores = [lam * z[i] - (1 - lam) * max(unit[i] @ unit[j] for j in chosen) for i in rest]
        chosen.append(rest[int(np.argmax(scores))])
    return chosen


def test_mmr_is_its_definition(rng):
    features, quality = rng.normal(size=(12, 4)) * 3, rng.normal(size=12)
    for k, lam in product((1, 5, 12), (0.0, 0.3, 0.9, 1.0)):
        assert mmr(features, quality, k, lam=lam).tolist() == brute_mmr(features, quality, k, lam)
    assert mmr(features, quality, 12, lam=1).tolist() == top_k(quality, 12).tolist()


def test_mmr_with_equal_qualities_starts_at_the_first_row():
    assert mmr(np.eye(3)[[0, 0, 1]], np.full(3, -2.0), 2).tolist() == [0, 2]


def test_llm_select_asks_and_reads_the_reply():
    asked = []

    def chooser(prompt):
        asked.append(prompt)
        return "I choose 3, 1."

    assert llm_select(["red", "pink", "blue\nsky"], 2, chooser=chooser) == [2, 0]
    assert "3. 'blue\\nsky'" in asked[0]
    assert "the 2 that are best" in asked[0]


@pytest.mark.parametrize("reply", ["", "1", "1, 1", "0, 1", "1, 4", "1, 2, 3"])
def test_llm_select_refuses_a_reply_that_names_no_set(reply):
    with pytest.raises(InputError, match="the chooser's reply: expected 2 different numbers"):
        llm_select(["a", "b", "c"], 2, chooser=lambda _: reply)


def test_more_than_there_are_cannot_be_chosen():
    calls = [
        lambda k: sample_k(3, k, rng=0),
        lambda k: top_k(np.zeros(3), k),
        lambda k: kmeans_rerank(np.eye(3), np.zeros(3), k, rng=0),
        lambda k: mmr(np.eye(3), np.zeros(3), k),
        lambda k: llm_select(["a", "b", "c"], k, chooser=str),
    ]
    for call, k in product(calls, (0, 4)):
        with pytest.raises(InputError, match="k: expected a number from 1 to the 3 candidates"):
            call(k)
    with pytest.raises(InputError, match="lam"):
        mmr(np.eye(3), np.zeros(3), 2, lam=1.5)
