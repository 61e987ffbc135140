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
def weighted_rows() -> Callable[[int, int], tuple[np.ndarray, np.ndarray]]:
    """`weighted_rows(n, d)`: unit features and log weights with a standard deviation of 1."""

    def make(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        features = rng.normal(size=(n, d))
        return features / np.linalg.norm(features, axis=1, keepdims=True), rng.normal(size=n)

    return make


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the table."""
    lines = config.stash.get(LINES, [])
    if lines:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.write_line(line)
