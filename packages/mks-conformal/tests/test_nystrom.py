import numpy as np
import pytest

from mks_conformal import Gaussian, Laplace, Linear, MultivariateKernelScore
from mks_conformal.nystrom import NystromCore, pivoted_landmarks
from mks_conformal.score import ExactCore

GAUSS = Gaussian(1.2) + Linear(0.01)


@pytest.mark.parametrize("kernel", [GAUSS, Laplace(1.0), Linear(0.5)], ids=str)
@pytest.mark.parametrize("centered", [True, False])
def test_all_rows_as_landmarks_are_exact(rng, kernel, centered):
    R, new = rng.normal(size=(150, 3)), 1.7 * rng.normal(size=(60, 3))
    exact = ExactCore(R, kernel, 1e-3, centered)
    nystrom = NystromCore(R, kernel, 1e-3, centered, m=150, rng=rng)
    np.testing.assert_allclose(nystrom(new), exact(new), rtol=1e-6)
    slopes = exact.with_gradients(new)[1], nystrom.with_gradients(new)[1]
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-5, atol=1e-8)
    count = len(nystrom.spectrum())
    np.testing.assert_allclose(nystrom.spectrum(), exact.spectrum()[:count], atol=1e-9)


def test_far_quadratic_is_the_score_far_away(rng):
    R = rng.normal(size=(200, 3))
    core = NystromCore(R, GAUSS, 1e-3, m=50, rng=rng)
    far = 60 * rng.normal(size=(10, 3))
    quadratic = core.far()
    assert quadratic is not None
    np.testing.assert_allclose(core(far), quadratic(far), rtol=1e-8)


def test_duplicates_leave_fewer_landmarks(rng):
    R = np.repeat(rng.normal(size=(20, 2)), 10, axis=0)
    chosen, F = pivoted_landmarks(R, Gaussian(1.0), 100, rng)
    assert len(chosen) <= 20
    assert len({tuple(row) for row in R[chosen]}) == len(chosen)
    np.testing.assert_allclose(F @ F.T, Gaussian(1.0)(R, R), atol=1e-8)


def test_more_landmarks_come_closer(rng):
    R, new = rng.normal(size=(600, 4)), 1.5 * rng.normal(size=(300, 4))
    exact = ExactCore(R, Gaussian(2.0) + Linear(0.01), 1e-3)(new)
    errors = [
        np.median(
            np.abs(
                NystromCore(R, Gaussian(2.0) + Linear(0.01), 1e-3, m=m, rng=rng)(new) / exact - 1
            )
        )
        for m in (20, 80, 320)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


def test_auto_uses_500_landmarks_above_1500_rows(skewed):
    R = skewed(1501, 2, 0)
    options = {"bandwidth": 0.3, "lam": 1e-4, "random_state": 0}
    assert MultivariateKernelScore(**options).fit(R).diagnostics()["n_landmarks"] == 500
    assert MultivariateKernelScore(**options).fit(R[:300]).diagnostics()["n_landmarks"] is None
    found = [
        MultivariateKernelScore(**options, landmarks=m).fit(R[:300]).diagnostics()
        for m in (10, 40, 300)
    ]
    assert found[1]["n_landmarks"] == 40
    assert 1 > found[0]["unexplained"] > found[1]["unexplained"] > found[2]["unexplained"] >= 0


def test_landmarks_out_of_range():
    R = np.random.default_rng(0).normal(size=(30, 2))
    for landmarks in (0, "many"):
        with pytest.raises(ValueError, match="landmarks"):
            MultivariateKernelScore(bandwidth=1.0, lam=1.0, landmarks=landmarks).fit(R)
