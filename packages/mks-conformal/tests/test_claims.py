"""The machinery of the claims on cases worked by hand, and the quick claims as a user runs them."""

import json

import numpy as np
import pytest
from scipy.stats import betabinom

from mks_conformal import ellipsoid_score
from mks_conformal.claims import CLAIMS
from mks_conformal.claims.peers import TransportRank
from mks_conformal.claims.protocol import check_range, paired
from mks_conformal.cli import main
from mks_conformal.contest import contest, density_score, judge, over_splits, parts_of
from mks_conformal.data import synthetic
from mks_conformal.figures import coverage_band


def test_claims_are_told_apart():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) == 9
    assert [claim.id for claim in CLAIMS if not claim.promised] == ["peers"]


def test_intervals_by_hand():
    mean, low, high = paired([1.0, 2.0, 3.0])
    assert mean == 2
    assert high - mean == pytest.approx(4.302653 / np.sqrt(3), rel=1e-6)  # t with 2 degrees
    assert low + high == pytest.approx(4)
    check = check_range("x", [np.log(0.5), np.log(2.0)], at_most=1.5)
    assert (check.value, *check.interval) == pytest.approx((1.0, 0.5, 2.0))
    assert check.verdict == "undecided"


def test_the_band_is_beta_binomial():
    """19 rows at alpha .1 leave out one score of 20 in two: coverage is Beta(18, 2)."""
    low, high = coverage_band(19, 1000, 0.1)
    law = betabinom(1000, 18, 2)
    assert law.cdf(1000 * high) - law.cdf(1000 * low - 1) == pytest.approx(0.95, abs=0.01)
    assert coverage_band(5, 100, 0.1) == (1.0, 1.0)


def test_parts_are_disjoint_and_whole(rng):
    parts = parts_of(101, (0.4, 0.3, 0.3), rng)
    assert [len(part) for part in parts] == [40, 30, 31]
    assert sorted(np.concatenate(parts)) == list(range(101))


def test_an_ellipsoid_beside_itself():
    """Volume by hand: d = 2, pi q sqrt(det C)."""
    R = synthetic("gauss", 300, 2, 0)
    found = judge(ellipsoid_score(R[:100]), R[:100], R[100:200], R[200:], 0.1)
    z = R[100:200] - R[:100].mean(axis=0)
    C = np.cov(R[:100].T, bias=True)
    q = np.sort(np.einsum("ij,ji->i", z, np.linalg.solve(C, z.T)))[90]
    assert found.log_volume == pytest.approx(np.log(np.pi * q * np.sqrt(np.linalg.det(C))))
    assert 0.75 < found.coverage <= 1
    twice = {"MKS": found, "ellipsoid": found}
    rows = over_splits([twice, twice])
    assert rows[0]["ratio"] == rows[1]["ratio"] == 1


def test_the_density_score_has_no_ellipsoid_to_fall_back_on():
    R = synthetic("gauss", 200, 2, 0)
    score = density_score(R, 0.1, 0)
    assert score.selected_ == "kernel"
    assert np.isinf(score.lam_)


def test_methods_share_their_rows():
    R = synthetic("exp", 260, 2, 0)
    found = contest(R[:100], R[100:180], R[180:], 0.1, methods=("ellipsoid", "box", "Bonferroni"))
    center = np.median(R[:100], axis=0)
    widths = np.sort(np.abs(R[100:180] - center), axis=0)[76]  # ceil(81 x .95) = 77th
    assert found["Bonferroni"].log_volume == pytest.approx(np.log(2 * widths).sum())
    inside = (np.abs(R[180:] - center) <= widths).all(axis=1)
    np.testing.assert_array_equal(found["Bonferroni"].inside, inside)


@pytest.mark.slow  # POT loads torch
def test_transport_ranks_of_the_references_are_a_matching():
    pytest.importorskip("ot")
    R = synthetic("exp", 60, 2, 0)
    rank = TransportRank(R, 0)
    # matched ones would have the radii 1/n .. 1; where a potential is tight twice, either is taken
    assert np.abs(np.sort(rank.score_samples(R)) - np.arange(1, 61) / 60).max() < 0.15
    # far out, the outermost ranks; the middle is inside
    assert rank.score_samples(R.mean(axis=0)[None])[0] < 0.6
    assert rank.score_samples(R.max(axis=0)[None] + 5)[0] > 0.8


def reproduced(run_command, folder, *claims):
    run_command(
        "mks-conformal", "reproduce", *claims, "--quick", "--quiet", "--out", folder, timeout=1200
    )
    return {c["id"]: c for c in json.loads((folder / "result.json").read_text())["claims"]}


@pytest.mark.slow
def test_every_claim_in_quick(run_command, tmp_path):
    """As measured; see README. What is undecided here needs the full measurement."""
    found = reproduced(run_command, tmp_path)
    verdicts = {name: claim["verdict"] for name, claim in found.items()}
    for name in ("coverage", "identities", "interpolates", "rate", "peers"):
        assert verdicts.pop(name) == "holds"
    assert "does not hold" not in verdicts.values()
    for name in ("coverage", "dimension", "level", "rate", "peers-digits"):
        assert (tmp_path / f"{name}.png").exists()


def test_reproduce_measures_the_identities(tmp_path):
    assert main(["reproduce", "identities", "interpolates", "--quiet", "--out", str(tmp_path)]) == 0
    claims = json.loads((tmp_path / "result.json").read_text())["claims"]
    assert [claim["verdict"] for claim in claims] == ["holds", "holds"]
