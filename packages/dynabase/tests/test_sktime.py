"""Inside sktime: its own checks, and the same numbers as outside."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sktime")

from sktime.forecasting.model_evaluation import evaluate
from sktime.split import ExpandingWindowSplitter
from sktime.utils.estimator_checks import check_estimator

from dynabase import DynaBase, recordings
from dynabase.sktime import DynaBaseForecaster

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of sktime's own coming defaults, over and over
    pytest.mark.unchecked,
]


@pytest.fixture
def sea():
    index = pd.period_range("1950-01", periods=240, freq="M")
    return pd.Series(recordings.load("elnino")[:240], index=index, name="sea")


ALL_CHECKS = """
from sktime.utils.estimator_checks import check_estimator
from dynabase.sktime import DynaBaseForecaster
check_estimator(DynaBaseForecaster, raise_exceptions=True)
"""


@pytest.mark.slow
def test_all_checks_of_sktime():
    """In a fresh process: behind the shape checks of the tests, signatures look different."""
    ran = subprocess.run([sys.executable, "-c", ALL_CHECKS], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]


@pytest.mark.parametrize(
    "name",
    [
        "test_clone",
        "test_set_params_sklearn",
        "test_fit_updates_state_and_cutoff",
        "test_non_state_changing_method_contract",
        "test_predict_interval",
        "test_hierarchical_with_exogeneous",
    ],
)
def test_some_checks_of_sktime(name):
    check_estimator(DynaBaseForecaster, tests_to_run=name, raise_exceptions=True)


def test_numbers_equal_those_outside(sea):
    inside = DynaBaseForecaster(n_neighbors=10).fit(sea)
    outside = DynaBase(n_neighbors=10).fit(sea.to_numpy())
    made = inside.predict(fh=[1, 3, 12])

    assert made.to_list() == outside.predict(12)[[0, 2, 11]].tolist()
    assert made.index.to_list() == [pd.Period(m, "M") for m in ("1970-01", "1970-03", "1970-12")]
    band = inside.predict_interval(fh=[1, 12], coverage=[0.5, 0.9])
    expected = outside.predict_interval(12, 0.9)
    assert band["sea"][0.9]["upper"].to_list() == expected.upper[[0, 11]].tolist()
    assert (band["sea"][0.5]["upper"] <= band["sea"][0.9]["upper"]).all()


@pytest.mark.parametrize("update_params", [True, False])
def test_update_appends_to_the_context(sea, update_params):
    model = DynaBaseForecaster(n_neighbors=10).fit(sea[:200])
    model.update(sea[200:], update_params=update_params)
    outside = DynaBase(n_neighbors=10).fit(sea[:200].to_numpy())
    whole = DynaBase(n_neighbors=10).fit(sea.to_numpy())
    expected = whole if update_params else outside.update(sea[200:].to_numpy())

    made = model.predict(fh=[1, 2])
    assert made.to_list() == expected.predict(2).tolist()
    assert str(made.index[0]) == "1970-01"


def test_evaluation_by_sktime(sea):
    splits = ExpandingWindowSplitter(initial_window=200, step_length=20, fh=np.arange(1, 13))
    results = evaluate(DynaBaseForecaster(), y=sea, cv=splits)
    assert len(results) == 2 and (results.iloc[:, 0] < 0.2).all()
