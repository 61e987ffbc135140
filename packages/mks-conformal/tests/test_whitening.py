import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import PowerTransformer, StandardScaler

from mks_conformal import MultivariateKernelScore
from mks_conformal.whitening import fit_whitening


@pytest.fixture
def residuals(rng):
    return rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3)) + [1.0, -2.0, 5.0]


def test_whitened_residuals_have_unit_covariance(residuals):
    white = fit_whitening(residuals, "cov")
    z = white(residuals)
    np.testing.assert_allclose(np.cov(z.T, bias=True), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(white.back(z), residuals, atol=1e-12)
    np.testing.assert_allclose(white.matrix @ white.inverse, np.eye(3), atol=1e-12)
    determinant = np.sqrt(np.linalg.det(np.cov(residuals.T, bias=True)))
    assert np.exp(white.log_volume_scale) == pytest.approx(determinant, rel=1e-12)


def test_units_that_differ_by_a_billion(residuals):
    plain = fit_whitening(residuals, "cov")
    units = np.array([1.0, 1e9, 1e-9])
    scaled = fit_whitening(residuals * units, "cov")
    for a, b in ((plain(residuals), scaled(residuals * units)),):
        np.testing.assert_allclose((a**2).sum(1), (b**2).sum(1), rtol=1e-9)


def test_correlation_of_almost_one_works(rng):
    a = rng.normal(size=300)
    b = a + np.sqrt(2e-9) * rng.normal(size=300)  # correlation 1 - 1e-9
    R = np.column_stack([a, b])
    z = fit_whitening(R, "cov")(R)
    np.testing.assert_allclose(np.cov(z.T, bias=True), np.eye(2), atol=1e-6)


@pytest.mark.parametrize("names", [None, ("a", "b", "c")])
def test_dependent_outputs_name_the_direction(rng, names):
    R = rng.normal(size=(50, 2))
    R = np.column_stack([R, R.sum(axis=1)])
    with pytest.raises(ValueError, match=r"linearly dependent along \[.*-1.*\]") as caught:
        fit_whitening(R, "cov", names)
    assert ("(a, b, c)" in str(caught.value)) == (names is not None)


def test_constant_output_is_named(residuals):
    residuals[:, 1] = 0.0
    with pytest.raises(
        ValueError, match=r"output 'b' has constant residuals \(0.0\): leave it out"
    ):
        fit_whitening(residuals, "cov", ("a", "b", "c"))
    residuals[:, 1] = 0.1  # its mean is not 0.1 to the last bit
    with pytest.raises(ValueError, match=r"output 1 has constant residuals \(0.1\)"):
        fit_whitening(residuals, "cov")


def test_robust_whitening_ignores_a_few_wild_rows(residuals, rng):
    wild = residuals.copy()
    wild[:10] += 1e4 * rng.normal(size=(10, 3))
    clean, robust = fit_whitening(residuals, "cov"), fit_whitening(wild, "robust")
    assert abs(clean.log_volume_scale - robust.log_volume_scale) < 1.0
    assert fit_whitening(wild, "cov").log_volume_scale > clean.log_volume_scale + 10


def test_none_changes_nothing(residuals):
    np.testing.assert_array_equal(fit_whitening(residuals, "none")(residuals), residuals)


@pytest.mark.parametrize("transformer", [StandardScaler(), PCA(whiten=True)])
def test_a_fitted_affine_transformer(residuals, transformer):
    transformer.fit(residuals)
    white = fit_whitening(residuals, transformer)
    np.testing.assert_allclose(white(residuals), transformer.transform(residuals), atol=1e-9)
    np.testing.assert_allclose(white.back(white(residuals)), residuals, atol=1e-9)


def test_other_transformers_are_refused(residuals):
    with pytest.raises(ValueError, match="an affine transformer"):
        fit_whitening(residuals, PowerTransformer().fit(residuals))
    with pytest.raises(ValueError, match="a transformer to 3 output"):
        fit_whitening(residuals, PCA(2).fit(residuals))
    with pytest.raises(ValueError, match="whiten: expected 'cov', 'robust', 'none'"):
        fit_whitening(residuals, "zca")


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_scores_do_not_change_with_affine_maps_of_the_outputs(residuals, rng, scale):
    """Design: membership unchanged by affine maps of Y, rtol 1e-9; by units of 1e9, 1e-6."""
    options = {"bandwidth": 1.0, "lam": 1e-3}
    A = rng.normal(size=(3, 3)) if scale == 1.0 else np.diag([1.0, scale, 1 / scale])
    new = rng.normal(size=(40, 3)) * 3
    plain = MultivariateKernelScore(**options).fit(residuals).score_samples(new)
    mapped = MultivariateKernelScore(**options).fit(residuals @ A.T).score_samples(new @ A.T)
    np.testing.assert_allclose(mapped, plain, rtol=1e-9 if scale == 1.0 else 1e-6)
