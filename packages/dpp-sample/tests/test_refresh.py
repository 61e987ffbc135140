from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from armillary import InputError
from dpp_sample import KDPP, PoolWarning, iterated_select, make_pool, select
from dpp_sample.bias import exact_pool_law, refresh_kernel
from dpp_sample.features import LexicalEmbedder
from dpp_sample.refresh import _Draws
from dpp_sample.sources import Candidates

PAIRS = list(combinations(range(5), 2))


def proposer(r, log_p=None, **fields):
    """Candidates named by their number, drawn from r."""
    log_p = np.log(r) if log_p is None else log_p

    def propose(n, rng):
        rows = rng.choice(len(r), size=n, p=r)
        return Candidates(
            [str(row) for row in rows],
            logprob=log_p[rows],
            proposal_logprob=np.log(r)[rows],
            **{name: values(rows) for name, values in fields.items()},
        )

    return propose


def space_of(string_space):
    p, r, features = string_space(3, 5)
    return p, r, features, lambda texts: features[[int(text) for text in texts]]


def law_of_pairs(probability):
    return SimpleNamespace(sets=np.array(PAIRS), probability=np.array(probability))


# Against the exact kernel -------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::dpp_sample.PoolWarning")
@pytest.mark.parametrize(
    ("rounds", "n_sets"), [(1, 150), pytest.param(2, 2_000, marks=pytest.mark.slow)]
)
def test_iterated_pools_follow_the_exact_kernel(string_space, fit_p_value, rounds, n_sets):
    """Draws through the whole path against mu_N T^rounds. False alarm probability 1e-4."""
    p, r, features, embed = space_of(string_space)
    law = exact_pool_law(p, r, features, 2, 6)
    law = law @ np.linalg.matrix_power(refresh_kernel(p, r, features, 2, 6), rounds)
    rng, sets = np.random.default_rng(rounds), []
    while len(sets) < n_sets:
        try:
            chosen = iterated_select(
                proposer(r), 2, embed=embed, kernel=None, pool_size=6, rounds=rounds, beta=2.0,
                rng=rng,
            )  # fmt: skip
        except InputError:
            continue  # a first pool with fewer than two strings is drawn again
        sets.append([int(text) for text in chosen.texts])
    assert fit_p_value(np.array(sets), law_of_pairs(law)) > 1e-4


def test_refreshed_selection_follows_the_chunks(string_space, fit_p_value):
    """Given the chunks, the law of two rounds is a product of explicit K-DPPs.

    False alarm probability 1e-4.
    """
    p, r, features, _ = space_of(string_space)
    rng = np.random.default_rng(5)
    rows = np.array([0, 3, 1, 4, 2, 3, 4, 4, *rng.permutation([0, 1, 2, 0, 1, 0, 0, 1])])
    pool = make_pool(
        [str(row) for row in rows], features[rows], kernel=None, logprob=np.log(r)[rows]
    )
    with pytest.warns(PoolWarning):
        chosen = select(pool, 2, method="refresh", rounds=1, beta=2.0, size=300, rng=1)
    sets = np.array([[int(pool.texts[row]) for row in one] for one in chosen.indices])

    weight = np.log(p / r)

    def pooled(counts):
        held = np.flatnonzero(counts)
        dpp = KDPP(features[held], weight[held] + np.log(counts[held]), k=2)
        return {
            pair: float(np.exp(dpp.log_prob(np.searchsorted(held, pair))))
            for pair in PAIRS
            if set(pair) <= set(held.tolist())
        }

    law = dict.fromkeys(PAIRS, 0.0)
    for first, probability in pooled(np.bincount(rows[:8], minlength=5)).items():
        counts = np.bincount([*rows[8:], *first], minlength=5)
        for pair, share in pooled(counts).items():
            law[pair] += probability * share
    assert fit_p_value(sets, law_of_pairs(list(law.values()))) > 1e-4
    # the mean of the last pools' marginals is the marginal law of what was drawn
    found = {pool.texts[row]: value for row, value in enumerate(chosen.marginals)}
    for row in range(5):
        exact = sum(value for pair, value in law.items() if row in pair)
        assert found.get(str(row), 0.0) == pytest.approx(exact, abs=0.1)


def test_the_copy_that_stays_is_drawn_by_weight():
    """One string from two proposals, weights 1 to 4. False alarm probability 1e-4."""
    pool = make_pool(
        list("aab"),
        np.eye(3)[[0, 0, 1]],
        kernel=None,
        logprob=np.full(3, -1.0),
        proposal_logprob=np.array([-1.0, -1 - np.log(4), -1.0]),
    )
    draws = _Draws(pool, pool.draw_log_weight(1.0), np.arange(3), 2)
    rng = np.random.default_rng(0)
    heavy = sum(1 in draws.sample(rng)[1] for _ in range(1_000))
    assert binom.ppf(5e-5, 1_000, 0.8) <= heavy <= binom.isf(5e-5, 1_000, 0.8)


# select(method="refresh") -------------------------------------------------------------------


def pool_of(n=100, seed=0, **options):
    rng = np.random.default_rng(seed)
    return make_pool(
        [f"text {row}" for row in range(n)],
        rng.normal(size=(n, 6)),
        logprob=-2 * rng.gamma(2, size=n) - 5,
        **options,
    )


def test_figures_are_of_the_first_chunk():
    pool = pool_of()
    first = make_pool(pool.texts[:20], pool.features[:20], kernel=None, logprob=pool.logprob[:20])
    chosen = select(pool, 3, method="refresh", beta=1.2, rng=0)
    once = select(first, 3, method="sample", beta=1.2, rng=0)
    assert chosen.kl_estimate == pytest.approx(once.kl_estimate)
    assert chosen.n_eff == pytest.approx(once.n_eff)
    assert chosen.ess == pytest.approx(once.ess)
    automatic = select(pool, 3, method="refresh", rng=0)
    assert automatic.beta == select(first, 3, method="sample", rng=0).beta
    assert automatic.ess >= 12 * (1 - 1e-9)


def test_one_set_comes_with_its_texts():
    pool = pool_of()
    chosen = select(pool, 3, method="refresh", beta=1.1, rng=0)
    assert chosen.texts == [pool.texts[row] for row in chosen.indices]
    assert (np.diff(chosen.indices) > 0).all()
    assert isinstance(chosen.log_det, float)
    assert isinstance(chosen.log_prob, float)
    assert chosen.marginals.sum() == pytest.approx(3)


@pytest.mark.parametrize(("n", "rounds"), [(59, 4), (100, 0), (100, 9)])
def test_chunks_hold_four_k_draws(n, rounds):
    with pytest.raises(InputError) as caught:
        select(pool_of(n), 3, method="refresh", rounds=rounds)
    assert str(caught.value) == (
        "rounds: expected at least 1, and 4 k = 12 draws in each of the rounds + 1 chunks,"
        f" found {rounds} with {n} draws"
    )
    select(pool_of(60), 3, method="refresh", rounds=4, beta=1.0, rng=0)


def test_only_independent_draws_can_be_refreshed():
    with pytest.raises(InputError, match='found "refresh" on a pool of kind "enumerated"'):
        select(pool_of(pool_kind="enumerated"), 3, method="refresh")


# iterated_select ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_indices_number_the_proposed_candidates(seed):
    """Small refreshments, so that strings of early rounds are often still held at the end."""
    rng, said = np.random.default_rng(seed), []

    def propose(n, rng):
        new = [f"{len(said) + place}" for place in range(n)]
        said.extend(new)
        return Candidates(new, logprob=np.full(n, -3.0))

    chosen = iterated_select(
        propose, 3, embed=lambda texts: rng.normal(size=(len(texts), 5)), pool_size=12, rounds=3,
        beta=1.0, rng=seed,
    )  # fmt: skip
    assert len(said) == 12 + 3 * 9
    assert chosen.texts == [said[place] for place in chosen.indices]
    assert (np.diff(chosen.indices) > 0).all()
    assert chosen.marginals is None


def test_token_ids_and_rewards_go_along(string_space):
    _, r, _, embed = space_of(string_space)
    fields = {
        "token_ids": lambda rows: [[int(row), 7] for row in rows],
        "reward": lambda rows: np.where(np.isin(rows, [1, 2]), 50.0, 0.0),
    }
    with pytest.warns(PoolWarning):
        chosen = iterated_select(
            proposer(r, **fields), 2, embed=embed, kernel=None, pool_size=30, rounds=2, beta=1.0,
            rng=0,
        )  # fmt: skip
    assert sorted(chosen.texts) == ["1", "2"]


class Recorder:
    """An embedder that counts what it is fitted to."""

    def __init__(self):
        self.fitted = []

    def fit(self, texts):
        self.fitted.append(list(texts))
        return lambda texts: np.array([[len(text), ord(text[0]), 1.0] for text in texts])

    def __call__(self, texts):
        raise AssertionError("not fitted")


@pytest.mark.parametrize("kernel", ["shifted", "rbf"])
def test_the_kernel_is_that_of_the_first_pool(monkeypatch, kernel):
    from dpp_sample import features

    widths, rbf = [], features.rbf

    def recorded(x, bandwidth="median", **options):
        widths.append(bandwidth)
        return rbf(x, bandwidth, **options)

    monkeypatch.setattr(features, "rbf", recorded)
    embed = Recorder()
    iterated_select(
        proposer(np.full(20, 0.05)), 2, embed=embed, kernel=kernel, pool_size=12, rounds=3,
        beta=1.0, rng=0,
    )  # fmt: skip
    assert len(embed.fitted) == 1
    assert len(embed.fitted[0]) == 12
    if kernel == "rbf":
        assert len(widths) == 4
        assert len(set(widths)) == 1
        assert isinstance(widths[0], float)


def test_a_lexical_embedder_is_exact_up_to_its_rank():
    words = ["one two", "two three", "three four", "four five", "five six", "six one"]

    def propose(n, rng):
        rows = rng.integers(6, size=n)
        return Candidates([words[row] for row in rows], logprob=np.full(n, -1.8))

    chosen = iterated_select(
        propose, 2, embed=LexicalEmbedder(), pool_size=12, rounds=2, beta=1.0, rng=0
    )
    assert len(set(chosen.texts)) == 2
    with pytest.raises(InputError, match="pool_size: expected at most 256 with a LexicalEmbedder"):
        iterated_select(propose, 2, embed=LexicalEmbedder(), pool_size=257, rounds=1, beta=1.0)


@pytest.mark.unchecked
def test_bad_input_is_named(string_space):
    _, r, _, embed = space_of(string_space)
    options = {"embed": embed, "kernel": None, "pool_size": 8, "rounds": 1, "beta": 1.0, "rng": 0}

    def silent(n, rng):
        return Candidates(["0"] * n)

    with pytest.raises(InputError, match="propose: .* found candidates without log-probs"):
        iterated_select(silent, 2, **options)
    with pytest.raises(InputError, match="^1 distinct texts among 8 draws, cannot choose 2"):
        iterated_select(proposer(np.eye(5)[0] * (1 - 4e-12) + 1e-12), 2, **options)
    with pytest.raises(InputError, match="pool_size: expected more than k = 2, found 2"):
        iterated_select(proposer(r), 2, **{**options, "pool_size": 2})
    with pytest.raises(InputError, match="rounds: expected >= 0, found -1"):
        iterated_select(proposer(r), 2, **{**options, "rounds": -1})

    with pytest.raises(InputError, match="in all or none"):
        iterated_select(lambda n, rng: _with_ids(n, n == 8), 2, **options)


def _with_ids(n, some):
    texts = [str(row % 5) for row in range(n)]
    return Candidates(texts, [[row % 5] for row in range(n)] if some else None, np.full(n, -1.0))
