"""Random streams: one seed in, any number of independent streams out.

NumPy code takes ``rng: RngLike`` (SPEC 7), torch code a `torch.Generator`. Streams for parts of a
larger computation come from `spawn` when the parts are counted and from `keyed` when they are
named: a named stream stays the same when parts are added, dropped or reordered.
"""

import hashlib
import json
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InputError, require

if TYPE_CHECKING:
    import torch

__all__ = ["RngLike", "as_generator", "keyed", "spawn", "torch_generator"]

RngLike = np.random.Generator | int | None


def as_generator(rng: RngLike = None) -> np.random.Generator:
    """A generator from a generator (itself), a seed, or None (fresh entropy).

    Raises
    ------
    InputError
        If `rng` is something else or a negative seed.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    return np.random.default_rng(_seed(rng, "rng"))


def spawn(rng: RngLike, n: int) -> list[np.random.Generator]:
    """`n` independent generators; the same ones for the same seed.

    A generator remembers what it has spawned: asked again, it gives new ones.
    """
    if n < 0:
        raise InputError("n", found=n, expected="a whole number >= 0")
    return as_generator(rng).spawn(n)


def keyed(seed: int, *keys: str | int) -> np.random.Generator:
    """The generator of the part that `keys` name, under one seed.

    Parameters
    ----------
    seed
        The seed of the whole.
    keys
        What names the part, for example ``"calibration", 3``. Text and numbers are kept apart.

    Examples
    --------
    >>> keyed(0, "noise", 1).integers(100) == keyed(0, "noise", 1).integers(100)
    np.True_
    """
    digest = hashlib.sha256(
        json.dumps([key if isinstance(key, str) else int(key) for key in keys]).encode()
    ).digest()
    # Eight words: no collision with the children of SeedSequence(seed), whose keys have one.
    words = [int(word) for word in np.frombuffer(digest, dtype="<u4")]
    return np.random.default_rng(np.random.SeedSequence(_seed(seed, "seed"), spawn_key=words))


def torch_generator(rng: RngLike = None, device: str = "cpu") -> "torch.Generator":
    """A torch generator on `device`, seeded from `rng`.

    Raises
    ------
    MissingExtra
        If torch is not installed.
    InputError
        If torch has no such device here.
    """
    torch = require("torch", extra="torch")
    try:
        generator = torch.Generator(device=device)
    except (RuntimeError, ValueError) as error:
        raise InputError(
            "device", found=repr(device), expected="one that torch has here"
        ) from error
    generator.manual_seed(int(as_generator(rng).integers(2**63 - 1)))
    return generator


def _seed(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise InputError(name, found=value, expected="a generator, None or a whole number >= 0")
    return int(value)
