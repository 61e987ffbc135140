"""A forecast that can be audited: where each step comes from, and what the settings mean."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ._frames import Form
from ._model import PRESETS, USUAL_WINDOWS, Model
from ._run import History, clipped, neighbour_weights, warn_of_divergence
from .fit import NOISY


@dataclass(frozen=True, slots=True, eq=False)
class StepRecord:
    """Where one forecast step comes from.

    ``successor + deviation + velocity`` is the step's value before trend and logarithm are put
    back; with several neighbours each part is their weighted mean.
    """

    step: int  # from 1
    neighbours: tuple[int, ...]  # rows of the series, missing ones counted
    times: tuple[Any, ...]  # their time stamps, or the rows again
    distances: tuple[float, ...]  # from the state, in scaled units
    weights: tuple[float, ...]
    successor: Float[np.ndarray, " d"]  # what followed the neighbours
    deviation: Float[np.ndarray, " d"]  # alpha times the state's offset from them, clipped
    velocity: Float[np.ndarray, " d"]  # beta times their own step
    value: Float[np.ndarray, " d"]  # the forecast, in the series' units


def explain_steps(model: Model, n_steps: int, form: Form) -> list[StepRecord]:
    """One record for each step of a forecast; none after a divergence."""
    values, path = model.forecast(n_steps)
    warn_of_divergence(path)
    finished = model.preparation.finish(values)[:, 0]
    c, rows, scale = model.choices, model.recording.context.rows, model.preparation.scale
    q, d = model.recording.q, model.recording.series.shape[1]
    offset = model.recording.offset + model.preparation.lost
    state, shift, _ = model.start(None)
    history = None if shift is None else History(shift, n_steps)
    records = []
    for at, index in enumerate(path.index[:, 0]):
        if index[0] < 0:
            break
        squared = np.sum((rows[index] - state) ** 2, axis=1)
        weights = neighbour_weights(squared[None])[0]
        now, then = rows[index, :q], rows[index + 1, :q]
        away = clipped((c.alpha * (state[:, :q] - now))[None], np.array([[c.radius]]))[0]
        parts = [(weights[:, None] * part)[:, :d].sum(axis=0) for part in (then, away, then - now)]
        neighbours = tuple(int(row) + offset for row in index)
        records.append(
            StepRecord(
                step=at + 1,
                neighbours=neighbours,
                times=tuple(form.time(row) for row in neighbours),
                distances=tuple(np.sqrt(squared).tolist()),
                weights=tuple(weights.tolist()),
                successor=parts[0] * scale + model.preparation.mean,
                deviation=parts[1] * scale,
                velocity=c.beta * parts[2] * scale,
                value=finished[at],
            )
        )
        state = path.values[at] if history is None else history.after(path.values[at])
    return records


def advice(model: Model) -> list[str]:
    """Remarks on the settings, in words."""
    found = []
    window, (low, high) = model.choices.theiler, USUAL_WINDOWS
    preset = isinstance(model.settings.alpha, str) and model.settings.alpha in PRESETS
    if preset and model.choices.alpha > 0 and not low <= window <= high:
        factor = max(window, 1) / (low * high) ** 0.5
        way = (
            f"keep every {round(factor)}th sample"
            if factor > 1
            else f"sample {round(1 / factor)} times as often if you can"
        )
        found.append(
            f"the series remembers itself for {window} sample(s); the presets' gains are per "
            f"sample, made for {low} to {high}: {way}, or fit the gain (alpha='mse' or 'horizon')"
        )
    fit = model.one_step
    if fit.degenerate or fit.alpha < NOISY:
        found.append(fit.reading)
    return found
