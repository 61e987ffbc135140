"""All series of a file: forecast or fitted some at a time, each kept as it is finished."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import joblib
import numpy as np

from armillary import InputError
from armillary.checkpoint import Checkpoint, digest_of
from armillary.parallel import Progress, map_jobs

from ._model import Settings
from .forecaster import DynaBase
from .io import Recording, Table
from .panel import DIVERGED
from .panel import _forecast_chunk as forecast_chunk

CHUNK = 32  # series that are kept together
Value = dict[str, Any]


def forecast_table(
    table: Table,
    horizon: int,
    coverage: float | None,
    params: dict[str, Any],
    *,
    jobs: int,
    kept: Checkpoint,
    progress: Progress,
) -> list[Value]:
    """Forecasts of all series: name, time stamps, forecast, and interval ends if asked for.

    Warns
    -----
    UserWarning
        Once for each kind of remark, with the number of series that it is about.
    """
    function = partial(_forecast, horizon=horizon, coverage=coverage, params=params)
    key = ["forecast", horizon, coverage, params]
    chunks = _each_chunk(table, function, key, jobs=jobs, kept=kept, progress=progress)
    remarks = Counter(remark for chunk in chunks for remark in chunk["remarks"])
    remarks.pop(DIVERGED, None)  # said below, with the step
    n = len(table.recordings)
    values = [value for chunk in chunks for value in chunk["series"]]
    for value in values:
        if None in value["forecast"][-1]:  # not finite is None in the checkpoint
            step = sum(None not in row for row in value["forecast"])
            remarks[f"diverged at step {step}: NaN after it; set trust_radius to bound it"] += 1
    for remark, count in remarks.items():
        about = f"{count} of {n} series: " if n > 1 else ""
        warnings.warn(about + in_options(remark), UserWarning, stacklevel=2)
    return values


def forecast_one(
    recording: Recording, horizon: int, coverage: float | None, params: dict[str, Any]
) -> tuple[Value, DynaBase]:
    """The same of a single series, and its model."""
    asked: dict[str, Any] = {"horizon": horizon, **params}
    with in_the_commands_words():
        model = DynaBase(**asked).fit(recording.y)
        if coverage is None:
            return _value(recording, model.predict(horizon), {}), model
        found = model.predict_interval(horizon, coverage)
    return _value(recording, found.forecast, {"lower": found.lower, "upper": found.upper}), model


def fit_table(
    table: Table, params: dict[str, Any], *, jobs: int, kept: Checkpoint, progress: Progress
) -> list[Value]:
    """What was settled and fitted for each series, one flat record each."""
    function = partial(_fit, params=params)
    chunks = _each_chunk(table, function, ["fit", params], jobs=jobs, kept=kept, progress=progress)
    return [value for chunk in chunks for value in chunk["series"]]


def forecast_rows(values: list[Value], targets: tuple[str, ...], coverage: float | None) -> Any:
    """Rows of ``forecast.csv``: one for each series and step."""
    level = None if coverage is None else f"{100 * coverage:g}"
    for value in values:
        for step, stamp in enumerate(value["ds"]):
            row = {"unique_id": value["name"], "ds": stamp, "step": step + 1}
            for at, target in enumerate(targets):
                row[target] = value["forecast"][step][at]
                if level is not None:
                    row[f"{target}_lo_{level}"] = value["lower"][step][at]
                    row[f"{target}_hi_{level}"] = value["upper"][step][at]
            yield row


def described(model: DynaBase) -> Value:
    """What a model settled, as numbers for the record."""
    return {
        "alpha": model.alpha_,
        "beta": model.beta_,
        "map_exponent": model.map_exponent_,
        "theiler": model.theiler_,
        "delays": model.delays_,
        "tau": model.tau_,
        "n_neighbors": model.n_neighbors_,
        "trust_radius": model.trust_radius_,
    }


@contextmanager
def of_file(path: str) -> Iterator[None]:
    """Give errors of the library the file they are about, and the command's words."""
    try:
        yield
    except InputError as error:
        where = path if not error.where else f"{path}: {error.where}"
        if error.where and error.where.startswith(path):
            where = error.where
        way_out = error.instead and in_options(error.instead)
        what = "the series" if error.what in ("y", "context") else error.what
        raise InputError(
            what, where=where, found=error.found, expected=error.expected, instead=way_out
        ) from error


@contextmanager
def in_the_commands_words() -> Iterator[None]:
    """Warn of what the library warns of, with the command's options."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        warnings.warn(in_options(str(each.message)), UserWarning, stacklevel=3)


def in_options(text: str) -> str:
    """What the library says of its parameters, said of the command's options."""
    for words, option in _OPTIONS.items():
        text = text.replace(words, option)
    return text


_OPTIONS = {
    "pass z0, or drop the last row(s)": "drop the last row(s), or pass z0 in Python",
    "log=False": "leave --log out",
    "detrend='linear' or 'diff'": "--detrend linear or diff",
    "(alpha='mse' or 'horizon')": "(--alpha mse or horizon)",
    "set trust_radius to bound": "--trust-radius auto bounds",
    "n_neighbors > 1 or more delays": "--n-neighbors 10 or more --delays",
}


def _forecast(
    recordings: Sequence[Recording], horizon: int, coverage: float | None, params: dict[str, Any]
) -> Value:
    names, series = [each.name for each in recordings], [each.y for each in recordings]
    settings = Settings(**params, horizon=horizon).checked()
    results, remarks = forecast_chunk((names, series, horizon, coverage, settings))
    values = []
    for each, result in zip(recordings, results, strict=True):
        if coverage is None:
            values.append(_value(each, result, {}))
        else:
            ends = {"lower": result.lower, "upper": result.upper}
            values.append(_value(each, result.forecast, ends))
    return {"series": values, "remarks": remarks}


def _value(recording: Recording, forecast: Any, ends: dict[str, Any]) -> Value:
    arrays = {key: _columns(array) for key, array in {"forecast": forecast, **ends}.items()}
    return {"name": recording.name, "ds": recording.write(forecast.index), **arrays}


def _fit(recordings: Sequence[Recording], params: dict[str, Any]) -> Value:
    return {"series": [_fit_one(each, params) for each in recordings]}


def _fit_one(recording: Recording, params: dict[str, Any]) -> Value:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            model = DynaBase(**params).fit(recording.y)
        except InputError as error:
            where = f"series {recording.name!r}" + (f", {error.where}" if error.where else "")
            raise InputError(
                error.what,
                where=where,
                found=error.found,
                expected=error.expected,
                instead=error.instead,
            ) from error
        one_step = model.one_step_
    advice = [*(str(each.message) for each in caught), *model.advice_]
    return {
        "unique_id": recording.name,
        "n": len(recording.y),
        "n_missing": recording.incomplete,
        **described(model),
        "one_step_alpha": one_step.alpha,
        "se_alpha": one_step.se_alpha,
        "one_step_beta": one_step.beta,
        "se_beta": one_step.se_beta,
        "r2": one_step.r2,
        "degenerate": one_step.degenerate,
        "advice": "; ".join(dict.fromkeys([one_step.reading, *advice])),
    }


def _each_chunk(
    table: Table,
    function: Callable[[Sequence[Recording]], Value],
    settings: list[Any],
    *,
    jobs: int,
    kept: Checkpoint,
    progress: Progress,
) -> list[Value]:
    """The values of all chunks, in order; those that `kept` holds are not computed again."""
    recordings = table.recordings
    chunks = [recordings[low : low + CHUNK] for low in range(0, len(recordings), CHUNK)]
    keys = [
        digest_of([*settings, [[each.name, each.y.to_numpy()] for each in chunk]])
        for chunk in chunks
    ]
    todo = [at for at, key in enumerate(keys) if key not in kept.done]
    width = joblib.effective_n_jobs(jobs)
    batches = [todo[low : low + width] for low in range(0, len(todo), width)]
    for batch in progress(batches, total=len(batches), description="series"):
        values = map_jobs(function, [chunks[at] for at in batch], jobs=jobs)
        for at, value in zip(batch, values, strict=True):
            kept.add(keys[at], value)
    return [kept.done[key] for key in keys]


def _columns(values: Any) -> list[list[float]]:
    array = np.asarray(values, dtype=float)
    return (array[:, None] if array.ndim == 1 else array).tolist()
