"""What any forecast should beat: context parroting, the last value, the last season, the mean.

The parrot here is written from its own definition, on purpose without the map: it is what the map
is tested against.
"""

import numpy as np
from jaxtyping import Float

from armillary import InputError

from . import _checks
from .embed import delay_embed


def parrot(
    context: Float[np.ndarray, "T d"] | Float[np.ndarray, " T"],
    n_steps: int,
    *,
    motif: int = 1,
    theiler: int = 0,
) -> np.ndarray:
    """Find the stretch most like the last one and copy what followed (Zhang & Gilpin 2025).

    Parameters
    ----------
    context
        The recording, without gaps.
    n_steps
        Steps to forecast.
    motif
        Length of the stretches compared.
    theiler
        The last `theiler` stretches that have a successor are not matched, nor copied from.

    Returns
    -------
    Shape (n_steps, d), or (n_steps,) for a context of one dimension. Where the copy reaches the
    end of what may be matched, the forecast so far is matched anew.

    Raises
    ------
    InputError
        If the context holds NaN or is too short for a match.
    """
    flat = np.ndim(context) == 1
    rows = _checks.as_rows(context, "context")
    n_steps = _checks.whole(n_steps, "n_steps", 1)
    motif = _checks.whole(motif, "motif", 1)
    theiler = _checks.whole(theiler, "theiler", 0)
    if np.isnan(rows).any():
        raise InputError("context", found="NaN", expected="a recording without gaps")
    n_matches = len(rows) - motif - theiler
    if n_matches < 1:
        raise InputError(
            "context",
            found=f"{len(rows)} row(s)",
            expected=f"at least {motif + theiler + 1} for motifs of {motif}",
        )
    stretches = delay_embed(rows, motif, 1)[:n_matches]
    known = list(rows)
    while len(known) < len(rows) + n_steps:
        last = np.concatenate(known[: -motif - 1 : -1])
        distance = np.zeros(n_matches)
        for at in range(len(last)):
            distance += (stretches[:, at] - last[at]) ** 2
        match = int(distance.argmin()) + motif  # the row after the best stretch
        known.extend(rows[match : n_matches + motif])
    forecast = np.array(known[len(rows) : len(rows) + n_steps])
    return forecast[:, 0] if flat else forecast


def naive(context: np.ndarray, n_steps: int) -> np.ndarray:
    """The last value, repeated."""
    return seasonal_naive(context, n_steps, 1)


def seasonal_naive(context: np.ndarray, n_steps: int, season: int) -> np.ndarray:
    """The last season, repeated."""
    rows = np.asarray(context, dtype=float)
    n_steps = _checks.whole(n_steps, "n_steps", 1)
    season = _checks.whole(season, "season", 1)
    if len(rows) < season:
        raise InputError("context", found=f"{len(rows)} row(s)", expected=f"a season of {season}")
    return rows[len(rows) - season + np.arange(n_steps) % season]


def mean(context: np.ndarray, n_steps: int) -> np.ndarray:
    """The mean of the finite values, repeated."""
    rows = np.asarray(context, dtype=float)
    return np.repeat(np.nanmean(rows, axis=0)[None], _checks.whole(n_steps, "n_steps", 1), axis=0)
