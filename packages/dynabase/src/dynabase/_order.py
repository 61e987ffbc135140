"""The total order of neighbours, on arrays of squared distances.

Rows are compared by (squared distance, not the continuation of a previous neighbour, index). The
continuation comes first among equals because the smallest index alone would freeze a forecast on
any plateau: the first row of a plateau is its own successor's equal.
"""

import numpy as np
from jaxtyping import Bool, Float, Int


def complete_rows(rows: Float[np.ndarray, "T D"]) -> Bool[np.ndarray, " T"]:
    """Rows without NaN."""
    return np.all(np.isfinite(rows), axis=1)


def admissible_rows(finite: Bool[np.ndarray, " T"], limit: int) -> Bool[np.ndarray, " T"]:
    """Rows up to `limit` that are finite and have a finite successor."""
    admissible = finite.copy()
    admissible[:-1] &= finite[1:]
    admissible[-1:] = False
    admissible[max(limit + 1, 0) :] = False
    return admissible


def as_columns(
    rows: Float[np.ndarray, "T D"], admissible: Bool[np.ndarray, " T"]
) -> Float[np.ndarray, "D T"]:
    """One line per coordinate; what is not admissible lies infinitely far away."""
    columns = np.array(rows.T, dtype=float, order="C")
    columns[:, ~admissible] = np.inf
    return columns


def squared_distances(
    columns: Float[np.ndarray, "D n"], states: Float[np.ndarray, "b D"]
) -> Float[np.ndarray, "b n"]:
    """Squared distances by direct differences, one coordinate after the other.

    Never ``|z|^2 - 2 z.c + |c|^2``: its rounding would give equal rows unequal distances.
    """
    squared = np.subtract(columns[0], states[:, 0, None])
    squared *= squared
    for at in range(1, len(columns)):
        step = np.subtract(columns[at], states[:, at, None])
        step *= step
        squared += step
    return squared


def choose(
    index: Int[np.ndarray, "b c"],
    squared: Float[np.ndarray, "b c"],
    k: int,
    previous: Int[np.ndarray, "b k"],
) -> tuple[Int[np.ndarray, "b k"], Float[np.ndarray, "b k"]]:
    """The first `k` candidates of each line; where there are fewer, infinitely far ones follow."""
    if index.shape[1] < k:
        lacking = ((0, 0), (0, k - index.shape[1]))
        index = np.pad(index, lacking)
        squared = np.pad(squared, lacking, constant_values=np.inf)
    fresh = (index[:, :, None] != previous[:, None, :] + 1).all(axis=2)
    order = np.lexsort((index, fresh, squared), axis=1)[:, :k]
    return np.take_along_axis(index, order, axis=1), np.take_along_axis(squared, order, axis=1)


def smallest(
    squared: Float[np.ndarray, "b n"], k: int, previous: Int[np.ndarray, "b k"]
) -> tuple[Int[np.ndarray, "b k"], Float[np.ndarray, "b k"]]:
    """The first `k` columns of each line, without sorting it; a column's number is its index."""
    lines, n = np.arange(len(squared)), squared.shape[1]
    if k == 1:
        index = squared.argmin(axis=1)
        follower = np.minimum(previous[:, 0] + 1, n - 1)
        index = np.where(squared[lines, follower] == squared[lines, index], follower, index)
        return index[:, None], squared[lines, index][:, None]
    if n <= k:
        return choose(np.tile(np.arange(n), (len(squared), 1)), squared, k, previous)
    index = np.argpartition(squared, k - 1, axis=1)[:, :k]
    farthest = np.take_along_axis(squared, index, axis=1).max(axis=1)
    tied = (squared <= farthest[:, None]).sum(axis=1) > k
    for line in np.flatnonzero(tied & np.isfinite(farthest)):
        at = np.flatnonzero(squared[line] <= farthest[line])
        index[line] = choose(at[None], squared[line, at][None], k, previous[line, None])[0]
    return choose(index, np.take_along_axis(squared, index, axis=1), k, previous)
