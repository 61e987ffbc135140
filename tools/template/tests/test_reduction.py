import numpy as np
import pytest

from template_package import median_of_means


def test_one_block_is_the_mean(rng):
    values = rng.standard_t(3, 101)
    assert median_of_means(values, 1, rng=rng).value == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.parametrize("n", [100, 101])
def test_as_many_blocks_as_values_is_the_median(rng, n):
    values = rng.standard_t(3, n)
    assert median_of_means(values, n, rng=rng).value == np.median(values)
