import numpy as np
import pytest
import scipy.linalg

from armillary import ArmillaryError
from dpp_sample import KDPP, RankError, greedy_map
from dpp_sample.graded import graded_spectrum, spectrum


def heavy_copies(seed, unit_rows):
    """Log-weights with a standard deviation of 20 to 100 nats, copies of the heaviest rows."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(6, 10)), int(rng.integers(4, 7)), int(rng.integers(2, 4))
    features = unit_rows(rng, n, d)
    weight = rng.uniform(20, 100) * rng.normal(size=n)
    heaviest = np.argsort(-weight)
    features[heaviest[1]] = features[heaviest[0]]
    if seed % 2:
        features[heaviest[3]] = features[heaviest[2]]
    if seed % 4 == 3:
        weight[heaviest[1]] = weight[heaviest[0]]
    return features, weight, k


@pytest.mark.parametrize("seed", range(12))
def test_wide_weights_equal_exact_arithmetic(exact_law, unit_rows, seed):
    features, weight, k = heavy_copies(seed, unit_rows)
    law = exact_law(features, weight, k)
    dpp = KDPP(features, weight, k=k)

    np.testing.assert_allclose(dpp.marginals(), law.marginals, atol=1e-12)
    assert dpp.marginals().sum() == pytest.approx(k, abs=1e-10)
    assert dpp.log_normalizer == pytest.approx(law.log_normalizer, rel=1e-13, abs=1e-11)
    np.testing.assert_allclose(np.exp(dpp.log_prob(law.sets)), law.probability, atol=1e-11)


def test_an_ordinary_svd_fails_where_the_graded_route_does_not(exact_law, unit_rows):
    """Two copies weigh e^200 each: the light rows are below the rounding of the heavy."""
    rng = np.random.default_rng(0)
    features = unit_rows(rng, 6, 4)
    features[1] = features[0]
    weight = np.array([200.0, 200.0, 0.0, 1.0, 2.0, 3.0])
    law = exact_law(features, weight, 3)

    scaled = np.exp((weight - weight.max()) / 2)[:, None] * features
    ordinary = np.linalg.svd(scaled)[1]
    exact = np.exp(KDPP(features, weight, k=3).eigenvalues - 200)
    assert ordinary[1] ** 2 > 1e10 * exact[1] or ordinary[1] == 0

    np.testing.assert_allclose(KDPP(features, weight, k=3).marginals(), law.marginals, atol=1e-12)


@pytest.mark.parametrize("tilt", [1e-2, 1e-4, 3e-6])
def test_near_copies_equal_exact_arithmetic(exact_law, unit_rows, tilt):
    """A heavy row and one that differs by `tilt`: rounding costs 1e-16 / tilt, no more."""
    rng = np.random.default_rng(1)
    features = unit_rows(rng, 7, 5)
    features[1] = features[0] + tilt * features[5]
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    weight = np.array([120.0, 119.0, 60.0, -10.0, 0.0, 5.0, 3.0])
    law = exact_law(features, weight, 3)
    np.testing.assert_allclose(
        KDPP(features, weight, k=3).marginals(), law.marginals, atol=1e-15 / tilt + 1e-13
    )


def test_draws_with_wide_weights_follow_the_law(exact_law, unit_rows, fit_p_value):
    """False alarm probability 1e-4 for each of four seeds."""
    for seed in (1, 3, 5, 7):
        features, weight, k = heavy_copies(seed, unit_rows)
        law = exact_law(features, weight / 10, k)
        draws = KDPP(features, weight / 10, k=k).sample(5_000, rng=seed)
        assert fit_p_value(draws, law) > 1e-4


def test_both_routes_agree_on_narrow_weights(unit_rows):
    rng = np.random.default_rng(0)
    features, weight = unit_rows(rng, 60, 12), rng.uniform(-15, 0, size=60)
    vectors, values = spectrum(features, weight, 5)
    graded_vectors, graded_values = graded_spectrum(features, weight)
    np.testing.assert_allclose(values, graded_values, atol=1e-12)
    np.testing.assert_allclose(np.abs(vectors), np.abs(graded_vectors), atol=1e-10)


def test_vectors_are_orthonormal_and_reproduce_the_matrix(unit_rows):
    rng = np.random.default_rng(0)
    features, weight = unit_rows(rng, 40, 8), 60 * rng.normal(size=40)
    weight -= weight.max()
    vectors, values = graded_spectrum(features, weight)
    scaled = np.exp(weight / 2)[:, None] * features
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-13)
    np.testing.assert_allclose(
        (vectors * np.exp(values)) @ vectors.T, scaled @ scaled.T, atol=1e-13
    )


def test_rank_is_that_of_the_features_whatever_the_weights(pool_of_copies):
    for weight in (np.zeros(60), -np.arange(60.0), -9.0 * np.arange(60)):
        assert KDPP(pool_of_copies, weight, k=6).rank == 6
        with pytest.raises(RankError, match="rank 6 "):
            KDPP(pool_of_copies, weight, k=7)


def test_draws_and_greedy_choice_count_rank_alike(unit_rows):
    """Rows that differ by rounding of float32 are copies to both, by 1e-5 to neither."""
    features = np.tile(unit_rows(np.random.default_rng(0), 1, 6), (8, 1))
    noise = np.random.default_rng(1).normal(size=features.shape)
    for tilt, rank in ((1e-8, 1), (1e-5, 6)):
        rows = features + tilt * noise
        assert KDPP(rows, k=1).rank >= rank
        with pytest.raises(RankError, match=f"rank {rank} "):
            KDPP(rows, k=rank + 1)
        with pytest.raises(RankError, match=f"rank {rank} "):
            greedy_map(rows, k=rank + 1)
        assert KDPP(rows, k=rank).marginals().sum() == pytest.approx(rank, abs=1e-9)


def test_weights_beyond_the_range_of_floats_are_clipped(unit_rows, exact_law):
    features = unit_rows(np.random.default_rng(0), 6, 4)
    weight = np.array([0.0, -1.0, -2.0, -700.0, -5000.0, -1e6])
    dpp = KDPP(features, weight, k=4)
    assert dpp.clipped.tolist() == [False, False, False, True, True, True]
    law = exact_law(features, np.maximum(weight, -600), 4)
    np.testing.assert_allclose(dpp.marginals(), law.marginals, atol=1e-12)
    assert not KDPP(features, weight / 1e4, k=4).clipped.any()


def test_the_slower_driver_steps_in(monkeypatch, unit_rows):
    features, weight = unit_rows(np.random.default_rng(0), 20, 5), np.zeros(20)
    expected = KDPP(features, weight, k=3).marginals()
    svd = scipy.linalg.svd

    def failing(*args, lapack_driver, **options):
        if lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("did not converge")
        return svd(*args, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr("scipy.linalg.svd", failing)
    np.testing.assert_allclose(KDPP(features, weight, k=3).marginals(), expected, atol=1e-13)


def test_a_failure_of_lapack_is_told_as_ours(monkeypatch, unit_rows):
    features = unit_rows(np.random.default_rng(0), 20, 5)

    def never(*_args, **_options):
        raise np.linalg.LinAlgError("did not converge")

    monkeypatch.setattr("scipy.linalg.svd", never)
    with pytest.raises(ArmillaryError, match="did not converge") as caught:
        KDPP(features, k=3)
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)

    jacobi = scipy.linalg.lapack.dgejsv
    monkeypatch.setattr("scipy.linalg.lapack.dgejsv", lambda *a, **o: (*jacobi(*a, **o)[:-1], 1))
    with pytest.raises(ArmillaryError, match="dgejsv, info 1"):
        KDPP(features, -5.0 * np.arange(20), k=3)
