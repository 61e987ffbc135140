import warnings

import numpy as np
import pytest

from armillary import InputError
from dpp_sample.features import (
    LexicalEmbedder,
    combine_features,
    cosine,
    from_gram,
    median_distance,
    rbf,
    shifted,
)

WORDS = ["tide", "moon", "sea", "pull", "wave", "salt", "wind", "shore", "deep", "blue"]


def sentences(n, rng):
    return [" ".join(rng.choice(WORDS, size=6)) + f" {i}" for i in range(n)]


def gram(rows):
    return rows @ rows.T


def test_shifted_is_half_of_one_plus_the_cosine(rng):
    x = rng.normal(size=(20, 5))
    assert gram(shifted(x)) == pytest.approx((1 + gram(cosine(x))) / 2, abs=1e-14)
    opposite = shifted(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    assert gram(opposite) == pytest.approx(np.eye(2), abs=1e-15)  # no copies of one another


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e200])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_rows_of_any_size_come_to_unit_norm_in_float64(rng, scale, dtype):
    x = rng.normal(size=(4, 3)) * (scale if dtype is np.float64 else 1)
    unit = cosine(x.astype(dtype))
    assert unit.dtype == np.float64
    assert np.linalg.norm(unit, axis=1) == pytest.approx(np.ones(4), abs=1e-14)


@pytest.mark.parametrize(
    ("value", "found"), [(0.0, "norm 0"), (np.nan, "not finite"), (np.inf, "not finite")]
)
def test_a_row_without_a_direction_is_named(value, found):
    x = np.ones((4, 3))
    x[2] = value
    for kernel in (cosine, shifted):
        with pytest.raises(InputError, match=f"row 2: embedding.*{found}"):
            kernel(x)


def test_rbf_reproduces_the_kernel_within_its_tolerance(rng):
    x = rng.normal(size=(60, 3))
    distance2 = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    for bandwidth in (0.5, 2.0):
        rows = rbf(x, bandwidth)
        # the residual is positive semi-definite with a trace of at most 1e-6 n
        assert gram(rows) == pytest.approx(np.exp(-distance2 / (2 * bandwidth**2)), abs=1.3e-4)
        assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(60))
    assert rbf(x, 20.0).shape[1] < 30  # a smooth kernel needs few columns


def test_rbf_takes_the_median_distance_for_bandwidth(rng):
    x = rng.normal(size=(30, 3))
    upper = np.triu_indices(30, 1)
    median = np.median(np.linalg.norm(x[:, None] - x[None], axis=2)[upper])
    assert median_distance(x) == pytest.approx(median)
    assert rbf(x) == pytest.approx(rbf(x, float(median)))
    assert rbf(np.ones((3, 2))) == pytest.approx(np.ones((3, 1)))  # no distance above zero


def test_rbf_says_when_the_columns_do_not_suffice(rng):
    x = rng.normal(size=(50, 8))
    with pytest.warns(UserWarning, match=r"5 columns leave 0\.\d+ of the kernel's trace out"):
        rbf(x, 1.0, max_rank=5)


@pytest.mark.unchecked
def test_rbf_refuses_what_is_no_bandwidth():
    for wrong in (0.0, -1.0, np.nan, "mean"):
        with pytest.raises(InputError, match="bandwidth"):
            rbf(np.eye(3), wrong)
    with pytest.raises(InputError, match="row 1"):
        rbf(np.array([[0.0], [np.nan]]))


def test_from_gram_gives_back_a_kernel_of_condition_1e6(rng):
    """The case of dppy issue 80: float64 keeps small eigenvalues, none is taken for rounding."""
    vectors = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    kernel = (vectors * np.geomspace(1e-6, 1, 40)) @ vectors.T
    rows = from_gram(kernel)
    assert rows.shape == (40, 40)
    assert gram(rows) == pytest.approx((kernel + kernel.T) / 2, abs=1e-14)


def test_from_gram_clips_the_rounding_of_float32(rng):
    """The case of dppy issue 57: a float32 kernel has small negative eigenvalues."""
    x = rng.normal(size=(80, 6)).astype(np.float32)
    kernel = x @ x.T
    assert np.linalg.eigvalsh(kernel.astype(float))[0] < 0
    rows = from_gram(kernel)
    assert rows.shape == (80, 6)
    assert gram(rows) == pytest.approx(gram(x.astype(float)), abs=1e-4)


@pytest.mark.unchecked
def test_from_gram_refuses_what_is_no_kernel():
    cases = {
        "square": np.ones((2, 3)),
        "semi-definite": np.diag([1.0, -2e-5]),
        "row 1, column 0.*nan": np.array([[1.0, 0.0], [np.nan, 1.0]]),
        "symmetric": np.array([[1.0, 0.5], [0.1, 1.0]]),
        "semi-definite matrix": np.zeros((2, 2)),
    }
    for words, kernel in cases.items():
        with pytest.raises(InputError, match=words):
            from_gram(kernel)
    assert from_gram(np.diag([1.0, -0.9e-5])).shape == (2, 1)


def test_combined_features_add_kernels_by_weight(rng):
    f, g = rng.normal(size=(9, 3)), rng.normal(size=(9, 4))
    mixed = combine_features([(f, 0.1), (g, 0.9)])
    assert gram(mixed) == pytest.approx(0.1 * gram(cosine(f)) + 0.9 * gram(cosine(g)))
    assert combine_features([(f, 1), (g, 9)]) == pytest.approx(mixed)


@pytest.mark.unchecked
def test_combined_features_must_fit():
    with pytest.raises(InputError, match="weights"):
        combine_features([])
    with pytest.raises(InputError, match="weights"):
        combine_features([(np.eye(2), 0.0)])
    with pytest.raises(InputError, match=r"\[2, 3\] rows"):
        combine_features([(np.eye(2), 1), (np.eye(3), 1)])


def test_lexical_features_are_unit_rows_and_see_likeness():
    texts = ["the tide follows the moon", "the tides follow a moon", "salt and pepper"]
    rows = LexicalEmbedder()(texts)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(3))
    near, far = gram(rows)[0, 1:]
    assert 0.2 < near < 1
    assert far < 0.1


def test_lexical_kernel_is_the_tf_idf_cosine_for_up_to_256_texts(rng):
    """Reduction: scikit-learn's own pipeline on the same n-grams, without the rank limit."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    texts = sentences(256, rng)
    cells = [
        HashingVectorizer(
            analyzer=analyzer,
            ngram_range=span,
            n_features=2**15,
            alternate_sign=False,
            norm=None,
            token_pattern=r"\w+|[^\w\s]",
        ).transform(texts)
        for analyzer, span in (("char_wb", (3, 5)), ("word", (1, 2)))
    ]
    reference = TfidfTransformer().fit_transform(hstack(cells))
    rows = LexicalEmbedder()(texts)
    assert rows.shape[1] <= 256
    assert gram(rows) == pytest.approx(gram(reference).toarray(), abs=1e-12)


def test_more_texts_are_reduced_to_the_rank(rng):
    texts = sentences(300, rng)
    full, reduced = LexicalEmbedder(rank=300)(texts), LexicalEmbedder(rank=40)(texts)
    assert reduced.shape == (300, 40)
    assert np.linalg.norm(reduced, axis=1) == pytest.approx(np.ones(300))
    assert np.corrcoef(gram(full).ravel(), gram(reduced).ravel())[0, 1] > 0.9


@pytest.mark.slow
def test_both_ways_of_reducing_agree(rng):
    texts = sentences(2001, rng)
    many = LexicalEmbedder(rank=20)(texts)  # above 2000 rows: a truncated SVD
    assert many.shape == (2001, 20)
    frozen = LexicalEmbedder(rank=20).fit(texts)
    few = frozen(texts[:2000])
    assert gram(many[:200]) == pytest.approx(gram(few[:200]), abs=5e-3)


def test_blank_texts_share_a_dimension_of_their_own():
    rows = LexicalEmbedder()(["", "a word", " \n", "another word"])
    kernel = gram(rows)
    assert kernel[0, 2] == pytest.approx(1)
    assert kernel[0, [1, 3]] == pytest.approx(np.zeros(2))
    assert LexicalEmbedder()([""]) == pytest.approx(np.ones((1, 1)))


def test_a_text_that_the_rank_cannot_hold_is_no_zero_row():
    rows = LexicalEmbedder(rank=2)(["aaa bbb", "aaa bbb", "ccc ddd", "ccc ddd", "xyz"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(5))


def test_case_and_order_of_rows(rng):
    texts = sentences(30, rng)
    embed = LexicalEmbedder()
    assert gram(embed(["Yes", "yes", "No"]))[0, 1] == pytest.approx(1)
    order = rng.permutation(30)
    shuffled = gram(embed([texts[i] for i in order]))
    assert shuffled == pytest.approx(gram(embed(texts))[np.ix_(order, order)], abs=1e-12)


def test_fit_keeps_one_kernel_for_later_calls(rng):
    first, second = sentences(40, rng), sentences(40, rng)
    frozen = LexicalEmbedder().fit(first)
    both = gram(frozen(first + second))
    assert gram(frozen(second)) == pytest.approx(both[40:, 40:], abs=1e-12)
    assert not np.allclose(gram(LexicalEmbedder()(second)), both[40:, 40:], atol=1e-3)


def test_no_texts_are_refused():
    with pytest.raises(InputError, match="texts"):
        LexicalEmbedder()([])


def test_nothing_warns_on_honest_input(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shifted(rng.normal(size=(5, 2)))
        rbf(rng.normal(size=(5, 2)))
        LexicalEmbedder()(["a", "b c", ""])
