"""A k-d tree that answers ties as direct differences would.

SciPy's tree says which rows are near, but among ties it picks any. So it is built over the distinct
rows, with the group of equal rows kept behind each, and what it calls nearly tied is decided by
direct differences.
"""

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import cKDTree  # pyright: ignore[reportAttributeAccessIssue]

from ._order import choose

# Distances that differ by less, relatively, may be ties: far above rounding, far below chance.
NEAR = 1 + 1e-12
# Candidates asked for at most; a state that needs more is cheaper by brute force.
WIDEST = 512


class Tree:
    """The distinct ones among ``rows[index]``, searchable."""

    def __init__(self, rows: Float[np.ndarray, "T D"], index: Int[np.ndarray, " n"]) -> None:
        # Adding 0.0 makes -0.0 and 0.0 one row.
        distinct, group = np.unique(rows[index] + 0.0, axis=0, return_inverse=True)
        group = group.reshape(-1)
        order = np.argsort(group, kind="stable")
        self.rows = rows
        self.n_rows = len(index)
        self._n_groups = len(distinct)
        self._members = index[order]  # group by group, ascending within each
        self._begin = np.searchsorted(group[order], np.arange(len(distinct) + 1))
        self._first = self._members[self._begin[:-1]]
        self._many = np.diff(self._begin) > 1
        self._any_many = bool(self._many.any())
        self._group_of = np.full(len(rows), -1)
        self._group_of[index] = group
        self._key = group[order] * len(rows) + self._members  # ascending
        self._tree = cKDTree(distinct)

    def nearest_one(self, state: Float[np.ndarray, " D"], previous: int) -> int:
        """Index of the nearest row, or -1 where different rows may be tied."""
        distance, position = self._tree.query(state, 2)
        if not distance[1] > distance[0] * NEAR:
            return -1
        group = position[0]
        follower = previous + 1
        if (
            self._many[group]
            and follower < len(self._group_of)
            and self._group_of[follower] == group
        ):
            return follower
        return int(self._first[group])

    def nearest_other(self, states: Float[np.ndarray, "b D"]) -> Float[np.ndarray, " b"]:
        """Squared distance of each state to the nearest row that is not equal to it."""
        distance, _ = self._tree.query(states, [1, 2])
        return np.where(distance[:, 0] > 0, distance[:, 0], distance[:, 1]) ** 2

    def allowed(
        self,
        states: Float[np.ndarray, "b D"],
        k: int,
        previous: Int[np.ndarray, "b k"],
        start: Int[np.ndarray, " b"],
        stop: Int[np.ndarray, " b"],
    ) -> tuple[Int[np.ndarray, "b k"], Float[np.ndarray, "b k"], Bool[np.ndarray, " b"]]:
        """The `k` nearest rows outside ``start <= i < stop``, and whether each answer is settled.

        Ever more candidates are asked for, until one stands clearly behind the k-th allowed one:
        then all that may tie with it are among them. Not settled are the states that would need
        too many, and those with k > 1 that meet a group of equal rows.
        """
        index = np.zeros((len(states), k), dtype=np.intp)
        squared = np.full((len(states), k), np.inf)
        settled = np.zeros(len(states), dtype=bool)
        pending = np.arange(len(states))
        width = k + 1 if (stop <= start).all() else k + 7
        while len(pending) and width <= WIDEST:
            width = min(width, self._n_groups)
            distance, group = self._tree.query(states[pending], np.arange(1, width + 1))
            farthest = distance[:, -1]
            found = self._representatives(group, previous[pending], start[pending], stop[pending])
            distance = np.where(found >= 0, distance, np.inf)
            order = np.argsort(distance, axis=1, kind="stable")[:, : k + 1]
            ranked = np.take_along_axis(distance, order, axis=1)
            limit = ranked[:, min(k, width) - 1] * NEAR
            clear = (farthest > limit) | (width == self._n_groups)
            if k > 1 and self._any_many:
                crowded = (self._many[group] & (distance <= limit[:, None])).any(axis=1)
                clear &= ~crowded
            else:
                crowded = np.zeros(len(pending), dtype=bool)
            # No two of the first k + 1 nearly tied: they stand in their order already.
            apart = clear & (ranked[:, 1:] > ranked[:, :-1] * NEAR).all(axis=1)
            apart &= ranked.shape[1] == k + 1
            for kept, columns in ((apart, order[:, :k]), (clear & ~apart, None)):
                done = pending[kept]
                if len(done):
                    chosen = found if columns is None else np.take_along_axis(found, columns, 1)
                    index[done], squared[done] = self._measured(
                        states[done], chosen[kept], k, previous[done], columns is None
                    )
                    settled[done] = True
            pending = pending[~clear & ~crowded]
            width *= 4
        return index, squared, settled

    def _representatives(
        self,
        group: Int[np.ndarray, "b c"],
        previous: Int[np.ndarray, "b k"],
        start: Int[np.ndarray, " b"],
        stop: Int[np.ndarray, " b"],
    ) -> Int[np.ndarray, "b c"]:
        """The row that each group offers: the continuation, else its first allowed; -1 if none."""
        found = self._first[group]
        low, high = start[:, None], stop[:, None]
        barred = (found >= low) & (found < high)
        if barred.any():
            found = np.where(barred, -1, found)
            line, column = np.nonzero(barred & self._many[group])
            if len(line):
                at = group[line, column]
                key = at * len(self._group_of) + np.maximum(stop[line], 0)
                after = np.searchsorted(self._key, key)
                inside = after < self._begin[at + 1]
                found[line[inside], column[inside]] = self._members[after[inside]]
        if self._any_many:
            for follower in (previous + 1).T:
                known = np.minimum(follower, len(self._group_of) - 1)
                usable = (follower > 0) & (follower < len(self._group_of))
                usable &= (follower < start) | (follower >= stop)
                same = usable[:, None] & (self._group_of[known][:, None] == group)
                found = np.where(same, follower[:, None], found)
        return found

    def _measured(
        self,
        states: Float[np.ndarray, "b D"],
        found: Int[np.ndarray, "b c"],
        k: int,
        previous: Int[np.ndarray, "b k"],
        tied: bool,
    ) -> tuple[Int[np.ndarray, "b k"], Float[np.ndarray, "b k"]]:
        """Squared distances by direct differences; the order by them where rows may be tied."""
        squared = np.zeros(found.shape)
        for at in range(states.shape[1]):
            squared += (self.rows[found, at] - states[:, at, None]) ** 2
        if not tied:
            return found, squared
        squared[found < 0] = np.inf
        return choose(np.maximum(found, 0), squared, k, previous)
