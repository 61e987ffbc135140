"""Oracles that share nothing with the package: every set written out, in floats or 120 digits."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2


class Law(NamedTuple):
    """A law over all sets of k rows."""

    sets: np.ndarray
    probability: np.ndarray
    log_normalizer: float
    marginals: np.ndarray


@pytest.fixture(scope="session")
def unit_rows() -> Callable[..., np.ndarray]:
    """`unit_rows(rng, n, d)`: random directions."""

    def make(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
        rows = rng.normal(size=(n, d))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    return make


@pytest.fixture(scope="session")
def brute_force() -> Callable[..., Law]:
    """`brute_force(features, log_weight, k)` in floats, for moderate weights."""

    def law(features: np.ndarray, log_weight: np.ndarray, k: int) -> Law:
        factor = np.exp(log_weight / 2)[:, None] * features
        gram = factor @ factor.T
        sets = np.array(list(combinations(range(len(features)), k)))
        mass = np.array([np.linalg.det(gram[np.ix_(rows, rows)]) for rows in sets])
        mass = np.maximum(mass, 0.0)
        return _law(sets, mass / mass.sum(), float(np.log(mass.sum())), len(features))

    return law


@pytest.fixture(scope="session")
def exact_law() -> Callable[..., Law]:
    """`exact_law(features, log_weight, k)` in 120 digits, for weights of any range.

    Determinants below 1e-24 are zero: features that are copies in floats are copies.
    """

    def law(features: np.ndarray, log_weight: np.ndarray, k: int) -> Law:
        with mpmath.workdps(120):
            rows = [[mpmath.mpf(float(x)) for x in row] for row in features]
            gram = [[mpmath.fdot(a, b) for b in rows] for a in rows]
            weight = [mpmath.exp(mpmath.mpf(float(x))) for x in log_weight]
            sets = list(combinations(range(len(rows)), k))
            mass = []
            for chosen in sets:
                det = mpmath.det(mpmath.matrix([[gram[i][j] for j in chosen] for i in chosen]))
                det = mpmath.mpf(0) if abs(det) < mpmath.mpf(10) ** -24 else det
                mass.append(mpmath.fprod([det, *(weight[i] for i in chosen)]))
            total = mpmath.fsum(mass)
            probability = np.array([float(m / total) for m in mass])
            return _law(np.array(sets), probability, float(mpmath.log(total)), len(rows))

    return law


def _law(sets: np.ndarray, probability: np.ndarray, log_normalizer: float, n: int) -> Law:
    marginals = np.bincount(sets.ravel(), np.repeat(probability, sets.shape[1]), minlength=n)
    return Law(sets, probability, log_normalizer, marginals)


@pytest.fixture(scope="session")
def fit_p_value() -> Callable[..., float]:
    """`fit_p_value(draws, law)`: chi-square test that sets were drawn from a law.

    Cells with an expectation below 5 are one cell; a draw of probability zero fails outright.
    """

    def p_value(draws: np.ndarray, law: Any) -> float:
        place = {tuple(rows): cell for cell, rows in enumerate(law.sets.tolist())}
        cells = [place[tuple(rows)] for rows in np.sort(draws, axis=1).tolist()]
        seen = np.bincount(cells, minlength=len(law.sets))
        assert not seen[law.probability == 0].any()
        expected = law.probability * len(draws)
        rare = expected < 5
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        seen, expected = seen[expected > 0], expected[expected > 0]
        return float(chi2.sf(np.sum((seen - expected) ** 2 / expected), len(seen) - 1))

    return p_value


@pytest.fixture(scope="session")
def pool_of_copies() -> np.ndarray:
    """Six directions, ten copies of each, in blocks (submodlib issue 8, apricot issue 19)."""
    rng = np.random.default_rng(0)
    rng.normal(size=(6, 6))
    rows = rng.normal(size=(6, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.repeat(rows, 10, axis=0)


@pytest.fixture(scope="session")
def string_space() -> Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """`string_space(seed, m, d=3, beta=2)`: target weights, proposal and features of m strings."""

    def space(
        seed: int, m: int, d: int = 3, beta: float = 2.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        log_p = rng.normal(size=m)
        log_p -= np.logaddexp.reduce(log_p)
        features = rng.normal(size=(m, d))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        return np.exp(beta * log_p), np.exp(log_p), features

    return space
