import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from mks_conformal import MKSRegressor, MultivariateKernelScore
from mks_conformal.conformal import misses_allowed
from mks_conformal.crossfit import cross_guarantee, folds_of, out_of_fold

FIXED = MultivariateKernelScore(bandwidth=1.0, lam=1e-3)


def table(n, rng, p=3):
    X = rng.normal(size=(n, p))
    return X, X[:, :2] + rng.exponential(size=(n, 2))


def test_guarantee_is_the_published_number():
    """1 - 2 alpha - min{2(1 - 1/K)/(n/K + 1), (1 - K/n)/(K + 1)}."""
    assert cross_guarantee(100, 5, 0.1) == pytest.approx(0.8 - min(1.6 / 21, 0.95 / 6))
    assert cross_guarantee(50, 50, 0.1) == pytest.approx(0.8)  # jackknife+
    assert cross_guarantee(10, 2, 0.6) == 0.0


def test_folds_hold_out_every_row_once(rng):
    for n, k in ((17, 5), (4, 5), (10, 10)):
        splits = folds_of(n, k, rng)
        held = np.concatenate([test for _, test in splits])
        assert sorted(held) == list(range(n))
        for learn, test in splits:
            assert not set(learn) & set(test)
            assert len(learn) + len(test) == n


def test_out_of_fold_residuals_are_of_models_that_did_not_see_the_row(rng):
    """One neighbour: a model that saw the row would have residual 0."""
    X, Y = table(40, rng)
    model = KNeighborsRegressor(1)
    R = out_of_fold(model, X, Y, Y, folds_of(40, 4, rng), {}, None)
    assert (np.abs(R) > 1e-9).all()


def test_region_is_its_definition(rng):
    """Every count by hand from the fold models and scores."""
    X, Y = table(60, rng)
    model = MKSRegressor(
        LinearRegression(), method="cv+", cv=4, residual_score=FIXED, random_state=0
    )
    model.fit(X, Y)
    x, y = X[:5], Y[:5] + rng.normal(size=(5, 2))
    count = np.ones(5, dtype=int)
    for rule in model.fold_rules_:
        s = rule.shape.score.score_samples(y - rule.estimator.predict(x))
        for own in rule.calibration.scores:
            count += s <= own + 1e-10
    region = model.predict_region(x)
    np.testing.assert_allclose(region.pvalue(y), count / 61)
    np.testing.assert_array_equal(region.contains(y), count > misses_allowed(60, 0.1))
    with pytest.raises(ValueError, match="no single score"):
        region.score(y)
    assert region.threshold is None
    assert region.guarantee == pytest.approx(cross_guarantee(60, 4, 0.1))
    np.testing.assert_allclose(
        model.predict(x), np.mean([r.estimator.predict(x) for r in model.fold_rules_], axis=0)
    )


class Spy(RegressorMixin, BaseEstimator):
    """Remembers, for all of its clones, the rows that each fit saw."""

    seen: list[frozenset] = []  # noqa: RUF012

    def fit(self, X, y):
        Spy.seen.append(frozenset(X[:, 0].astype(int).tolist()))
        self.model_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


def test_scores_see_no_row_of_their_fold(rng):
    """K^2 + K fits, and no model behind a fold's score was trained on a row of that fold."""
    X, Y = table(40, rng)
    X[:, 0] = np.arange(40)
    Spy.seen.clear()
    K = 4
    MKSRegressor(Spy(), method="cv+", cv=K, residual_score=FIXED, random_state=0).fit(X, Y)
    assert len(Spy.seen) == K * K + K
    for fold in range(K):
        *inner, outer = Spy.seen[fold * (K + 1) : (fold + 1) * (K + 1)]
        held = frozenset(range(40)) - outer
        assert len(held) == 10
        assert all(not rows & held and rows < outer for rows in inner)


def test_jackknife_plus_leaves_one_out(rng):
    X, Y = table(24, rng)
    model = MKSRegressor(
        LinearRegression(), method="jackknife+", cv=3, residual_score=FIXED, random_state=0
    ).fit(X, Y)
    assert len(model.fold_rules_) == 24
    region = model.predict_region(X[:2])
    assert region.guarantee == pytest.approx(0.8)
    points = region.sample(30, 0, rng=0)
    assert region[0].contains(points).all()


def test_geometry_works_without_a_single_score(rng):
    X, Y = table(80, rng)
    model = MKSRegressor(
        LinearRegression(), method="cv+", cv=3, residual_score=FIXED, random_state=0
    ).fit(X, Y)
    region = model.predict_region(X[:1])
    points = region.sample(300, rng=1)
    box = region.bounding_box()
    assert ((points >= box[0]) & (points <= box[1])).all()
    estimate = region.volume(rng=0)
    grid = region.grid2d(n=120)
    area = grid.inside.mean() * np.ptp(grid.x) * np.ptp(grid.y)
    assert estimate.value == pytest.approx(area, rel=0.06)
    np.testing.assert_array_equal(grid.inside, grid.value < grid.level - 1e-12)
    ends = region.condition({0: float(region.prediction[0, 0])}).intervals()
    assert len(ends) >= 1


def test_bounded_scores_know_infinity(rng):
    """A narrow bounded kernel: most rows sit on the plateau, and so does every far point."""
    X, Y = table(60, rng)
    for bandwidth, bounded in ((0.02, False), (3.0, True)):
        score = MultivariateKernelScore("gaussian", bandwidth=bandwidth, lam=1e-3)
        model = MKSRegressor(
            LinearRegression(), method="cv+", cv=3, residual_score=score, random_state=0
        ).fit(X, Y)
        region = model.predict_region(X[:1])
        assert region.volume(rng=0).bounded == bounded
        assert region.contains([[1e7, -1e7]])[0] != bounded


@pytest.mark.slow
def test_coverage_with_a_forest_that_memorises_its_rows(binomial_band):
    """The leak that the inner folds close: in-sample residuals are a third of the honest ones."""
    alpha, n, trials, hits = 0.1, 60, 60, 0
    rng = np.random.default_rng(3)
    for trial in range(trials):
        X, Y = table(n + 20, rng)
        forest = RandomForestRegressor(10, bootstrap=False, random_state=trial)
        model = MKSRegressor(
            forest, method="cv+", cv=4, residual_score=FIXED, random_state=trial
        ).fit(X[:n], Y[:n])
        hits += model.predict_region(X[n:]).contains(Y[n:]).sum()
    # 20 rows share a model: the band is that of `trials` independent draws at the usual 1 - alpha
    low, _ = binomial_band(1 - alpha, 1 - alpha, trials, 1e-6)
    assert hits / 20 >= low
