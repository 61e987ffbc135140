import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from mks_conformal import MKSRegressor, MultivariateKernelScore
from mks_conformal.scaling import KnnScale, as_scale, checked_factor

FIXED = MultivariateKernelScore(bandwidth=1.0, lam=1e-3, landmarks=60)


def heteroscedastic(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.exp(1.5 * X[:, :1]) * rng.normal(size=(n, 2))


def test_factor_is_its_formula(rng):
    X, R = rng.normal(size=(240, 2)) * [1.0, 100.0], rng.normal(size=(240, 3))
    scale = KnnScale().fit(X, R)
    assert scale.k_ == 50  # clip(10 d, 50, n / 4)
    z = (X - X.mean(0)) / X.std(0)
    distance = ((z - z[7]) ** 2).sum(1)
    rho = 3 / (3 + 50)

    def expected(rows):
        local = np.cov(R[rows].T, bias=True)
        return np.linalg.cholesky((1 - rho) * local + rho * np.cov(R.T, bias=True))

    order = np.argsort(distance)
    np.testing.assert_allclose(scale.factor(X[7:8])[0], expected(order[:50]), rtol=1e-9)
    np.testing.assert_allclose(scale.training_factor()[7], expected(order[1:51]), rtol=1e-9)


@pytest.mark.parametrize(("n", "d", "k"), [(100, 2, 25), (1000, 2, 50), (1000, 8, 80), (8, 2, 2)])
def test_number_of_neighbours(rng, n, d, k):
    assert KnnScale().fit(rng.normal(size=(n, 2)), rng.normal(size=(n, d))).k_ == k


@pytest.mark.parametrize("method", ["split", "full", "cv+"])
def test_regions_follow_the_noise(method):
    X, Y = heteroscedastic(1600, 0)
    new_X, new_Y = heteroscedastic(1500, 1)
    calm, loud = new_X[:, 0] < -0.5, new_X[:, 0] > 0.5
    gaps = {}
    for scale in ("global", "knn"):
        model = MKSRegressor(
            DummyRegressor(), method=method, scale=scale, cv=3, residual_score=FIXED, random_state=0
        ).fit(X, Y)
        region = model.predict_region(new_X)
        inside = region.contains(new_Y)
        assert 0.85 <= inside.mean() <= 0.96
        gaps[scale] = inside[calm].mean() - inside[loud].mean()
    # without the scale the calm rows are always inside and the loud ones seldom
    assert abs(gaps["knn"]) < 0.6 * gaps["global"]
    i, j = int(np.argmin(new_X[:, 0])), int(np.argmax(new_X[:, 0]))
    assert region.volume(j, rng=0).value > 5 * region.volume(i, rng=0).value
    assert region[j].contains(region.sample(100, j, rng=0)).all()


class Diagonal:
    """A user's scale."""

    def fit(self, X, residuals):
        self.d_ = residuals.shape[1]

    def factor(self, X):
        return np.exp(X[:, :1, None]) * np.eye(self.d_)


def test_an_object_of_the_users_own():
    X, Y = heteroscedastic(200, 0)
    model = MKSRegressor(LinearRegression(), scale=Diagonal(), residual_score=FIXED).fit(X, Y)
    region = model.predict_region(X[:2])
    ratio = region.volume(1, rng=0).value / region.volume(0, rng=0).value
    assert ratio == pytest.approx(np.exp(2 * (X[1, 0] - X[0, 0])), rel=1e-6)


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (np.ones((2, 3, 2)), "shape"),
        (np.ones((2, 3, 3)), "lower triangular"),
        (np.full((2, 3, 3), np.nan), "finite"),
        (np.stack([-np.eye(3), np.eye(3)]), "positive diagonal"),
    ],
)
def test_bad_factors(factor, words):
    with pytest.raises(ValueError, match=words):
        checked_factor(factor, 2, 3)


def test_bad_scale():
    with pytest.raises(ValueError, match="'global', 'knn' or fit"):
        as_scale(3)
    assert as_scale("global") is None
