"""What the theorems promise, with bands of a stated probability of false alarm."""

import numpy as np
import pytest

from mks_conformal import Gaussian, Linear, MultivariateKernelScore
from mks_conformal.conformal import Calibration
from mks_conformal.score import ExactCore


@pytest.fixture(scope="module")
def score(skewed):
    """Selected as by default, on rows that no trial sees again."""
    return MultivariateKernelScore(random_state=0).fit(skewed(300, 2, 77))


@pytest.mark.parametrize(("n_cal", "alpha"), [(19, 0.1), (9, 0.1), (50, 0.02), (30, 0.25)])
def test_split_coverage_is_exact(score, skewed, binomial_band, n_cal, alpha):
    """Without ties it is ceil((n+1)(1-alpha)) / (n+1); for (19, .1) that is 18/20.

    False alarm 1e-6 each.
    """
    trials = 1000
    R = skewed(trials * (n_cal + 1), 2, 5 + n_cal)
    scores = score.score_samples(R).reshape(trials, n_cal + 1)
    hits = sum(Calibration(row[1:]).inside(row[:1], alpha)[0] for row in scores)
    exact = np.ceil((n_cal + 1) * (1 - alpha) - 1e-9) / (n_cal + 1)
    low, high = binomial_band(exact, exact, trials, 1e-6)
    assert low <= hits <= high


def test_pvalues_are_uniform_on_their_grid(score, skewed):
    """Each of the n + 1 ranks has probability 1/(n+1): chi-square at 1e-6."""
    from scipy.stats import chi2

    trials, n = 1000, 19
    scores = score.score_samples(skewed(trials * (n + 1), 2, 9)).reshape(trials, n + 1)
    p = np.array([Calibration(row[1:]).pvalue(row[:1])[0] for row in scores])
    counts = np.bincount(np.rint(p * (n + 1)).astype(int), minlength=n + 2)[1:]
    expected = trials / (n + 1)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, n)


def test_ties_only_make_regions_larger(binomial_band):
    """Rounded residuals: at least 1 - alpha."""
    trials, n, alpha = 1000, 29, 0.1
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 6, size=(trials, n + 1)).astype(float)
    hits = sum(Calibration(row[1:]).inside(row[:1], alpha)[0] for row in scores)
    low, _ = binomial_band(1 - alpha, 1 - alpha, trials, 1e-6)
    assert hits >= low


def test_weights_restore_coverage_under_covariate_shift(binomial_band):
    """The noise grows with x, and the test rows have larger x; weights are the density ratio."""
    trials, n, alpha = 1000, 60, 0.1
    rng = np.random.default_rng(4)
    plain = weighted = 0
    for _ in range(trials):
        x = rng.uniform(0, 1, size=n)
        new = np.sqrt(rng.uniform())  # density 2 x on (0, 1)
        s = (0.2 + x) * np.abs(rng.normal(size=n))
        candidate = np.array([(0.2 + new) * np.abs(rng.normal())])
        plain += Calibration(s).inside(candidate, alpha)[0]
        weights = Calibration(s, 2 * x)
        weighted += weights.inside(candidate, alpha, np.array([2 * new]))[0]
    low, _ = binomial_band(1 - alpha, 1 - alpha, trials, 1e-6)
    assert weighted >= low
    assert plain < weighted - 3 * np.sqrt(trials * alpha * (1 - alpha))


@pytest.mark.slow
def test_rate_follows_the_effective_rank_and_not_the_dimension():
    """Claim C7: rms of s_n - s_N falls like n^(-1/2), and alike for d = 2, 8, 16."""
    kernel, lam, sizes = Gaussian(1.5) + Linear(0.01), 0.01, (125, 250, 500, 1000)

    def draw(n, d, rng, low_rank=True):
        out = rng.normal(size=(n, d))
        if low_rank:
            out[:, 2:] *= 1e-3
        return out

    def errors(d, low_rank=True):
        rng = np.random.default_rng(d)
        points = draw(200, d, rng, low_rank)
        truth = ExactCore(draw(4000, d, rng, low_rank), kernel, lam)(points)
        out = []
        for n in sizes:
            parts = [ExactCore(draw(n, d, rng, low_rank), kernel, lam)(points) for _ in range(8)]
            out.append(np.sqrt(np.mean((np.array(parts) - truth) ** 2)))
        return np.array(out)

    low = {d: errors(d) for d in (2, 8, 16)}
    for d, found in low.items():
        slope = np.polyfit(np.log(sizes), np.log(found), 1)[0]
        assert -0.65 <= slope <= -0.35, d
        assert (found <= 1.5 * low[2]).all(), d
    assert (errors(8, low_rank=False) >= 2 * low[8]).all()


def test_effective_rank_is_that_of_the_two_wide_directions(rng):
    """Design: 3.22 at d = 2; the sixteenth of a percent that the others add is not seen."""
    R = rng.normal(size=(500, 8))
    R[:, 2:] *= 1e-3
    options = {"kernel": Gaussian(1.5) + Linear(0.01), "lam": 0.01, "whiten": "none"}
    found = MultivariateKernelScore(**options).fit(R).diagnostics()
    flat = MultivariateKernelScore(**options).fit(R[:, :2]).diagnostics()
    assert found["effective_rank"] == pytest.approx(3.2, abs=0.3)
    assert found["effective_rank"] == pytest.approx(flat["effective_rank"], rel=1e-3)
    assert found["d_lam"] < 60
