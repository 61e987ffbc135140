"""Forecasts of many series, each from its own past: batched, and over the cores of the machine."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armillary import InputError
from armillary.parallel import map_jobs

from . import _checks
from ._batch import forecast_models
from ._frames import read_series
from ._model import Model, Settings, fit_model
from .intervals import PredictionInterval, intervals, origins_needed

CHUNK = 128  # series handed to a process at a time
ORIGINS = 25
DIVERGED = "the forecast diverged and is NaN from there on; set trust_radius to bound it"
ARRAYS = ("forecast", "lower", "upper", "half_width")


def forecast_panel(
    series: Mapping[Any, Any] | np.ndarray,
    horizon: int,
    *,
    jobs: int = 1,
    coverage: float | None = None,
    **params: Any,
) -> Any:
    """Forecast many series, each as ``DynaBase(**params).fit(y).predict(horizon)`` would.

    Parameters
    ----------
    series
        A mapping from names to series (arrays or pandas objects, of any lengths), or one array of
        shape (s, T, d), or (s, T) for series of one coordinate.
    horizon
        Steps, >= 1.
    jobs
        Processes to spread the series over.
    coverage
        Also give intervals of this coverage, as `DynaBase.predict_interval` does.
    params
        Parameters of `DynaBase`. alpha="horizon" is fitted for the horizon of the forecast.

    Returns
    -------
    A dict of forecasts under the same names, each of its series' kind; or an array of shape
    (s, horizon, d). With `coverage`, `PredictionInterval` in their place: one per name, or one that
    holds arrays.

    Raises
    ------
    InputError
        As `DynaBase` does, with the name of the series.

    Warns
    -----
    UserWarning
        Once for each kind of remark, with the number of series that it is about.
    """
    horizon = _checks.whole(horizon, "horizon", 1)
    unknown = set(params) - set(Settings.__dataclass_fields__)
    if unknown:
        raise InputError(
            "params",
            found=", ".join(sorted(unknown)),
            expected=f"parameters of DynaBase: {', '.join(Settings.__dataclass_fields__)}",
        )
    settings = Settings(**params, horizon=horizon).checked()
    if isinstance(series, Mapping):
        return _forecast_named(series, horizon, jobs, coverage, settings)
    array = np.asarray(series)
    if array.ndim not in (2, 3):
        raise InputError(
            "series",
            found=f"an array of shape {array.shape}",
            expected="shape (series, time, coordinates) or (series, time), or a mapping",
        )
    found = list(
        _forecast_named(dict(enumerate(array)), horizon, jobs, coverage, settings).values()
    )
    empty = np.empty((0, horizon, *array.shape[2:]))
    if coverage is None:
        return np.stack(found) if found else empty
    if not found:
        return PredictionInterval(empty, empty, empty, coverage, empty, 0)
    arrays = {name: np.stack([getattr(one, name) for one in found]) for name in ARRAYS}
    return replace(found[0], **arrays, n_origins=min(one.n_origins for one in found))


def _forecast_named(
    series: Mapping[Any, Any],
    horizon: int,
    jobs: int,
    coverage: float | None,
    settings: Settings,
) -> dict[Any, Any]:
    names, values = list(series), list(series.values())
    chunks = [
        (names[low : low + CHUNK], values[low : low + CHUNK], horizon, coverage, settings)
        for low in range(0, len(names), CHUNK)
    ]
    found = map_jobs(_forecast_chunk, chunks, jobs=jobs)
    remarks = Counter(remark for _, told in found for remark in told)
    for remark, count in remarks.items():
        warnings.warn(f"{count} of {len(names)} series: {remark}", UserWarning, stacklevel=3)
    return dict(zip(names, (each for results, _ in found for each in results), strict=True))


def _forecast_chunk(
    chunk: tuple[list[Any], list[Any], int, float | None, Settings],
) -> tuple[list[Any], list[str]]:
    """Forecasts of some series, and the remarks on them."""
    names, values, horizon, coverage, settings = chunk
    models, forms = [], []
    for name, value in zip(names, values, strict=True):
        try:
            rows, form = read_series(value)
            models.append(fit_model(rows, settings))
            models[-1].start(None)  # a missing last value is an error of its series
        except InputError as error:
            raise _of_series(name, error) from error
        forms.append(form)
    remarks = [remark for model in models for remark in model.warnings()]
    results = []
    if coverage is None:
        forecasts = forecast_models(models, horizon)
        for form, model, values in zip(forms, models, forecasts, strict=True):
            results.append(form.dress(model.preparation.finish(values), form.ahead(horizon)))
            if np.isnan(values).any():
                remarks.append(DIVERGED)
        return results, remarks
    for form, found in zip(forms, _intervals(models, horizon, coverage), strict=True):
        if np.isnan(found.forecast).any():
            remarks.append(DIVERGED)
        ahead = form.ahead(horizon)
        arrays = {name: form.dress(getattr(found, name), ahead) for name in ARRAYS}
        results.append(replace(found, **arrays))
        needed = origins_needed(coverage)
        if found.n_origins < needed:
            remarks.append(f"an interval needs {needed} calibration errors for each step: infinite")
    return results, remarks


def _intervals(models: Sequence[Model], horizon: int, coverage: float) -> list[PredictionInterval]:
    # A few series at a time: each has 25 shorter copies of itself while it is calibrated.
    found = []
    for low in range(0, len(models), 8):
        found += intervals(models[low : low + 8], horizon, coverage, ORIGINS)
    return found


def _of_series(name: Any, error: InputError) -> InputError:
    where = f"series {name!r}" + (f", {error.where}" if error.where else "")
    return InputError(
        error.what,
        where=where,
        found=error.found,
        expected=error.expected,
        instead=error.instead,
    )
