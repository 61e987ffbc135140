import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mks_conformal import Gaussian, InverseMultiquadric, Laplace, Linear, Matern32
from mks_conformal.kernel_names import kernel_from_spec, kernel_names, make_kernel
from mks_conformal.kernels import as_kernel

KERNELS = [
    Gaussian(0.8),
    Laplace(1.3),
    InverseMultiquadric(0.7),
    Matern32(1.1),
    Linear(0.4),
    Gaussian(1.0) + Linear(0.01),
    Laplace(1.0) * Matern32(2.0) + Linear(0.2) * Linear(0.3),
]


def pairwise(A, B):
    return np.sqrt(((A[:, None] - B[None]) ** 2).sum(-1))


FORMULAS = {
    Gaussian: lambda r, h: np.exp(-(r**2) / (2 * h**2)),
    Laplace: lambda r, h: np.exp(-r / h),
    InverseMultiquadric: lambda r, h: 1 / np.sqrt(1 + r**2 / h**2),
    Matern32: lambda r, h: (1 + np.sqrt(3) * r / h) * np.exp(-np.sqrt(3) * r / h),
}


@pytest.mark.parametrize("kind", FORMULAS)
def test_radial_kernels_are_their_formulas(kind, rng):
    A, B = rng.normal(size=(6, 3)), rng.normal(size=(9, 3))
    expected = FORMULAS[kind](pairwise(A, B), 0.9)
    np.testing.assert_allclose(kind(0.9)(A, B), expected, rtol=1e-12)


def test_linear_kernel_sum_and_product(rng):
    A, B = rng.normal(size=(6, 3)), rng.normal(size=(9, 3))
    np.testing.assert_allclose(Linear(0.5)(A, B), 0.5 * A @ B.T, rtol=1e-12)
    g, m = Gaussian(1.0), Matern32(2.0)
    np.testing.assert_allclose((g + m)(A, B), g(A, B) + m(A, B), rtol=1e-12)
    np.testing.assert_allclose((g * m)(A, B), g(A, B) * m(A, B), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_diagonal_is_exact_at_equal_points(kernel, rng):
    """A cusp would turn the rounding of |z - z|^2 into 1e-8."""
    A = 1e3 + rng.normal(size=(40, 3))
    np.testing.assert_allclose(np.diagonal(kernel(A, A)), kernel.diag(A), rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradients_are_those_of_finite_differences(kernel, rng):
    A, B, weights = rng.normal(size=(5, 3)), rng.normal(size=(7, 3)), rng.normal(size=(5, 7))
    step = 1e-6
    for j, shift in enumerate(step * np.eye(3)):
        up, down = kernel(A + shift, B), kernel(A - shift, B)
        numeric = (weights * (up - down)).sum(axis=1) / (2 * step)
        np.testing.assert_allclose(kernel.gradients(A, B, weights)[:, j], numeric, atol=1e-7)
        numeric = (kernel.diag(A + shift) - kernel.diag(A - shift)) / (2 * step)
        np.testing.assert_allclose(kernel.diag_gradients(A)[:, j], numeric, atol=1e-7)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), index=st.integers(0, len(KERNELS) - 1))
def test_kernel_matrices_are_symmetric_and_positive(seed, index):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 2)) * rng.lognormal(size=(12, 1))
    A[3] = A[5]
    K = KERNELS[index](A, A)
    np.testing.assert_allclose(K, K.T, rtol=1e-9, atol=1e-12)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-9 * values[-1]


def test_distances_far_from_the_origin_do_not_cancel(rng):
    A, B = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    np.testing.assert_allclose(Gaussian(1.0)(A + 1e6, B + 1e6), Gaussian(1.0)(A, B), atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_spec_round_trip(kernel):
    assert kernel_from_spec(kernel.spec()) == kernel


@pytest.mark.parametrize("spec", [None, [], ["gaussian"], ["gaussian", "1"], ["pickle", 1.0]])
def test_a_foreign_spec_is_refused(spec):
    with pytest.raises(ValueError, match="a saved kernel"):
        kernel_from_spec(spec)


def test_names_and_their_messages():
    assert make_kernel("laplace+linear", 2.0, 0.1) == Laplace(2.0) + Linear(0.1)
    assert make_kernel("gaussian*matern32", 2.0, 0.1) == Gaussian(2.0) * Matern32(2.0)
    with pytest.raises(ValueError, match="expected gaussian, laplace.*found 'gausian'"):
        make_kernel("gausian", 1.0, 0.1)
    with pytest.raises(ValueError, match="bandwidth: expected a positive number, found 0.0"):
        make_kernel("gaussian", 0.0, 0.1)
    with pytest.raises(ValueError, match="gamma"):
        make_kernel("linear", 1.0, -1.0)
    assert set(kernel_names()) >= {"gaussian", "linear"}


class Cosine:
    """A kernel that a user wrote."""

    def __call__(self, A, B):
        return 1.0 + np.cos(A[:, None] - B[None]).sum(-1)

    def diag(self, A):
        return np.full(len(A), 1.0 + A.shape[1])


def test_a_function_with_diag_is_a_kernel(rng):
    kernel = as_kernel(Cosine())
    A, B, weights = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), rng.normal(size=(3, 4))
    expected = -np.einsum("ij,ijk->ik", weights, np.sin(A[:, None] - B[None]))
    np.testing.assert_allclose(kernel.gradients(A, B, weights), expected, atol=1e-8)
    both = Gaussian(1.0) + Cosine()
    np.testing.assert_allclose(both(A, B), Gaussian(1.0)(A, B) + Cosine()(A, B))
    with pytest.raises(ValueError, match="cannot be saved"):
        both.spec()
    with pytest.raises(ValueError, match="has .diag"):
        as_kernel(lambda A, B: A @ B.T)
