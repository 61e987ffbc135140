import numpy as np
import pytest

from armillary import InputError
from template_package import blocks_for, median_of_means


def test_a_hand_made_case():
    """Blocks of one value each: the median of 1, 2, 9 is 2, whatever the cut."""
    found = median_of_means(np.array([9.0, 1.0, 2.0]), 3, rng=0)

    assert found.value == 2.0
    assert sorted(found.block_means) == [1.0, 2.0, 9.0]
    assert found.block_size == 1
    assert found.confidence == pytest.approx(1 - np.exp(-3 / 8))


def test_every_value_is_in_one_block(rng):
    """The block means, weighted by size, give back the sum of all values."""
    values = rng.normal(size=17)
    found = median_of_means(values, 5, rng=rng)

    sizes = [4, 4, 3, 3, 3]
    assert found.block_size == min(sizes)
    assert found.block_means @ sizes == pytest.approx(values.sum())


def test_a_seed_repeats_and_another_does_not(rng):
    values = rng.normal(size=40)
    one, same, other = (median_of_means(values, 8, rng=seed).value for seed in (1, 1, 2))

    assert one == same
    assert one != other


@pytest.mark.parametrize(("delta", "blocks"), [(0.5, 6), (0.01, 37), (1e-6, 111)])
def test_blocks_for_is_the_least_number(delta, blocks):
    assert blocks_for(delta) == blocks
    assert np.exp(-blocks / 8) <= delta < np.exp(-(blocks - 1) / 8)


@pytest.mark.parametrize(
    ("values", "blocks", "message"),
    [
        ([1.0], 0, "n_blocks: expected a whole number >= 1, found 0"),
        (
            [1.0, 2.0],
            3,
            (
                "values: expected at least one for each of 3 blocks, found 2 value(s)"
                " (pass more values or fewer blocks)"
            ),
        ),
        ([1.0, np.nan], 1, "position 1: values: expected finite numbers, found nan"),
    ],
)
def test_what_cannot_be_used_is_named(values, blocks, message):
    with pytest.raises(InputError) as caught:
        median_of_means(np.array(values), blocks)
    assert str(caught.value) == message


def test_delta_must_be_a_probability():
    with pytest.raises(InputError) as caught:
        blocks_for(1.0)
    assert str(caught.value) == "delta: expected a probability between 0 and 1, found 1.0"
