"""Elementary symmetric polynomials in log space.

e_l(x_1..x_m) sums the products of all subsets of size l. For positive x no term cancels another, so
that `e_l(m) = e_l(m-1) + x_m e_(l-1)(m-1)` in logarithms is exact to rounding for any range.
The division recurrence for "all but j" does cancel: prefixes and suffixes are used in its place.
"""

import numpy as np
from jaxtyping import Float, Real


def log_esp(log_values: Real[np.ndarray, " n"], k: int) -> Float[np.ndarray, "n+1 {k}+1"]:
    """Logs of e_l over the first m values, for all m <= n and l <= k.

    Parameters
    ----------
    log_values
        Logs of the values; -inf stands for 0.
    k
        Highest order >= 0.

    Returns
    -------
    Row m, column l: log e_l(values[:m]); -inf where l > m.

    Examples
    --------
    >>> np.exp(log_esp(np.log([2.0, 3.0, 4.0]), 2)[3]).round(9)
    array([ 1.,  9., 26.])
    """
    logs = np.asarray(log_values, dtype=float)
    table = np.full((len(logs) + 1, k + 1), -np.inf)
    table[:, 0] = 0.0
    for order in range(1, k + 1):
        table[1:, order] = np.logaddexp.accumulate(logs + table[:-1, order - 1])
    return table


def log_inclusion(log_values: Real[np.ndarray, " n"], k: int) -> Float[np.ndarray, " n"]:
    """Log probability that value j is in a random k-subset weighted by its product.

    ``log( x_j e_(k-1)(all but j) / e_k )``; the probabilities sum to k. Needs 1 <= k <= n.
    """
    logs = np.asarray(log_values, dtype=float)
    before = log_esp(logs, k)
    after = log_esp(logs[::-1], k - 1)[::-1]
    terms = before[:-1, :k] + after[1:, ::-1]  # l values before j, k - 1 - l after it
    return logs + np.logaddexp.reduce(terms, axis=1) - before[-1, k]
