"""A recorded system run on for long, and how well its behaviour is met.

The recording is cut: the first part is the context, the rest is held out. The free run is compared
with the held-out part by `d_stsp` and `d_hellinger`, both scaled by the context's mean and
deviations; so are the context itself, which is what any finite recording leaves to be desired, and
context parroting.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError

from ._order import complete_rows
from ._run import warn_of_divergence
from .batch import in_the_commands_words
from .embed import delay_embed
from .forecaster import DynaBase
from .measures import d_hellinger, d_stsp, itinerary_period
from .preprocess import location_and_scale

EMBEDDED = 3  # delays in which a single coordinate is compared


@dataclass(frozen=True, slots=True, eq=False)
class Surrogate:
    """A free run, with what it was made from and what it is to be held against."""

    model: DynaBase
    context: Float[np.ndarray, "T d"]
    target: Float[np.ndarray, "n d"]  # what is compared with: the held-out part, or the context
    trajectory: Float[np.ndarray, "steps d"]
    indices: Int[np.ndarray, "steps k"]  # rows of the context that served
    parrot: Float[np.ndarray, "steps d"]
    scores: list[dict[str, Any]]


def reconstruct(
    y: Float[np.ndarray, "N d"],
    n_steps: int,
    *,
    holdout: float,
    params: dict[str, Any],
    rng: int = 0,
) -> Surrogate:
    """Run a recording on from the end of its context.

    Parameters
    ----------
    y
        The recording.
    n_steps
        Steps to run.
    holdout
        Share of the recording that is held out; 0: all is context, which is then compared with.
    params
        Parameters of `DynaBase`.
    rng
        Seed of `d_stsp` in more than five coordinates.

    Raises
    ------
    InputError
        If the held-out share is not in [0, 1), or the context unusable.
    """
    if not 0 <= holdout < 1:
        raise InputError("--holdout", found=holdout, expected="a share from 0 to below 1")
    n = len(y) - round(holdout * len(y))
    while n > 1 and np.isnan(y[n - 1]).any():  # a run starts from a complete row
        n -= 1
    context = y[:n]
    target = y[n:] if n < len(y) else context
    with in_the_commands_words():
        model = DynaBase(**params).fit(context)
        trajectory, indices = _run_on(model, n_steps)
    copy = DynaBase(**{**params, "alpha": "parrot", "beta": 0.0, "n_neighbors": 1}).fit(context)
    parrot, copied = _run_on(copy, n_steps)
    runs = {
        "dynabase": (trajectory, itinerary_period(indices[:, 0])),
        "parrot": (parrot, itinerary_period(copied[:, 0])),
        "context": (context, None),
    }
    mean, scale = location_and_scale(context)
    scaled = (target - mean) / scale
    scores = [
        {"run": name, **_scores(scaled, (run - mean) / scale, model.tau_, rng), "period": period}
        for name, (run, period) in runs.items()
        if name == "context" or np.isfinite(run).all()  # a run that diverged has no long term
    ]
    return Surrogate(model, context, target, trajectory, indices, parrot, scores)


def _run_on(
    model: DynaBase, n_steps: int
) -> tuple[Float[np.ndarray, "n d"], Int[np.ndarray, "n k"]]:
    values, path = model._model.forecast(n_steps)
    warn_of_divergence(path)
    return model._model.preparation.finish(values)[:, 0], path.index[:, 0]


def _scores(
    target: Float[np.ndarray, "n d"], run: Float[np.ndarray, "m d"], tau: int, rng: int
) -> dict[str, float]:
    """Both measures, over the longest stretches without gaps."""
    target, run = stretch(target), stretch(run)
    embedded = [delay_embed(rows, EMBEDDED, tau) for rows in (target, run)]
    placed = embedded if target.shape[1] == 1 else [target, run]
    return {"d_stsp": d_stsp(*placed, rng=rng), "d_h": d_hellinger(target, run)}


def stretch(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "m d"]:
    """The longest part without gaps."""
    complete = complete_rows(rows)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], complete.astype(int), [0]])))
    begin, end = edges[::2], edges[1::2]
    longest = int(np.argmax(end - begin))
    return rows[begin[longest] : end[longest]]
