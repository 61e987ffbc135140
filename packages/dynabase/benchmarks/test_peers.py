"""Against what a user would take otherwise: the same input, one run, A B A B, one thread each.

A promised ratio must lie below the whole interval of the measured one. The peers come with
``dynabase[bench]``.
"""

import numpy as np
import pytest

from armillary.measure import Comparison, compare, one_thread
from dynabase import DynaBase, forecast_panel, peers, recordings

pytestmark = pytest.mark.unchecked


def line(what: str, found: Comparison, promised: float | None = None) -> str:
    goal = "" if promised is None else f", promised {promised:g}"
    return (
        f"{what}: {found.ours_s * 1e3:.3g} ms against {found.theirs_s * 1e3:.3g} ms,"
        f" {found.ratio:.1f} times faster ({found.low:.1f} to {found.high:.1f}{goal})"
    )


def test_steps_against_pyedm(lorenz, report):
    """200 steps of one coordinate in 3 delays with one neighbour, fit included on both sides."""
    pytest.importorskip("pyEDM")
    x = lorenz[:, 0]
    model = DynaBase("forecast", delays=3, tau=4, n_neighbors=1)
    with one_thread():
        found = compare(
            lambda: model.fit(x).predict(200), lambda: peers.simplex(x, 200, m=3, tau=4, k=1)
        )
    report(line("200 steps, pyEDM Simplex with generateSteps, T=2000", found, 20))
    assert found.low >= 20


def test_a_forecast_against_sktime(lorenz, report):
    """50 steps of one coordinate, sktime's recursive reduction with 10 neighbours."""
    pytest.importorskip("sktime")
    x = lorenz[:, 0]
    model = DynaBase("forecast", delays=12, tau=1, n_neighbors=10)
    with one_thread():
        found = compare(
            lambda: model.fit(x).predict(50), lambda: peers.sktime_knn(x, 50, 1), repeats=5
        )
    report(line("50 steps, sktime KNN reduction, T=2000", found))


def test_many_series_against_auto_arima(report):
    """The lynx and 9 copies with noise, 12 steps: seconds for 1,000 such series."""
    pytest.importorskip("statsforecast")
    y = np.log(recordings.load("lynx"))
    rng = np.random.default_rng(0)
    many = np.stack([y + 0.05 * rng.normal(size=len(y)) for _ in range(10)])
    with one_thread():
        found = compare(
            lambda: forecast_panel(many, 12),
            lambda: [peers.auto_arima(each, 12, 1) for each in many],
            repeats=3,
        )
    report(
        line("10 series, statsforecast AutoARIMA (approximation), T=114", found)
        + f"; per 1,000 series {100 * found.ours_s:.3g} s against {100 * found.theirs_s:.3g} s"
    )


def test_a_year_of_el_nino_against_linear_models(report):
    """12 months from 732, against statsmodels' AutoReg of order 20 and its ETS."""
    pytest.importorskip("statsmodels")
    y = recordings.load("elnino")
    for name, peer in (("AutoReg(20)", peers.auto_reg), ("ETS", peers.ets)):
        with one_thread():
            found = compare(
                lambda: DynaBase().fit(y).predict(12), lambda f=peer: f(y, 12, 12), repeats=5
            )
        report(line(f"12 months of El Nino, statsmodels {name}, T=732", found))
