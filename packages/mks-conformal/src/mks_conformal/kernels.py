"""Positive definite kernels on whitened residuals, with `+` and `*`.

A kernel gives its matrix (`k(A, B)`), its diagonal (`k.diag(A)`), what it becomes far away from
all data (`k.tail`), and weighted sums of its gradients, which the bounding boxes need. The
default of the package is ``Gaussian(h) + Linear(0.01)``: the Gaussian follows the shape of the
residuals, the linear part lets the score grow without bound, so that every region is bounded.

Any object that is called with arrays (n, d) and (m, d), gives an (n, m) matrix and has a method
`diag` serves as a kernel too; a score with such a kernel cannot be saved.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from armillary import InputError

__all__ = [
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern32",
    "Tail",
    "as_kernel",
    "squared_distances",
]

Rows = Float[np.ndarray, "n d"]
OtherRows = Float[np.ndarray, "m d"]
Matrix = Float[np.ndarray, "n m"]


@dataclass(frozen=True)
class Tail:
    """What k(z, z') is when z is far from z': `slope` <z, z'>, and `constant` more at z = z'.

    `decays` says that some part of the kernel vanishes with the distance; without one the
    kernel is linear, and the score a quadratic everywhere.
    """

    constant: float
    slope: float
    decays: bool


def squared_distances(A: Rows, B: OtherRows, *, snap: bool = False) -> Matrix:
    """|a_i - b_j|^2 through one matrix product, never negative.

    With `snap`, what may be rounding becomes 0: its root would be 1e-8, and a kernel with a
    cusp would miss its value at equal points by as much.
    """
    # about the mean of B: far from the origin the squares would cancel
    middle = B.mean(axis=0) if len(B) else 0.0
    A, B = A - middle, B - middle
    squares = A @ (-2.0 * B.T)
    a, b = np.einsum("ij,ij->i", A, A)[:, None], np.einsum("ij,ij->i", B, B)
    squares += a
    squares += b
    if snap:
        squares[squares < 8.0 * np.finfo(float).eps * (a + b)] = 0.0
    return np.maximum(squares, 0.0, out=squares)


class Kernel(ABC):
    """A positive definite kernel; `+` and `*` make new ones."""

    @abstractmethod
    def __call__(self, A: Rows, B: OtherRows) -> Matrix:
        """The kernel matrix k(a_i, b_j)."""

    @abstractmethod
    def diag(self, A: Rows) -> Float[np.ndarray, " n"]:
        """k(a_i, a_i)."""

    @abstractmethod
    def gradients(self, A: Rows, B: OtherRows, weights: Matrix) -> Float[np.ndarray, "n d"]:
        """sum_j weights_ij * d k(a, b_j) / d a, at every a_i."""

    def diag_gradients(self, A: Rows) -> Float[np.ndarray, "n d"]:
        """D k(a, a) / d a at every a_i; zero for a translation-invariant kernel."""
        return np.zeros_like(A)

    @property
    def tail(self) -> Tail | None:
        """The kernel far away from the data; None when no simple form is known."""
        return None

    @abstractmethod
    def spec(self) -> list[Any]:
        """Name and parameters, for JSON; `kernel_from_spec` is its inverse."""

    def __add__(self, other: "Kernel") -> "Kernel":
        return Sum(self, as_kernel(other))

    def __mul__(self, other: "Kernel") -> "Kernel":
        return Product(self, as_kernel(other))


@dataclass(frozen=True)
class Radial(Kernel):
    """A function of |z - z'| / bandwidth with k(z, z) = 1 that vanishes at infinity."""

    bandwidth: float = 1.0
    name: ClassVar[str] = ""
    cusp: ClassVar[bool] = False  # not smooth where the distance is 0

    def __post_init__(self) -> None:
        _positive(self.bandwidth, f"{type(self).__name__}: bandwidth")

    @abstractmethod
    def _profile(self, squares: Matrix) -> Matrix:
        """The kernel as a function of the squared distance; may overwrite it."""

    @abstractmethod
    def _slope(self, squares: Matrix) -> Matrix:
        """Derivative of `_profile` with respect to the squared distance."""

    def __call__(self, A: Rows, B: OtherRows) -> Matrix:
        """The kernel matrix."""
        return self._profile(squared_distances(A, B, snap=self.cusp))

    def diag(self, A: Rows) -> Float[np.ndarray, " n"]:
        """k(a_i, a_i)."""
        return np.ones(len(A))

    def gradients(self, A: Rows, B: OtherRows, weights: Matrix) -> Float[np.ndarray, "n d"]:
        """Weighted sums of the gradients."""
        pull = 2.0 * weights * self._slope(squared_distances(A, B, snap=self.cusp))
        return pull.sum(axis=1, keepdims=True) * A - pull @ B

    @property
    def tail(self) -> Tail:
        """The kernel far away from the data."""
        return Tail(1.0, 0.0, decays=True)

    def spec(self) -> list[Any]:
        """Name and parameters, for JSON."""
        return [self.name, float(self.bandwidth)]


class Gaussian(Radial):
    """exp(-|z - z'|^2 / (2 h^2))."""

    name = "gaussian"

    def _profile(self, squares: Matrix) -> Matrix:
        squares *= -0.5 / self.bandwidth**2
        return np.exp(squares, out=squares)

    def _slope(self, squares: Matrix) -> Matrix:
        return self._profile(squares) * (-0.5 / self.bandwidth**2)


class Laplace(Radial):
    """exp(-|z - z'| / h)."""

    name = "laplace"
    cusp = True

    def _profile(self, squares: Matrix) -> Matrix:
        np.sqrt(squares, out=squares)
        squares *= -1.0 / self.bandwidth
        return np.exp(squares, out=squares)

    def _slope(self, squares: Matrix) -> Matrix:
        distances = np.sqrt(squares)
        # no gradient at the data point itself, where the kernel has a cusp
        inverse = np.divide(1.0, distances, out=np.zeros_like(distances), where=distances > 0)
        return np.exp(-distances / self.bandwidth) * inverse * (-0.5 / self.bandwidth)


class InverseMultiquadric(Radial):
    """1 / sqrt(1 + |z - z'|^2 / h^2)."""

    name = "inverse_multiquadric"

    def _profile(self, squares: Matrix) -> Matrix:
        squares *= 1.0 / self.bandwidth**2
        squares += 1.0
        np.sqrt(squares, out=squares)
        return np.divide(1.0, squares, out=squares)

    def _slope(self, squares: Matrix) -> Matrix:
        return self._profile(squares) ** 3 * (-0.5 / self.bandwidth**2)


class Matern32(Radial):
    """(1 + r) exp(-r) with r = sqrt(3) |z - z'| / h."""

    name = "matern32"
    cusp = True

    def _profile(self, squares: Matrix) -> Matrix:
        np.sqrt(squares, out=squares)
        squares *= np.sqrt(3.0) / self.bandwidth
        return (1.0 + squares) * np.exp(-squares)

    def _slope(self, squares: Matrix) -> Matrix:
        scaled = np.sqrt(squares) * (np.sqrt(3.0) / self.bandwidth)
        return np.exp(-scaled) * (-1.5 / self.bandwidth**2)


@dataclass(frozen=True)
class Linear(Kernel):
    """gamma <z, z'>."""

    gamma: float = 1.0

    def __post_init__(self) -> None:
        _positive(self.gamma, "Linear: gamma")

    def __call__(self, A: Rows, B: OtherRows) -> Matrix:
        """The kernel matrix."""
        return A @ (self.gamma * B.T)

    def diag(self, A: Rows) -> Float[np.ndarray, " n"]:
        """k(a_i, a_i)."""
        return self.gamma * np.einsum("ij,ij->i", A, A)

    def gradients(
        self,
        A: Rows,  # noqa: ARG002
        B: OtherRows,
        weights: Matrix,
    ) -> Float[np.ndarray, "n d"]:
        """Weighted sums of the gradients."""
        return self.gamma * (weights @ B)

    def diag_gradients(self, A: Rows) -> Float[np.ndarray, "n d"]:
        """Gradients of the diagonal."""
        return 2.0 * self.gamma * A

    @property
    def tail(self) -> Tail:
        """The kernel far away from the data."""
        return Tail(0.0, self.gamma, decays=False)

    def spec(self) -> list[Any]:
        """Name and parameters, for JSON."""
        return ["linear", float(self.gamma)]


@dataclass(frozen=True)
class Sum(Kernel):
    """The sum of two kernels."""

    left: Kernel
    right: Kernel

    def __call__(self, A: Rows, B: OtherRows) -> Matrix:
        """The kernel matrix."""
        out = self.left(A, B)
        out += self.right(A, B)
        return out

    def diag(self, A: Rows) -> Float[np.ndarray, " n"]:
        """k(a_i, a_i)."""
        return self.left.diag(A) + self.right.diag(A)

    def gradients(self, A: Rows, B: OtherRows, weights: Matrix) -> Float[np.ndarray, "n d"]:
        """Weighted sums of the gradients."""
        return self.left.gradients(A, B, weights) + self.right.gradients(A, B, weights)

    def diag_gradients(self, A: Rows) -> Float[np.ndarray, "n d"]:
        """Gradients of the diagonal."""
        return self.left.diag_gradients(A) + self.right.diag_gradients(A)

    @property
    def tail(self) -> Tail | None:
        """The kernel far away from the data, if it has a simple form."""
        a, b = self.left.tail, self.right.tail
        if a is None or b is None:
            return None
        return Tail(a.constant + b.constant, a.slope + b.slope, a.decays or b.decays)

    def spec(self) -> list[Any]:
        """Name and parameters, for JSON."""
        return ["+", self.left.spec(), self.right.spec()]


@dataclass(frozen=True)
class Product(Kernel):
    """The pointwise product of two kernels, positive definite by Schur's theorem."""

    left: Kernel
    right: Kernel

    def __call__(self, A: Rows, B: OtherRows) -> Matrix:
        """The kernel matrix."""
        out = self.left(A, B)
        out *= self.right(A, B)
        return out

    def diag(self, A: Rows) -> Float[np.ndarray, " n"]:
        """k(a_i, a_i)."""
        return self.left.diag(A) * self.right.diag(A)

    def gradients(self, A: Rows, B: OtherRows, weights: Matrix) -> Float[np.ndarray, "n d"]:
        """Weighted sums of the gradients."""
        left = self.left.gradients(A, B, weights * self.right(A, B))
        return left + self.right.gradients(A, B, weights * self.left(A, B))

    def diag_gradients(self, A: Rows) -> Float[np.ndarray, "n d"]:
        """Gradients of the diagonal."""
        left = self.left.diag_gradients(A) * self.right.diag(A)[:, None]
        return left + self.right.diag_gradients(A) * self.left.diag(A)[:, None]

    @property
    def tail(self) -> Tail | None:
        """The kernel far away from the data, if it has a simple form."""
        a, b = self.left.tail, self.right.tail
        if a is None or b is None or a.slope or b.slope:
            return None
        return Tail(a.constant * b.constant, 0.0, decays=True)

    def spec(self) -> list[Any]:
        """Name and parameters, for JSON."""
        return ["*", self.left.spec(), self.right.spec()]


@dataclass(frozen=True)
class Foreign(Kernel):
    """A kernel that a user wrote: nothing is known of it but its values."""

    function: Any

    def __call__(self, A: Rows, B: OtherRows) -> Matrix:
        """The kernel matrix."""
        out = np.asarray(self.function(A, B), dtype=float)
        if out.shape != (len(A), len(B)):
            raise InputError("kernel", expected=f"shape {(len(A), len(B))}", found=f"{out.shape}")
        return out

    def diag(self, A: Rows) -> Float[np.ndarray, " n"]:
        """k(a_i, a_i)."""
        out = np.asarray(self.function.diag(A), dtype=float)
        if out.shape != (len(A),):
            raise InputError("kernel.diag", expected=f"shape {(len(A),)}", found=f"{out.shape}")
        return out

    def gradients(self, A: Rows, B: OtherRows, weights: Matrix) -> Float[np.ndarray, "n d"]:
        """Weighted sums of the gradients."""
        return _central_differences(lambda a: np.einsum("ij,ij->i", weights, self(a, B)), A)

    def diag_gradients(self, A: Rows) -> Float[np.ndarray, "n d"]:
        """Gradients of the diagonal."""
        return _central_differences(self.diag, A)

    def spec(self) -> list[Any]:
        """Name and parameters, for JSON."""
        raise InputError(
            "a score whose kernel is a function cannot be saved",
            instead="use the kernels of this package, their sums and products",
        )


def as_kernel(kernel: Any) -> Kernel:
    """A kernel object from one, or from a function of two arrays that has `diag`.

    Raises
    ------
    InputError
        If it is neither.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and callable(getattr(kernel, "diag", None)):
        return Foreign(kernel)
    raise InputError(
        "kernel", found=repr(kernel), expected="a kernel object or a function that has .diag"
    )


def _positive(value: float, name: str) -> None:
    if not (np.isfinite(value) and value > 0):
        raise InputError(name, found=value, expected="a positive number")


def _central_differences(
    function: Callable[[Rows], Float[np.ndarray, " n"]], A: Rows
) -> Float[np.ndarray, "n d"]:
    step = 1e-6 * max(1.0, float(np.abs(A).max(initial=0.0)))
    out = np.empty_like(A)
    for j, shift in enumerate(step * np.eye(A.shape[1])):
        out[:, j] = (function(A + shift) - function(A - shift)) / (2 * step)
    return out
