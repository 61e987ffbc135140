"""Pairs of context and target to train on: from systems, of ours or of dysts, and from files."""

from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float

from armillary import InputError, require
from armillary.parallel import map_jobs

from .io import read_recordings
from .systems import SYSTEMS, split

DYSTS = "dysts:"
PER_PERIOD = 30  # samples that dysts gives for each dominant period
Pair = tuple[Float[np.ndarray, "T d"], Float[np.ndarray, "n d"]]


def system_pairs(
    names: list[str] | None, n_seeds: int, n_context: int, n_target: int, *, seed: int, jobs: int
) -> list[Pair]:
    """Trajectories of systems cut in two; all systems of `dynabase.systems` when none is named."""
    names = names or list(SYSTEMS)
    for name in names:
        if not name.startswith(DYSTS) and name not in SYSTEMS:
            raise InputError(
                "--systems", found=name, expected=f"{DYSTS}NAME or one of {', '.join(SYSTEMS)}"
            )
    if n_seeds < 1 or n_context < 1 or n_target < 1:
        raise InputError(
            "--seeds, --context, --target",
            found=f"{n_seeds}, {n_context}, {n_target}",
            expected="whole numbers >= 1",
        )
    wanted = [(name, seed + number) for name in names for number in range(n_seeds)]
    return map_jobs(partial(_pair, n_context=n_context, n_target=n_target), wanted, jobs=jobs)


def recorded_pair(path: Path, n_context: int) -> Pair:
    """A recording from a file, cut in two."""
    y = read_recordings(path).only().y.to_numpy(dtype=float)
    rows = y.reshape(len(y), -1)
    if len(rows) <= n_context:
        raise InputError(
            f"{len(rows)} row(s)",
            where=str(path),
            expected=f"more than the {n_context} of --context",
            instead="a smaller --context leaves rows to be met",
        )
    return rows[:n_context], rows[n_context:]


def _pair(key: tuple[str, int], *, n_context: int, n_target: int) -> Pair:
    name, seed = key
    if not name.startswith(DYSTS):
        return split(name, seed=seed, n_context=n_context, n_target=n_target)
    flows = require("dysts.flows", extra="dynabase[dysts]")
    kind = getattr(flows, name.removeprefix(DYSTS), None)
    if not isinstance(kind, type):
        raise InputError("--systems", found=name, expected="the name of a flow of dysts")
    model = kind()
    start = np.asarray(model.ic, dtype=float)
    model.ic = start * (1 + 0.05 * np.random.default_rng(seed).normal(size=start.shape))
    whole = model.make_trajectory(n_context + n_target, resample=True, pts_per_period=PER_PERIOD)
    return whole[:n_context], whole[n_context:]
