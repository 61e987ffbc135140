"""Twelve dynamical systems to try a forecaster on: ten chaotic ones, two limit cycles.

Each is integrated by the classical Runge-Kutta method of fourth order, four substeps to a sample,
after a transient. The sampling steps give each system some 10 to 40 samples to an oscillation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sin

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


SYSTEMS: dict[str, System] = {
    "lorenz63": System(
        lambda x, y, z: (10 * (y - x), x * (28 - z) - y, x * y - 8 * z / 3),
        dt=0.02,
        start=(1.0, 1.0, 25.0),
    ),
    "rossler": System(
        lambda x, y, z: (-y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)),
        dt=0.1,
        start=(1.0, 1.0, 0.0),
    ),
    "chua": System(
        lambda x, y, z: (
            15.6 * (y - x - (-0.714 * x - 0.2145 * (abs(x + 1) - abs(x - 1)))),
            x - y + z,
            -28 * y,
        ),
        dt=0.05,
        start=(0.7, 0.0, 0.0),
    ),
    "halvorsen": System(
        lambda x, y, z: (
            -1.4 * x - 4 * y - 4 * z - y * y,
            -1.4 * y - 4 * z - 4 * x - z * z,
            -1.4 * z - 4 * x - 4 * y - x * x,
        ),
        dt=0.03,
        start=(-1.48, -1.51, 2.04),
    ),
    "thomas": System(
        lambda x, y, z: (sin(y) - 0.18 * x, sin(z) - 0.18 * y, sin(x) - 0.18 * z),
        dt=0.2,
        start=(1.1, 1.1, -0.01),
    ),
    "sprott_b": System(
        lambda x, y, z: (y * z, x - y, 1 - x * y),
        dt=0.1,
        start=(0.1, 0.1, 0.1),
    ),
    "chen": System(
        lambda x, y, z: (35 * (y - x), -7 * x - x * z + 28 * y, x * y - 3 * z),
        dt=0.01,
        start=(-10.0, 0.0, 37.0),
    ),
    "lorenz84": System(
        lambda x, y, z: (
            -y * y - z * z - 0.25 * x + 2,
            x * y - 4 * x * z - y + 1,
            4 * x * y + x * z - z,
        ),
        dt=0.05,
        start=(1.0, 1.0, 1.0),
    ),
    "dadras": System(
        lambda x, y, z: (y - 3 * x + 2.7 * y * z, 1.7 * y - x * z + z, 2 * x * y - 9 * z),
        dt=0.03,
        start=(1.0, 1.0, 1.0),
    ),
    "hindmarsh_rose": System(
        lambda x, y, z: (
            y - x**3 + 3 * x * x - z + 3.25,
            1 - 5 * x * x - y,
            0.006 * (4 * (x + 1.6) - z),
        ),
        dt=0.2,
        start=(-1.0, 0.0, 2.0),
    ),
    "van_der_pol": System(
        lambda x, y: (y, 1.5 * (1 - x * x) * y - x),
        dt=0.1,
        start=(1.0, 1.0),
        chaotic=False,
    ),
    "selkov": System(
        lambda x, y: (-x + 0.08 * y + x * x * y, 0.6 - 0.08 * y - x * x * y),
        dt=0.2,
        start=(1.0, 1.0),
        chaotic=False,
    ),
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
    start = start * (1 + 0.05 * rng.normal(size=len(start))) + 0.01
    try:
        samples = _integrated(system.rate, start.tolist(), dt / SUBSTEPS, transient, n)
    except OverflowError:
        samples = np.full((1, len(start)), np.nan)
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


def _integrated(
    rate: Callable[..., State], x: list[float], h: float, transient: int, n: int
) -> Float[np.ndarray, "n d"]:
    """Runge-Kutta steps of `h`, on plain floats: for three coordinates quicker than arrays."""
    samples = np.empty((n, len(x)))
    for at in range(-transient, n):
        for _ in range(SUBSTEPS):
            a = rate(*x)
            b = rate(*[value + h / 2 * v for value, v in zip(x, a, strict=True)])
            c = rate(*[value + h / 2 * v for value, v in zip(x, b, strict=True)])
            d = rate(*[value + h * v for value, v in zip(x, c, strict=True)])
            x = [
                value + h / 6 * (p + 2 * q + 2 * r + s)
                for value, p, q, r, s in zip(x, a, b, c, d, strict=True)
            ]
        if at >= 0:
            samples[at] = x
    return samples
