"""The median of block means: an estimate of the mean that a few wild values cannot move.

The values are cut at random into k blocks; the estimate is the median of the blocks' means. With
m values in each block, drawn independently with mean mu and variance sigma^2,

    P(|estimate - mu| > 2 sigma / sqrt(m)) <= exp(-k / 8)

(Lugosi and Mendelson 2019, theorem 2). Only the variance must be finite. One block is the mean,
as many blocks as values the median.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from armillary import InputError
from armillary.randomness import RngLike, as_generator


@dataclass(frozen=True, slots=True, eq=False)  # the generated == fails on array fields
class Estimate:
    """An estimated mean, with what is needed to doubt it."""

    value: float  # in the values' own units
    block_means: Float[np.ndarray, " k"]  # their scatter shows how sure the value is
    block_size: int  # of the smallest block: m in the bound
    confidence: float  # that the error is at most 2 sigma / sqrt(block_size); 0 says nothing


def blocks_for(delta: float) -> int:
    """Blocks needed for an error of at most 2 sigma / sqrt(m) with probability 1 - `delta`.

    Parameters
    ----------
    delta
        Probability of a larger error, between 0 and 1, both excluded.

    Returns
    -------
    The least k with exp(-k / 8) <= delta.

    Raises
    ------
    InputError
        If `delta` is not between 0 and 1.

    Examples
    --------
    >>> blocks_for(0.01)
    37
    """
    if not 0 < delta < 1:
        raise InputError("delta", found=delta, expected="a probability between 0 and 1")
    return math.ceil(8 * math.log(1 / delta))


def median_of_means(
    values: Float[np.ndarray, " n"], n_blocks: int, *, rng: RngLike = None
) -> Estimate:
    """Estimate the mean by the median of the means of random blocks.

    Parameters
    ----------
    values
        The data, in any unit; independent draws of one distribution.
    n_blocks
        How many blocks; `blocks_for` gives the number for a wanted confidence.
    rng
        Seed or generator of the random cut into blocks. Pass one to make the result repeatable.

    Raises
    ------
    InputError
        If a value is not finite, or there are fewer values than blocks.

    Examples
    --------
    >>> median_of_means(np.array([1.0, 2.0, 3.0, 1e9]), 3, rng=0).value < 4
    True
    """
    if n_blocks < 1:
        raise InputError("n_blocks", found=n_blocks, expected="a whole number >= 1")
    if len(values) < n_blocks:
        raise InputError(
            "values",
            found=f"{len(values)} value(s)",
            expected=f"at least one for each of {n_blocks} blocks",
            instead="pass more values or fewer blocks",
        )
    if len(wild := np.flatnonzero(~np.isfinite(values))):
        raise InputError(
            "values",
            where=f"position {wild[0]}",
            found=values[wild[0]].item(),
            expected="finite numbers",
        )
    blocks = np.array_split(as_generator(rng).permutation(values), n_blocks)
    means = np.array([block.mean() for block in blocks])
    return Estimate(
        value=float(np.median(means)),
        block_means=means,
        block_size=len(values) // n_blocks,
        confidence=1 - math.exp(-n_blocks / 8),
    )
