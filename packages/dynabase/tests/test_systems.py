"""The twelve systems: their equations, their integration, their attractors."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from armillary import InputError
from dynabase import systems, theiler_window

RANGES = {  # of the coordinates on the attractor, from an adaptive integration of high order
    "lorenz63": 20.0,
    "rossler": 25.0,
}


@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_integration_equals_an_adaptive_one(name):
    """Over a short time, before chaos tells any two integrations apart."""
    system = systems.SYSTEMS[name]
    first = systems.generate(name, 30, transient=0, seed=2)
    start = first[0]
    times = system.dt * np.arange(30)
    found = solve_ivp(
        lambda _, state: system.rate(*state),
        (0, times[-1]),
        start,
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
        method="DOP853",
    )
    scale = np.abs(first).max()
    np.testing.assert_allclose(first, found.y.T, atol=5e-4 * scale)


@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_samples_lie_on_a_bounded_moving_attractor(name):
    x = systems.generate(name, 1500)
    assert x.shape == (1500, len(systems.SYSTEMS[name].start))
    assert np.isfinite(x).all()
    assert (x.std(axis=0) > 1e-3).all()
    assert np.abs(x).max() < 200
    half = x[:750].std(axis=0) / x[750:].std(axis=0)
    assert (half > 0.2).all()
    assert (half < 5).all()
    assert 3 <= theiler_window(x) <= 150


def test_seeds_and_options():
    x = systems.generate("selkov", 50, seed=1)
    np.testing.assert_array_equal(x, systems.generate("selkov", 50, seed=1))
    assert not np.allclose(x, systems.generate("selkov", 50, seed=2))
    np.testing.assert_array_equal(
        systems.generate("selkov", 10, transient=3010), systems.generate("selkov", 20)[10:]
    )
    context, target = systems.split("selkov", n_context=30, n_target=20, seed=1)
    np.testing.assert_array_equal(np.concatenate([context, target]), x)


def test_start_is_the_documented_one():
    """One tiny step from x0 * (1 + .05 N(0, 1)) + .01 stays there."""
    start = np.array([1.0, 1.0]) * (1 + 0.05 * np.random.default_rng(4).normal(size=2)) + 0.01
    found = systems.generate("van_der_pol", 1, seed=4, transient=0, dt=1e-12)
    np.testing.assert_allclose(found[0], start, rtol=1e-9)


def test_noise_is_in_units_of_the_standard_deviation():
    clean, noisy = (systems.generate("lorenz63", 4000, noise=n) for n in (0.0, 0.1))
    ratio = (noisy - clean).std(axis=0) / clean.std(axis=0)
    np.testing.assert_allclose(ratio, 0.1, atol=0.1 * 4.5 / np.sqrt(2 * 4000))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("nosuch", 10, {}), "lorenz63"),
        (("lorenz63", 0, {}), "n: "),
        (("lorenz63", 10, {"noise": -1.0}), "noise"),
        (("lorenz63", 10, {"dt": 3.0}), "stays finite"),
        (("hindmarsh_rose", 10, {"dt": 50.0}), "stays finite"),
    ],
)
def test_refusals(arguments, word):
    name, n, options = arguments
    with pytest.raises(InputError, match=word):
        systems.generate(name, n, **options)
