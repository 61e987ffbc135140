"""The rows of the design's table of bad input that no other test holds."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, Ridge

import mks_conformal
from mks_conformal import MKSRegressor, MultivariateKernelScore, ellipsoid_score, region_volume
from mks_conformal.checks import as_rows, as_vector
from mks_conformal.data import synthetic, synthetic_names

FIXED = MultivariateKernelScore(bandwidth=1.0, lam=1e-3)


def test_linnerud_is_unbounded_and_says_so():
    """20 rows: 5 calibrate, 9 are needed."""
    from mks_conformal.data import linnerud

    data = linnerud()
    model = MKSRegressor(Ridge(), random_state=0).fit(data.X, data.Y)
    with pytest.warns(mks_conformal.UnboundedRegionWarning, match="at least 9 rows"):
        region = model.predict_region(data.X)
    assert not region.volume().bounded


@pytest.mark.parametrize("where", ["X", "Y", "predict"])
def test_nan_is_found_in_arrays(where):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    model = MKSRegressor(Ridge(), residual_score=FIXED).fit(X, Y)
    bad_X, bad_Y = X.copy(), Y.copy()
    bad_X[3, 1], bad_Y[4, 0] = np.nan, np.inf
    if where == "X":
        with pytest.raises(ValueError, match="X: row 3, column 1.*NaN"):
            MKSRegressor(Ridge()).fit(bad_X, Y)
    elif where == "Y":
        with pytest.raises(ValueError, match="y: row 4, column 0.*inf"):
            MKSRegressor(Ridge()).fit(X, bad_Y)
    else:
        with pytest.raises(ValueError, match="X: row 3, column 1.*NaN"):
            model.predict_region(bad_X)


def test_units_a_billion_apart_change_nothing():
    """To 1e-6 on p-values, volumes in proportion."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    Y = X + rng.exponential(size=(200, 2))
    units = np.array([1e9, 1e-3])
    options = {"residual_score": FIXED, "random_state": 0}
    plain = MKSRegressor(LinearRegression(), **options).fit(X, Y).predict_region(X)
    other = MKSRegressor(LinearRegression(), **options).fit(X, Y * units).predict_region(X)
    np.testing.assert_allclose(other.pvalue(Y * units), plain.pvalue(Y), rtol=1e-6)
    ratio = other.volume(0, rng=0).log_value - plain.volume(0, rng=0).log_value
    assert ratio == pytest.approx(np.log(units.prod()), abs=1e-6)
    box, other_box = plain.bounding_box(), other.bounding_box()
    np.testing.assert_allclose(other_box, box * units, rtol=1e-4)


def test_an_extreme_calibration_row_works_and_shows_in_the_volume():
    """1e6 sd: the quantile ignores it unless alpha asks for the last row."""
    rng = np.random.default_rng(1)
    R = rng.normal(size=(200, 2))
    score = MultivariateKernelScore(bandwidth=1.0, lam=1e-3).fit(R)
    calibration = rng.normal(size=(99, 2))
    wild = calibration.copy()
    wild[0] = 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = mks_conformal.conformal_quantile(score.score_samples(wild), 0.1)
        usual = mks_conformal.conformal_quantile(score.score_samples(calibration), 0.1)
        assert q <= 1.5 * usual
    last = mks_conformal.conformal_quantile(score.score_samples(wild), 0.01)
    with pytest.warns(mks_conformal.PlateauWarning):
        estimate = region_volume(score, last, R, rng=0)
    assert estimate.plateau
    assert estimate.value > 1e10


def test_as_rows_messages():
    with pytest.raises(ValueError, match="R: expected a table of numbers"):
        as_rows([["a", "b"]], "R")
    with pytest.raises(ValueError, match=r"R: expected two dimensions, found shape \(1, 1, 1\)"):
        as_rows(np.zeros((1, 1, 1)), "R")
    with pytest.raises(ValueError, match="Complex data not supported"):
        as_rows(np.array([[1j]]), "R")
    with pytest.raises(ValueError, match=r"w: row 1: expected no negative value|w"):
        as_vector([1.0, -1.0], "w", nonnegative=True)
    np.testing.assert_array_equal(as_rows(pd.Series([1, 2], name="y"), "R"), [[1.0], [2.0]])
    assert as_rows([[True, 2]], "R").dtype == float
    huge = np.full((3, 2), 1e308)  # finite, though its sum is not
    np.testing.assert_array_equal(as_rows(huge, "R"), huge)


def test_public_names():
    for name in mks_conformal.__all__:
        assert getattr(mks_conformal, name) is not None
    assert set(mks_conformal.__all__) <= set(dir(mks_conformal))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = mks_conformal.nonsense


def test_import_is_light():
    """The console script imports the package first; --help must not load scikit-learn."""
    import subprocess
    import sys

    code = (
        "import sys, mks_conformal.method; print('sklearn' in sys.modules, 'scipy' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("name", synthetic_names())
@pytest.mark.parametrize("d", [1, 2, 5])
def test_synthetic_laws(name, d):
    R = synthetic(name, 300, d, rng=0)
    assert R.shape == (300, d)
    assert np.isfinite(R).all()
    np.testing.assert_array_equal(R, synthetic(name, 300, d, rng=0))
    ellipsoid_score(R)


def test_unknown_law():
    with pytest.raises(ValueError, match="name: expected exp, gauss"):
        synthetic("cauchy", 3, 2)


def test_bundled_data():
    from mks_conformal.data import cancer, digits, linnerud

    for load, n, p, d in ((digits, 1797, 32, 8), (cancer, 569, 10, 10), (linnerud, 20, 3, 3)):
        data = load()
        assert (data.X.shape, data.Y.shape) == ((n, p), (n, d))
        assert len(data.outputs) == d
        assert np.isfinite(data.X).all()
        assert np.isfinite(data.Y).all()


def test_data_of_the_extra():
    pytest.importorskip("plotnine.data")
    from mks_conformal.data import diamonds, txhousing

    data = diamonds()
    assert (data.X.shape[1], data.Y.shape[1]) == (6, 4)
    assert 53_900 < len(data.X) < 53_940
    assert (data.Y[:, 1:] > 0).all()
    data = txhousing()
    assert data.Y.shape[1] == 5
    assert np.isfinite(data.Y).all()
    assert len(np.unique(data.X[:, 2])) > 40


def test_french_portfolios():
    pytest.importorskip("linearmodels")
    from mks_conformal.data import french

    data = french()
    assert (data.X.shape, data.Y.shape) == ((819, 3), (819, 8))
    assert data.outputs[:2] == ("NoDur", "Enrgy")
