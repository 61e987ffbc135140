"""Full conformal against brute force: every augmented matrix inverted."""

import numpy as np
import pytest

from mks_conformal import Gaussian, Laplace, Linear, full_conformal_pvalues
from mks_conformal.conformal import TIE_TOLERANCE
from mks_conformal.full import FullConformal

GAUSS = Gaussian(1.0) + Linear(0.01)


def brute_scores(R, r, kernel, lam, centered=True):
    """Leave-one-out scores of the augmented set, straight from their definition."""
    Z = np.vstack([R, r])
    N = len(Z)
    out = np.empty(N)
    for i in range(N):
        rest = np.delete(Z, i, axis=0)
        point = Z[i : i + 1]
        K, k = kernel(rest, rest), kernel(rest, point)[:, 0]
        prior = kernel.diag(point)[0]
        if np.isinf(lam):
            out[i] = prior - 2 * k.mean() + K.mean()
            continue
        A = K + N * lam * np.eye(N - 1)
        solved = np.linalg.solve(A, k)
        out[i] = prior + N * lam - k @ solved
        if centered:
            unit = np.linalg.solve(A, np.ones(N - 1))
            out[i] += (1 - solved.sum()) ** 2 / unit.sum()
    return out


def brute_pvalues(R, new, kernel, lam):
    p = []
    for r in new:
        scores = brute_scores(R, r, kernel, lam)
        p.append((scores >= scores[-1] - TIE_TOLERANCE * max(1, abs(scores[-1]))).mean())
    return np.array(p)


@pytest.mark.parametrize("lam", [1e-6, 1e-2, 1.0, np.inf])
@pytest.mark.parametrize("kernel", [GAUSS, Laplace(0.5), Linear(1.0)], ids=str)
def test_pvalues_equal_brute_force(rng, kernel, lam):
    for n in (2, 12):
        R, new = rng.normal(size=(n, 2)), 2 * rng.normal(size=(10, 2))
        got = full_conformal_pvalues(R, new, kernel=kernel, lam=lam)
        np.testing.assert_allclose(got, brute_pvalues(R, new, kernel, lam))


@pytest.mark.parametrize("centered", [True, False])
def test_scores_equal_brute_force(rng, centered):
    R, new = rng.normal(size=(12, 3)), 2 * rng.normal(size=(8, 3))
    rule = FullConformal(R, GAUSS, 1e-3, centered)
    S, others = rule.scores(GAUSS(new, R), GAUSS.diag(new))
    for j, r in enumerate(new):
        expected = brute_scores(R, r, GAUSS, 1e-3, centered)
        np.testing.assert_allclose(np.append(others[j], S[j]), expected, rtol=1e-9)


@pytest.mark.parametrize("lam", [1e-6, 1e-3, 1.0, np.inf])
def test_a_copy_of_a_calibration_row_counts_its_own_tie(rng, lam):
    """By symmetry both copies have one score, to the last bits only."""
    for n in (5, 12, 40):
        R = rng.normal(size=(n, 3))
        rule = FullConformal(R, GAUSS, lam)
        S, others = rule.scores(GAUSS(R, R), GAUSS.diag(R))
        rivals = others - np.diag(np.diagonal(others)) + np.diag(np.full(n, -np.inf))
        strictly = (rivals > S[:, None] * (1 + 1e-9)).sum(axis=1)
        got = full_conformal_pvalues(R, R, kernel=GAUSS, lam=lam)
        assert (np.rint(got * (n + 1)) >= strictly + 2).all()


def test_order_of_the_rows_does_not_matter(rng):
    R, new = rng.normal(size=(30, 2)), rng.normal(size=(50, 2))
    p = full_conformal_pvalues(R, new, kernel=GAUSS, lam=0.01)
    np.testing.assert_array_equal(full_conformal_pvalues(R[::-1], new, kernel=GAUSS, lam=0.01), p)


def test_coverage_by_simulation(binomial_band):
    """Between 1 - alpha and 1 - alpha + 1/(n+1); false alarm 1e-6."""
    n, alpha, trials, hits = 29, 0.1, 1000, 0
    rng = np.random.default_rng(5)
    for _ in range(trials):
        R = rng.standard_t(3, size=(n + 1, 2))
        hits += FullConformal(R[:n], GAUSS, 1e-3).inside(R[n:], alpha)[0]
    low, high = binomial_band(1 - alpha, 1 - alpha + 1 / (n + 1), trials, 1e-6)
    assert low <= hits <= high


def test_bounded_kernels_know_whether_infinity_is_inside(rng):
    R = rng.normal(size=(60, 2))
    for h in (0.05, 1.0):
        rule = FullConformal(R, Gaussian(h), 1e-3)
        inside = rule.inside(np.array([[1e4, 1e4]]), 0.1)[0]
        assert rule.bounded(0.1) == (not inside)
    assert not FullConformal(R[:5], GAUSS, 1e-3).bounded(0.1)  # too few rows


def test_far_ellipsoid_is_inside(rng):
    """A narrow kernel: the region holds an ellipsoid far from the rows."""
    R = rng.normal(size=(80, 2))
    rule = FullConformal(R, Gaussian(0.05) + Linear(0.01), 1e-3)
    far = rule.far(0.1)
    assert far is not None
    t = np.linspace(0, 2 * np.pi, 100)
    ring = np.stack([np.cos(t), np.sin(t)], axis=1) @ far.shape.T
    away = (((far.center + ring)[:, None] - R[None]) ** 2).sum(-1).min(1) > 0.2
    assert rule.inside((far.center + 0.97 * ring)[away], 0.1).all()
    assert not rule.inside((far.center + 1.05 * ring)[away], 0.1).any()
    assert FullConformal(R, Gaussian(1.0) + Linear(0.01), 1e-3).far(0.1) is None


def test_bad_input(rng):
    R = rng.normal(size=(10, 2))
    with pytest.raises(ValueError, match="R_new: row 0, column 1.*NaN"):
        full_conformal_pvalues(R, np.array([[0.0, np.nan]]), kernel=GAUSS, lam=1.0)
    with pytest.raises(ValueError, match="lam"):
        full_conformal_pvalues(R, R, kernel=GAUSS, lam=-1.0)
