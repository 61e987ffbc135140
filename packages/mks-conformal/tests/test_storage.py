"""Saved regions answer as the originals do, and a broken file is one line."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from armillary import InputError
from armillary.files import read_arrays, write_arrays
from mks_conformal import Gaussian, MKSRegressor, MultivariateKernelScore, box_score
from mks_conformal.storage import around, load_region


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    return X, X[:, :2] + rng.exponential(size=(240, 2))


def regions(table: Any, m: int = 4, **options: Any) -> Any:
    X, Y = table
    score = options.pop("residual_score", MultivariateKernelScore(bandwidth=1.0, lam=1e-3))
    model = MKSRegressor(Ridge(), residual_score=score, random_state=0, **options)
    groups = options.pop("groups", None)
    return model.fit(X, Y, groups=groups).predict_region(X[:m])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "full"},
        {"scale": "knn"},
        {"residual_score": MultivariateKernelScore(bandwidth=1.0, lam=np.inf)},
        {"residual_score": MultivariateKernelScore(bandwidth=1.0, lam=1e-3, landmarks=40)},
        {"residual_score": MultivariateKernelScore(Gaussian(1.0), lam=0.1, scale="mahalanobis")},
        {"residual_score": MultivariateKernelScore(bandwidth=1.0, lam=0.1, centered=False)},
        {"residual_score": MultivariateKernelScore(whiten="robust", bandwidth=1.0, lam=0.1)},
    ],
    ids=["split", "full", "knn", "density", "nystrom", "mahalanobis", "uncentred", "robust"],
)
def test_a_loaded_region_answers_as_the_saved_one(table, tmp_path, options):
    region = regions(table, **options)
    region.to_npz(tmp_path / "r.npz")
    loaded = load_region(tmp_path / "r.npz")
    targets = table[1][:4]
    np.testing.assert_array_equal(loaded.pvalue(targets), region.pvalue(targets))
    np.testing.assert_array_equal(loaded.contains(targets), region.contains(targets))
    np.testing.assert_allclose(loaded.score(targets), region.score(targets), rtol=1e-12)
    np.testing.assert_array_equal(loaded.prediction, region.prediction)
    first, second = (r.volume(1, rng=0, max_points=20_000, rtol=0.5) for r in (loaded, region))
    assert first.log_value == pytest.approx(second.log_value, rel=1e-12)


def test_groups_weights_and_baselines(table, tmp_path):
    X, Y = table
    model = MKSRegressor(Ridge().fit(X, Y), residual_score=box_score(Y[:50] - X[:50, :2]))
    model.conformalize(X[50:], Y[50:], weights=np.linspace(0, 1, 190))
    region = model.predict_region(X[:3], weights=[0.1, 1.0, 5.0])
    region.to_npz(tmp_path / "w.npz")
    loaded = load_region(tmp_path / "w.npz")
    np.testing.assert_array_equal(loaded.threshold, region.threshold)
    np.testing.assert_array_equal(loaded.pvalue(Y[:3]), region.pvalue(Y[:3]))
    with pytest.raises(InputError, match="the same region for every row"):
        around(loaded, X[:, :2])
    model.conformalize(X[50:], Y[50:], groups=X[50:, 0] > 0)
    region = model.predict_region(X[:3], groups=[True, False, True])
    region.to_npz(tmp_path / "g.npz")
    np.testing.assert_array_equal(
        load_region(tmp_path / "g.npz").pvalue(Y[:3]), region.pvalue(Y[:3])
    )


def test_around_moves_the_region(table):
    region = regions(table)
    moved = around(region, region.prediction[:1] + 10.0)
    assert moved.pvalue(table[1][:1] + 10.0) == pytest.approx(region[0].pvalue(table[1][:1]))
    with pytest.raises(InputError, match="2 output"):
        around(region, np.zeros((1, 3)))


def test_what_cannot_be_saved(table, tmp_path):
    with pytest.raises(InputError, match="split or full.*a cross region"):
        regions(table, method="cv+", cv=2).to_npz(tmp_path / "r.npz")
    with pytest.raises(InputError, match="a slice region"):
        regions(table)[0].condition({0: 0.0}).to_npz(tmp_path / "r.npz")

    class Kernel:
        def __call__(self, A, B):
            return A @ B.T

        def diag(self, A):
            return (A**2).sum(axis=1)

    with pytest.raises(InputError, match="cannot be saved"):
        regions(table, residual_score=MultivariateKernelScore(Kernel(), lam=0.1)).to_npz(
            tmp_path / "r.npz"
        )
    assert not list(tmp_path.iterdir())


@pytest.fixture
def saved(table, tmp_path) -> Any:
    """`saved(change)`: the path of a region whose arrays `change` has altered."""
    regions(table).to_npz(tmp_path / "r.npz")
    arrays = read_arrays(tmp_path / "r.npz")

    def altered(change: Any) -> Any:
        header = json.loads(str(arrays["header"]))
        change(arrays, header)
        arrays.setdefault("header", np.array(""))
        if str(arrays["header"]) != "broken":
            arrays["header"] = np.array(json.dumps(header))
        write_arrays(tmp_path / "bad.npz", **arrays)
        return tmp_path / "bad.npz"

    return altered


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a, h: a.pop("prediction"), "no array 'prediction'"),
        (lambda a, h: a.pop("scores_0"), "no array 'scores_0'"),
        (lambda a, h: a.pop("score_whitening_matrix"), "score_whitening_matrix"),
        (lambda a, h: a.update(prediction=a["prediction"][:, :1]), "score_references.*any, 1"),
        (lambda a, h: a.update(score_references=np.zeros((9, 3))), "score_references.*any, 2"),
        (lambda a, h: a.update(scores_0=a["scores_0"][None]), "scores_0"),
        (lambda a, h: a.update(scores_0=a["scores_0"].astype("f4")), "float64.*found float32"),
        (lambda a, h: a.update(scores_0=a["scores_0"] * np.nan), "NaN or infinity"),
        (lambda a, h: a.update(group=a["group"] + 5), "group"),
        (lambda a, h: a.update(header=np.array("broken")), "header.*JSON"),
        (lambda a, h: h.update(format="other"), "another format"),
        (lambda a, h: h.update(kind="jackknife"), "kind.*split or full"),
        (lambda a, h: h.update(alpha="x"), "alpha"),
        (lambda a, h: h.update(names=["a", 1]), "names"),
        (lambda a, h: h.update(calibrations=0), "calibrations"),
        (lambda a, h: h["score"].update(kernel=["cubic", 1.0]), "kernel"),
        (lambda a, h: h["score"].update(lam=-1.0), "a ridge above 0"),
        (lambda a, h: h["score"].update(kind="forest"), "kernel, ellipsoid or box"),
        (lambda a, h: h.update(score=None), "the options of a score"),
    ],
)
def test_a_broken_file_is_told(saved, change, words):
    path = saved(change)
    with pytest.raises(InputError, match=words) as caught:
        load_region(path)
    assert "\n" not in str(caught.value)
    assert "bad.npz" in str(caught.value)


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / "evil.npz", header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="pickled"):
        load_region(tmp_path / "evil.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(InputError, match=r"\.npz"):
        load_region(tmp_path / "text.npz")
    with pytest.raises(InputError, match="none"):
        load_region(tmp_path / "none.npz")
