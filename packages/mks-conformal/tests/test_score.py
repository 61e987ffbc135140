"""The identities of the score, each against an independent computation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from mks_conformal import Gaussian, Laplace, Linear, MultivariateKernelScore, mks_score
from mks_conformal.score import ExactCore

GAUSS = Gaussian(1.2) + Linear(0.01)


@pytest.fixture
def data(rng):
    return rng.normal(size=(60, 3)), 1.7 * rng.normal(size=(40, 3))


def centred(kernel, R, new):
    """Kc, kc_r (one column a point) and kc(r, r), written out from equation (2)."""
    K, k = kernel(R, R), kernel(R, new)
    Kc = K - K.mean(0) - K.mean(1)[:, None] + K.mean()
    kc = k - K.mean(1)[:, None] - k.mean(0) + K.mean()
    return Kc, kc, kernel.diag(new) - 2 * k.mean(0) + K.mean()


def features(kind, Z):
    """Explicit features of the linear and the quadratic kernel."""
    if kind == "linear":
        return np.sqrt(0.3) * Z
    return np.einsum("ni,nj->nij", Z, Z).reshape(len(Z), -1)


@pytest.mark.parametrize(
    ("kind", "kernel"), [("linear", Linear(0.3)), ("quadratic", Linear() * Linear())]
)
@pytest.mark.parametrize("lam", [1e-3, 0.3])
def test_gp_form_is_the_mahalanobis_form(data, kind, kernel, lam):
    """(3) = lam (1), with explicit features."""
    R, new = data
    Phi, phi = features(kind, R), features(kind, new)
    mu = Phi.mean(0)
    S = (Phi - mu).T @ (Phi - mu) / len(R)
    solved = np.linalg.solve(S + lam * np.eye(len(S)), (phi - mu).T)
    expected = np.einsum("ij,ji->i", phi - mu, solved)
    got = mks_score(new, R, kernel=kernel, lam=lam, scale="mahalanobis")
    np.testing.assert_allclose(got, expected, rtol=1e-8)


@pytest.mark.parametrize("kernel", [GAUSS, Laplace(0.7)])
def test_mmd_minus_kernel_pca(data, kernel):
    """(4) = (3)."""
    R, new = data
    lam = 1e-2
    Kc, kc, mmd = centred(kernel, R, new)
    L, U = np.linalg.eigh(Kc)
    expected = mmd - ((U.T @ kc) ** 2 / (L + len(R) * lam)[:, None]).sum(0)
    np.testing.assert_allclose(mks_score(new, R, kernel=kernel, lam=lam), expected, atol=1e-12)


def test_universal_kriging(data):
    """(6): the variance with an unknown mean is s + lam."""
    R, new = data
    lam, n = 1e-2, len(R)
    A = GAUSS(R, R) + n * lam * np.eye(n)
    k, one = GAUSS(R, new), np.ones(n)
    solved, unit = np.linalg.solve(A, k), np.linalg.solve(A, one)
    kriging = GAUSS.diag(new) - (k * solved).sum(0) + (1 - one @ solved) ** 2 / (one @ unit)
    np.testing.assert_allclose(mks_score(new, R, kernel=GAUSS, lam=lam) + lam, kriging, atol=1e-12)


def test_uncentred_is_the_gaussian_process_of_scikit_learn(data):
    """(7), to 1e-8 of k(r, r)."""
    R, new = data
    lam = 1e-2
    gp = GaussianProcessRegressor(RBF(1.2), alpha=len(R) * lam, optimizer=None)
    expected = gp.fit(R, np.zeros(len(R))).predict(new, return_std=True)[1] ** 2
    got = mks_score(new, R, kernel=Gaussian(1.2), lam=lam, centered=False)
    np.testing.assert_allclose(got, expected, atol=1e-8)


def test_infinite_ridge_is_the_limit_of_large_ones(data):
    R, new = data
    limit = mks_score(new, R, kernel=GAUSS, lam=np.inf)
    np.testing.assert_allclose(mks_score(new, R, kernel=GAUSS, lam=1e8), limit, rtol=1e-6)
    np.testing.assert_allclose(limit, centred(GAUSS, R, new)[2], atol=1e-12)


def test_small_ridge_and_linear_kernel_give_mahalanobis(data):
    """(5), with the 1/n covariance."""
    R, new = data
    C = np.cov(R.T, bias=True)
    expected = np.einsum("ij,ij->i", new - R.mean(0), np.linalg.solve(C, (new - R.mean(0)).T).T)
    got = mks_score(new, R, kernel=Linear(), lam=1e-8, scale="mahalanobis")
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_between_kernel_density_and_covariance(skewed):
    """Claim C6: Spearman >= .9999 at both ends."""
    R, new = skewed(500, 4, 0), skewed(1000, 4, 1)
    kde = MultivariateKernelScore("gaussian", bandwidth=1.0, lam=1e6).fit(R)
    z, w = kde.whitening_(R), kde.whitening_(new)
    density = Gaussian(1.0)(w, z).mean(1)
    assert spearmanr(kde.score_samples(new), -density)[0] >= 0.9999
    wide = MultivariateKernelScore(bandwidth=50.0, lam=1e-3).fit(R)
    assert spearmanr(wide.score_samples(new), (w**2).sum(1))[0] >= 0.9999


def test_both_scales_rank_alike(data):
    R, new = data
    s = mks_score(new, R, kernel=GAUSS, lam=0.01)
    np.testing.assert_allclose(
        mks_score(new, R, kernel=GAUSS, lam=0.01, scale="mahalanobis"), s / 0.01
    )


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6), lam=st.floats(1e-6, 10), h=st.floats(0.1, 5), n=st.integers(1, 30)
)
def test_scores_lie_between_zero_and_the_prior(seed, lam, h, n):
    """0 <= s <= MMD^2, whatever the duplicates."""
    rng = np.random.default_rng(seed)
    R = rng.integers(-2, 3, size=(n, 2)).astype(float)
    new = rng.normal(size=(20, 2)) * 3
    kernel = Gaussian(h) + Linear(0.01)
    s = mks_score(new, R, kernel=kernel, lam=lam)
    assert (s >= 0).all()
    assert (s <= mks_score(new, R, kernel=kernel, lam=np.inf) + 1e-9).all()


@pytest.mark.parametrize("lam", [1e-3, np.inf])
@pytest.mark.parametrize("centered", [True, False])
def test_far_away_the_score_is_its_quadratic(data, lam, centered):
    """The quadratic a + b.z + z'Qz where the Gaussian part is zero, to 1e-8."""
    if np.isinf(lam) and not centered:
        return
    R, new = data
    core = ExactCore(R, GAUSS, lam, centered)
    far = 40 * new / np.linalg.norm(new, axis=1, keepdims=True)
    quadratic = core.far()
    assert quadratic is not None
    np.testing.assert_allclose(core(far), quadratic(far), rtol=1e-8)


def test_plateau_of_a_bounded_kernel_is_the_closed_form(data):
    R, _ = data
    lam, kernel, n = 1e-2, Gaussian(0.8), len(R)
    K = kernel(R, R)
    Kc = centred(kernel, R, R)[0]
    v = K.mean() - K.mean(1)
    s_inf = 1 + K.mean() - v @ np.linalg.solve(Kc + n * lam * np.eye(n), v)
    far = ExactCore(R, kernel, lam).far()
    assert far is not None
    assert far.flat
    assert far.constant == pytest.approx(s_inf, rel=1e-12)
    assert mks_score(np.full((1, 3), 1e3), R, kernel=kernel, lam=lam)[0] == pytest.approx(s_inf)


def test_gradients(data):
    R, new = data
    core, step = ExactCore(R, GAUSS, 1e-3), 1e-6
    slopes = core.with_gradients(new)[1]
    for j, shift in enumerate(step * np.eye(3)):
        numeric = (core(new + shift) - core(new - shift)) / (2 * step)
        np.testing.assert_allclose(slopes[:, j], numeric, atol=1e-6)


def test_bad_options_say_what_was_expected(data):
    R, new = data
    for options, words in [
        ({"lam": 0.0}, "lam: expected a positive number or inf, found 0.0"),
        ({"lam": np.nan}, "lam"),
        ({"lam": np.inf, "scale": "mahalanobis"}, "divides by lam"),
        ({"lam": np.inf, "centered": False}, "centered=True"),
        ({"lam": 1.0, "scale": "z"}, "'variance' or 'mahalanobis'"),
        ({"lam": 1e-30}, "a ridge above the rounding"),
    ]:
        references = np.repeat(R, 5, axis=0)
        with pytest.raises(ValueError, match=words):
            mks_score(new, references, kernel=Gaussian(50.0), **options)


@pytest.mark.unchecked
def test_another_number_of_outputs_is_refused(data):
    R, new = data
    with pytest.raises(ValueError, match="R_new: expected 3 output"):
        mks_score(new[:, :2], R, kernel=GAUSS, lam=1.0)


class Indefinite:
    def __call__(self, A, B):
        return -(((A[:, None] - B[None]) ** 2).sum(-1) ** 2)

    def diag(self, A):
        return np.zeros(len(A))


def test_a_kernel_that_is_not_positive_definite_is_refused(data):
    R, new = data
    with pytest.raises(ValueError, match="a positive definite kernel, found eigenvalue -"):
        mks_score(new, R, kernel=Indefinite(), lam=1.0)


def test_ties_are_the_same_on_both_scales(skewed):
    """Divided by a ridge of 1e-8 the rounding is divided too, and the tie tolerance must follow."""
    from mks_conformal.conformal import Calibration

    R, calibration = skewed(60, 2, 0), skewed(40, 2, 1)
    pvalues = []
    for scale in ("variance", "mahalanobis"):
        score = MultivariateKernelScore(bandwidth=3.0, lam=1e-8, scale=scale).fit(R)
        stored = Calibration(score.score_samples(calibration), None, score.resolution_)
        # one row at a time: another batch, other last digits
        alone = np.array([score.score_samples(row[None])[0] for row in calibration])
        pvalues.append(stored.pvalue(alone))
        assert len(np.unique(pvalues[-1])) > 30
        assert score.resolution_ == pytest.approx(
            1.0 / (1e-8 if scale == "mahalanobis" else 1.0), rel=0.2
        )
    np.testing.assert_array_equal(*pvalues)
