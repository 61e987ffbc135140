"""`DynaBase`: the method on one series, with an estimator's manners.

It takes arrays and pandas objects and gives back the same kind, the index continued. Nothing is
trained: `fit` keeps the series as context and settles what was left to it.
"""

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from . import _checks
from ._frames import appended, read_series
from ._model import Model, Settings, fit_model
from ._run import warn_of_divergence
from .explain import StepRecord, advice, explain_steps
from .fit import OneStepFit
from .intervals import PredictionInterval, interval, origins_needed


class DynaBase(BaseEstimator):
    """Forecast or reconstruct one series by the two-parameter map on its own past.

    Parameters
    ----------
    alpha
        Deviation gain: a number >= 0; a preset, "parrot" (0), "forecast" (0.95) or "reconstruct"
        (1.005), whose gains are per sample and suit series with a memory of 5 to 50 samples; or a
        fit to the series: "mse" (one step), "horizon" (`horizon` steps), "dsr" (reconstruction).
    beta
        Velocity gain, or "mse" to fit it one step ahead.
    delays
        Values of each coordinate in a state vector. "auto": 1 for several coordinates, else the
        fewest that forecast one step as well as any.
    tau
        Samples between delays. "auto": 1, or a quarter of a long memory.
    mode
        "shift": the map advances the newest values and the older ones are read from the series'
        history. "vector": the map advances the whole delay vector.
    n_neighbors
        Neighbours averaged over. "auto": 1 on clean data and for "parrot", 10 on noisy data.
    theiler
        Neighbours must be farther apart in time. "auto": the memory of the series.
    trust_radius
        Longest deviation allowed, in scaled units; None: no guard. "auto": the 0.99 quantile of
        the distances between neighbours if alpha > 1, else none.
    detrend
        None, "linear", "diff" or "seasonal:P".
    log
        Work on the logarithm of positive data.
    standardize
        Scale each coordinate to mean 0 and standard deviation 1.
    horizon
        Steps that alpha="horizon" is fitted for.
    random_state
        Of what is drawn: Monte Carlo measures of alpha="dsr" in more than five coordinates, origins
        of alpha="horizon".

    Attributes
    ----------
    alpha_, beta_
        Gains in use.
    theiler_, delays_, tau_, n_neighbors_, trust_radius_
        What was settled; `trust_radius_` is None without a guard.
    one_step_
        One-step fit of the series, raw.
    map_exponent_
        Lyapunov exponent of the map per step, ln alpha: of the map, not of the system. -inf for
        alpha = 0, nan where it is not known (several neighbours). With delays that are shifted it
        is the largest; the others are -inf.
    n_features_in_
        Number of coordinates.
    n_missing_
        Rows with a missing value, missing time stamps included.
    advice_
        Remarks on the settings, in words.

    Examples
    --------
    >>> y = np.sin(np.arange(200) * 2 * np.pi / 25)
    >>> bool(np.abs(DynaBase().fit(y[:150]).predict(50) - y[150:]).max() < 1e-9)
    True
    """

    def __init__(
        self,
        alpha: float | str = "forecast",
        beta: float | str = 0.0,
        *,
        delays: int | str = "auto",
        tau: int | str = "auto",
        mode: str = "shift",
        n_neighbors: int | str = "auto",
        theiler: int | str = "auto",
        trust_radius: float | str | None = "auto",
        detrend: str | None = None,
        log: bool = False,
        standardize: bool = True,
        horizon: int | None = None,
        random_state: RngLike = None,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.delays = delays
        self.tau = tau
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.theiler = theiler
        self.trust_radius = trust_radius
        self.detrend = detrend
        self.log = log
        self.standardize = standardize
        self.horizon = horizon
        self.random_state = random_state

    def fit(self, y: Any) -> Self:
        """Take a series as context and settle all parameters.

        Parameters
        ----------
        y
            Shape (T,) or (T, d), or a pandas Series or DataFrame. NaN marks missing values; missing
            time stamps of a regular index become missing rows.

        Raises
        ------
        InputError
            If a parameter is out of range, the series too short, more than half missing, infinite,
            or its time stamps are doubled, out of order or irregular.

        Warns
        -----
        UserWarning
            If the series is constant, or its last value lies outside all earlier ones.
        """
        settings = Settings(**self.get_params()).checked()
        rows, self._form = read_series(y)
        self._settle(fit_model(rows, settings))
        for text in self._model.warnings():
            warnings.warn(text, UserWarning, stacklevel=2)
        return self

    def update(self, y_new: Any) -> Self:
        """Append observations to the context; scale, trend and parameters stay as they were fitted.

        Parameters
        ----------
        y_new
            Rows of the same kind, the oldest first. pandas objects must continue the index; stamps
            left out become missing rows.
        """
        check_is_fitted(self)
        form = self._form
        if form.kind == "array":
            rows = _checks.as_rows(np.atleast_1d(y_new), "y_new", width=self.n_features_in_)
        else:
            given, new_form = read_series(y_new, "y_new")
            if new_form.kind != form.kind or given.shape[1] != self.n_features_in_:
                raise InputError(
                    "y_new", found=type(y_new).__name__, expected="the kind of series fitted"
                )
            index, at = appended(form.index, y_new.index)
            rows = np.full((len(index) - len(form.index), given.shape[1]), np.nan)
            rows[at] = given[np.isin(new_form.index, y_new.index)]
            self._form = replace(form, index=index)
        self._settle(self._model.extended(rows))
        return self

    def predict(self, horizon: int, z0: npt.ArrayLike | None = None) -> Any:
        """Forecast the steps after the series.

        Parameters
        ----------
        horizon
            Steps, >= 1.
        z0
            Forecast from these observations instead, as if they ended the series: one row, or as
            many as the delays reach back, the newest last, in the series' units.

        Returns
        -------
        Shape (horizon,) or (horizon, d), or a pandas object with the index continued.

        Raises
        ------
        InputError
            If the last value is missing and no `z0` given.
        NotFittedError
            Before `fit`.
        """
        return self._dressed(self._forecast(horizon, z0))

    def simulate(self, n_steps: int, z0: npt.ArrayLike | None = None) -> np.ndarray:
        """As `predict`, for long free runs: always an array."""
        values = self._forecast(n_steps, z0)
        return values[:, 0] if self._form.flat else values

    def predict_interval(
        self, horizon: int, coverage: float = 0.9, n_origins: int = 25
    ) -> PredictionInterval:
        """Forecast with an interval for each step, by split conformal calibration.

        The errors of forecasts from `n_origins` earlier origins give the widths, which never
        decrease along the steps. Covered with probability `coverage` is each step by itself, not
        the whole path, and approximately, since the errors of neighbouring origins are dependent.

        Parameters
        ----------
        horizon
            Steps, >= 1.
        coverage
            Between 0 and 1.
        n_origins
            Origins in the second half of the series; fewer where it is short.

        Warns
        -----
        UserWarning
            If there are too few origins for the coverage: the interval is then infinite.
        """
        check_is_fitted(self)
        horizon = _checks.whole(horizon, "horizon", 1)
        found = interval(self._model, horizon, coverage, n_origins)
        if found.n_origins < origins_needed(coverage):
            warnings.warn(
                f"coverage {coverage:g} needs {origins_needed(coverage)} calibration errors for "
                f"each step and has {found.n_origins}: the width is infinite (use a longer "
                "series, a shorter horizon, more origins or a lower coverage)",
                UserWarning,
                stacklevel=2,
            )
        gone = np.flatnonzero(np.isnan(found.forecast).any(axis=1))
        if len(gone):
            warnings.warn(
                f"diverged at step {gone[0]}: NaN after it; set trust_radius to bound the forecast",
                RuntimeWarning,
                stacklevel=2,
            )
        arrays = ("forecast", "lower", "upper", "half_width")
        return replace(found, **{name: self._dressed(getattr(found, name)) for name in arrays})

    def sample_paths(self, horizon: int, n: int, rng: RngLike = None) -> np.ndarray:
        """Scenarios: forecasts whose first step follows each of the nearest neighbours in turn.

        An ensemble of analogues, not a calibrated distribution.

        Parameters
        ----------
        horizon
            Steps, >= 1.
        n
            Number of paths.
        rng
            None: the `n` nearest neighbours, nearest first. A seed or generator: `n` drawn among
            the 3 n nearest, so that other seeds give other scenarios.

        Returns
        -------
        Shape (n, horizon) or (n, horizon, d).

        Raises
        ------
        InputError
            If there are fewer than `n` neighbours to start from.
        """
        check_is_fitted(self)
        horizon, n = _checks.whole(horizon, "horizon", 1), _checks.whole(n, "n", 1)
        model, context = self._model, self._model.recording.context
        if n > context.n_admissible:
            raise InputError("n", found=n, expected=f"at most {context.n_admissible} paths")
        most = n if rng is None else min(3 * n, context.n_admissible)
        state, _, _ = model.start(None)
        nearest = context.nearest(state, most, np.full((1, most), -1))[0][0]
        if rng is not None:
            nearest = as_generator(rng).choice(nearest, n, replace=False)
        first = np.repeat(nearest[:, None], model.choices.k, axis=1)
        values, path = model.forecast(horizon, first=first)
        warn_of_divergence(path)
        values = model.preparation.finish(values).swapaxes(0, 1)
        return values[:, :, 0] if self._form.flat else values

    def explain(self, horizon: int) -> list[StepRecord]:
        """For each step of `predict`, the neighbours it came from and what each part added."""
        check_is_fitted(self)
        return explain_steps(self._model, _checks.whole(horizon, "horizon", 1), self._form)

    @property
    def one_step_(self) -> OneStepFit:
        """One-step fit of the series, raw: its alpha may be negative."""
        check_is_fitted(self)
        return self._model.one_step

    @property
    def advice_(self) -> list[str]:
        """Remarks on the settings, in words."""
        check_is_fitted(self)
        return advice(self._model)

    def _settle(self, model: Model) -> None:
        c = model.choices
        self._model = model
        self.alpha_, self.beta_, self.n_neighbors_ = c.alpha, c.beta, c.k
        self.theiler_, self.delays_, self.tau_ = c.theiler, c.m, c.tau
        self.trust_radius_ = c.radius if np.isfinite(c.radius) else None
        self.map_exponent_, self.n_missing_ = model.map_exponent, model.n_missing
        self.n_features_in_ = model.y.shape[1]

    def _forecast(self, horizon: int, z0: npt.ArrayLike | None) -> Float[np.ndarray, "n d"]:
        check_is_fitted(self)
        horizon = _checks.whole(horizon, "horizon", 1)
        start = None
        if z0 is not None:
            given = np.asarray(z0, dtype=float)
            if given.ndim < 2 and self.n_features_in_ > 1:
                given = np.atleast_2d(given)
            start = _checks.as_rows(np.atleast_1d(given), "z0", width=self.n_features_in_)
        values, path = self._model.forecast(horizon, start)
        warn_of_divergence(path)
        return self._model.preparation.finish(values)[:, 0]

    def _dressed(self, values: Float[np.ndarray, "n d"]) -> Any:
        return self._form.dress(values, self._form.ahead(len(values)))
