"""What the benchmarks share: inputs, and a table of what was measured at the end of the run."""

from collections.abc import Callable

import numpy as np
import pytest

from dynabase.systems import generate

LINES = pytest.StashKey[list[str]]()


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """`report(line)`: a line of the table at the end."""
    return request.config.stash.setdefault(LINES, []).append


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the table."""
    lines = config.stash.get(LINES, [])
    if lines:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def lorenz() -> np.ndarray:
    """2,000 samples of Lorenz-63, standardised."""
    rows = generate("lorenz63", 2_000)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


@pytest.fixture(scope="session")
def panel() -> np.ndarray:
    """1,000 series of 512 samples and 3 coordinates: 20 trajectories, each with a little noise."""
    rows = np.stack([generate("lorenz63", 512, seed=seed) for seed in range(20)])
    many = np.repeat(rows, 50, axis=0)
    return many + 1e-6 * np.random.default_rng(0).normal(size=many.shape)
