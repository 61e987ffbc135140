"""Real tables for the demo and the claims, and synthetic residuals with a known law.

`digits`, `cancer` and `linnerud` come with scikit-learn; `diamonds`, `txhousing` and `french` need
the extra ``data``. Nothing is downloaded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from armillary import InputError, require
from armillary.randomness import RngLike, as_generator

__all__ = [
    "Dataset",
    "cancer",
    "diamonds",
    "digits",
    "french",
    "linnerud",
    "synthetic",
    "synthetic_names",
    "txhousing",
]

EXTRA = "mks-conformal[data]"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and targets with the targets' names."""

    name: str
    X: Float[np.ndarray, "n p"]
    Y: Float[np.ndarray, "n d"]
    outputs: tuple[str, ...]


def digits() -> Dataset:
    """Handwritten digits: predict the lower half from the upper; n 1797, d 8.

    X: the 32 pixels of the upper half. Y: the first 8 principal components of the lower half.
    """
    from sklearn.datasets import load_digits

    pixels = np.asarray(load_digits(return_X_y=True)[0], dtype=float)
    lower = pixels[:, 32:] - pixels[:, 32:].mean(axis=0)
    _, _, directions = np.linalg.svd(lower, full_matrices=False)
    # the sign of a component is free: the largest weight is positive
    largest = np.abs(directions).argmax(axis=1)
    directions *= np.sign(directions[np.arange(len(directions)), largest])[:, None]
    outputs = tuple(f"component {j + 1}" for j in range(8))
    return Dataset("digits", pixels[:, :32], lower @ directions[:8].T, outputs)


def cancer() -> Dataset:
    """Cell nuclei: predict the ten worst measurements from the ten means, in log1p; n 569, d 10."""
    from sklearn.datasets import load_breast_cancer

    bunch: Any = load_breast_cancer()
    table = np.log1p(np.asarray(bunch.data, dtype=float))
    outputs = tuple(str(name) for name in bunch.feature_names[20:])
    return Dataset("cancer", table[:, :10], table[:, 20:], outputs)


def linnerud() -> Dataset:
    """Physical exercise: n 20, d 3; too few rows for most quantiles, which is its use."""
    from sklearn.datasets import load_linnerud

    bunch: Any = load_linnerud()
    X, Y = np.asarray(bunch.data, dtype=float), np.asarray(bunch.target, dtype=float)
    return Dataset("linnerud", X, Y, tuple(map(str, bunch.target_names)))


def diamonds() -> Dataset:
    """Diamonds: log price, x, y, z from the other columns; rows with a size of 0 dropped; d 4.

    Raises
    ------
    MissingExtra
        Without plotnine.
    """
    table = require("plotnine.data", extra=EXTRA).diamonds
    table = table[(table[["x", "y", "z"]] > 0).all(axis=1)]
    X = table[["carat", "depth", "table"]].to_numpy(dtype=float)
    grades = [
        table[column].cat.codes.to_numpy(dtype=float) for column in ("cut", "color", "clarity")
    ]
    Y = np.column_stack([np.log(table["price"]), table[["x", "y", "z"]]]).astype(float)
    return Dataset("diamonds", np.column_stack([X, *grades]), Y, ("log price", "x", "y", "z"))


def txhousing() -> Dataset:
    """Texas house sales: logs of five monthly figures from year, month and city; d 5.

    Rows with a missing value or a zero among the targets are dropped.

    Raises
    ------
    MissingExtra
        Without plotnine.
    """
    columns = ["sales", "volume", "median", "listings", "inventory"]
    table = require("plotnine.data", extra=EXTRA).txhousing.dropna()
    table = table[(table[columns] > 0).all(axis=1)]
    city = np.unique(table["city"].to_numpy(dtype=str), return_inverse=True)[1]
    X = np.column_stack([table["year"], table["month"], city]).astype(float)
    Y = np.log(table[columns].to_numpy(dtype=float))
    return Dataset("txhousing", X, Y, tuple(f"log {column}" for column in columns))


def french() -> Dataset:
    """Portfolio returns on the three factors: n 819 months, d 8 (every third portfolio).

    Raises
    ------
    MissingExtra
        Without linearmodels.
    """
    table = require("linearmodels.datasets.french", extra=EXTRA).load()
    portfolios = list(table.columns[6::3])[:8]
    X = table[["MktRF", "SMB", "HML"]].to_numpy(dtype=float)
    return Dataset("french", X, table[portfolios].to_numpy(dtype=float), tuple(portfolios))


def _exp(n: int, d: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
    return rng.exponential(size=(n, d)) - 1.0


def _gauss(n: int, d: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
    A = np.random.default_rng(d).normal(size=(d, d))  # the law does not depend on the sample
    return rng.normal(size=(n, d)) @ A.T


def _mix(n: int, d: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
    fixed = np.random.default_rng(d)
    centers = 3.0 * fixed.normal(size=(3, d))
    factors = 0.7 * fixed.normal(size=(3, d, d))
    which = rng.integers(3, size=n)
    return centers[which] + np.einsum("nij,nj->ni", factors[which], rng.normal(size=(n, d)))


def _banana(n: int, d: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
    out = rng.normal(size=(n, d))
    pairs = d // 2
    out[:, 1 : 2 * pairs : 2] *= 0.3
    out[:, 1 : 2 * pairs : 2] += out[:, 0 : 2 * pairs : 2] ** 2 - 1.0
    return out


def _ring(n: int, d: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
    out = rng.normal(size=(n, d))
    radius = 3.0 + 0.3 * rng.normal(size=n)
    angle = 2.0 * np.pi * rng.random(n)
    out[:, 0] = radius * np.cos(angle)
    if d > 1:
        out[:, 1] = radius * np.sin(angle)
    return out


_SYNTHETIC: dict[str, Callable[[int, int, np.random.Generator], Float[np.ndarray, "n d"]]] = {
    "exp": _exp,
    "gauss": _gauss,
    "mix": _mix,
    "banana": _banana,
    "ring": _ring,
}


def synthetic_names() -> tuple[str, ...]:
    """The laws that `synthetic` knows."""
    return tuple(_SYNTHETIC)


def synthetic(name: str, n: int, d: int, rng: RngLike = None) -> Float[np.ndarray, "n d"]:
    """Independent residuals of a known law.

    Parameters
    ----------
    name
        ``"exp"``: Exp(1) - 1 in every output. ``"gauss"``: N(0, A A'). ``"mix"``: three
        anisotropic Gaussians. ``"banana"``: pairs (u, u^2 - 1 + 0.3 e). ``"ring"``: a noisy
        circle of radius 3 in the first two outputs, N(0, 1) in the others.
    n, d
        Rows and outputs.

    Raises
    ------
    InputError
        For another name.
    """
    if name not in _SYNTHETIC:
        raise InputError("name", found=repr(name), expected=", ".join(_SYNTHETIC))
    return _SYNTHETIC[name](n, d, as_generator(rng))
