from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from armillary import InputError
from dpp_sample.clusters import last_number
from dpp_sample.grammar import Grammar
from dpp_sample.math_task import word_problems
from dpp_sample.sql_task import PRIOR, ambiguous_sql, wine_database

RULES = {
    "start": [(3, ["noun", " runs"]), (1, ["noun", " and ", "noun", " run"])],
    "noun": [(0.6, ["cat"]), (0.4, ["adjective", "dog"])],
    "adjective": [(0.5, []), (0.5, ["old "])],
}


@pytest.fixture(scope="module")
def pets():
    return Grammar(RULES)


def ids(grammar, *tokens):
    return [grammar.tokens.index(token) for token in tokens]


def test_strings_have_the_probability_of_their_derivation(pets):
    law = {pets.text(tokens): np.exp(lp) for tokens, lp in pets.strings()}
    noun = {"cat": 0.6, "dog": 0.2, "old dog": 0.2}
    expected = {f"{a} runs": 0.75 * p for a, p in noun.items()}
    expected |= {f"{a} and {b} run": 0.25 * p * q for a, p in noun.items() for b, q in noun.items()}
    assert law == pytest.approx(expected)


def test_next_tokens_are_marginal_over_all_parses(pets):
    rows = pets.step_logprobs([[], ids(pets, "cat"), ids(pets, "cat", " runs")])
    with np.errstate(divide="ignore"):
        assert rows[1, ids(pets, " runs", " and ", "cat")] == pytest.approx(np.log([0.75, 0.25, 0]))
    assert rows[0, ids(pets, "cat", "dog", "old ")] == pytest.approx(np.log([0.6, 0.2, 0.2]))
    assert rows[2, pets.eos] == 0
    assert np.exp(rows).sum(axis=1) == pytest.approx(np.ones(3))


def test_an_ambiguous_grammar_adds_its_derivations():
    grammar = Grammar(
        {"start": [(0.5, ["x"]), (0.3, ["a", "b"]), (0.2, ["a", "b"])], "x": [(1, ["a", "b"])]}
    )
    assert dict(grammar.strings()) == {(*ids(grammar, "a", "b"), grammar.eos): pytest.approx(0)}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tempered_laws_are_step_by_step(pets, temperature):
    """Each step is raised to 1 / T and normalised anew: not the tempering of whole strings."""
    total = 0.0
    for tokens, logprob in pets.strings():
        expected = 0.0
        for i, token in enumerate(tokens):
            row = pets.step_logprobs([tokens[:i]])[0]
            scaled = np.exp(row / temperature)
            expected += np.log(scaled[token] / scaled.sum())
        log_r = pets.logprob(tokens, temperature=temperature)
        assert log_r == pytest.approx(expected)
        assert pets.logprob(tokens) == pytest.approx(logprob)
        total += np.exp(log_r)
    assert total == pytest.approx(1)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_draws_follow_their_law(pets, temperature):
    n = 20_000
    drawn = pets.sample(n, temperature=temperature, rng=1)
    counts = Counter(map(tuple, drawn.token_ids))
    laws = [pets.logprob(tokens, temperature=temperature) for tokens, _ in pets.strings()]
    observed = [counts[tokens] for tokens, _ in pets.strings()]
    assert chisquare(observed, n * np.exp(laws)).pvalue > 1e-4  # the chance of a false alarm


def test_draws_carry_exact_log_probs_in_random_order(pets):
    drawn = pets.sample(50, temperature=1.7, rng=0)
    assert len(drawn) == 50
    assert drawn.logprob == pytest.approx([pets.logprob(t) for t in drawn.token_ids])
    assert drawn.proposal_logprob == pytest.approx(
        [pets.logprob(t, temperature=1.7) for t in drawn.token_ids]
    )
    assert drawn.texts == [pets.text(t) for t in drawn.token_ids]
    assert drawn.n_tokens.tolist() == [len(t) for t in drawn.token_ids]
    assert drawn.texts == pets.sample(50, temperature=1.7, rng=0).texts
    assert sorted(drawn.texts) != drawn.texts


def test_recursive_grammars_have_no_end_but_a_law():
    grammar = Grammar({"start": [(0.4, ["a", "start"]), (0.6, ["b"])]})
    tokens = [*ids(grammar, "a", "a", "b"), grammar.eos]
    assert grammar.logprob(tokens) == pytest.approx(np.log(0.4 * 0.4 * 0.6))
    assert len(grammar._states) == 2  # prefixes with one future share a state
    assert grammar.sample(1000, rng=0).n_tokens.mean() == pytest.approx(2 + 2 / 3, abs=0.2)


def test_grammar_refuses(pets):
    bad_rules = [
        {"start": []},
        {"start": [(0.0, ["a"])]},
        {"start": [(1.0, [""])]},
        {"x": [(1, ["a"])]},
    ]
    for rules in bad_rules:
        with pytest.raises(InputError):
            Grammar(rules)
    cat = ids(pets, "cat")
    with pytest.raises(InputError, match="prefix"):
        pets.step_logprobs([cat + cat])
    with pytest.raises(InputError, match="prefix"):
        pets.step_logprobs([[*ids(pets, "cat", " runs"), pets.eos]])
    with pytest.raises(InputError, match="no end token"):
        pets.logprob(cat)
    assert pets.logprob(cat + cat) == -np.inf
    for arguments in ({"n": 0}, {"n": 1, "temperature": 0.0}, {"n": 1, "temperature": np.inf}):
        with pytest.raises(InputError):
            pets.sample(**arguments)


@pytest.fixture(scope="module")
def questions():
    return ambiguous_sql(9)


def test_questions_have_two_to_four_readings_of_different_rows(questions, tmp_path):
    database = wine_database(tmp_path / "wine.sqlite")
    assert [len(q.readings) for q in questions] == [2, 2, 2, 3, 3, 3, 4, 4, 4]
    for question in questions:
        clusters, targets = question.clusters(["SELECT 1", question.readings[1]], database)
        assert targets.tolist() == list(range(len(question.readings)))
        assert clusters.tolist() == [len(targets), 1]


def test_sql_strings_are_unambiguous_and_a_quarter_is_wrong(questions, tmp_path):
    database = wine_database(tmp_path / "wine.sqlite")
    question = questions[6]
    strings = list(question.grammar.strings())
    texts = [question.grammar.text(tokens) for tokens, _ in strings]
    mass = np.exp([lp for _, lp in strings])
    assert len(set(texts)) == len(texts)
    assert mass.sum() == pytest.approx(1)
    clusters, targets = question.clusters(texts, database)
    shares = np.array([mass[clusters == target].sum() for target in targets])
    # a wrong filter may happen to return the rows of a reading, so that the shares are a little
    # above those of the right queries
    assert np.all(shares > np.array(PRIOR) * 0.75 - 1e-12)
    assert 0.75 - 1e-12 < shares.sum() < 0.85
    assert not (clusters == -1).any()  # every query runs


def test_questions_repeat_by_seed():
    assert [q.text for q in ambiguous_sql(3)] == [q.text for q in ambiguous_sql(9)[:3]]
    assert ambiguous_sql(3, seed=1)[0].text != ambiguous_sql(3)[0].text
    with pytest.raises(InputError):
        ambiguous_sql(0)


def test_wine_database_is_not_overwritten(tmp_path):
    import sqlite3

    wine_database(tmp_path / "w.sqlite")
    with pytest.raises(sqlite3.OperationalError):
        wine_database(tmp_path / "w.sqlite")


def test_problems_are_right_as_often_as_they_say():
    """P(answer) = prior times the chance of no slip, and whatever slips land on it."""
    for problem in word_problems(5, correct_prior=0.45):
        right = sum(
            np.exp(lp)
            for tokens, lp in problem.grammar.strings()
            if last_number(problem.grammar.text(tokens)) == problem.answer
        )
        assert 0.45 * 0.9 - 1e-12 <= right < 0.45 * 0.9 + 0.02


def test_chains_compute_what_they_say():
    problem = word_problems(1)[0]
    drawn = problem.grammar.sample(300, rng=0)
    slips = 0
    for text in drawn.texts:
        steps = [part.split(" = ") for part in text.split(". ") if " = " in part]
        for formula, result in steps:
            x, operator, y = formula.split()[-3:]
            exact = {"*": int(x) * int(y), "+": int(x) + int(y), "-": int(x) - int(y)}[operator]
            slips += int(result) != exact
        assert last_number(text) == int(steps[-1][1])
    assert 13 < slips < 54  # of 300 chains; beyond by chance less than once in 1000


def test_priors_are_drawn_from_their_range():
    with pytest.raises(InputError, match="correct_prior"):
        word_problems(1, correct_prior=(0.6, 0.2))
    assert [p.text for p in word_problems(5)] == [p.text for p in word_problems(5)]
