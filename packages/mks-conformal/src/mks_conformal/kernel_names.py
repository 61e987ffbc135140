"""Kernels by name, for options and saved models."""

from functools import reduce
from operator import add, mul
from typing import Any

from armillary import InputError

from .kernels import Gaussian, InverseMultiquadric, Kernel, Laplace, Linear, Matern32, Radial

__all__ = ["kernel_from_spec", "kernel_names", "make_kernel"]

_RADIAL: dict[str, type[Radial]] = {
    kernel.name: kernel for kernel in (Gaussian, Laplace, InverseMultiquadric, Matern32)
}


def kernel_names() -> tuple[str, ...]:
    """The names that `make_kernel` knows."""
    return (*_RADIAL, "linear")


def make_kernel(name: str, bandwidth: float, gamma: float) -> Kernel:
    """The kernel of a name such as ``"gaussian+linear"`` or ``"laplace*matern32"``.

    Raises
    ------
    InputError
        If a part of the name is unknown, or `bandwidth` or `gamma` is not positive.
    """

    def part(word: str) -> Kernel:
        word = word.strip()
        if word == "linear":
            return Linear(gamma)
        if word not in _RADIAL:
            known = ", ".join(kernel_names())
            raise InputError("kernel", found=repr(name), expected=f"{known} joined by + or *")
        return _RADIAL[word](bandwidth)

    terms = [reduce(mul, map(part, term.split("*"))) for term in name.split("+")]
    return reduce(add, terms)


def kernel_from_spec(spec: Any) -> Kernel:
    """The kernel that `Kernel.spec` described.

    Raises
    ------
    InputError
        If it describes none.
    """
    match spec:
        case ["+", left, right]:
            return kernel_from_spec(left) + kernel_from_spec(right)
        case ["*", left, right]:
            return kernel_from_spec(left) * kernel_from_spec(right)
        case ["linear", int() | float() as gamma]:
            return Linear(float(gamma))
        case [str() as name, int() | float() as bandwidth] if name in _RADIAL:
            return _RADIAL[name](float(bandwidth))
        case _:
            raise InputError("kernel", found=repr(spec), expected="a saved kernel")
