import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from template_package import median_of_means

numbers = st.floats(-1e6, 1e6, allow_nan=False)
samples = st.lists(numbers, min_size=1, max_size=60).map(lambda x: np.array(x, dtype=float))


@settings(deadline=None)  # a busy machine is no fault
@given(samples, st.data())
def test_the_estimate_lies_among_the_values(values, data):
    blocks = data.draw(st.integers(1, len(values)))
    slack = 1e-9 * np.abs(values).max()
    value = median_of_means(values, blocks, rng=0).value
    assert values.min() - slack <= value <= values.max() + slack


@given(samples, st.data(), st.floats(-100, 100), numbers)
def test_a_change_of_unit_changes_the_estimate_alike(values, data, scale, shift):
    blocks = data.draw(st.integers(1, len(values)))
    moved = median_of_means(scale * values + shift, blocks, rng=0).value
    straight = scale * median_of_means(values, blocks, rng=0).value + shift
    assert moved == pytest.approx(straight, rel=1e-9, abs=1e-4)
