"""Prediction intervals by split conformal calibration on rolling origins.

Forecasts are made from origins in the second half of the series, each from what lay before it, and
the order statistics of their absolute errors are the half-widths. The gains and windows are kept;
trend and scale are fitted afresh at each origin.

What this promises is marginal coverage of each step, not of the whole path, and approximately,
since the errors of neighbouring origins are dependent.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError

from . import _checks
from ._batch import LARGE, forecast_models
from ._model import Model
from .embed import autocorrelation

# An autocorrelation above this marks a season; below it is what chance gives.
SEASONAL = 0.3
# Among peaks so near to the highest the first is taken: the others are multiples of the period.
ALIKE = 0.75


@dataclass(frozen=True, slots=True, eq=False)
class PredictionInterval:
    """A forecast with an interval for each step and coordinate.

    Arrays have the shape of the forecast, and are pandas objects where the series was one.
    """

    forecast: Any
    lower: Any
    upper: Any
    coverage: float
    half_width: Any  # in the logarithm's units for log=True
    n_origins: int  # calibration errors behind each half-width


def interval(model: Model, n_steps: int, coverage: float, n_origins: int) -> PredictionInterval:
    """The interval of one model, as arrays of shape (n_steps, d)."""
    return intervals([model], n_steps, coverage, n_origins)[0]


def intervals(
    models: Sequence[Model], n_steps: int, coverage: float, n_origins: int
) -> list[PredictionInterval]:
    """The intervals of many models."""
    coverage = _checks.real(coverage, "coverage")
    if not 0 < coverage < 1:
        raise InputError("coverage", found=coverage, expected="a number between 0 and 1")
    n_origins = _checks.whole(n_origins, "n_origins", 1)
    origins = [calibration_origins(model, n_steps, n_origins) for model in models]
    centres = forecast_models(models, n_steps)
    out = []
    for model, ahead, centre in zip(
        models, _from_origins(models, origins, n_steps), centres, strict=True
    ):
        errors = [_errors(model, start, forecast) for start, forecast in ahead]
        half, n = _half_widths(np.reshape(errors, (len(errors), *centre.shape)), coverage)
        finish = model.preparation.finish
        out.append(
            PredictionInterval(
                finish(centre), finish(centre - half), finish(centre + half), coverage, half, n
            )
        )
    return out


def origins_needed(coverage: float) -> int:
    """Fewest calibration errors that bound a step at this coverage: 9 for 0.9, 19 for 0.95."""
    return math.ceil(coverage / (1 - coverage) - 1e-9)


def calibration_origins(model: Model, n_steps: int, n_origins: int) -> Int[np.ndarray, " n"]:
    """Times to forecast from, in order: spread over the second half, in phase with the last one.

    The origins lie whole multiples of a stride before the end of the series. The stride is the
    longest with which they fit and, where the series has a season that is not longer, a multiple
    of it: then each origin stands where the real one does in the season, and the errors of a step
    are those of that step. A stride that happened to share a factor with the season would
    calibrate a noisy day on quiet ones.
    """
    y, last = model.y, len(model.y) - 1
    need = model.recording.offset + model.preparation.lost + model.choices.theiler + model.choices.k
    earliest = max(len(y) // 2, need + 1)
    room = last - earliest
    season, most = season_length(model.recording.series), room // n_origins
    strides = (*range(most // season * season, 0, -season), *range(most, 0, -1))
    stride = next((s for s in strides if (-(-n_steps // s) + n_origins - 1) * s <= room), 1)
    first = -(-n_steps // stride)
    origins = last - stride * np.arange(first, first + n_origins)
    origins = np.sort(origins[origins >= earliest])
    return origins[_startable(model, origins)]


def season_length(series: Float[np.ndarray, "T d"]) -> int:
    """The period of the strongest repetition in a series' values or in their size; 1 if none."""
    n = len(series)
    if n < 8:
        return 1
    size = np.abs(series - np.nanmean(series, axis=0))
    correlation = np.nan_to_num(autocorrelation(np.concatenate([series, size], axis=1)))
    inner = correlation[1 : n // 4 + 1]
    peak = (inner[1:-1] > inner[:-2]) & (inner[1:-1] >= inner[2:]) & (inner[1:-1] > SEASONAL)
    heights = np.where(peak, inner[1:-1], 0.0).max(axis=1, initial=0.0)
    return int(np.argmax(heights >= ALIKE * heights.max())) + 2 if heights.any() else 1


def _startable(model: Model, origins: Int[np.ndarray, " n"]) -> np.ndarray:
    """Origins whose state is complete and before which there are neighbours enough."""
    context, recording = model.recording.context, model.recording
    rows = origins - recording.offset - model.preparation.lost
    before = np.concatenate([[0], np.cumsum(_serving(context))])
    return context.finite[rows] & (before[np.maximum(rows - context.theiler, 0)] >= model.choices.k)


def _serving(context: Any) -> np.ndarray:
    serving = context.finite.copy()
    serving[:-1] &= context.finite[1:]
    return serving


def _from_origins(
    models: Sequence[Model], origins: Sequence[np.ndarray], n_steps: int
) -> Iterator[list[tuple[int, Float[np.ndarray, "h d"]]]]:
    """Start and forecast at each origin of each model.

    Short series are forecast together. A long one is cut at one origin at a time, since each cut
    holds a copy of the past and a tree of its own.
    """
    long = [model.recording.context.rows.size > LARGE for model in models]
    short = [
        [] if alone else _cut(model, at)
        for model, at, alone in zip(models, origins, long, strict=True)
    ]
    together = iter(forecast_models([cut for each in short for cut in each], n_steps))
    for model, at, alone, cuts in zip(models, origins, long, short, strict=True):
        if alone:
            yield [
                (len(cut.y), forecast_models([cut], n_steps)[0])
                for origin in range(len(at))
                for cut in _cut(model, at[origin : origin + 1])
            ]
        else:
            yield [(len(cut.y), next(together)) for cut in cuts]


def _cut(model: Model, origins: Int[np.ndarray, " n"]) -> list[Model]:
    """The model at each origin; not where a season has a phase without a value so far."""
    models = []
    for origin in origins:
        try:
            models.append(model.refitted(int(origin) + 1))
        except InputError:
            continue
    return models


def _errors(
    model: Model, start: int, forecast: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "n d"]:
    """Absolute errors of a forecast that begins at `start`, NaN where nothing was observed."""
    truth = model.y[start : start + len(forecast)]
    if model.preparation.log:
        truth = np.log(truth)
    return np.where(np.isnan(truth), np.nan, np.nan_to_num(np.abs(forecast - truth), nan=np.inf))


def _half_widths(
    errors: Float[np.ndarray, "o n d"], coverage: float
) -> tuple[Float[np.ndarray, "n d"], int]:
    """Order statistics of the errors, made non-decreasing along the steps by a running maximum.

    Never by isotonic averaging: that lowers the noisy steps' widths.
    """
    ordered = np.sort(errors, axis=0)  # NaN last
    count = (~np.isnan(errors)).sum(axis=0)
    rank = np.ceil((count + 1) * coverage - 1e-9).astype(int)
    enough = (rank <= count) & (count > 0)
    at = np.where(enough, rank - 1, 0)
    if len(errors):
        half = np.where(enough, np.take_along_axis(ordered, at[None], axis=0)[0], np.inf)
    else:
        half = np.full(errors.shape[1:], np.inf)
    return np.maximum.accumulate(half, axis=0), int(count.min(initial=len(errors)))
