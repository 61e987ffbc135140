"""The map and its rollouts: the equation, the guard, the shortcut, batches, refusals."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armillary import InputError
from dynabase import from_weights, rollout, step, systems, theiler_window, weights
from dynabase._recording import Recording
from dynabase._run import Gains, run, run_one
from dynabase.baselines import parrot


@pytest.fixture(scope="module")
def lorenz():
    rows = systems.generate("lorenz63", 900)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def definition(context, z, n_steps, alpha, beta, theiler, radius):
    """Equation (1) with the guard and the tie rule, by plain loops."""
    out, nearest = [], None
    for _ in range(n_steps):
        best = None
        for i in range(len(context) - 1 - theiler):
            squared = 0.0
            for a, b in zip(context[i], z, strict=True):
                squared += (a - b) ** 2
            key = (squared, i - 1 != nearest, i)
            best = key if best is None or key < best else best
        nearest = best[2]
        deviation = alpha * (z - context[nearest])
        length = np.sqrt(np.sum(deviation**2))
        if radius is not None and length > radius:
            deviation = deviation * (radius / length)
        successor = context[nearest + 1]
        z = successor + deviation + beta * (successor - context[nearest])
        out.append((z, nearest))
    return np.array([z for z, _ in out]), np.array([i for _, i in out])


@pytest.mark.parametrize("n", [150, 500])  # brute force, tree
@pytest.mark.parametrize(
    ("alpha", "beta", "radius"),
    [(0.0, 0.0, None), (0.9, 0.0, None), (0.95, -0.1, None), (1.005, 0.0, 0.1), (1.3, 0.2, 0.05)],
)
def test_rollout_is_the_equation(lorenz, n, alpha, beta, radius):
    context = lorenz[:n]
    path, index = rollout(
        context, 60, alpha, beta, theiler=10, trust_radius=radius, return_indices=True
    )
    expected, expected_index = definition(context, context[-1], 60, alpha, beta, 10, radius)
    np.testing.assert_array_equal(index, expected_index)
    np.testing.assert_allclose(path, expected, atol=1e-12)


def test_step_is_the_first_of_a_rollout(lorenz):
    z = lorenz[700] + 0.1
    path, index = rollout(lorenz, 2, 0.9, 0.05, z0=z, theiler=12, return_indices=True)
    first, i = step(z, lorenz, 0.9, 0.05, theiler=12)
    second, j = step(first, lorenz, 0.9, 0.05, theiler=12, previous=i)
    np.testing.assert_array_equal(path, [first, second])
    np.testing.assert_array_equal(index, [i, j])


@pytest.mark.parametrize("alpha", [0.0, 0.9, 0.98, 1.0, 1.01])
@pytest.mark.parametrize("m", [1, 3])
def test_shortcut_and_batch_give_the_same_numbers(lorenz, alpha, m):
    """A single state with the shortcut, and the same state in a batch without: bit for bit."""
    series = lorenz[:, :1] if m > 1 else lorenz
    recording = Recording.of(series, m=m, tau=4, theiler=15)
    radius = 0.2 if alpha > 1 else np.inf
    starts = np.array([300, 555, 12])
    batch = run(
        recording.context,
        recording.context.rows[starts],
        150,
        Gains.equal(alpha, 0.0, radius, 3),
        shift=recording.shift(starts),
    )
    for at, start in enumerate(starts):
        alone = run_one(
            recording.context,
            recording.context.rows[start],
            150,
            alpha,
            0.0,
            radius,
            shift=recording.shift(np.array([start])),
        )
        np.testing.assert_array_equal(alone.values[:, 0], batch.values[:, at])
        np.testing.assert_array_equal(alone.index[:, 0], batch.index[:, at])


def test_shortcut_spares_most_searches(lorenz, monkeypatch):
    """At alpha = 0.9 deviations fade, and a search is needed at the seams alone."""
    from dynabase import neighbours

    searches = 0
    original = neighbours.Context.nearest_one

    def counted(self, state, previous):
        nonlocal searches
        searches += 1
        return original(self, state, previous)

    monkeypatch.setattr(neighbours.Context, "nearest_one", counted)
    rollout(lorenz, 2000, 0.9, theiler=15)
    assert searches < 40


def test_batch_of_starts_equals_single_rollouts(lorenz):
    starts = lorenz[[3, 400, 711]] + 0.01
    path, index = rollout(lorenz, 50, 0.97, z0=starts, theiler=15, return_indices=True)
    assert path.shape == (50, 3, 3)
    assert index.shape == (50, 3)
    for at, z0 in enumerate(starts):
        alone, its = rollout(lorenz, 50, 0.97, z0=z0, theiler=15, return_indices=True)
        np.testing.assert_array_equal(path[:, at], alone)
        np.testing.assert_array_equal(index[:, at], its)


def test_neighbours_are_weighted_by_distance():
    context = np.array([0.0, 10.0, 1.0, 20.0, 5.0, 50.0, 0.5])[:, None]
    z, d = 0.25, np.array([0.25, 0.75, 4.75])
    w = np.exp(-d / 0.25) / np.exp(-d / 0.25).sum()
    expected = w @ (np.array([10.0, 20.0, 50.0]) + 0.5 * (z - np.array([0.0, 1.0, 5.0])))
    path, index = rollout(context, 1, 0.5, z0=[z], n_neighbors=3, return_indices=True)
    np.testing.assert_array_equal(index, [[0, 2, 4]])
    np.testing.assert_allclose(path, [[expected]], rtol=1e-14)


def test_exact_matches_share_the_weight():
    """d_1 = 0: equal weights on the rows that match, none on the others, and no 0 / 0."""
    context = np.array([1.0, 5.0, 1.0, 7.0, 2.0, 100.0, 0.0])[:, None]
    np.testing.assert_array_equal(rollout(context, 1, 0.9, z0=[1.0], n_neighbors=3), [[6.0]])


def test_ties_go_on_where_the_copy_was(rng):
    """On a plateau the smallest index alone would freeze: its first row follows itself."""
    wave = np.round(3 * np.maximum(np.sin(np.arange(600) * 2 * np.pi / 37), 0)) / 3
    for motif in (1, 2):
        context = np.column_stack([wave[motif - 1 :], wave[: len(wave) - motif + 1]])
        forecast = rollout(context, 200, 0.0, theiler=9)
        assert forecast[:, 0].std() > 0.9 * wave.std()


def test_unguarded_divergence_stops_with_a_warning(lorenz):
    with pytest.warns(RuntimeWarning, match="diverged at step"):
        path, index = rollout(lorenz, 300, 1.5, z0=lorenz[0] + 5.0, return_indices=True)
    gone = np.isnan(path).any(axis=1)
    first = int(gone.argmax())
    assert gone[first:].all()
    assert not gone[:first].any()
    assert (index[first:] == -1).all()
    spread = np.sqrt(np.mean(np.sum(lorenz**2, axis=1)))
    assert np.linalg.norm(path[first - 1]) > 0.99e6 * spread


@pytest.mark.parametrize("k", [1, 2])
def test_a_diverged_orbit_leaves_its_batch_alone(lorenz, k):
    starts = np.stack([lorenz[0] + 5.0, lorenz[100]])
    options = {"theiler": 15, "n_neighbors": k}
    with pytest.warns(RuntimeWarning, match="1 of 2 orbit"):
        path = rollout(lorenz, 45, 1.5, z0=starts, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(
            path[:, 1], rollout(lorenz, 45, 1.5, z0=lorenz[100], **options)
        )
    assert np.isnan(path[-1, 0]).all()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0, 3),
    beta=st.floats(-1, 1),
    radius=st.floats(0, 5),
    k=st.integers(1, 4),
)
def test_guarded_orbits_never_leave_the_bound(seed, alpha, beta, radius, k):
    """||z|| <= max ||c|| + r + |beta| max ||c[i+1] - c[i]||, for every alpha."""
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(60, 2)) * 10 ** rng.uniform(-3, 3)
    path = rollout(context, 200, alpha, beta, z0=context[5] * 3, trust_radius=radius, n_neighbors=k)
    bound = np.linalg.norm(context, axis=1).max() + radius
    bound += abs(beta) * np.linalg.norm(np.diff(context, axis=0), axis=1).max()
    assert np.linalg.norm(path, axis=1).max() <= bound * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), alpha=st.floats(0, 1.2), k=st.integers(1, 3))
def test_rollouts_are_deterministic_and_leave_their_input_alone(seed, alpha, k):
    context = np.random.default_rng(seed).integers(0, 5, size=(80, 2)).astype(float)
    before = context.copy()
    options = {"theiler": 2, "trust_radius": 1.0, "n_neighbors": k}
    first = rollout(context, 20, alpha, **options)
    np.testing.assert_array_equal(first, rollout(context, 20, alpha, **options))
    np.testing.assert_array_equal(context, before)


def test_parrot_is_alpha_zero(lorenz):
    w = theiler_window(lorenz)
    difference = rollout(lorenz, 2500, 0.0, theiler=w) - parrot(lorenz, 2500, theiler=w)
    assert np.abs(difference).max() == 0.0


def test_weights_and_gains_are_two_names_of_one_map(lorenz):
    assert weights(0.9, 0.1) == (0.9, -1.0, 1.1)
    assert from_weights(0.9, -1.0) == pytest.approx((0.9, 0.1))
    alpha, beta = 0.7, -0.2
    w_z, w_c, w_s = weights(alpha, beta)
    z = lorenz[77] + 0.05
    new, i = step(z, lorenz, alpha, beta)
    np.testing.assert_allclose(new, w_z * z + w_c * lorenz[i] + w_s * lorenz[i + 1], atol=1e-14)


def test_memory_mapped_contexts_are_read(lorenz, tmp_path):
    np.save(tmp_path / "context.npy", lorenz)
    mapped = np.load(tmp_path / "context.npy", mmap_mode="r")
    np.testing.assert_array_equal(rollout(mapped, 30, 0.9), rollout(lorenz, 30, 0.9))


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"alpha": -0.1}, ["alpha", "-0.1", ">= 0"]),
        ({"alpha": np.nan}, ["alpha", "nan"]),
        ({"beta": np.inf}, ["beta", "inf"]),
        ({"n_steps": 0}, ["n_steps", "0"]),
        ({"n_steps": 1.5}, ["n_steps", "1.5"]),
        ({"theiler": -1}, ["theiler", "-1"]),
        ({"theiler": 50}, ["50 row(s)", "Theiler window of 50", "longer context"]),
        ({"n_neighbors": 50}, ["at least 50 row(s)", "n_neighbors"]),
        ({"trust_radius": -1.0}, ["trust_radius", "-1"]),
        ({"z0": [1.0]}, ["z0", "1 coordinate", "2"]),
        ({"z0": [np.nan, 0.0]}, ["z0", "NaN"]),
        ({"context": np.zeros((2, 2, 2))}, ["context", "(2, 2, 2)"]),
        ({"context": np.array([[1.0], [np.inf], [2.0]])}, ["row 1", "inf"]),
        ({"context": np.array([[1.0], [2.0], [np.nan]])}, ["NaN in the last row", "z0"]),
    ],
)
def test_refusals_name_what_is_wrong(arguments, words):
    given = {"context": np.arange(100.0).reshape(50, 2), "n_steps": 3, "alpha": 0.5} | arguments
    with pytest.raises(InputError) as caught:
        rollout(given.pop("context"), given.pop("n_steps"), given.pop("alpha"), **given)
    for word in words:
        assert word in str(caught.value)
