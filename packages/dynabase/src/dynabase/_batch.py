"""Forecasts of many models at once: short contexts are searched together, long ones by tree."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from ._model import Model
from ._run import Gains, Shift, run
from .neighbours import Stack

# A context with more numbers than this is searched faster alone, by its tree.
LARGE = 12_000
# Rows of the contexts searched together: their difference array stays in a core's cache.
TOGETHER = 1 << 16


def forecast_models(models: Sequence[Model], n_steps: int) -> list[Float[np.ndarray, "n d"]]:
    """`Model.forecast` of each model: the same numbers, in the models' order."""
    out: list[Float[np.ndarray, "n d"]] = [np.empty((0, 0))] * len(models)
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for at, model in enumerate(models):
        rows, c = model.recording.context.rows, model.choices
        if rows.size > LARGE and rows.shape[1] <= 12:
            out[at] = model.forecast(n_steps)[0][:, 0]
        else:
            groups[rows.shape[1], c.m, c.tau, c.shifted, c.k].append(at)
    for members in groups.values():
        members.sort(key=lambda at: len(models[at].recording.context.rows))
        for chunk in _chunks(models, members):
            values = _forecast_together([models[at] for at in chunk], n_steps)
            for at, value in zip(chunk, values.swapaxes(0, 1), strict=True):
                out[at] = value
    return out


def _chunks(models: Sequence[Model], members: list[int]) -> list[list[int]]:
    """Neighbours in length, few enough to be quick."""
    chunks: list[list[int]] = []
    for at in reversed(members):  # the longest first: it sets the width of its chunk
        width = len(models[chunks[-1][0]].recording.context.rows) if chunks else 0
        if chunks and (len(chunks[-1]) + 1) * width <= TOGETHER:
            chunks[-1].append(at)
        else:
            chunks.append([at])
    return chunks


def _forecast_together(models: list[Model], n_steps: int) -> Float[np.ndarray, "n s d"]:
    starts = [model.start(None) for model in models]
    states = np.concatenate([state for state, _, _ in starts])
    pasts = [shift.past for _, shift, _ in starts if shift is not None]
    lags = models[0].recording.lags
    choices = [model.choices for model in models]
    gains = Gains(
        np.array([c.alpha for c in choices]),
        np.array([c.beta for c in choices]),
        np.array([c.radius for c in choices]),
    )
    stack = Stack(
        [model.recording.context.rows for model in models], np.array([c.theiler for c in choices])
    )
    path = run(
        stack,
        states,
        n_steps,
        gains,
        k=choices[0].k,
        shift=Shift(lags, np.concatenate(pasts)) if pasts else None,
    )
    values = models[0].recording.newest(path)
    return np.stack(
        [
            model.preparation.undo(values[:, at : at + 1], len(model.y), starts[at][2])[:, 0]
            for at, model in enumerate(models)
        ],
        axis=1,
    )
