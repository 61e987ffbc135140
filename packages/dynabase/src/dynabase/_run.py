"""The engine under every rollout: equation (1) of `_map`, iterated on one state or on many.

A state vector is searched and its leading `q` coordinates are advanced: all of them, or, for a
delay vector that is shifted, its newest ones, the rest of the next state being read from the
series' own history. `run` takes a batch of states, each with its own gains and, if need be, its own
context; `run_one` is the quick way for a single state. Both give the same numbers.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from .neighbours import Context, Searcher

# An orbit this many spreads of the context away from it has diverged.
DIVERGED = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """The map's parameters, one set for each state of a batch."""

    alpha: Float[np.ndarray, " b"]
    beta: Float[np.ndarray, " b"]
    radius: Float[np.ndarray, " b"]  # inf: no guard

    @classmethod
    def equal(cls, alpha: float, beta: float, radius: float, n: int) -> "Gains":
        """The same parameters for `n` states."""
        return cls(np.full(n, alpha), np.full(n, beta), np.full(n, radius))


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """How a delay vector moves: the newest values enter, the others are read from the history."""

    lags: Int[np.ndarray, " m"]  # 0, tau, 2 tau, ...
    past: Float[np.ndarray, "b L d"]  # observations up to now, at least lags[-1] + 1 of them


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """A rollout and the neighbours that it used."""

    values: Float[np.ndarray, "n b q"]  # NaN after a divergence
    index: Int[np.ndarray, "n b k"]  # -1 after a divergence
    diverged: Int[np.ndarray, " b"]  # step of the divergence, 0: none


def advance(
    state: Float[np.ndarray, "b q"],
    rows: Float[np.ndarray, "b k q"],
    successors: Float[np.ndarray, "b k q"],
    squared: Float[np.ndarray, "b k"],
    gains: Gains,
) -> Float[np.ndarray, "b q"]:
    """Equation (1) for a batch of states, each with its `k` neighbours, nearest first."""
    deviation = gains.alpha[:, None, None] * (state[:, None] - rows)
    moved = successors + clipped(deviation, gains.radius[:, None])
    if gains.beta.any():
        moved = moved + gains.beta[:, None, None] * (successors - rows)
    if rows.shape[1] == 1:
        return moved[:, 0]
    return _ordered_sum(neighbour_weights(squared)[:, :, None] * moved)


def neighbour_weights(squared: Float[np.ndarray, "b k"]) -> Float[np.ndarray, "b k"]:
    """Weights exp(-d_j / d_1), summing to one; equal ones on the exact matches if there are any."""
    distance = np.sqrt(squared)
    nearest = distance[:, :1]
    exact = nearest == 0
    weights = np.where(
        exact, distance == 0, np.exp(-distance / np.where(exact, 1.0, nearest))
    ).astype(float)
    return weights / _ordered_sum(weights)[:, None]


def run(
    search: Searcher,
    state: Float[np.ndarray, "b D"],
    n_steps: int,
    gains: Gains,
    *,
    k: int = 1,
    shift: Shift | None = None,
    first: Int[np.ndarray, "b k"] | None = None,
) -> Path:
    """Iterate (1) on a batch of states.

    Parameters
    ----------
    search
        Where the neighbours are looked for.
    state
        The states to start from.
    n_steps, gains, k
        How far, with which parameters, over how many neighbours.
    shift
        For delay vectors of which the newest values alone are advanced.
    first
        Neighbours to use in the first step instead of the nearest.
    """
    b, width = state.shape
    q = width if shift is None else shift.past.shape[2]
    values = np.full((n_steps, b, q), np.nan)
    index = np.full((n_steps, b, k), -1)
    diverged = np.zeros(b, dtype=int)
    previous = np.full((b, k), -1)
    bound = np.broadcast_to((DIVERGED * np.asarray(search.spread)) ** 2, (b,))
    series = None if shift is None else History(shift, n_steps)
    for t in range(n_steps):
        if t == 0 and first is not None:
            rows = search.gather(first, 0)
            previous, squared = first, np.sum((rows - state[:, None]) ** 2, axis=2)
        else:
            previous, squared = search.nearest(state, k, previous)
        rows, successors = search.gather(previous, 0), search.gather(previous, 1)
        new = advance(state[:, :q], rows[:, :, :q], successors[:, :, :q], squared, gains)
        alive = diverged == 0
        values[t, alive], index[t, alive] = new[alive], previous[alive]
        moved = new if series is None else series.after(new)
        gone = alive & (np.sum((moved - successors[:, 0]) ** 2, axis=1) > bound)
        diverged[gone] = t + 1
        state = (
            moved
            if alive.all() and not gone.any()
            else np.where((alive & ~gone)[:, None], moved, state)
        )
    return Path(values, index, diverged)


def run_one(
    context: Context,
    state: Float[np.ndarray, " D"],
    n_steps: int,
    alpha: float,
    beta: float,
    radius: float,
    *,
    shift: Shift | None = None,
) -> Path:
    """`run` for one state and one neighbour, with the half-distance shortcut: the same numbers."""
    rows, limit, admissible = context.rows, context.limit, context.admissible
    q = len(state) if shift is None else shift.past.shape[2]
    values = np.full((n_steps, 1, q), np.nan)
    index = np.full((n_steps, 1, 1), -1)
    bound = (DIVERGED * context.spread) ** 2
    series = None if shift is None else History(shift, n_steps)
    # Clipping is decided as in a batch; the quick test before it only spares the usual case.
    radii, suspect = np.array([[radius]]), radius**2 * (1 - 1e-9)
    nearest, known = -1, False
    for t in range(n_steps):
        nearest = nearest + 1 if known else context.nearest_one(state, nearest)
        row, successor = rows[nearest], rows[nearest + 1]
        deviation = alpha * (state[:q] - row[:q])
        if deviation.dot(deviation) > suspect:
            deviation = clipped(deviation[None, None], radii)[0, 0]
        new = successor[:q] + deviation
        if beta:
            new = new + beta * (successor[:q] - row[:q])
        values[t, 0], index[t, 0, 0] = new, nearest
        state = new if series is None else series.after(new[None])[0]
        off = state - successor
        squared = off.dot(off)
        if squared > bound:
            return Path(values, index, np.array([t + 1]))
        # Nearer to the successor than half its distance to any other row: no search is needed.
        follower = nearest + 1
        known = (
            follower <= limit
            and bool(admissible[follower])
            and squared < context.half_squared(follower)
        )
    return Path(values, index, np.zeros(1, dtype=int))


def warn_of_divergence(path: Path) -> None:
    """Say at which step an unguarded orbit left; what follows is NaN."""
    gone = path.diverged[path.diverged > 0]
    if len(gone):
        warnings.warn(
            f"diverged at step {gone.min()}: {len(gone)} of {len(path.diverged)} orbit(s) went "
            f"{DIVERGED:g} spreads from the context, NaN after it; set trust_radius to bound them",
            RuntimeWarning,
            stacklevel=3,
        )


class History:
    """Observed, then forecast values, from which shifted delay vectors are read."""

    def __init__(self, shift: Shift, n_steps: int) -> None:
        past = shift.past[:, -(int(shift.lags[-1]) + 1) :]
        self._lags = shift.lags
        self._now = past.shape[1] - 1
        self._values = np.concatenate([past, np.empty((len(past), n_steps, past.shape[2]))], axis=1)

    def after(self, new: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b D"]:
        self._now += 1
        self._values[:, self._now] = new
        return self._values[:, self._now - self._lags].reshape(len(new), -1)


def clipped(
    deviation: Float[np.ndarray, "b k q"], radius: Float[np.ndarray, "b 1"]
) -> Float[np.ndarray, "b k q"]:
    """`deviation`, shortened to `radius` where it is longer."""
    if np.isinf(radius).all():
        return deviation
    length = np.sqrt(_ordered_sum(np.moveaxis(deviation**2, 2, 1)))
    long = length > radius
    if not long.any():
        return deviation
    shrink = np.divide(radius, length, out=np.ones_like(length), where=long)
    return np.where(long[:, :, None], deviation * shrink[:, :, None], deviation)


def _ordered_sum(values: Float[np.ndarray, "b k *q"]) -> Float[np.ndarray, "b *q"]:
    """Sum over the second axis in order: the same to the last bit whatever the batch."""
    total = values[:, 0].copy()
    for j in range(1, values.shape[1]):
        total += values[:, j]
    return total
