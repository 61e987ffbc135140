import numpy as np
import pytest

from dpp_sample.residuals import SPANNED, Residuals, log_volume, residuals, without_span


@pytest.mark.parametrize("share", [1e-2, 1e-6, 1e-9, 1e-11])
def test_small_residuals_keep_their_digits(share):
    """1 minus a sum of squares would have rounding of 1e-15 in them."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    inside = rng.normal(size=(8, 50)) @ basis[:50]
    inside /= np.linalg.norm(inside, axis=1, keepdims=True)
    rows = np.vstack([basis[:50], inside + np.sqrt(share) * basis[55]])
    span = Residuals(rows, 50)
    for row in range(50):
        span.take(row)
    np.testing.assert_allclose(span.left[50:], share, rtol=1e-8)
    np.testing.assert_array_equal(span.left[:50], 0.0)
    np.testing.assert_allclose(residuals(rows, basis[:50], span.norm2)[50:], share, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e60])
def test_the_span_is_told_by_the_share_that_is_left(scale):
    rows = scale * np.array([[1.0, 0, 0], [1.0, 1.1e-6, 0], [1.0, 0.9e-6, 0], [2.0, 0, 1.0]])
    span = Residuals(rows, 2)
    along = span.take(0)
    np.testing.assert_allclose(along, scale * np.array([1, 1, 1, 2]))
    assert (span.left > 0).tolist() == [False, True, False, True]
    assert SPANNED == 1e-12
    np.testing.assert_array_equal(span.take(1)[[0, 2]], [0.0, 0.0])
    assert span.gains == pytest.approx([scale**2, (1.1e-6 * scale) ** 2])


def test_the_basis_stays_orthonormal_among_near_copies():
    rng = np.random.default_rng(0)
    rows = 1.0 + 1e-4 * rng.normal(size=(30, 20))
    span = Residuals(rows, 20)
    for row in range(20):
        span.take(row)
    np.testing.assert_allclose(span.basis @ span.basis.T, np.eye(20), atol=1e-14)
    np.testing.assert_allclose(without_span(rows, span.basis), 0, atol=1e-15)


def test_log_volume_is_the_log_determinant():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4, 3, 6))
    expected = np.linalg.slogdet(rows @ np.swapaxes(rows, 1, 2))[1]
    np.testing.assert_allclose(log_volume(rows), expected, atol=1e-12)
    assert log_volume(rows[0]) == pytest.approx(expected[0])
    assert np.isneginf(log_volume(rng.normal(size=(5, 3, 2)))).all()
    assert log_volume(np.array([[1.0, 1.0], [-3.0, -3.0]])) == -np.inf
