import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from mks_conformal import (
    MKSRegressor,
    MultivariateKernelScore,
    UnboundedRegionWarning,
    box_score,
    ellipsoid_score,
)

FIXED = MultivariateKernelScore(bandwidth=1.0, lam=1e-3)


def table(n, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    B = np.arange(3.0 * d).reshape(3, d) / 5
    return X, X @ B + rng.exponential(size=(n, d))


@pytest.fixture(scope="module")
def fitted():
    X, Y = table(300)
    return MKSRegressor(Ridge(), residual_score=FIXED, random_state=0).fit(X, Y)


@pytest.mark.unchecked  # it passes parameters of every type
def test_check_estimator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(MKSRegressor(Ridge()))


@pytest.mark.slow
@pytest.mark.unchecked
def test_check_estimator_with_the_default_forest():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(MKSRegressor())


def test_default_estimator_is_a_forest_of_200_trees():
    X, Y = table(60)
    model = MKSRegressor(random_state=0, cv=2, residual_score=FIXED).fit(X, Y).estimator_
    assert isinstance(model, RandomForestRegressor)
    assert len(model.estimators_) == 200


@pytest.mark.parametrize("method", ["split", "full", "cv+"])
def test_coverage_on_fresh_rows(method, binomial_band):
    """A wide band: calibration rows are shared. What it catches is a broken rule, not .01."""
    X, Y = table(400)
    model = MKSRegressor(
        LinearRegression(), method=method, residual_score=FIXED, random_state=0
    ).fit(X, Y)
    new_X, new_Y = table(2000, seed=1)
    region = model.predict_region(new_X)
    assert 0.85 <= region.contains(new_Y).mean() <= 0.96
    np.testing.assert_array_equal(region.contains(new_Y), region.pvalue(new_Y) > 0.1 + 1e-9)
    assert region.guarantee == (0.9 if method != "cv+" else pytest.approx(0.78, abs=0.01))


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_same_result_for_any_number_of_jobs(method):
    X, Y = table(120)
    forest = RandomForestRegressor(10)  # no seed of its own
    with parallel_config("threading"):
        models = [
            MKSRegressor(forest, method=method, random_state=3, n_jobs=jobs, cv=3).fit(X, Y)
            for jobs in (1, 2)
        ]
    pvalues = [model.predict_region(X).pvalue(Y) for model in models]
    np.testing.assert_array_equal(*pvalues)


def test_predictions_keep_the_number_of_dimensions():
    X, Y = table(80)
    two = MKSRegressor(Ridge(), residual_score=FIXED).fit(X, Y)
    one = MKSRegressor(Ridge(), residual_score=FIXED).fit(X, Y[:, 0])
    column = MKSRegressor(Ridge(), residual_score=FIXED).fit(X, Y[:, :1])
    assert two.predict(X).shape == (80, 2)
    assert one.predict(X).shape == (80,)
    assert column.predict(X).shape == (80, 1)
    region = one.predict_region(X)
    assert region.contains(Y[:, 0]).shape == (80,)
    assert region.intervals(0).shape[1] == 2


def test_pandas_names_are_kept():
    X, Y = table(80)
    X, Y = pd.DataFrame(X, columns=["u", "v", "w"]), pd.DataFrame(Y, columns=["price", "size"])
    model = MKSRegressor(make_pipeline(StandardScaler(), Ridge()), residual_score=FIXED).fit(X, Y)
    assert list(model.feature_names_in_) == ["u", "v", "w"]
    region = model.predict_region(X)
    assert region.names == ("price", "size")
    bad = Y.copy()
    bad.iloc[5, 1] = np.nan
    with pytest.raises(ValueError, match="y: row 5, column 'size'.*NaN"):
        MKSRegressor(Ridge()).fit(X, bad)
    with pytest.raises(ValueError, match="Y: row 5, column 'size'.*NaN"):
        region.contains(bad)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"u": "x"}))
    hole = X.copy()
    hole.iloc[7, 2] = np.inf
    with pytest.raises(ValueError, match="X: row 7, column 'w'.*inf"):
        model.predict_region(hole)


def test_a_pipeline_finds_its_text_columns():
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    X, Y = table(80)
    X = pd.DataFrame(X, columns=["u", "v", "w"])
    X["city"] = np.where(X["u"] > 0, "Lund", "Pisa")
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough"), Ridge()
    )
    assert MKSRegressor(pipeline, residual_score=FIXED).fit(X, Y).predict(X).shape == (80, 2)


class TestColumnsThatDoNotBelong:
    """cases.md; scikit-learn-contrib/MAPIE issue 423."""

    class Shaped(RegressorMixin, BaseEstimator):
        """A linear model whose predictions come in a given shape."""

        def __init__(self, columns=1, vector=False):
            self.columns = columns
            self.vector = vector

        def fit(self, X, y):
            self.model_ = LinearRegression().fit(X, np.asarray(y).reshape(len(y), -1)[:, 0])
            return self

        def predict(self, X):
            mean = self.model_.predict(X)
            return mean if self.vector else np.repeat(mean[:, None], self.columns, axis=1)

    @pytest.fixture
    def data(self, rng):
        X = rng.normal(size=(2400, 3))
        y = X @ [1.0, -2.0, 0.5] + rng.normal(size=2400)
        return X[:400], y[:400], X[400:], y[400:]

    def test_mean_and_variance_for_one_output(self, data):
        X, y, _, _ = data
        for fit in (
            lambda: MKSRegressor(self.Shaped(2)).fit(X, y),
            lambda: MKSRegressor(self.Shaped(2).fit(X, y)).conformalize(X, y),
        ):
            with pytest.raises(ValueError, match=r"shape \(\d+, 2\) for \d+ rows of 1 output"):
                fit()

    def test_a_column_for_a_vector(self, data):
        X, y, new_X, new_y = data
        model = MKSRegressor(self.Shaped(1), random_state=0).fit(X, y)
        assert model.predict(new_X).shape == (2000,)
        assert model.calibration_residuals_.shape == (100, 1)
        region = model.predict_region(new_X)
        assert 0.86 <= region.contains(new_y).mean() <= 0.94

    def test_memory_stays_linear(self, rng):
        import tracemalloc

        X = rng.normal(size=(5000, 3))
        y = X[:, 0] + rng.normal(size=5000)
        score = MultivariateKernelScore(bandwidth=1.0, lam=1e-3, landmarks=20)
        tracemalloc.start()
        MKSRegressor(self.Shaped(1), residual_score=score, random_state=0).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 50e6

    def test_a_vector_for_two_columns(self, data):
        X, y, _, _ = data
        with pytest.raises(ValueError, match=r"shape \(\d+,\) for \d+ rows of 2 output"):
            MKSRegressor(self.Shaped(vector=True)).fit(X, np.column_stack([y, y**2]))

    def test_a_vector_for_one_column(self, data):
        X, y, new_X, _ = data
        model = MKSRegressor(self.Shaped(vector=True), residual_score=FIXED).fit(X, y[:, None])
        assert model.predict(new_X).shape == (2000, 1)


class TestConformalize:
    def test_frozen_and_plain_prefit_estimators(self):
        X, Y = table(200)
        ridge = Ridge().fit(X, Y)
        for estimator in (ridge, FrozenEstimator(ridge)):
            model = MKSRegressor(estimator, residual_score=FIXED, random_state=0).conformalize(X, Y)
            assert len(model.calibration_residuals_) == 100
            np.testing.assert_array_equal(model.predict(X), ridge.predict(X))
        assert len(model.conformalize(X, Y, score_size=0.25).calibration_residuals_) == 150

    def test_with_a_fitted_score_all_rows_calibrate(self):
        X, Y = table(200)
        ridge = Ridge().fit(X, Y)
        R = Y - ridge.predict(X)
        for score in (clone(FIXED).fit(R), ellipsoid_score(R), box_score(R)):
            model = MKSRegressor(ridge, residual_score=score).conformalize(X, Y)
            assert len(model.calibration_residuals_) == 200
            assert model.score_ is score

    def test_a_users_score(self):
        class Norm:
            def score_samples(self, R):
                return np.linalg.norm(R, axis=1)

        X, Y = table(200)
        model = MKSRegressor(Ridge().fit(X, Y), residual_score=Norm()).conformalize(X, Y)
        region = model.predict_region(X[:1])
        radius = region.threshold[0]
        assert region.volume(rng=0).value == pytest.approx(np.pi * radius**2, rel=0.05)

    def test_refusals(self):
        X, Y = table(50)
        with pytest.raises(NotFittedError):
            MKSRegressor(Ridge()).conformalize(X, Y)
        with pytest.raises(NotFittedError):
            MKSRegressor().conformalize(X, Y)
        with pytest.raises(NotFittedError):
            MKSRegressor(Ridge()).predict_region(X)
        with pytest.raises(ValueError, match="split or full"):
            MKSRegressor(Ridge().fit(X, Y), method="cv+").conformalize(X, Y)
        with pytest.raises(ValueError, match="use conformalize"):
            MKSRegressor(FrozenEstimator(Ridge().fit(X, Y))).fit(X, Y)
        with pytest.raises(ValueError, match="score_size"):
            MKSRegressor(Ridge().fit(X, Y)).conformalize(X, Y, score_size=1.0)

    def test_a_fitted_whitener_stays_fitted(self):
        X, Y = table(200)
        ridge = Ridge().fit(X, Y)
        scaler = StandardScaler().fit(Y - ridge.predict(X))
        score = MultivariateKernelScore(bandwidth=1.0, lam=1e-3, whiten=scaler)
        model = MKSRegressor(ridge, residual_score=score).conformalize(X, Y)
        np.testing.assert_allclose(np.diag(model.score_.whitening_.matrix), 1 / scaler.scale_)
        frozen = MultivariateKernelScore(bandwidth=1.0, lam=1e-3, whiten=FrozenEstimator(scaler))
        clone(frozen).fit(Y - ridge.predict(X))


class TestGroups:
    def test_one_quantile_a_group(self):
        X, Y = table(600)
        groups = np.where(np.arange(600) % 3 == 0, "noisy", "calm")
        Y[groups == "noisy"] *= 5
        model = MKSRegressor(DummyRegressor(), residual_score=FIXED, random_state=0).fit(
            X, Y, groups=groups
        )
        region = model.predict_region(X, groups=groups)
        assert len(np.unique(region.threshold)) == 2
        for group in ("noisy", "calm"):
            assert region.contains(Y)[groups == group].mean() > 0.85
        np.testing.assert_array_equal(region.contains(Y), region.pvalue(Y) > 0.1 + 1e-9)

    def test_small_and_unknown_groups_are_unbounded_and_named(self):
        X, Y = table(200)
        groups = np.zeros(200, dtype=int)
        groups[:6] = 1
        model = MKSRegressor(Ridge(), residual_score=FIXED, random_state=0).fit(X, Y, groups=groups)
        with pytest.warns(UnboundedRegionWarning, match=r"group\(s\) 1, 7: .*at least 9 rows"):
            region = model.predict_region(X[:3], groups=[0, 1, 7])
        np.testing.assert_array_equal(np.isinf(region.threshold), [False, True, True])
        assert [region.volume(i, rng=0).bounded for i in range(3)] == [True, False, False]

    def test_groups_on_one_side_only(self, fitted):
        X, Y = table(100)
        with pytest.raises(ValueError, match="had no groups"):
            fitted.predict_region(X, groups=np.zeros(100))
        model = MKSRegressor(Ridge(), residual_score=FIXED).fit(X, Y, groups=np.zeros(100))
        with pytest.raises(ValueError, match="need theirs"):
            model.predict_region(X)
        with pytest.raises(ValueError, match=r"groups: expected 100 value"):
            model.predict_region(X, groups=[0])
        with pytest.raises(ValueError, match="method='split'"):
            MKSRegressor(Ridge(), method="full").fit(X, Y, groups=np.zeros(100))


class TestWeights:
    def test_equal_weights_change_nothing(self):
        X, Y = table(200)
        ridge = Ridge().fit(X, Y)
        plain = MKSRegressor(ridge, residual_score=FIXED, random_state=0).conformalize(X, Y)
        weighted = MKSRegressor(ridge, residual_score=FIXED, random_state=0).conformalize(
            X, Y, weights=np.full(200, 2.0)
        )
        region = weighted.predict_region(X, weights=np.full(200, 2.0))
        np.testing.assert_allclose(region.pvalue(Y), plain.predict_region(X).pvalue(Y))

    def test_boundedness_is_per_row(self):
        X, Y = table(200)
        model = MKSRegressor(Ridge().fit(X, Y), residual_score=FIXED, random_state=0)
        model.conformalize(X, Y, weights=np.ones(200))
        with pytest.warns(UnboundedRegionWarning, match=r"1 of 3 row\(s\): .*weight"):
            region = model.predict_region(X[:3], weights=[1.0, 50.0, 0.0])
        np.testing.assert_array_equal(np.isinf(region.threshold), [False, True, False])
        assert [region.volume(i, rng=0).bounded for i in range(3)] == [True, False, True]
        far = np.full((3, 2), 1e6)
        np.testing.assert_array_equal(region.contains(far), [False, True, False])

    def test_bad_weights(self, fitted):
        X, Y = table(50)
        ridge = Ridge().fit(X, Y)
        with pytest.raises(ValueError, match="had no weights"):
            fitted.predict_region(X, weights=np.ones(50))
        model = MKSRegressor(ridge, residual_score=FIXED).conformalize(X, Y, weights=np.ones(50))
        with pytest.raises(ValueError, match="these rows need theirs"):
            model.predict_region(X)
        for weights in (np.zeros(50), -np.ones(50), np.full(50, np.nan), np.ones(49)):
            with pytest.raises(ValueError, match="weights"):
                MKSRegressor(ridge, residual_score=FIXED).conformalize(X, Y, weights=weights)
        with pytest.raises(ValueError, match="weights"):
            model.predict_region(X, weights=-np.ones(50))


class Recorder(RegressorMixin, BaseEstimator):
    """Refuses a weight that is not its row's."""

    def fit(self, X, y, sample_weight=None, note=None):
        assert note == "abc"
        np.testing.assert_array_equal(sample_weight, X[:, 0])
        self.model_ = Ridge().fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_rows_of_fit_params_follow_the_folds(method):
    X, Y = table(60)
    model = MKSRegressor(Recorder(), method=method, cv=3, residual_score=FIXED)
    model.fit(X, Y, sample_weight=list(X[:, 0]), note="abc")


def test_another_alpha_after_the_fit(fitted):
    X, Y = table(300, seed=3)
    wide, narrow = fitted.predict_region(X, alpha=0.05), fitted.predict_region(X, alpha=0.4)
    assert wide.threshold[0] > narrow.threshold[0]
    assert (wide.contains(Y) >= narrow.contains(Y)).all()


def test_too_few_calibration_rows_are_said():
    X, Y = table(30)
    model = MKSRegressor(Ridge(), residual_score=FIXED, random_state=0).fit(X, Y)  # 8 calibrate
    with pytest.warns(UnboundedRegionWarning, match=r"30 of 30 row\(s\): 8 .*at least 9 rows"):
        region = model.predict_region(X)
    assert region.contains(np.full((30, 2), 1e9)).all()
    for method in ("full", "cv+"):
        few = MKSRegressor(Ridge(), method=method, residual_score=FIXED, cv=3, random_state=0)
        few.fit(X[:24], Y[:24])
        with pytest.warns(UnboundedRegionWarning, match="at least 49 rows"):
            region = few.predict_region(X, alpha=0.02)
        assert region.contains(np.full((30, 2), 1e9)).all()
        assert not region.volume().bounded


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 1.0}, "alpha"),
        ({"method": "cv"}, "method: expected split, full, cv+"),
        ({"cal_size": 0.0}, "cal_size"),
        ({"cv": 1}, "cv"),
        ({"scale": "local"}, "scale"),
        ({"residual_score": 3}, "score: expected an object with score_samples"),
        ({"random_state": "a"}, "random_state"),
    ],
)
@pytest.mark.unchecked
def test_bad_options(options, words):
    X, Y = table(40)
    with pytest.raises(ValueError, match=words.replace("+", r"\+")):
        MKSRegressor(Ridge(), **options).fit(X, Y)


def test_a_model_that_copies_an_output_is_told(rng):
    X = rng.normal(size=(100, 2))
    Y = pd.DataFrame({"noise": rng.normal(size=100), "y3": np.ones(100)})
    with pytest.raises(ValueError, match="output 'y3' has constant residuals"):
        MKSRegressor(DummyRegressor(), random_state=0).fit(X, Y)


def test_a_model_that_copies_everything_predicts_but_has_no_region(rng):
    X = rng.normal(size=(60, 2))
    model = MKSRegressor(LinearRegression(), random_state=0).fit(X, X)
    assert model.predict(X).shape == (60, 2)
    with pytest.raises(ValueError, match="copies every target exactly"):
        model.predict_region(X)


def test_an_output_copied_up_to_rounding_is_told(rng):
    X, Y = table(100)
    Y = pd.DataFrame({"copy": 3.0 * X[:, 0], "noisy": Y[:, 0]})
    with pytest.raises(ValueError, match="output 'copy' has constant residuals"):
        MKSRegressor(LinearRegression(), random_state=0).fit(X, Y)


def test_dependent_outputs_are_told(rng):
    X, Y = table(100)
    Y = pd.DataFrame(np.column_stack([Y, Y.sum(axis=1)]), columns=["a", "b", "sum"])
    with pytest.raises(ValueError, match=r"linearly dependent along .*\(a, b, sum\)"):
        MKSRegressor(LinearRegression(), random_state=0).fit(X, Y)


def test_multioutput_wrappers_work():
    X, Y = table(80)
    model = MKSRegressor(MultiOutputRegressor(Ridge()), residual_score=FIXED).fit(X, Y)
    assert model.score(X, Y) > 0
