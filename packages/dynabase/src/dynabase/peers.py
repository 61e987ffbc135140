"""Other people's forecasters behind one signature, to be measured beside ours.

Each takes the past of one series, a horizon and the samples in a season, and gives the forecast.
They come with the extra ``dynabase[bench]`` and are imported when called.
"""

import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from armillary import require

from . import baselines
from .forecaster import DynaBase

EXTRA = "dynabase[bench]"
Forecaster = Callable[[Float[np.ndarray, " T"], int, int], Float[np.ndarray, " h"]]


def ours(**params: Any) -> Forecaster:
    """`DynaBase` with these parameters."""
    return lambda y, horizon, _season: DynaBase(**params).fit(y).predict(horizon)


def naive(y: np.ndarray, horizon: int, _season: int) -> np.ndarray:
    """The last value."""
    return baselines.naive(y, horizon)


def seasonal_naive(y: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """The last season."""
    return baselines.seasonal_naive(y, horizon, season)


def parrot(y: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """Context parroting with motifs of one season."""
    return baselines.parrot(y, horizon, motif=min(season, len(y) // 4), theiler=1)


def auto_reg(y: np.ndarray, horizon: int, _season: int) -> np.ndarray:
    """statsmodels: a linear autoregression over 20 lags, a quarter of a shorter series."""
    module = require("statsmodels.tsa.ar_model", extra=EXTRA)
    fitted = module.AutoReg(y, lags=min(20, len(y) // 4)).fit()
    return np.asarray(fitted.predict(len(y), len(y) + horizon - 1))


def ets(y: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """statsmodels: exponential smoothing with damped additive trend and additive season."""
    module = require("statsmodels.tsa.exponential_smoothing.ets", extra=EXTRA)
    periods = season if 1 < season <= len(y) // 2 else None
    seasonal = {"seasonal": "add", "seasonal_periods": periods} if periods else {}
    with _quietly():
        model = module.ETSModel(y, error="add", trend="add", damped_trend=True, **seasonal)
        return np.asarray(model.fit(disp=False, maxiter=200).forecast(horizon))


def sktime_knn(y: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """sktime: 10 neighbours among windows of a season (12 at least), one step at a time."""
    reduce = require("sktime.forecasting.compose", extra=EXTRA).make_reduction
    from sklearn.neighbors import KNeighborsRegressor

    window = min(max(season, 12), len(y) // 4)
    with _quietly():
        made = reduce(KNeighborsRegressor(10), strategy="recursive", window_length=window)
        return np.asarray(made.fit(y).predict(fh=np.arange(1, horizon + 1))).ravel()


def edm_simplex(y: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """pyEDM: simplex projection in as many delays as a season has samples, 12 at most."""
    return simplex(y, horizon, m=max(2, min(season, 12, len(y) // 8)), tau=1)


def simplex(y: np.ndarray, horizon: int, *, m: int, tau: int, k: int = 0) -> np.ndarray:
    """PyEDM's simplex projection, iterated by its ``generateSteps``; k = 0: m + 1 neighbours."""
    module = require("pyEDM", extra=EXTRA)
    import pandas as pd

    n = len(y)
    frame = pd.DataFrame({"time": np.arange(1, n + 1), "y": y})
    made = module.Simplex(
        dataFrame=frame,
        columns="y",
        target="y",
        E=m,
        tau=-tau,
        knn=k,
        lib=f"1 {n}",
        pred=f"{n - m * tau - 1} {n}",
        generateSteps=horizon,
    )
    return made["Predictions"].to_numpy(dtype=float)[-horizon:]


def auto_arima(y: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """statsforecast: AutoARIMA, by its approximation, which is its own choice for long series."""
    models = require("statsforecast.models", extra=EXTRA)
    periods = season if season <= 12 and len(y) > 2 * season else 1
    with _quietly():
        model = models.AutoARIMA(season_length=periods, approximation=True)
        return np.asarray(model.forecast(np.asarray(y, dtype=float), h=horizon)["mean"])


def fracast(y: np.ndarray, horizon: int, _season: int) -> np.ndarray:
    """The median of fracast, a small pretrained network."""
    return foundation_model().forecast(np.asarray(y, dtype=np.float32), horizon=horizon)[..., 4]


@cache
def foundation_model() -> Any:
    """Fracast with the weights of its wheel."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return require("fracast", extra=EXTRA).FracastModel.from_pretrained()


PEERS: dict[str, Forecaster] = {
    "naive": naive,
    "seasonal naive": seasonal_naive,
    "parrot": parrot,
    "AutoReg": auto_reg,
    "ETS": ets,
    "sktime KNN": sktime_knn,
    "pyEDM simplex": edm_simplex,
    "AutoARIMA": auto_arima,
    "fracast": fracast,
}


class _quietly(AbstractContextManager[None]):  # noqa: N801 - reads as a verb
    """Keeps the peers' remarks on convergence and future versions out of the record."""

    def __enter__(self) -> None:
        self._caught = warnings.catch_warnings()
        self._caught.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *error: Any) -> None:
        self._caught.__exit__(*error)
