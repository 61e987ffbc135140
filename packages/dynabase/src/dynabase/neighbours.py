"""Which row of the context is nearest: exactly, deterministically, and past gaps and ties.

The rows that may be found are the *admissible* ones: finite, with a finite successor, and not among
the last `theiler` rows before it. Among them every search obeys one total order,

    (squared distance, not the continuation of a previous neighbour, index),

where the squared distance is summed from direct differences, coordinate by coordinate, so that
equal rows are always equally far. The tree, the half-distance shortcut and the batched searches
are ways to the answer of that order, never approximations of it.

* `Context` - one context: a k-d tree over its distinct rows, or brute force where that is faster
* `Prefixes` - the same context, cut before a different origin for each state
* `Stack` - many contexts searched together, one state each
"""

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError

from ._order import admissible_rows, as_columns, choose, complete_rows, smallest, squared_distances
from ._tree import Tree

# Below this many rows, or above this many coordinates, direct differences beat a tree.
TREE_ROWS = 400
TREE_COORDINATES = 12
# Entries of one difference array; small enough to stay in the cache of one core.
CHUNK = 1 << 16


class Context:
    """A context made searchable.

    Parameters
    ----------
    rows
        The context in time order; rows with NaN are gaps.
    theiler
        The last `theiler` rows that have a successor are not admissible.
    tree
        Whether a tree may be built; not worth it for one search.
    """

    def __init__(
        self, rows: Float[np.ndarray, "T D"], *, theiler: int = 0, tree: bool = True
    ) -> None:
        self.rows = rows
        self.theiler = theiler
        self.limit = len(rows) - 2 - theiler  # last index that may serve
        self.finite = complete_rows(rows)
        self.admissible = admissible_rows(self.finite, self.limit)
        self.index = np.flatnonzero(self.admissible)
        self.tail = np.empty(0, dtype=np.intp)  # admissible rows that the tree does not hold
        self._coordinates: Float[np.ndarray, "D T"] | None = None
        self._half = np.full(len(rows), np.nan)
        large = len(self.index) > TREE_ROWS and rows.shape[1] <= TREE_COORDINATES
        self._use_tree = tree and large

    @cached_property
    def _tree(self) -> Tree | None:  # built by the first search
        return Tree(self.rows, self.index) if self._use_tree else None

    @property
    def n_admissible(self) -> int:
        """Number of rows that may be found."""
        return len(self.index)

    @property
    def spread(self) -> float:
        """Root mean square distance of the rows from their mean; 1 for a constant context."""
        return _spread(self.rows[self.finite])

    def extended(self, rows: Float[np.ndarray, "T2 D"]) -> "Context":
        """The context with `rows` appended; the tree is reused until a fifth of the rows is new."""
        grown = np.concatenate([self.rows, rows])
        limit = len(grown) - 2 - self.theiler
        finite = np.concatenate([self.finite, complete_rows(rows)])
        admissible = admissible_rows(finite, limit)
        built: Tree | None = self.__dict__.get("_tree")
        held = 0 if built is None else built.n_rows
        tail = np.flatnonzero(admissible)[held:]
        if built is None or len(tail) > held / 5:
            return Context(grown, theiler=self.theiler)
        new = Context.__new__(Context)
        new.rows, new.theiler, new.limit, new.finite = grown, self.theiler, limit, finite
        new.admissible, new.index, new.tail = admissible, np.flatnonzero(admissible), tail
        new._coordinates, new._half, new._tree = None, np.full(len(grown), np.nan), built
        return new

    def gather(self, index: Int[np.ndarray, "b k"], offset: int) -> Float[np.ndarray, "b k D"]:
        """Rows at ``index + offset``."""
        return self.rows[index + offset]

    def nearest(
        self, states: Float[np.ndarray, "b D"], k: int, previous: Int[np.ndarray, "b k"]
    ) -> tuple[Int[np.ndarray, "b k"], Float[np.ndarray, "b k"]]:
        """The `k` nearest admissible rows of each state; `previous` is -1 where there is none."""
        nothing = np.zeros(len(states), dtype=np.intp)
        return self.allowed(states, k, previous, nothing, nothing)

    def nearest_one(self, state: Float[np.ndarray, " D"], previous: int) -> int:
        """Index of the nearest admissible row: `nearest` for one state and k = 1, quicker."""
        if self._tree is not None and not len(self.tail):
            index = self._tree.nearest_one(state, previous)
            if index >= 0:
                return index
        return int(self.nearest(state[None], 1, np.array([[previous]]))[0][0, 0])

    def half_squared(self, index: int) -> float:
        """Square of half the distance from an admissible row to the nearest different one.

        A state nearer than that to row `index` has no nearer row, and no tie but with rows equal to
        it. Filled in blocks on first use: an orbit visits rows in stretches.
        """
        value = self._half[index]
        if np.isnan(value):
            block = np.arange(index, min(index + 64, self.limit + 1))
            block = block[self.admissible[block]]
            self._half[block] = self._halves(block)
            value = self._half[index]
        return float(value)

    def allowed(
        self,
        states: Float[np.ndarray, "b D"],
        k: int,
        previous: Int[np.ndarray, "b k"],
        start: Int[np.ndarray, " b"],
        stop: Int[np.ndarray, " b"],
    ) -> tuple[Int[np.ndarray, "b k"], Float[np.ndarray, "b k"]]:
        """`nearest` with the rows ``start <= i < stop`` forbidden, state by state.

        Where fewer than `k` rows are left, the missing ones have infinite distance.
        """
        if self._tree is None:
            return self._brute(states, k, previous, start, stop)
        index, squared, settled = self._tree.allowed(states, k, previous, start, stop)
        if len(self.tail):
            tail = np.broadcast_to(self.tail, (len(states), len(self.tail)))
            far = squared_distances(self._tail_columns(), states)
            far[(tail >= start[:, None]) & (tail < stop[:, None])] = np.inf
            index, squared = choose(
                np.concatenate([index, tail], axis=1),
                np.concatenate([squared, far], axis=1),
                k,
                previous,
            )
        if not settled.all():
            redo = ~settled
            index[redo], squared[redo] = self._brute(
                states[redo], k, previous[redo], start[redo], stop[redo]
            )
        return index, squared

    def analogues(
        self, k: int, *, at_most: int | None = None
    ) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
        """In-context neighbours, none nearer in time than the Theiler window.

        Parameters
        ----------
        k
            Neighbours of each row.
        at_most
            Look only at so many rows, evenly spread, where there are more.

        Returns
        -------
        The times t whose row and successor are finite and which have `k` such neighbours; the
        neighbours' indices; their squared distances.
        """
        times = np.flatnonzero(self.finite[:-1] & self.finite[1:])
        if at_most is not None and len(times) > at_most:
            times = times[np.linspace(0, len(times) - 1, at_most).astype(int)]
        index, squared = self.allowed(
            self.rows[times],
            k,
            np.full((len(times), k), -1),
            times - self.theiler,
            times + self.theiler + 1,
        )
        kept = np.isfinite(squared).all(axis=1)
        return times[kept], index[kept], squared[kept]

    def _columns(self) -> Float[np.ndarray, "D T"]:
        if self._coordinates is None:
            self._coordinates = as_columns(self.rows, self.admissible)
        return self._coordinates

    def _brute(
        self,
        states: Float[np.ndarray, "b D"],
        k: int,
        previous: Int[np.ndarray, "b k"],
        start: Int[np.ndarray, " b"],
        stop: Int[np.ndarray, " b"],
    ) -> tuple[Int[np.ndarray, "b k"], Float[np.ndarray, "b k"]]:
        index = np.empty((len(states), k), dtype=np.intp)
        squared = np.empty((len(states), k))
        times = np.arange(len(self.rows))
        for part in _parts(len(states), len(self.rows)):
            far = squared_distances(self._columns(), states[part])
            if (stop[part] > start[part]).any():
                forbidden = (times >= start[part, None]) & (times < stop[part, None])
                far[forbidden] = np.inf
            index[part], squared[part] = smallest(far, k, previous[part])
        return index, squared

    def _halves(self, block: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        rows = self.rows[block]
        squared = np.full(len(block), np.inf)
        if self._tree is not None:
            squared = self._tree.nearest_other(rows)
        others = self._columns() if self._tree is None else self._tail_columns()
        if others.shape[1]:
            for part in _parts(len(block), others.shape[1]):
                far = squared_distances(others, rows[part])
                nearest = np.where(far > 0, far, np.inf).min(axis=1)
                squared[part] = np.minimum(squared[part], nearest)
        # The margin keeps rounding from ever calling a nearer row farther.
        return squared * (0.25 * (1 - 1e-9))

    def _tail_columns(self) -> Float[np.ndarray, "D n"]:
        return np.ascontiguousarray(self.rows[self.tail].T)


class Prefixes:
    """One context cut before an origin for each state: rows after ``limits[b]`` do not exist."""

    def __init__(self, context: Context, limits: Int[np.ndarray, " b"]) -> None:
        self.context = context
        self.spread = context.spread
        self._start = limits + 1
        self._stop = np.full(len(limits), len(context.rows))

    def nearest(
        self, states: Float[np.ndarray, "b D"], k: int, previous: Int[np.ndarray, "b k"]
    ) -> tuple[Int[np.ndarray, "b k"], Float[np.ndarray, "b k"]]:
        """The `k` nearest admissible rows not after each state's limit."""
        return self.context.allowed(states, k, previous, self._start, self._stop)

    def gather(self, index: Int[np.ndarray, "b k"], offset: int) -> Float[np.ndarray, "b k D"]:
        """Rows at ``index + offset``."""
        return self.context.rows[index + offset]


class Stack:
    """Many contexts of equal width, searched together by direct differences, one state each.

    Shorter contexts are padded at their end with rows that are never admissible.
    """

    def __init__(
        self, contexts: list[Float[np.ndarray, "_ D"]], theilers: Int[np.ndarray, " s"]
    ) -> None:
        longest = max(len(rows) for rows in contexts)
        self.rows = np.full((len(contexts), longest, contexts[0].shape[1]), np.nan)
        self._columns = np.full((contexts[0].shape[1], len(contexts), longest), np.inf)
        self.spread = np.empty(len(contexts))
        for at, rows in enumerate(contexts):
            self.rows[at, : len(rows)] = rows
            finite = complete_rows(rows)
            self.spread[at] = _spread(rows[finite])
            admissible = admissible_rows(finite, len(rows) - 2 - int(theilers[at]))
            self._columns[:, at, : len(rows)] = as_columns(rows, admissible)
        self._work = np.empty((2, len(contexts), longest))
        self._series = np.arange(len(contexts))[:, None]

    def nearest(
        self, states: Float[np.ndarray, "s D"], k: int, previous: Int[np.ndarray, "s k"]
    ) -> tuple[Int[np.ndarray, "s k"], Float[np.ndarray, "s k"]]:
        """The `k` nearest admissible rows of each state in its own context."""
        far, work = self._work
        for at, column in enumerate(self._columns):
            target = work if at else far
            np.subtract(column, states[:, at, None], out=target)
            np.multiply(target, target, out=target)
            if at:
                far += work
        return smallest(far, k, previous)

    def gather(self, index: Int[np.ndarray, "s k"], offset: int) -> Float[np.ndarray, "s k D"]:
        """Rows at ``index + offset``, each from its own context."""
        return self.rows[self._series, index + offset]


# What a rollout takes its neighbours from.
Searcher = Context | Prefixes | Stack


def _spread(rows: Float[np.ndarray, "T D"]) -> float:
    if not len(rows):
        return 1.0
    return float(np.sqrt(np.mean(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1)))) or 1.0


def _parts(n: int, width: int) -> list[slice]:
    """Slices of ``range(n)`` whose difference arrays of `width` stay small."""
    size = max(1, CHUNK // width)
    return [slice(low, low + size) for low in range(0, n, size)]


def require_neighbours(context: Context, k: int) -> None:
    """Refuse a context with fewer than `k` admissible rows."""
    if context.n_admissible < k:
        raise InputError(
            "context",
            found=f"{len(context.rows)} row(s), {context.n_admissible} of them usable with a "
            f"Theiler window of {context.theiler}",
            expected=f"at least {k} row(s) with a successor to take as neighbour",
            instead="give a longer context, or a smaller theiler, n_neighbors or delays",
        )
