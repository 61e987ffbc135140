"""Every search answers as the total order does: by direct differences, then the tie rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynabase.neighbours import Context, Prefixes, Stack


def reference(rows, states, k, previous, theiler=0, barred=None):
    """The definition, spelt out: sort all admissible rows by (distance, continuation, index)."""
    finite = np.isfinite(rows).all(axis=1)
    index = np.arange(len(rows) - 1 - theiler)
    index = index[finite[index] & finite[index + 1]]
    found = []
    for line, (state, last) in enumerate(zip(states, previous, strict=True)):
        kept = index if barred is None else index[~barred(line, index)]
        squared = sum((rows[kept, at] - state[at]) ** 2 for at in range(len(state)))
        order = np.lexsort((kept, ~np.isin(kept - 1, last), squared))
        found.append(kept[order[:k]])
    return np.array(found)


def contexts(rng, kind, n, d):
    """Rows of a kind that is hard on ties: smooth, quantised, with gaps or with plateaus."""
    if kind == "smooth":
        rows = np.cumsum(rng.normal(size=(n, d)), axis=0)
    elif kind == "quantised":
        rows = rng.integers(0, 4, size=(n, d)).astype(float)
    elif kind == "plateaus":
        rows = np.repeat(rng.integers(0, 9, size=(n, d)), 3, axis=0)[:n].astype(float)
    else:
        rows = rng.normal(size=(n, d))
        rows[rng.random(n) < 0.2] = np.nan
    return rows


KINDS = ["smooth", "quantised", "plateaus", "gaps"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(60, 1), (450, 2), (500, 3), (420, 13)])
@pytest.mark.parametrize("k", [1, 4])
def test_search_equals_the_definition(kind, n, d, k, rng):
    rows = contexts(rng, kind, n, d)
    near = rows[np.isfinite(rows).all(axis=1)]
    exact = near[rng.integers(0, len(near), 20)]
    states = np.concatenate([exact, exact + 0.5, exact + 0.1 * rng.normal(size=exact.shape)])
    previous = rng.integers(-1, n - 1, size=(len(states), k))
    context = Context(rows, theiler=5)
    index, squared = context.nearest(states, k, previous)
    np.testing.assert_array_equal(index, reference(rows, states, k, previous, theiler=5))
    assert (np.diff(squared, axis=1) >= 0).all()
    if k == 1:
        one_by_one = [
            context.nearest_one(state, int(last))
            for state, last in zip(states, previous[:, 0], strict=True)
        ]
        np.testing.assert_array_equal(index[:, 0], one_by_one)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    k=st.integers(1, 3),
    step=st.sampled_from([0.0, 0.5, 1e-13, 0.3]),
)
def test_tree_equals_brute_force_bit_for_bit(seed, kind, k, step):
    rng = np.random.default_rng(seed)
    rows = contexts(rng, kind, 450 if kind != "gaps" else 800, 2)
    states = rows[np.isfinite(rows).all(axis=1)][:50] + step
    previous = rng.integers(-1, 400, size=(len(states), k))
    tree, brute = Context(rows, theiler=3), Context(rows, theiler=3, tree=False)
    assert tree._tree is not None
    for a, b in zip(
        tree.nearest(states, k, previous), brute.nearest(states, k, previous), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(tree.analogues(k), brute.analogues(k), strict=True):
        np.testing.assert_array_equal(a, b)
    start, stop = rng.integers(0, 400, 50)[: len(states)], rng.integers(0, 450, 50)[: len(states)]
    for a, b in zip(
        tree.allowed(states, k, previous, start, stop),
        brute.allowed(states, k, previous, start, stop),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [100, 450])
@pytest.mark.parametrize("k", [1, 3])
def test_analogues_are_never_nearer_in_time_than_the_window(kind, n, k, rng):
    rows, w = contexts(rng, kind, n, 2), 7
    times, index, _ = Context(rows, theiler=w).analogues(k)
    np.testing.assert_array_equal(
        index,
        reference(
            rows,
            rows[times],
            k,
            np.full((len(times), k), -1),
            theiler=w,
            barred=lambda line, i: abs(times[line] - i) <= w,
        ),
    )
    assert (np.abs(index - times[:, None]) > w).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [100, 500])
def test_half_distances_decide_as_a_search_does(kind, n, rng):
    """A state inside the half distance of a row has that row, or an equal one, as its neighbour."""
    rows = contexts(rng, kind, n, 2)
    context = Context(rows, theiler=2)
    decided = 0
    for i in context.index[::5]:
        half = context.half_squared(int(i)) ** 0.5
        if not np.isfinite(half):
            continue
        others = np.sum((rows[context.index] - rows[i]) ** 2, axis=1)
        assert half**2 <= 0.25 * others[others > 0].min()
        direction = rng.normal(size=2)
        state = rows[i] + direction / np.linalg.norm(direction) * half * 0.999
        assert context.nearest_one(state, int(i) - 1) == i
        decided += 1
    assert decided > 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 3])
def test_prefixes_never_look_past_their_limit(kind, k, rng):
    rows = contexts(rng, kind, 600, 2)
    limits = rng.integers(150, 500, size=40)
    states = rows[np.isfinite(rows).all(axis=1)][:40]
    previous = rng.integers(-1, 150, size=(40, k))
    index, _ = Prefixes(Context(rows), limits).nearest(states, k, previous)
    np.testing.assert_array_equal(
        index, reference(rows, states, k, previous, barred=lambda line, i: i > limits[line])
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 3])
def test_stack_equals_its_members(kind, k, rng):
    lengths, windows = [90, 120, 120], np.array([3, 0, 9])
    members = [contexts(rng, kind, n, 2) for n in lengths]
    states = np.stack([rows[np.isfinite(rows).all(axis=1)][11] for rows in members])
    previous = rng.integers(-1, 60, size=(3, k))
    index, squared = Stack(members, windows).nearest(states, k, previous)
    for at, rows in enumerate(members):
        alone = Context(rows, theiler=int(windows[at]))
        one, far = alone.nearest(states[at : at + 1], k, previous[at : at + 1])
        np.testing.assert_array_equal(index[at], one[0])
        np.testing.assert_array_equal(squared[at], far[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("added", [[40], [10, 30, 25], [300]])
def test_extended_equals_a_context_built_afresh(kind, k, added, rng):
    rows = contexts(rng, kind, 1200, 2)
    context, n = Context(rows[:800], theiler=4), 800
    for more in added:
        context, n = context.extended(rows[n : n + more]), n + more
    afresh = Context(rows[:n], theiler=4, tree=False)
    states = rows[np.isfinite(rows).all(axis=1)][:n:17]
    states = np.concatenate([states, states + 0.5])
    previous = rng.integers(-1, n - 1, size=(len(states), k))
    for a, b in zip(
        context.nearest(states, k, previous), afresh.nearest(states, k, previous), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    for i in context.index[-60:]:
        assert context.half_squared(int(i)) == pytest.approx(afresh.half_squared(int(i)))
