"""Collects what the comparisons measure and prints it as one table at the end of the run."""

from collections.abc import Callable

import numpy as np
import pytest

LINES = pytest.StashKey[list[str]]()


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """`report(line)`: a line of the table at the end."""
    return request.config.stash.setdefault(LINES, []).append


@pytest.fixture(scope="session")
def residuals() -> Callable[[int, int, int], np.ndarray]:
    """`residuals(n, d, seed)`: independent Exp(1) - 1."""
    return lambda n, d, seed: np.random.default_rng(seed).exponential(size=(n, d)) - 1.0


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the table."""
    lines = config.stash.get(LINES, [])
    if lines:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.write_line(line)
