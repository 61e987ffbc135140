import warnings

import numpy as np
import pandas as pd
import pytest

from mks_conformal import RegionSet, box_score, ellipsoid_score
from mks_conformal.conformal import Calibration
from mks_conformal.law import SplitLaw


def region_of(score, prediction, alpha=0.1, scores=None, names=None, factor=None):
    """A split region around predictions, calibrated on given scores."""
    scores = np.linspace(0.1, 4.0, 39) if scores is None else scores
    calibration = Calibration(np.asarray(scores, dtype=float), None, score.resolution_)
    m = len(prediction)
    law = SplitLaw(score, prediction, alpha, (calibration,), np.zeros(m, dtype=int), factor)
    return RegionSet(law, names)


@pytest.fixture
def residuals(rng):
    return rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3))


@pytest.fixture
def kernel_region(skewed, fixed_score):
    R = skewed(90, 3, 0)
    score = fixed_score(R, bandwidth=1.5)
    return region_of(
        score,
        np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]),
        scores=score.score_samples(skewed(99, 3, 1)),
    )


class TestMembership:
    def test_contains_pvalue_score_and_threshold_agree(self, kernel_region, skewed):
        Y = skewed(300, 3, 2)
        one = kernel_region[1]
        inside, p, s = one.contains(Y), one.pvalue(Y), one.score(Y)
        assert 0 < inside.mean() < 1
        np.testing.assert_array_equal(inside, p > 0.1 + 1e-9)
        np.testing.assert_array_equal(inside, s <= one.threshold[0] * (1 + 1e-9))

    def test_row_by_row(self, kernel_region):
        Y = np.array([[1.0, 2.0, 3.0], [50.0, 0.0, 0.0]])
        np.testing.assert_array_equal(kernel_region.contains(Y), [True, False])
        np.testing.assert_array_equal(kernel_region[::-1].contains(Y), [False, False])
        assert kernel_region[0].contains([1.0, 2.0, 3.0])[0]

    def test_many_rows_stream_in_parts(self, kernel_region, monkeypatch, skewed):
        Y = skewed(250, 3, 3)
        whole = kernel_region[0].pvalue(Y), kernel_region[0].contains(Y), kernel_region[0].score(Y)
        monkeypatch.setattr("mks_conformal.region.STREAM", 100)
        parts = kernel_region[0].pvalue(Y), kernel_region[0].contains(Y), kernel_region[0].score(Y)
        for one, other in zip(whole, parts, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert kernel_region[0].contains(np.empty((0, 3))).shape == (0,)

    def test_indexing(self, kernel_region):
        assert (len(kernel_region), kernel_region.n_outputs, kernel_region.alpha) == (2, 3, 0.1)
        assert len(kernel_region[np.array([True, False])]) == 1
        assert [len(region) for region in kernel_region] == [1, 1]
        np.testing.assert_array_equal(kernel_region[-1].prediction, [[0.0, 0.0, 0.0]])
        with pytest.raises(IndexError):
            kernel_region[2]

    def test_wrong_shapes(self, kernel_region):
        with pytest.raises(ValueError, match=r"Y: expected 2 row\(s\), found 3"):
            kernel_region.contains(np.zeros((3, 3)))
        with pytest.raises(ValueError, match=r"Y: expected 3 output\(s\), found 2"):
            kernel_region.contains(np.zeros((2, 2)))
        with pytest.raises(ValueError, match="Y: row 1, column 2.*NaN"):
            kernel_region.contains(np.array([[0, 0, 0], [0, 0, np.nan]]))
        with pytest.raises(ValueError, match="i: expected a row of 0 to 1, found 2"):
            kernel_region.volume(2)

    def test_names_in_messages(self, residuals):
        region = region_of(ellipsoid_score(residuals), np.zeros((1, 3)), names=("a", "b", "c"))
        with pytest.raises(ValueError, match="column 'b'"):
            region.contains([[0.0, np.inf, 0.0]])
        with pytest.raises(ValueError, match="a, b, c"):
            region.contains([[0.0, 0.0]])
        frame = pd.DataFrame({"c": [3.0], "a": [1.0], "b": [2.0]})
        np.testing.assert_array_equal(region.score(frame), region.score([[1.0, 2.0, 3.0]]))
        with pytest.raises(ValueError, match="columns: expected a, b, c, found a, b, d"):
            region.contains(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "d"]))
        assert region.label(1) == "'b'"
        assert region.condition({0: 0.0}).names == ("b", "c")


class TestVolume:
    def test_rows_of_one_threshold_share_a_volume(self, kernel_region):
        assert kernel_region.volume(0, rng=1) == kernel_region.volume(1, rng=1)

    def test_volume_scales_with_the_factor(self, residuals):
        score = ellipsoid_score(residuals)
        L = np.array([np.eye(3), np.diag([2.0, 1.0, 5.0])])
        L[1, 2, 0] = 0.7
        region = region_of(score, np.zeros((2, 3)), factor=L)
        assert region.volume(1).value == pytest.approx(10 * region.volume(0).value, rel=1e-9)

    def test_factor_moves_membership_too(self, residuals, rng):
        score = ellipsoid_score(residuals)
        L = np.array([[[2.0, 0, 0], [0.5, 1.0, 0], [0.3, -0.2, 0.5]]])
        region = region_of(score, np.ones((1, 3)), factor=L)
        r = rng.normal(size=(50, 3))
        np.testing.assert_allclose(
            region.score(1.0 + r @ L[0].T), score.score_samples(r), rtol=1e-9
        )
        points = region.sample(200, rng=0)
        assert region.contains(points).all()
        box = region.bounding_box()
        assert ((points >= box[0]) & (points <= box[1])).all()


class TestGeometry:
    def test_samples_lie_inside_and_in_a_tight_box(self, kernel_region):
        points = kernel_region.sample(1500, 0, rng=5)
        assert points.shape == (1500, 3)
        assert kernel_region[0].contains(points).all()
        box = kernel_region.bounding_box(0)
        assert ((points >= box[0]) & (points <= box[1])).all()
        assert (box[1] - box[0] < 1.6 * np.ptp(points, axis=0)).all()

    def test_bounding_box_of_an_ellipsoid_is_exact_and_slsqp_finds_it(self, residuals):
        from dataclasses import replace

        from mks_conformal.bounds import bounding_box_of

        score = ellipsoid_score(residuals)
        body = score.body(3.0)
        exact = bounding_box_of(body, np.random.default_rng(0))
        half = np.sqrt(3.0 * np.diag(np.cov(residuals.T, bias=True)))
        np.testing.assert_allclose(exact, residuals.mean(0) + np.stack([-half, half]), rtol=1e-9)
        pushed = bounding_box_of(replace(body, closed=None), np.random.default_rng(0))
        np.testing.assert_allclose(pushed, exact, rtol=1e-5, atol=1e-5)
        climbed = bounding_box_of(replace(body, closed=None, excess=None), np.random.default_rng(0))
        assert (np.abs(climbed - exact) < 0.02 * 2 * half).all()

    def test_box_region_is_its_own_bounding_box(self, residuals):
        score = box_score(residuals)
        region = region_of(score, np.ones((1, 3)), alpha=0.1)
        q = region.threshold[0]
        expected = 1 + np.median(residuals, 0) + q * residuals.std(0) * np.array([[-1], [1]])
        np.testing.assert_allclose(region.bounding_box(), expected)

    def test_grid_is_the_slice(self, kernel_region):
        grid = kernel_region.grid2d(0, dims=(2, 0), fixed={1: 2.1}, n=25)
        assert grid.inside.shape == (25, 25)
        x, y = np.meshgrid(grid.x, grid.y)
        points = np.column_stack([y.ravel(), np.full(625, 2.1), x.ravel()])
        np.testing.assert_array_equal(grid.inside.ravel(), kernel_region[0].contains(points))
        np.testing.assert_array_equal(grid.inside, grid.value <= grid.level)
        assert 0.02 < grid.inside.mean() < 0.98

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"dims": (0, 0)}, "dims"),
            ({"dims": (0, 3)}, "dims"),
            ({"fixed": {0: 1.0}}, "fixed"),
            ({"fixed": {7: 1.0}}, "fixed"),
        ],
    )
    def test_bad_grids(self, kernel_region, options, words):
        with pytest.raises(ValueError, match=words):
            kernel_region.grid2d(0, **options)


class TestCondition:
    def test_ellipsoid_gives_the_conditional_ellipsoid(self, residuals):
        """The slice at y_0 = v, written with the Schur complement."""
        score = ellipsoid_score(residuals)
        region = region_of(score, np.array([[1.0, -1.0, 2.0]]))
        q, v = region.threshold[0], 1.3
        C, m = np.cov(residuals.T, bias=True), residuals.mean(0) + np.array([1.0, -1.0, 2.0])
        center = m[1:] + C[1:, 0] / C[0, 0] * (v - m[0])
        S = C[1:, 1:] - np.outer(C[1:, 0], C[0, 1:]) / C[0, 0]
        left = q - (v - m[0]) ** 2 / C[0, 0]
        half = np.sqrt(left * np.diag(S))
        rest = region.condition({0: v})
        np.testing.assert_allclose(rest.bounding_box(), center + np.stack([-half, half]), rtol=1e-9)
        area = np.pi * left * np.sqrt(np.linalg.det(S))
        assert rest.volume().value == pytest.approx(area, rel=1e-9)
        assert rest.volume().se == 0

    def test_membership_is_that_of_the_whole_vector(self, kernel_region, rng):
        rest = kernel_region.condition({1: 2.2}, 0)
        assert (len(rest), rest.n_outputs) == (1, 2)
        points = np.array([1.0, 3.0]) + rng.normal(size=(100, 2))
        full = np.column_stack([points[:, 0], np.full(100, 2.2), points[:, 1]])
        np.testing.assert_array_equal(rest.contains(points), kernel_region[0].contains(full))
        np.testing.assert_array_equal(rest.pvalue(points), kernel_region[0].pvalue(full))
        assert rest.contains(rest.sample(100, rng=0)).all()

    def test_volume_is_the_integral_of_the_slices(self, kernel_region):
        """Three values of y_0 against a grid of the whole region's slice."""
        for v in (0.7, 1.0, 1.5):
            rest = kernel_region.condition({0: v}, 0)
            estimate = rest.volume(rng=0)
            grid = kernel_region.grid2d(0, dims=(1, 2), fixed={0: v}, n=150)
            area = grid.inside.mean() * np.ptp(grid.x) * np.ptp(grid.y)
            assert estimate.value == pytest.approx(area, rel=0.06)

    def test_down_to_an_interval(self, kernel_region):
        rest = kernel_region.condition({0: 1.0, 2: 3.0}, 0)
        ends = rest.intervals()
        assert rest.volume().value == pytest.approx((ends[:, 1] - ends[:, 0]).sum())
        again = kernel_region.condition({0: 1.0}, 0).condition({1: 3.0})
        np.testing.assert_allclose(again.intervals(), ends, rtol=1e-9)

    def test_an_impossible_value_leaves_nothing(self, kernel_region, residuals):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rest = kernel_region.condition({0: 1e3}, 0)
            assert rest.volume(max_points=20_000).value == 0
            assert np.isnan(rest.bounding_box()).all()
        region = region_of(ellipsoid_score(residuals), np.zeros((1, 3)))
        nothing = region.condition({0: 1e3})
        assert nothing.volume().value == 0
        with pytest.raises(ValueError, match="empty"):
            nothing.sample(1)

    @pytest.mark.unchecked
    def test_bad_known_values(self, kernel_region):
        for known, words in [
            ({}, "1 to 2 of 3"),
            ({0: 1.0, 1: 1.0, 2: 1.0}, "1 to 2 of 3"),
            ({3: 1.0}, "outputs 0 to 2"),
            ({"a": 1.0}, "outputs 0 to 2"),
            ({0: np.nan}, "output 0"),
        ]:
            with pytest.raises(ValueError, match=words):
                kernel_region.condition(known)


def test_infinite_quantile_is_everything(residuals):
    region = region_of(ellipsoid_score(residuals), np.zeros((1, 3)), scores=np.arange(3.0))
    assert region.contains([[1e9, 0, 0]])[0]
    assert region.volume().value == np.inf
    assert not region.volume().bounded
    np.testing.assert_array_equal(region.bounding_box()[0], [-np.inf] * 3)
    region.grid2d(n=10)
    with pytest.raises(ValueError, match="unbounded"):
        region.sample(3)


def test_intervals_need_one_output(kernel_region):
    with pytest.raises(ValueError, match="one output"):
        kernel_region.intervals()
