"""Random streams: repeatable, independent, named."""

import math
import sys
from typing import Any

import numpy as np
import pytest

from armillary import InputError, MissingExtra
from armillary.randomness import as_generator, keyed, spawn, torch_generator


def draws(rng: np.random.Generator, n: int = 4) -> list[int]:
    return rng.integers(2**63, size=n).tolist()


def test_a_generator_passes_and_a_seed_makes_one() -> None:
    rng = np.random.default_rng(3)
    assert as_generator(rng) is rng
    assert draws(as_generator(3)) == draws(np.random.default_rng(3))
    assert draws(as_generator()) != draws(as_generator(None))


@pytest.mark.unchecked
@pytest.mark.parametrize("rng", [-1, True, 1.0, "1", np.random.RandomState(0), [1]])
def test_what_is_neither_is_refused(rng: Any) -> None:
    with pytest.raises(
        InputError, match=r"^rng: expected a generator, None or a whole number >= 0"
    ):
        as_generator(rng)


@pytest.mark.unchecked
def test_numpy_integers_are_seeds() -> None:
    seed: Any = np.int64(3)
    assert draws(as_generator(seed)) == draws(as_generator(3))
    assert draws(keyed(seed, "a")) == draws(keyed(3, "a"))


def test_spawned_streams_repeat_and_differ() -> None:
    first, again = spawn(5, 3), spawn(5, 3)
    assert [draws(rng) for rng in first] == [draws(rng) for rng in again]
    assert len({draws(rng)[0] for rng in [*spawn(5, 50), as_generator(5)]}) == 51
    rng = as_generator(5)
    assert draws(spawn(rng, 1)[0]) != draws(spawn(rng, 1)[0])
    assert spawn(0, 0) == []
    with pytest.raises(InputError, match="n: expected a whole number >= 0, found -1"):
        spawn(0, -1)


def test_named_streams_depend_on_seed_and_name_alone() -> None:
    assert draws(keyed(0, "noise", 3)) == draws(keyed(0, "noise", 3))
    names: list[tuple[str | int, ...]] = [
        (),
        ("a",),
        ("a", "b"),
        ("ab",),
        ("a", 1),
        ("a", "1"),
        (1,),
    ]
    streams = [keyed(seed, *name) for seed in (0, 1) for name in names]
    streams += [as_generator(0), *spawn(0, 5)]
    assert len({draws(rng)[0] for rng in streams}) == len(streams)
    with pytest.raises(InputError, match="seed: expected"):
        keyed(-1, "a")


def test_a_named_stream_is_the_same_in_every_version() -> None:
    """Stored results stay reproducible: this number may never change."""
    assert keyed(7, "calibration", 2).integers(2**32) == 1423425109


def test_streams_named_by_neighbouring_keys_are_uncorrelated() -> None:
    """Means over 2,000 streams and along each are chi-squared; false alarm 1e-6.

    P(X >= n + 2 sqrt(n t) + 2 t) and P(X <= n - 2 sqrt(n t)) are at most exp(-t) for n degrees
    of freedom (Laurent and Massart 2000, lemma 1); four such bounds are checked.
    """
    values = np.array([keyed(0, "stream", i).normal(size=50) for i in range(2_000)])
    t = math.log(4 / 1e-6)
    for axis in (0, 1):
        n = values.shape[1 - axis]
        chi_squared = values.shape[axis] * np.sum(values.mean(axis=axis) ** 2)
        assert n - 2 * math.sqrt(n * t) <= chi_squared <= n + 2 * math.sqrt(n * t) + 2 * t


def test_torch_generators_follow_the_seed() -> None:
    torch = pytest.importorskip("torch")
    first, again, other = (torch_generator(seed) for seed in (0, 0, 1))
    numbers = [torch.rand(3, generator=generator).tolist() for generator in (first, again, other)]
    assert numbers[0] == numbers[1] != numbers[2]
    rng = as_generator(0)
    assert torch_generator(rng).initial_seed() != torch_generator(rng).initial_seed()
    with pytest.raises(InputError, match="^device: expected one that torch has here, found 'nope'"):
        torch_generator(0, "nope")


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match="torch is not installed: pip install 'torch'"):
        torch_generator(0)
