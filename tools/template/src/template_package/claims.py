"""The paper's claims, measured: the bound on the error, and what heavy tails do to the mean."""

import math

import numpy as np
from jaxtyping import Float
from scipy.stats import binomtest

from armillary.claims import Check, Claim, Effort, Measured
from armillary.randomness import keyed

from .block_means import median_of_means

FREEDOM = 2.1  # degrees of freedom of Student's t: heavy tails, but a finite variance
N, BLOCKS = 200, 20


def errors(
    rng: np.random.Generator, trials: int
) -> tuple[Float[np.ndarray, " trials"], Float[np.ndarray, " trials"]]:
    """Absolute errors of the median of block means and of the mean, over samples of size N."""
    samples = rng.standard_t(FREEDOM, (trials, N))
    ours = np.array([median_of_means(sample, BLOCKS, rng=rng).value for sample in samples])
    return np.abs(ours), np.abs(samples.mean(axis=1))


def bound(effort: Effort) -> Measured:
    """How often the error exceeds the radius of theorem 2."""
    trials = 6_000 if effort.quick else 40_000
    ours, _ = errors(keyed(effort.seed, "bound"), trials)
    sigma = math.sqrt(FREEDOM / (FREEDOM - 2))
    beyond = int(np.sum(ours > 2 * sigma / math.sqrt(N / BLOCKS)))
    interval = binomtest(beyond, trials).proportion_ci(0.99)
    allowed = math.exp(-BLOCKS / 8)
    share = beyond / trials
    check = Check("share of errors beyond it", share, interval.low, interval.high, at_most=allowed)
    return Measured((check,), scope=f"Student t, {FREEDOM} degrees of freedom, n = {N}")


def tails(effort: Effort) -> Measured:
    """The ratio of the two estimates' errors at their 99 % quantiles."""
    trials = 6_000 if effort.quick else 40_000
    rng = keyed(effort.seed, "tails")
    ours, mean = errors(rng, trials)
    again = rng.integers(trials, size=(200, trials))
    ratios = np.quantile(mean[again], 0.99, axis=1) / np.quantile(ours[again], 0.99, axis=1)
    low, high = np.quantile(ratios, [0.005, 0.995])
    ratio = float(np.quantile(mean, 0.99) / np.quantile(ours, 0.99))
    rows = [
        {"quantile": q, "mean": np.quantile(mean, q), "median of means": np.quantile(ours, q)}
        for q in (0.5, 0.9, 0.99, 0.999)
    ]
    check = Check("mean / median of means", ratio, float(low), float(high), at_least=1.25)
    return Measured((check,), rows, scope=f"Student t, {FREEDOM} degrees of freedom, n = {N}")


CLAIMS = (
    Claim(
        id="bound",
        says="the error exceeds 2 sigma / sqrt(m) with probability at most exp(-k / 8) (theorem 2)",
        expected="holds, with much room: the proof does not aim at the best constants",
        measure=bound,
    ),
    Claim(
        id="tails",
        says="on heavy tails its large errors are smaller than those of the mean (section 2)",
        expected="the 99 % quantile of the error is at least 1.25 times smaller",
        measure=tails,
    ),
)
