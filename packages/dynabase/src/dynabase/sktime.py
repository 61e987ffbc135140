"""`DynaBaseForecaster`: the method as a forecaster of sktime (extra ``dynabase[sktime]``).

It takes part in sktime's pipelines, tuning and evaluation. Missing values are allowed, several
columns are the coordinates of one system, and intervals are those of `DynaBase.predict_interval`.
"""

from typing import Any

import numpy as np
import pandas as pd

from armillary import require
from armillary.randomness import RngLike

from .forecaster import DynaBase

require("sktime", extra="dynabase[sktime]")
from sktime.forecasting.base import BaseForecaster  # noqa: E402

_OURS = tuple(DynaBase().get_params())


class DynaBaseForecaster(BaseForecaster):
    """Forecast by the two-parameter map on a series' own past, inside sktime.

    The parameters are those of `DynaBase`. ``alpha="horizon"`` needs `horizon`, the steps that it
    is fitted for.

    Attributes
    ----------
    model_
        The fitted `DynaBase`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from dynabase.sktime import DynaBaseForecaster
    >>> y = pd.Series(np.sin(np.arange(60) / 3))
    >>> DynaBaseForecaster(n_neighbors=1).fit(y).predict(fh=[1, 2]).shape
    (2,)
    """

    _tags = {  # noqa: RUF012 - as sktime declares them
        "authors": ["The Armillary developers"],
        "python_dependencies": ["dynabase"],
        "y_inner_mtype": ["pd.Series", "pd.DataFrame"],
        "scitype:y": "both",
        "capability:multivariate": True,
        "capability:exogenous": False,
        "capability:missing_values": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:update": True,
        "capability:random_state": True,
        "property:randomness": "derandomized",
        "requires-fh-in-fit": False,
        "enforce_index_type": None,
    }

    def __init__(
        self,
        alpha: float | str = "forecast",
        beta: float | str = 0.0,
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
        super().__init__()

    def _fit(self, y: Any, X: Any, fh: Any) -> "DynaBaseForecaster":  # noqa: ARG002
        params = {name: getattr(self, name) for name in _OURS}
        self._like = y.iloc[:0]
        self._end = y.index[-1]
        self.model_ = DynaBase(**params).fit(_rows(y))
        return self

    def _update(
        self,
        y: Any,
        X: Any = None,  # noqa: ARG002
        update_params: bool = True,
    ) -> "DynaBaseForecaster":
        new = y.loc[y.index > self._end]
        if not len(new):
            return self
        self._end = new.index[-1]
        if update_params:  # the context is the whole past, whether sktime remembers it or not
            past = self.model_._model.y
            whole = np.concatenate([past, _rows(new).reshape(len(new), -1)])
            self.model_ = DynaBase(**self.model_.get_params()).fit(
                whole[:, 0] if y.ndim == 1 else whole
            )
        else:
            self.model_.update(_rows(new))
        return self

    def _predict(self, fh: Any, X: Any = None) -> Any:  # noqa: ARG002
        steps, index = self._ahead(fh)
        values = np.asarray(self.model_.predict(int(steps.max())))[steps - 1]
        return self._dressed(values, index)

    def _predict_interval(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        fh: Any,
        X: Any,  # noqa: ARG002
        coverage: list[float],
    ) -> Any:
        steps, index = self._ahead(fh)
        names = self._get_varnames()
        columns = pd.MultiIndex.from_product([names, coverage, ["lower", "upper"]])
        out = pd.DataFrame(index=index, columns=columns, dtype=float)
        for level in coverage:
            found = self.model_.predict_interval(int(steps.max()), level)
            for end in ("lower", "upper"):
                values = np.asarray(getattr(found, end)).reshape(-1, len(names))[steps - 1]
                for at, name in enumerate(names):
                    out[(name, level, end)] = values[:, at]
        return out

    def _ahead(self, fh: Any) -> tuple[np.ndarray, Any]:
        steps = fh.to_relative(self.cutoff).to_numpy().astype(int)
        return steps, fh.to_absolute_index(self.cutoff)

    def _dressed(self, values: np.ndarray, index: Any) -> Any:
        if self._like.ndim == 1:
            return pd.Series(values.ravel(), index=index, name=self._like.name)
        return pd.DataFrame(values.reshape(len(index), -1), index=index, columns=self._like.columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> Any:
        """Parameters that sktime's checks try."""
        del parameter_set
        return [{}, {"alpha": 0.9, "delays": 2, "n_neighbors": 3}]


def _rows(y: Any) -> np.ndarray:
    """The values, row by row: sktime counts steps in rows and keeps the time stamps itself."""
    values = y.to_numpy(dtype=float)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
