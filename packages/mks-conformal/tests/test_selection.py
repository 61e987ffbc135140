import numpy as np
import pytest

from mks_conformal import Gaussian, Linear, MultivariateKernelScore
from mks_conformal.conformal import Calibration
from mks_conformal.score import ExactCore
from mks_conformal.selection import (
    BANDWIDTHS,
    LAMS,
    Candidate,
    _trials,
    median_distance,
    select_score,
)


def test_skewed_residuals_get_a_kernel(skewed):
    score = MultivariateKernelScore(random_state=0).fit(skewed(400, 3, 0))
    found = score.diagnostics()
    assert found["selected"] == "kernel"
    assert found["bandwidth"] > 0
    assert found["lam"] in LAMS
    assert 1 <= found["effective_rank"] <= 400
    assert len(found["table"]) == len(BANDWIDTHS) * len(LAMS) + 1
    best = min(row["log_volume"] for row in found["table"])
    chosen = [
        r
        for r in found["table"]
        if (r["bandwidth"], r["lam"]) == (found["bandwidth"], found["lam"])
    ]
    assert chosen[0]["log_volume"] == best


def test_gaussian_residuals_keep_the_ellipsoid(rng):
    score = MultivariateKernelScore(random_state=0).fit(rng.normal(size=(400, 2)))
    found = score.diagnostics()
    assert (found["selected"], found["bandwidth"], found["lam"]) == ("ellipsoid", None, None)
    assert found["effective_rank"] == found["d_lam"] == 2
    R = rng.normal(size=(10, 2))
    z = score.whitening_(R)
    np.testing.assert_allclose(score.score_samples(R), (z**2).sum(1))


def test_under_40_rows_it_is_the_ellipsoid(skewed):
    assert MultivariateKernelScore(random_state=0).fit(skewed(39, 2, 0)).selected_ == "ellipsoid"


def test_what_is_given_is_kept(skewed):
    R = skewed(120, 2, 0)
    fixed = MultivariateKernelScore(bandwidth=0.9, lam=1e-3).fit(R)
    assert (fixed.selected_, fixed.bandwidth_, fixed.lam_, fixed.table_) == (
        "kernel",
        0.9,
        1e-3,
        [],
    )
    only_lam = MultivariateKernelScore(bandwidth=0.9, random_state=0).fit(R)
    assert {row["bandwidth"] for row in only_lam.table_} == {0.9, None}
    only_h = MultivariateKernelScore(lam=np.inf, random_state=0).fit(R)
    assert {row["lam"] for row in only_h.table_} == {np.inf, None}
    own = MultivariateKernelScore(Gaussian(1.0) + Linear(0.1), lam=1e-2).fit(R)
    assert (own.kernel_, own.table_) == (Gaussian(1.0) + Linear(0.1), [])


def test_infinite_ridge_is_no_candidate_where_it_means_nothing(skewed):
    R = skewed(80, 2, 0)
    for options in ({"scale": "mahalanobis"}, {"centered": False}):
        table = MultivariateKernelScore(random_state=0, **options).fit(R).table_
        assert all(row["lam"] is None or np.isfinite(row["lam"]) for row in table)


def test_same_seed_same_choice(skewed):
    R = skewed(150, 3, 0)
    one, two = (MultivariateKernelScore(random_state=4).fit(R) for _ in range(2))
    assert one.diagnostics() == two.diagnostics()
    np.testing.assert_array_equal(one.score_samples(R), two.score_samples(R))


@pytest.mark.parametrize("centered", [True, False])
def test_one_eigendecomposition_serves_every_ridge(skewed, centered):
    """The trial of each ridge is what its own score, fitted and calibrated apart, gives."""
    reference, held, points = skewed(80, 2, 0), skewed(60, 2, 1), 3 * skewed(300, 2, 2)
    lams = tuple(lam for lam in LAMS if centered or np.isfinite(lam))
    kernel = Gaussian(0.6) + Linear(0.01)
    trials = _trials(Candidate(kernel, 0.6, lams), reference, held, points, 0.1, centered)
    for lam, trial in zip(lams, trials, strict=True):
        core = ExactCore(reference, kernel, lam, centered)
        q = Calibration(core(held)).quantile(0.1)[0]
        agree = trial.inside == (core(points) <= q * (1 + 1e-9))
        assert agree.mean() >= 0.99
        far = core.far()
        ellipsoid = far.sublevel(q) if q > far.minimum else None
        expected = -np.inf if ellipsoid is None else ellipsoid.log_volume
        assert trial.floor == pytest.approx(expected, rel=1e-6)


def test_unbounded_candidates_lose(rng):
    """A bounded kernel narrower than the gaps reaches its plateau: infinite volume, not log 0."""
    z = rng.normal(size=(100, 2))
    narrow = Candidate(Gaussian(0.01), 0.01, (1e-3,))
    selection = select_score(z, [narrow], 0.1, True, rng)
    assert selection.kernel is None
    assert selection.table[0]["log_volume"] == np.inf


def test_median_distance(rng):
    z = rng.normal(size=(200, 2))
    pairs = np.sqrt(((z[:, None] - z[None]) ** 2).sum(-1))[np.triu_indices(200, 1)]
    assert median_distance(z, rng) == pytest.approx(np.median(pairs))
    tied = np.repeat([[0.0, 0.0], [1.0, 1.0]], [90, 10], axis=0)
    assert median_distance(tied, rng) > 0
    assert median_distance(np.zeros((50, 2)), rng) == 1.0


def test_many_identical_rows_work(rng):
    """Rounded data: the ridge keeps the factorisation, ties stay conservative."""
    R = rng.integers(-2, 3, size=(300, 2)).astype(float)
    score = MultivariateKernelScore(random_state=0).fit(R)
    assert np.isfinite(score.score_samples(R)).all()
    fixed = MultivariateKernelScore(bandwidth=1.0, lam=1e-6).fit(R)
    assert np.isfinite(fixed.score_samples(R)).all()


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bandwidth": "wide"}, "bandwidth: expected 'select' or a positive number"),
        ({"bandwidth": -1.0, "lam": 1.0}, "a positive number, found -1.0"),
        ({"lam": "small"}, "lam: expected 'select', a number or inf"),
        ({"lam": 0.0}, "lam: expected a positive number or inf"),
        ({"kernel": "gauss"}, "kernel: expected gaussian"),
        ({"kernel": 3}, "kernel"),
        ({"kernel": Gaussian(1.0), "bandwidth": 1.0}, "set it in the kernel"),
        ({"whiten": "zca"}, "whiten"),
        ({"scale": "sd"}, "scale"),
        ({"alpha": 0.0}, "alpha"),
        ({"random_state": "a"}, "random_state"),
    ],
)
def test_bad_options(options, words, rng):
    with pytest.raises(ValueError, match=words):
        MultivariateKernelScore(**options).fit(rng.normal(size=(50, 2)))


def test_too_few_rows(rng):
    with pytest.raises(ValueError, match="R: expected at least 5 rows for 3 output"):
        MultivariateKernelScore().fit(rng.normal(size=(4, 3)))
    MultivariateKernelScore().fit(rng.normal(size=(5, 3)))
