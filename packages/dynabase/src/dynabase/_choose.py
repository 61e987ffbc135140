"""What a series lets one choose: the step between delays, their number, the neighbours' number."""

import numpy as np
from jaxtyping import Float

from ._recording import Recording
from .fit import OneStepFit, one_step_errors

MOST_DELAYS = 12
FEWEST_ROWS = 20  # a delay vector must leave so many rows
TOLERANCE = 1.02
CLEAN, MANY = 0.9, 10  # below that r2, so many neighbours are averaged


def delay_step(theiler: int) -> int:
    """Samples between delays: 1 for a short memory, else a quarter of the Theiler window."""
    return 1 if theiler <= 8 else round(theiler / 4)


def choose_delays(
    y: Float[np.ndarray, "T d"], *, tau: int, theiler: int, n_neighbors: int = 1
) -> int:
    """The smallest number of delays that forecasts the newest values one step ahead as well as any.

    Every m from 1 to 12 that leaves 20 rows is fitted in closed form (`fit_one_step`); the squared
    errors are compared over the times that all of them have. The smallest m within 2 % of the best
    is taken.
    """
    most = max(1, min(MOST_DELAYS, 1 + (len(y) - FEWEST_ROWS) // tau)) if len(y) else 1
    errors = np.full((most, len(y)), np.nan)
    for m in range(1, most + 1):
        recording = Recording.of(y, m=m, tau=tau, theiler=theiler)
        if recording.context.n_admissible >= n_neighbors:
            times, squared = one_step_errors(recording, k=n_neighbors)
            errors[m - 1, times + recording.offset] = squared
    raced = ~np.isnan(errors).all(axis=1)
    common = ~np.isnan(errors[raced]).any(axis=0)
    if raced.sum() < 2 or not common.any():
        return 1
    total = np.where(raced, errors[:, common].sum(axis=1), np.inf)
    return int(np.argmax(total <= TOLERANCE * total.min())) + 1


def choose_neighbors(fit: OneStepFit, n_admissible: int) -> int:
    """One neighbour where the one-step fit explains the data well, else ten to average noise."""
    return 1 if fit.r2 >= CLEAN else min(MANY, n_admissible)
