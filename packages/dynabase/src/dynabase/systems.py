"""Twelve dynamical systems to try a forecaster on: ten chaotic ones, two limit cycles.

Each is integrated by the classical Runge-Kutta method of fourth order, four substeps to a sample,
after a transient. The sampling steps give each system some 10 to 40 samples to an oscillation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from armillary import InputError

from . import _checks

SUBSTEPS = 4
State = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class System:
    """An autonomous differential equation and how it is sampled."""

    rate: Callable[..., State]  # d/dt of the state, from its coordinates
    dt: float  # sampling step, in the equation's own time
    start: State
    chaotic: bool = True


def _lorenz63(x: float, y: float, z: float) -> State:
    return 10 * (y - x), x * (28 - z) - y, x * y - 8 * z / 3


def _rossler(x: float, y: float, z: float) -> State:
    return -y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)


def _chua(x: float, y: float, z: float) -> State:
    diode = -0.714 * x - 0.2145 * (abs(x + 1) - abs(x - 1))
    return 15.6 * (y - x - diode), x - y + z, -28 * y


def _halvorsen(x: float, y: float, z: float) -> State:
    return (
        -1.4 * x - 4 * y - 4 * z - y * y,
        -1.4 * y - 4 * z - 4 * x - z * z,
        -1.4 * z - 4 * x - 4 * y - x * x,
    )


def _thomas(x: float, y: float, z: float) -> State:
    return math.sin(y) - 0.18 * x, math.sin(z) - 0.18 * y, math.sin(x) - 0.18 * z


def _sprott_b(x: float, y: float, z: float) -> State:
    return y * z, x - y, 1 - x * y


def _chen(x: float, y: float, z: float) -> State:
    return 35 * (y - x), -7 * x - x * z + 28 * y, x * y - 3 * z


def _lorenz84(x: float, y: float, z: float) -> State:
    return (
        -y * y - z * z - 0.25 * x + 2,
        x * y - 4 * x * z - y + 1,
        4 * x * y + x * z - z,
    )


def _dadras(x: float, y: float, z: float) -> State:
    return y - 3 * x + 2.7 * y * z, 1.7 * y - x * z + z, 2 * x * y - 9 * z


def _hindmarsh_rose(x: float, y: float, z: float) -> State:
    return (
        y - x**3 + 3 * x * x - z + 3.25,
        1 - 5 * x * x - y,
        0.006 * (4 * (x + 1.6) - z),
    )


def _van_der_pol(x: float, y: float) -> State:
    return y, 1.5 * (1 - x * x) * y - x


def _selkov(x: float, y: float) -> State:
    return -x + 0.08 * y + x * x * y, 0.6 - 0.08 * y - x * x * y


SYSTEMS: dict[str, System] = {
    "lorenz63": System(_lorenz63, 0.02, (1.0, 1.0, 25.0)),
    "rossler": System(_rossler, 0.1, (1.0, 1.0, 0.0)),
    "chua": System(_chua, 0.05, (0.7, 0.0, 0.0)),
    "halvorsen": System(_halvorsen, 0.03, (-1.48, -1.51, 2.04)),
    "thomas": System(_thomas, 0.2, (1.1, 1.1, -0.01)),
    "sprott_b": System(_sprott_b, 0.1, (0.1, 0.1, 0.1)),
    "chen": System(_chen, 0.01, (-10.0, 0.0, 37.0)),
    "lorenz84": System(_lorenz84, 0.05, (1.0, 1.0, 1.0)),
    "dadras": System(_dadras, 0.03, (1.0, 1.0, 1.0)),
    "hindmarsh_rose": System(_hindmarsh_rose, 0.2, (-1.0, 0.0, 2.0)),
    "van_der_pol": System(_van_der_pol, 0.1, (1.0, 1.0), chaotic=False),
    "selkov": System(_selkov, 0.2, (1.0, 1.0), chaotic=False),
}


def generate(
    name: str,
    n: int,
    *,
    seed: int = 0,
    dt: float | None = None,
    transient: int = 3000,
    noise: float = 0.0,
) -> Float[np.ndarray, "n d"]:
    """A trajectory on the attractor of a named system.

    Parameters
    ----------
    name
        A key of `SYSTEMS`.
    n
        Samples to return, >= 1.
    seed
        Moves the start by 5 %, and seeds the noise.
    dt
        Sampling step in the equation's own time; None: the system's usual one.
    transient
        Samples thrown away first.
    noise
        Standard deviation of Gaussian measurement noise, in units of each coordinate's own.

    Returns
    -------
    Samples in time order.

    Raises
    ------
    InputError
        If the name is unknown, an argument out of range, or the integration leaves for infinity
        (a `dt` too large).
    """
    if name not in SYSTEMS:
        raise InputError("name", found=name, expected=f"one of {', '.join(SYSTEMS)}")
    system = SYSTEMS[name]
    n = _checks.whole(n, "n", at_least=1)
    transient = _checks.whole(transient, "transient", at_least=0)
    noise = _checks.real(noise, "noise", at_least=0.0)
    dt = system.dt if dt is None else _checks.real(dt, "dt", at_least=0.0)
    rng = np.random.default_rng(seed)
    start = np.asarray(system.start)
    state: State = tuple(start * (1 + 0.05 * rng.normal(size=len(start))) + 0.01)
    state = tuple(float(value) for value in state)
    samples = np.empty((n, len(start)))
    try:
        for at in range(-transient, n):
            for _ in range(SUBSTEPS):
                state = _runge_kutta(system.rate, state, dt / SUBSTEPS)
            if at >= 0:
                samples[at] = state
    except OverflowError:
        samples[:] = np.nan
    if not np.isfinite(samples).all():
        raise InputError("dt", found=f"{dt:g}", expected=f"a step at which {name} stays finite")
    if noise:
        samples = samples + noise * samples.std(axis=0) * rng.normal(size=samples.shape)
    return samples


def split(
    name: str, *, seed: int = 0, n_context: int = 2000, n_target: int = 5000
) -> tuple[Float[np.ndarray, "n_context d"], Float[np.ndarray, "n_target d"]]:
    """One trajectory cut in two: the context that is given, and what really followed."""
    whole = generate(name, n_context + n_target, seed=seed)
    return whole[:n_context], whole[n_context:]


def _runge_kutta(rate: Callable[..., State], state: State, h: float) -> State:
    first = rate(*state)
    second = rate(*[x + h / 2 * v for x, v in zip(state, first, strict=True)])
    third = rate(*[x + h / 2 * v for x, v in zip(state, second, strict=True)])
    fourth = rate(*[x + h * v for x, v in zip(state, third, strict=True)])
    return tuple(
        x + h / 6 * (a + 2 * b + 2 * c + d)
        for x, a, b, c, d in zip(state, first, second, third, fourth, strict=True)
    )
