"""The map with two parameters, as functions of a state and a context.

    F(z) = c[i+1] + alpha (z - c[i]) + beta (c[i+1] - c[i]),    c[i] the row nearest to z      (1)

`alpha` is the deviation gain, `beta` the velocity gain; (0, 0) is context parroting. A trust radius
r replaces the deviation term by ``clip(alpha (z - c[i]))``, never longer than r, which bounds every
orbit. With k neighbours F is their mean, weighted by exp(-d_j / d_1) (Sugihara & May 1990).
"""

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from armillary import InputError

from . import _checks
from ._run import Gains, advance, run, run_one, warn_of_divergence
from .neighbours import Context, require_neighbours


def step(
    z: npt.ArrayLike,
    context: Float[np.ndarray, "T d"],
    alpha: float,
    beta: float = 0.0,
    *,
    theiler: int = 0,
    trust_radius: float | None = None,
    previous: int | None = None,
) -> tuple[Float[np.ndarray, " d"], int]:
    """One application of the map (1).

    Parameters
    ----------
    z
        The state, d numbers in the units of the context.
    context
        The recording in time order; rows with NaN are gaps and never serve.
    alpha
        Deviation gain, >= 0.
    beta
        Velocity gain.
    theiler
        Number of rows before the context's last that may not serve as neighbour.
    trust_radius
        Longest deviation term allowed, in the units of the context; None: no guard.
    previous
        Neighbour of the step before. Among exactly tied rows the one after it is preferred.

    Returns
    -------
    The next state, and the index of the neighbour.

    Raises
    ------
    InputError
        If an argument is out of range or no row of the context can serve.
    """
    rows = _checks.as_rows(context, "context")
    state = _checks.as_rows(np.atleast_2d(np.asarray(z, dtype=float)), "z", width=rows.shape[1])
    alpha, beta = _checks.gains(alpha, beta)
    searched = Context(rows, theiler=_checks.whole(theiler, "theiler", at_least=0), tree=False)
    require_neighbours(searched, 1)
    last = np.array([[-1 if previous is None else previous]])
    index, squared = searched.nearest(state, 1, last)
    new = advance(
        state,
        searched.gather(index, 0),
        searched.gather(index, 1),
        squared,
        Gains.equal(alpha, beta, _checks.radius(trust_radius), 1),
    )
    return new[0], int(index[0, 0])


def rollout(
    context: Float[np.ndarray, "T d"],
    n_steps: int,
    alpha: float,
    beta: float = 0.0,
    *,
    z0: npt.ArrayLike | None = None,
    theiler: int = 0,
    trust_radius: float | None = None,
    n_neighbors: int = 1,
    return_indices: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Iterate the map (1) from `z0`.

    Parameters
    ----------
    context
        The recording in time order, shape (T, d); rows with NaN are gaps and never serve. It is
        used in its own units: standardise first where the coordinates differ in scale.
    n_steps
        Number of steps, >= 1.
    alpha, beta
        Deviation gain (>= 0) and velocity gain.
    z0
        State to start from, shape (d,), or several, shape (b, d). None: the context's last row.
    theiler
        Number of rows before the context's last that may not serve as neighbour; see
        `theiler_window`.
    trust_radius
        Longest deviation term allowed, in the units of the context; None: no guard.
    n_neighbors
        Neighbours averaged over.
    return_indices
        Also return the neighbours' indices.

    Returns
    -------
    The states, shape (n_steps, d), or (n_steps, b, d) for several starts. With `return_indices`
    also the neighbours, shape (n_steps,) or (n_steps, b), with a last axis of length `n_neighbors`
    where that is above 1. After a divergence (without a guard) NaN and -1.

    Raises
    ------
    InputError
        If an argument is out of range, the context too short, or its last row NaN without `z0`.

    Examples
    --------
    >>> circle = np.exp(2j * np.pi * np.arange(40) / 16)
    >>> context = np.column_stack([circle.real, circle.imag])
    >>> rollout(context, 3, 0.0, theiler=4).shape
    (3, 2)
    """
    rows = _checks.as_rows(context, "context")
    n_steps = _checks.whole(n_steps, "n_steps", at_least=1)
    alpha, beta = _checks.gains(alpha, beta)
    radius = _checks.radius(trust_radius)
    k = _checks.whole(n_neighbors, "n_neighbors", at_least=1)
    searched = Context(rows, theiler=_checks.whole(theiler, "theiler", at_least=0))
    require_neighbours(searched, k)
    start = rows[-1] if z0 is None else np.asarray(z0, dtype=float)
    states = _checks.as_rows(np.atleast_2d(start), "z0", width=rows.shape[1])
    if np.isnan(states).any():
        raise InputError(
            "context" if z0 is None else "z0",
            found="NaN in the last row" if z0 is None else "NaN",
            expected="a state to start from",
            instead="pass z0, or drop the last row" if z0 is None else None,
        )
    if len(states) == 1 and k == 1:
        path = run_one(searched, states[0], n_steps, alpha, beta, radius)
    else:
        path = run(searched, states, n_steps, Gains.equal(alpha, beta, radius, len(states)), k=k)
    warn_of_divergence(path)
    values, index = path.values, path.index
    if k == 1:
        index = index[:, :, 0]
    if start.ndim == 1:
        values, index = values[:, 0], index[:, 0]
    return (values, index) if return_indices else values


def weights(alpha: float, beta: float = 0.0) -> tuple[float, float, float]:
    """Weights of the state, the neighbour and its successor: (alpha, -alpha - beta, 1 + beta)."""
    alpha, beta = _checks.gains(alpha, beta)
    return alpha, -alpha - beta, 1 + beta


def from_weights(w_z: float, w_c: float) -> tuple[float, float]:
    """Gains (alpha, beta) of the blend ``w_z z + w_c c[i] + (1 - w_z - w_c) c[i+1]``."""
    w_z, w_c = _checks.real(w_z, "w_z", at_least=0.0), _checks.real(w_c, "w_c")
    return w_z, -w_z - w_c
