"""What the mathematics proves, T1 to T6 of the method."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynabase import DynaBase, delay_embed, itinerary_period, rollout, step, systems, theiler_window
from dynabase._recording import Recording
from dynabase._run import Gains, Shift, run
from dynabase.baselines import parrot


def scaled(name, n=1500, seed=0):
    rows = systems.generate(name, n, seed=seed)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


@pytest.fixture(scope="module")
def lorenz():
    return scaled("lorenz63")


# --- T1: the Jacobian is alpha times the identity inside every cell ---


@pytest.mark.parametrize("alpha", [0.5, 0.9, 1.0, 1.005, 1.02])
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_t1_the_growth_rate_is_ln_alpha(lorenz, alpha, beta):
    """Two orbits in the same cells separate by exactly alpha a step."""
    w = theiler_window(lorenz)
    direction = np.array([1.0, -2.0, 0.5]) / np.linalg.norm([1.0, -2.0, 0.5])
    starts = np.stack([lorenz[-1], lorenz[-1] + 1e-7 * direction])
    path, index = rollout(lorenz, 120, alpha, beta, z0=starts, theiler=w, return_indices=True)
    together = int(np.argmax(index[:, 0] != index[:, 1])) or 120
    assert together >= 20
    gap = np.linalg.norm(path[:together, 1] - path[:together, 0], axis=1)
    kept = gap > 1e-9  # above rounding
    steps = np.arange(1, together + 1)[kept]
    rate = np.log(gap[kept] / 1e-7) / steps
    np.testing.assert_allclose(rate, math.log(alpha), atol=1e-6)
    # And the direction is kept: all exponents are the same.
    turned = (path[:together, 1] - path[:together, 0])[kept] / gap[kept, None]
    np.testing.assert_allclose(turned, np.tile(direction, (kept.sum(), 1)), atol=1e-5)


def test_t1_one_exponent_of_a_shifted_delay_vector(lorenz):
    """A change of the newest value grows by alpha; one of the others is gone after m - 1 steps."""
    recording = Recording.of(lorenz[:, :1], m=3, tau=2, theiler=15)
    past = np.repeat(lorenz[None, 600:605, :1], 3, axis=0)
    past[1, -1] += 1e-7  # the newest
    past[2, 0] += 1e-7  # the oldest
    states = past[:, [4, 2, 0], 0]
    path = run(
        recording.context,
        states,
        30,
        Gains.equal(0.97, 0.0, np.inf, 3),
        shift=Shift(recording.lags, past),
    )
    assert (path.index == path.index[:, :1]).all()
    values = path.values[:, :, 0]
    np.testing.assert_allclose(
        (values[:, 1] - values[:, 0]) / 1e-7, 0.97 ** np.arange(1, 31), atol=1e-6
    )
    np.testing.assert_array_equal(values[:, 2], values[:, 0])


def test_t1_exponents_of_fitted_models(lorenz):
    assert DynaBase(1.02, n_neighbors=1).fit(lorenz).map_exponent_ == pytest.approx(math.log(1.02))
    assert DynaBase("parrot", n_neighbors=1).fit(lorenz).map_exponent_ == -math.inf
    assert math.isnan(DynaBase(0.9, n_neighbors=5).fit(lorenz).map_exponent_)


# --- T2: for alpha < 1 the distance from the context settles ---


@pytest.mark.parametrize("alpha", [0.3, 0.9, 0.98])
@pytest.mark.parametrize("name", ["lorenz63", "rossler", "selkov"])
def test_t2_distances_shrink_but_at_the_seam(alpha, name):
    context = scaled(name)
    w = theiler_window(context)
    z0 = context[200] + 0.3
    path, index = rollout(context, 2000, alpha, z0=z0, theiler=w, return_indices=True)
    states = np.concatenate([z0[None], path])
    last = len(context) - 2 - w
    distance = np.linalg.norm(states[:-1] - context[index], axis=1)
    inside = index[:-1] + 1 <= last
    assert (distance[1:][inside] <= alpha * distance[:-1][inside] * (1 + 1e-9) + 1e-12).all()
    seam = context[last + 1]  # the one successor that is not admissible
    g = np.linalg.norm(context[: last + 1] - seam, axis=1).min()
    assert (distance[1:][~inside] <= alpha * distance[:-1][~inside] + g + 1e-12).all()
    assert distance[1000:].max() <= g / (1 - alpha) + 1e-9


def test_t2_small_alpha_ends_on_a_cycle():
    context = scaled("lorenz63", 500)
    _, index = rollout(context, 4000, 0.9, theiler=15, return_indices=True)
    assert itinerary_period(index) is not None
    _, index = rollout(context, 4000, 1.005, theiler=15, trust_radius=0.2, return_indices=True)
    assert itinerary_period(index) is None


# --- T3: alpha = beta = 0 is context parroting ---


@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_t3_alpha_zero_is_an_independent_parrot(name):
    """The greatest absolute difference is 0.0: to the seam, and beyond it."""
    context = scaled(name, 600)
    w = theiler_window(context)
    copied = parrot(context, 1200, theiler=w)
    assert np.abs(rollout(context, 1200, 0.0, theiler=w) - copied).max() == 0.0


@pytest.mark.parametrize("motif", [2, 5])
def test_t3_delay_vectors_are_motifs(motif):
    y = scaled("lorenz63", 700)[:, 0]
    path = rollout(delay_embed(y, motif, 1), 1200, 0.0, theiler=15)
    np.testing.assert_array_equal(path[:, 0], parrot(y, 1200, motif=motif, theiler=15))


def test_t3_repeated_rows_are_copied_too(rng):
    y = rng.integers(0, 4, size=(300, 1)).astype(float)
    path, index = rollout(y, 50, 0.0, z0=y[40], theiler=0, return_indices=True)
    start = index[0]
    np.testing.assert_array_equal(path, y[start + 1 : start + 51])


# --- T4: the guard (its bound for arbitrary data is a property in test_map) ---


@pytest.mark.filterwarnings("ignore:diverged")
def test_t4_guarded_orbits_stay_and_unguarded_ones_leave():
    """At alpha = 1.02 free orbits mostly diverge within 10^4 steps; guarded ones never do."""
    left = 0
    for name, seed in (("lorenz63", 0), ("chua", 0)):
        context = scaled(name, 2000, seed)
        model = DynaBase(1.02, n_neighbors=1, standardize=False).fit(context)
        bound = np.linalg.norm(context, axis=1).max() + model.trust_radius_
        assert np.linalg.norm(model.simulate(1500), axis=1).max() <= bound * (1 + 1e-12)
        free = rollout(context, 10_000, 1.02, theiler=theiler_window(context))
        left += np.isnan(free).any()
    assert left >= 1


# --- T5: exactness on the context ---


@settings(max_examples=25, deadline=None)
@given(i=st.integers(0, 1400), alpha=st.floats(0, 2), beta=st.sampled_from([0.0, 0.1, -0.3]))
def test_t5_rows_are_followed_exactly_only_without_velocity(lorenz, i, alpha, beta):
    z, index = step(lorenz[i], lorenz, alpha, beta, theiler=15)
    assert index == i
    assert np.array_equal(z, lorenz[i + 1]) == (beta == 0.0)


# --- T6: equivariance ---


@settings(max_examples=25, deadline=None)
@given(
    power=st.integers(-20, 20),
    alpha=st.floats(0, 1.0),
    beta=st.floats(-0.2, 0.2),
    k=st.integers(1, 3),
)
def test_t6_a_common_scale_passes_through(lorenz, power, alpha, beta, k):
    """By a power of two every operation scales exactly: equal to the last bit."""
    scale = 2.0**power
    options = {"theiler": 15, "n_neighbors": k}
    path = rollout(lorenz, 25, alpha, beta, **options)
    np.testing.assert_array_equal(rollout(scale * lorenz, 25, alpha, beta, **options), scale * path)


@settings(max_examples=25, deadline=None)
@given(shift=st.floats(-100, 100), scale=st.floats(0.01, 100), alpha=st.floats(0, 0.95))
def test_t6_a_shift_passes_through(lorenz, shift, scale, alpha):
    """Below alpha = 1 rounding cannot grow but at a cell's border, where no digit is sure."""
    path, index = rollout(lorenz, 60, alpha, theiler=15, return_indices=True)
    moved, same = rollout(scale * lorenz + shift, 60, alpha, theiler=15, return_indices=True)
    if np.array_equal(index, same):
        tolerance = 1e-12 * (abs(shift) + scale * 10) * 100
        np.testing.assert_allclose(moved, scale * path + shift, atol=tolerance, rtol=0)
    else:
        first = int(np.argmax(index != same))
        state = lorenz[-1] if first == 0 else path[first - 1]
        near = np.sort(np.linalg.norm(lorenz[: 1500 - 16] - state, axis=1))
        assert near[1] - near[0] < 1e-9 * (1 + abs(shift) / scale)


@pytest.mark.parametrize("alpha", [0.0, 0.95, 1.005])
def test_t6_standardised_coordinates_have_each_their_own_scale(alpha):
    raw = systems.generate("lorenz63", 800)
    factors = np.array([2.0**7, 2.0**-9, 2.0**3])
    path = DynaBase(alpha, n_neighbors=1).fit(raw).predict(100)
    moved = DynaBase(alpha, n_neighbors=1).fit(raw * factors).predict(100)
    np.testing.assert_array_equal(moved, path * factors)
