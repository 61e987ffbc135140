import numpy as np
import pandas as pd
import pytest

from mks_conformal import box_score, ellipsoid_score
from mks_conformal.baselines import bonferroni_box


def test_scores_are_their_formulas(rng):
    R, new = rng.normal(size=(60, 3)) * [1, 5, 9], rng.normal(size=(20, 3))
    centred = new - R.mean(0)
    expected = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(np.cov(R.T, bias=True)), centred)
    np.testing.assert_allclose(ellipsoid_score(R).score_samples(new), expected, rtol=1e-9)
    expected = (np.abs(new - np.median(R, axis=0)) / R.std(0)).max(axis=1)
    np.testing.assert_allclose(box_score(R).score_samples(new), expected, rtol=1e-12)


def test_ellipsoid_gradient(rng):
    R, new = rng.normal(size=(60, 3)), rng.normal(size=(5, 3))
    score = ellipsoid_score(R)
    values, slopes = score.with_gradients(new)
    np.testing.assert_allclose(values, score.score_samples(new))
    for j, shift in enumerate(1e-6 * np.eye(3)):
        numeric = (score.score_samples(new + shift) - score.score_samples(new - shift)) / 2e-6
        np.testing.assert_allclose(slopes[:, j], numeric, rtol=1e-6)


def test_bonferroni_box(rng):
    R, cal, new = rng.normal(size=(100, 4)), rng.normal(size=(499, 4)), rng.normal(size=(4000, 4))
    box = bonferroni_box(R, cal, 0.1)
    distance = np.sort(np.abs(cal - np.median(R, axis=0)), axis=0)
    np.testing.assert_array_equal(box.half_widths, distance[487])  # ceil(500 * .975) = 488th
    assert box.contains(new).mean() >= 0.88
    assert np.exp(box.log_volume) == pytest.approx(np.prod(2 * box.half_widths))
    assert bonferroni_box(R, cal[:20], 0.1).log_volume == np.inf


def test_messages(rng):
    with pytest.raises(
        ValueError, match=r"R: expected rows, at least 5 for 3 output\(s\), found 4"
    ):
        ellipsoid_score(rng.normal(size=(4, 3)))
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    score = box_score(frame)
    frame.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="R: row 3, column 'b'.*NaN"):
        box_score(frame)
    with pytest.raises(ValueError, match="residuals: expected 2 output.*a, b"):
        score.score_samples(np.zeros((2, 3)))
