"""How far a region reaches: its intervals in one dimension, its bounding box in more."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from .body import Body, Excess
from .proposal import explore, proposal_for

__all__ = ["bounding_box_of", "intervals"]

GRID = 4001
OCTAVES = 40  # the search goes out to 2^40 times the spread of the references
STEPS_PER_OCTAVE = 32
BISECTIONS = 80
STARTS = 8
FEASIBLE = 1e-7  # excess, relative to q, that counts as on the edge
WIDENING = 1e-6  # of the width, on each side, beyond the best point found
CLIMB_WIDENING = 5e-3  # the same for the random climb, which stops short of the edge


def intervals(body: Body) -> Float[np.ndarray, "k 2"]:
    """The intervals that make up a region of the line, by changes of membership and bisection.

    Components narrower than the spacing of the grid (1/4000 of the references' spread, every
    reference and every middle between two of them included) can be missed.
    """
    marks = np.sort(body.references[:, 0])
    if body.far is not None:
        marks = np.sort(np.concatenate([marks, body.far.box()[:, 0]]))
    low, high = marks[0], marks[-1]
    span = max(high - low, 1e-12 * max(abs(low), abs(high)), float(body.whitening.inverse[0, 0]))
    out = span * (2.0 ** (np.arange(OCTAVES * STEPS_PER_OCTAVE + 1) / STEPS_PER_OCTAVE) - 1.0)
    middles = 0.5 * (marks[1:] + marks[:-1])
    grid = np.concatenate([low - out, np.linspace(low, high, GRID), high + out, marks, middles])
    grid = np.unique(grid)
    inside = body.inside(grid[:, None])
    starts = np.flatnonzero(inside[1:] & ~inside[:-1])
    stops = np.flatnonzero(inside[:-1] & ~inside[1:])
    left = _bisect(body, grid[starts + 1], grid[starts])
    right = _bisect(body, grid[stops], grid[stops + 1])
    if inside[0]:
        left = np.concatenate([[-np.inf], left])
    if inside[-1]:
        right = np.concatenate([right, [np.inf]])
    return np.stack([left, right], axis=1)


def _bisect(
    body: Body, inner: Float[np.ndarray, " k"], outer: Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """The last point inside between each pair of a point inside and one outside."""
    for _ in range(BISECTIONS):
        middle = 0.5 * (inner + outer)
        inside = body.inside(middle[:, None])
        inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
    return inner


def bounding_box_of(body: Body, rng: np.random.Generator) -> Float[np.ndarray, "2 d"]:
    """Lower and upper end of the region in every coordinate.

    Exact for closed forms and on the line. Otherwise each side begins at the most extreme
    proposals inside and is pushed out: by SLSQP under score <= q where the score has a gradient,
    by a random climb where membership is all that is known; then by a sliver of its width. Parts
    that no proposal met are not seen. All NaN when no proposal lies inside.
    """
    if not body.bounded:
        return np.stack([np.full(body.d, -np.inf), np.full(body.d, np.inf)])
    if body.empty:
        return np.full((2, body.d), np.nan)
    if body.closed is not None:
        return body.closed.box()
    if body.d == 1:
        ends = intervals(body)
        if not len(ends):
            return np.full((2, 1), np.nan)
        return np.array([[ends.min()], [ends.max()]])
    points = _met(body, rng)
    if not len(points):
        return np.full((2, body.d), np.nan)
    box = np.empty((2, body.d))
    for side, sign in enumerate((-1.0, 1.0)):
        for j in range(body.d):
            direction = sign * np.eye(body.d)[j]
            nearest = np.argsort(-points @ direction, kind="stable")[:STARTS]
            if body.excess is not None:
                box[side, j] = sign * _push(body, body.excess, points[nearest], direction)
            else:
                box[side, j] = sign * _climb(body, points[nearest], direction, rng)
    widening = WIDENING if body.excess is not None else CLIMB_WIDENING
    width = box[1] - box[0]
    return box + np.array([[-widening], [widening]]) * width


def _met(body: Body, rng: np.random.Generator) -> Float[np.ndarray, "k d"]:
    """Proposals inside, some hundreds where they can be had, and the tips of a far ellipsoid."""
    points = np.empty((0, body.d))
    for n in (20_000, 40_000, 80_000, 160_000):
        points = np.concatenate([points, explore(body, n, rng)[0]])
        if len(points) >= 400:
            break
    if body.far is not None:
        axes = body.far.shape / np.linalg.norm(body.far.shape, axis=1, keepdims=True)
        tips = 0.999 * axes @ body.far.shape.T
        tips = np.concatenate([body.far.center + tips, body.far.center - tips])
        points = np.concatenate([points, tips[body.inside(tips)]])
    return points


def _push(
    body: Body,
    excess: Excess,
    starts: Float[np.ndarray, "k d"],
    direction: Float[np.ndarray, " d"],
) -> float:
    """The largest direction.x with excess(x) <= 0 that SLSQP reaches from the starts."""
    white = body.whitening
    goal = white.inverse.T @ direction  # in whitened coordinates all directions are alike
    length = float(np.linalg.norm(goal))
    goal = goal / length

    last: list[Any] = [None, 0.0, goal]  # SLSQP asks for value and gradient at the same point

    def at(z: Float[np.ndarray, " d"]) -> list[Any]:
        if last[0] is None or not np.array_equal(last[0], z):
            last[:] = [z.copy(), *excess(white.back(z[None])[0])]
        return last

    def room(z: Float[np.ndarray, " d"]) -> float:
        return -at(z)[1]

    def room_gradient(z: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        return -white.inverse.T @ at(z)[2]

    best = float((starts @ direction).max())
    for start in white(starts):
        found = minimize(
            lambda z: -float(goal @ z),
            start,
            jac=lambda _: -goal,
            constraints={"type": "ineq", "fun": room, "jac": room_gradient},
            method="SLSQP",
            options={"maxiter": 60, "ftol": 1e-9},
        )
        x = white.back(found.x[None])
        if np.isfinite(x).all() and excess(x[0])[0] <= FEASIBLE:
            best = max(best, float(x[0] @ direction))
    return best


def _climb(
    body: Body,
    starts: Float[np.ndarray, "k d"],
    direction: Float[np.ndarray, " d"],
    rng: np.random.Generator,
) -> float:
    """The largest direction.x that random steps from the starts reach inside."""
    white, points = body.whitening, starts
    step = proposal_for(body).width
    best = float((points @ direction).max())
    for _ in range(60):
        z = np.repeat(white(points), 25, axis=0)
        trial = white.back(z + step * rng.normal(size=z.shape))
        trial = trial[trial @ direction > (points @ direction).min()]
        points = np.concatenate([points, trial[body.inside(trial)]])
        points = points[np.argsort(-points @ direction, kind="stable")[:STARTS]]
        gained = float((points @ direction).max())
        step *= 1.3 if gained > best else 0.7
        best = max(best, gained)
        if step < 1e-4:
            break
    return best
