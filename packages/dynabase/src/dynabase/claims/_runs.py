"""What several claims share: the pairs of context and truth, and their free runs at every alpha.

A pair is one trajectory of a system cut in two, 2,000 samples that are given and the 5,000 that
really followed, both scaled by the context's mean and standard deviations. Results are kept for
the life of the process, since four claims read the same runs.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
from jaxtyping import Float, Int

from armillary.claims import Effort
from armillary.parallel import map_jobs
from dynabase._run import Gains, run
from dynabase._train import GRID
from dynabase.embed import theiler_window
from dynabase.fit import trust_radius
from dynabase.measures import d_hellinger, d_stsp, itinerary_period
from dynabase.neighbours import Context
from dynabase.preprocess import location_and_scale
from dynabase.systems import SYSTEMS, split

TEN = tuple(name for name in SYSTEMS if name not in ("chua", "halvorsen"))
CHAOTIC = tuple(name for name in TEN if SYSTEMS[name].chaotic)
CYCLIC = tuple(name for name in TEN if not SYSTEMS[name].chaotic)
ALPHAS = np.array(GRID, dtype=float)


@dataclass(frozen=True)
class Pair:
    """A context, and what followed it."""

    system: str
    seed: int
    context: Float[np.ndarray, "T d"]
    target: Float[np.ndarray, "n d"]

    @cached_property
    def theiler(self) -> int:
        """The context's memory, in samples."""
        return theiler_window(self.context)

    @cached_property
    def searched(self) -> Context:
        """The context, made searchable."""
        return Context(self.context, theiler=self.theiler)

    @cached_property
    def radius(self) -> float:
        """The default trust radius."""
        return trust_radius(self.searched)

    def guard(self, alpha: float) -> float | None:
        """The trust radius where it is on by default."""
        return self.radius if alpha > 1 else None


@dataclass(frozen=True)
class Sweep:
    """Free runs of a pair over the target's length, one for each of `ALPHAS`."""

    d_stsp: Float[np.ndarray, " a"]
    d_hellinger: Float[np.ndarray, " a"]
    period: list[int | None]
    own: tuple[float, float]  # both measures of the context itself

    def at(self, alpha: float) -> float:
        """`d_stsp` at an alpha of the grid."""
        return float(self.d_stsp[place(alpha)])


@lru_cache(maxsize=64)
def pair(system: str, seed: int) -> Pair:
    """The pair of a system and a seed."""
    context, target = split(system, seed=seed)
    mean, scale = location_and_scale(context)
    return Pair(system, seed, (context - mean) / scale, (target - mean) / scale)


def seeds(effort: Effort, full: int = 5) -> range:
    """The seeds of a claim: one when there is little time."""
    return range(effort.seed, effort.seed + (1 if effort.quick else full))


def sweeps(effort: Effort, systems: tuple[str, ...], full: int = 5) -> dict[tuple[str, int], Sweep]:
    """The sweeps of some systems over the claim's seeds, computed once for each."""
    wanted = [(system, seed) for system in systems for seed in seeds(effort, full)]
    todo = [key for key in wanted if key not in _SWEEPS]
    found = map_jobs(_sweep, todo, jobs=effort.jobs, progress=partial(effort.run.progress))
    _SWEEPS.update(zip(todo, found, strict=True))
    return {key: _SWEEPS[key] for key in wanted}


_SWEEPS: dict[tuple[str, int], Sweep] = {}


def _sweep(key: tuple[str, int]) -> Sweep:
    given = pair(*key)
    radius = np.where(ALPHAS > 1, given.radius, np.inf)
    gains = Gains(ALPHAS, np.zeros(len(ALPHAS)), radius)
    start = np.repeat(given.context[-1:], len(ALPHAS), axis=0)
    path = run(given.searched, start, len(given.target), gains)
    runs = [path.values[:, at] for at in range(len(ALPHAS))]
    return Sweep(
        np.array([divergence(given.target, each) for each in runs]),
        np.array([d_hellinger(given.target, each) for each in runs]),
        [itinerary_period(path.index[:, at, 0]) for at in range(len(ALPHAS))],
        (d_stsp(given.target, given.context), d_hellinger(given.target, given.context)),
    )


def divergence(target: Float[np.ndarray, "n d"], generated: Float[np.ndarray, "m d"]) -> float:
    """`d_stsp` without its remarks: an escape shows in the number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return d_stsp(target, generated)


def place(alpha: float) -> int:
    """Position of an alpha in the grid."""
    return int(np.flatnonzero(alpha == ALPHAS)[0])


def over_systems(
    values: Float[np.ndarray, "systems seeds"], *, rng: np.random.Generator, level: float = 0.95
) -> tuple[float, float]:
    """Interval of the median over all pairs, by resampling whole systems."""
    chosen: Int[np.ndarray, "r systems"] = rng.integers(len(values), size=(2000, len(values)))
    medians = np.median(values[chosen].reshape(len(chosen), -1), axis=1)
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
