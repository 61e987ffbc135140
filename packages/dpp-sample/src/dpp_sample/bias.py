"""How far a set drawn from a pool of N is from the target law: the bound, and its estimate.

Let h(y_1..y_k) = prod w(y_i) det k(y_a, y_b), Z its mean over k independent draws from r, and U its
mean over the k-subsets of a pool of N draws. The law mu_N of the set drawn from a random pool
satisfies

    KL(P || mu_N) <= log( E U^2 / Z^2 ) = log( sum_j p_j rho_j )

with p_j the hypergeometric probability that two k-subsets of N share j draws and rho_j the second
moment of h given j shared draws over Z^2 (Jensen's inequality on the normaliser). Its leading term
is k^2 (rho_1 - 1) / N.

`pool_bias` estimates it from one pool. The rest is exact, for spaces small enough to enumerate:
arguments `p` are target weights q(y) over the M strings, up to a constant, and `r` the proposal's
probabilities. Sets are in the order of `itertools.combinations(range(M), k)`.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb, factorial, inf, lgamma, log, log1p

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError

from .residuals import log_volume


def pool_bias(
    marginals: Float[np.ndarray, " n"], share2: Float[np.ndarray, " n"], n_drawn: int, k: int
) -> tuple[float, float]:
    """Jackknife estimate of the bound on KL(P || mu_N) from one pool, and the effective size.

    Leaving out one copy of row i changes U by the factor ``(1 - pi_i share) N / (N - k)``, so
    that with ``S2 = sum_i pi_i^2 share2_i`` the relative variance of U is estimated by
    ``N (N - 1) / (N - k)^2 (S2 - k^2 / N)``.

    Parameters
    ----------
    marginals
        Of the pool's K-DPP.
    share2
        Sum over each row's copies of the squared share of its weight (`Weights.share2`).
    n_drawn
        N, draws in the pool, copies counted.
    k
        Size of the sets.

    Returns
    -------
    kl_estimate
        Nats; inf for N = k. An estimate of the bound, not a bound: like any effective size it
        cannot see heavy strings that the pool missed.
    n_eff
        ``k^2 / S2``, at most N.
    """
    if n_drawn < k:
        raise InputError("n_drawn", found=n_drawn, expected=f"at least k = {k}")
    spread = float(marginals**2 @ share2)
    n_eff = min(k**2 / spread, float(n_drawn))
    if n_drawn == k:
        return inf, n_eff
    excess = max(0.0, spread - k**2 / n_drawn)
    return log1p(n_drawn * (n_drawn - 1) / (n_drawn - k) ** 2 * excess), n_eff


def target_law(
    p: Float[np.ndarray, " M"], features: Float[np.ndarray, "M d"], k: int
) -> Float[np.ndarray, " sets"]:
    """P(S), proportional to ``prod p * det`` over all sets of k strings."""
    sets = _sets(len(p), k)
    mass = np.prod(p[sets], axis=1) * np.exp(log_volume(features[sets]))
    return mass / mass.sum()


def exact_pool_law(
    p: Float[np.ndarray, " M"],
    r: Float[np.ndarray, " M"],
    features: Float[np.ndarray, "M d"],
    k: int,
    n: int,
) -> Float[np.ndarray, " sets"]:
    """mu_N(S): the law of a set drawn from the K-DPP of a random pool of `n` draws from r.

    Sums over every composition of n into counts of the M strings (M <= 6 and n <= 60 take
    seconds). Pools without a set of positive volume are redrawn.
    """
    law = np.zeros(comb(len(p), k))
    for probability, masses in _pools(p, r, features, k, n):
        totals = masses.sum(axis=1)
        valid = totals > 0
        law += (probability[valid] / totals[valid]) @ masses[valid]
    return law / law.sum()


def second_moment(
    p: Float[np.ndarray, " M"],
    r: Float[np.ndarray, " M"],
    features: Float[np.ndarray, "M d"],
    k: int,
    n: int,
) -> float:
    """``E U^2 / Z^2`` by enumeration of the pools; `exact_bound` is its log."""
    first = second = 0.0
    for probability, masses in _pools(p, r, features, k, n):
        normaliser = masses.sum(axis=1)
        first += probability @ normaliser
        second += probability @ normaliser**2
    return float(second / first**2)


def overlap_moments(
    p: Float[np.ndarray, " M"],
    r: Float[np.ndarray, " M"],
    features: Float[np.ndarray, "M d"],
    k: int,
) -> Float[np.ndarray, " {k}+1"]:
    """rho_0..rho_k: the mean of ``h h'`` over Z^2 for tuples that share j draws.

    ``rho_j = E_{s~P}[ average over its j-subsets A of E_r h(s_A, Y_rest) ] / Z``.
    """
    law = target_law(p, features, k)
    sets = list(combinations(range(len(p)), k))
    # prod over S of r times h(S), which is what a set adds to Z, up to the k! orders
    mass = np.prod(p[np.array(sets)], axis=1) * np.exp(log_volume(features[np.array(sets)]))
    normaliser = factorial(k) * mass.sum()
    moments = []
    for shared in range(k + 1):
        given: dict[tuple[int, ...], float] = {}
        for a_set, weight in zip(sets, mass, strict=True):
            for part in combinations(a_set, shared):
                # the shared strings are given, not drawn
                value = factorial(k - shared) * weight / np.prod(r[list(part)])
                given[part] = given.get(part, 0.0) + value
        mean = [
            sum(given[part] for part in combinations(a_set, shared)) / comb(k, shared)
            for a_set in sets
        ]
        moments.append(float(law @ mean) / normaliser)
    return np.array(moments)


def exact_bound(
    p: Float[np.ndarray, " M"],
    r: Float[np.ndarray, " M"],
    features: Float[np.ndarray, "M d"],
    k: int,
    n: int,
) -> float:
    """The bound on KL(P || mu_N): ``log sum_j p_j rho_j``."""
    moments = overlap_moments(p, r, features, k)
    shared = [comb(k, j) * comb(n - k, k - j) / comb(n, k) for j in range(k + 1)]
    return log(float(np.dot(shared, moments)))


def refresh_kernel(
    p: Float[np.ndarray, " M"],
    r: Float[np.ndarray, " M"],
    features: Float[np.ndarray, "M d"],
    k: int,
    n: int,
) -> Float[np.ndarray, "sets sets"]:
    """Transition matrix of one round of iterated pools: the set and n - k fresh draws from r."""
    sets = _sets(len(p), k)
    kernel = np.zeros((len(sets), len(sets)))
    for start, members in enumerate(sets):
        held = np.bincount(members, minlength=len(p))
        for probability, masses in _pools(p, r, features, k, n - k, held):
            kernel[start] += (probability / masses.sum(axis=1)) @ masses
    return kernel


def _pools(
    p: Float[np.ndarray, " M"],
    r: Float[np.ndarray, " M"],
    features: Float[np.ndarray, "M d"],
    k: int,
    n: int,
    held: Int[np.ndarray, " M"] | int = 0,
) -> Iterator[tuple[Float[np.ndarray, " pools"], Float[np.ndarray, "pools sets"]]]:
    """Blocks of all pools of n draws: probability of each, and h of each set in it.

    `held` counts strings that every pool contains besides.
    """
    sets = _sets(len(p), k)
    volumes = np.exp(log_volume(features[sets]))
    weight = p / r
    for drawn in _compositions(n, len(p)):
        log_orders = lgamma(n + 1) - np.sum(_log_factorials(n)[drawn], axis=1)
        mass = np.ones((len(drawn), len(sets)))
        for column in range(k):
            mass *= ((drawn + held) * weight)[:, sets[:, column]]
        yield np.exp(log_orders + drawn @ np.log(r)), mass * volumes


def _compositions(n: int, parts: int) -> Iterator[Int[np.ndarray, "pools parts"]]:
    """All ways to write n as an ordered sum of `parts` counts, in blocks of the first count."""
    for first in range(n + 1) if parts > 1 else [n]:
        counts, left = np.full((1, 1), first), np.array([n - first])
        for _ in range(parts - 2):
            # each row once for every count, 0 to what is left, that the next part may have
            choices = left + 1
            row = np.repeat(np.arange(len(left)), choices)
            count = np.arange(len(row)) - np.repeat(np.cumsum(choices) - choices, choices)
            counts, left = np.column_stack([counts[row], count]), left[row] - count
        yield np.column_stack([counts, left])[:, :parts]


def _log_factorials(n: int) -> Float[np.ndarray, " {n}+1"]:
    return np.array([lgamma(count + 1) for count in range(n + 1)])


def _sets(n: int, k: int) -> Int[np.ndarray, "sets k"]:
    return np.array(list(combinations(range(n), k)))
