"""Against scikit-learn's Gaussian process on the same references and points, one thread each.

A promised ratio must lie below the whole interval of the measured one.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from armillary.measure import compare, one_thread
from mks_conformal import Gaussian, MultivariateKernelScore

pytestmark = pytest.mark.unchecked

N, D, POINTS, H, LAM = 2000, 8, 20_000, 2.0, 1e-3


@pytest.fixture(scope="module")
def fitted(residuals) -> Any:
    """The Gaussian process, the exact score and the default one, all on the same references."""
    R = residuals(N, D, 0)
    options: dict[str, Any] = {"lam": LAM, "whiten": "none", "centered": False, "random_state": 0}
    with one_thread():
        gp = GaussianProcessRegressor(RBF(H), alpha=N * LAM, optimizer=None).fit(R, np.zeros(N))
        exact = MultivariateKernelScore(Gaussian(H), landmarks=None, **options).fit(R)
        default = MultivariateKernelScore(Gaussian(H), **options).fit(R)
    return gp, exact, default


def line(what: str, found: Any, promised: float) -> str:
    return (
        f"{what}: {found.ours_s:.2f} s against {found.theirs_s:.2f} s, {found.ratio:.1f} times "
        f"faster ({found.low:.1f} to {found.high:.1f}, promised {promised:g})"
    )


def test_default_path(fitted, residuals, report):
    """Above 1500 references: 500 landmarks."""
    gp, exact, default = fitted
    points = residuals(POINTS, D, 1)
    rank = float(spearmanr(default.score_samples(points), exact.score_samples(points)).statistic)
    with one_thread():
        found = compare(
            lambda: default.score_samples(points),
            lambda: gp.predict(points, return_std=True),
            repeats=3,
        )
    what = f"default path, n={N} d={D}, {POINTS} points (Spearman {rank:.5f})"
    report(line(what, found, 8))
    assert rank >= 0.999
    assert found.low >= 8


def test_exact_path(fitted, residuals, report):
    gp, exact, _ = fitted
    points = residuals(POINTS, D, 1)
    variance = gp.predict(points[:200], return_std=True)[1] ** 2
    np.testing.assert_allclose(exact.score_samples(points[:200]), variance, atol=1e-8)
    with one_thread():
        found = compare(
            lambda: exact.score_samples(points),
            lambda: gp.predict(points, return_std=True),
            repeats=3,
        )
    report(line(f"exact path, n={N} d={D}, {POINTS} points", found, 1))
    assert found.low >= 1
