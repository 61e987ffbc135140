"""Feature maps: from embeddings, a kernel or plain text to the rows phi(y) of unit norm.

The similarity of two strings is k(y, y') = phi(y) . phi(y'). A determinant takes phi and -phi for
copies of one another, so the default map is `shifted`, whose k = (1 + cosine) / 2 has no negative
value. `combine_features` mixes what a text looks like with what it means (its answer, its result).

`LexicalEmbedder` needs no model; `SentenceEmbedder` (extra `hf`) reads one from a local folder.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Real
from scipy.linalg import eigh

from armillary import InputError

if TYPE_CHECKING:
    from .embedders import SentenceEmbedder as SentenceEmbedder


def cosine(x: Real[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Rows of `x` at unit norm, as float64: k is the cosine.

    Raises
    ------
    InputError
        Naming the first row whose norm is zero or not finite.
    """
    rows = np.asarray(x, dtype=float)
    if rows.ndim != 2:
        raise InputError("embeddings", found=f"shape {rows.shape}", expected="rows x dimensions")
    # by the largest entry first: squares of 1e200 or 1e-200 leave the range of floats
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = rows / largest
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(norms))
    if bad.size:
        seen = float(largest[bad[0], 0])
        raise InputError(
            "embedding",
            where=f"row {bad[0]}",
            found=f"norm {seen:g}" if seen == 0 else "an entry that is not finite",
            expected="a finite norm above 0",
        )
    return rows / norms


def shifted(x: Real[np.ndarray, "n d"]) -> Float[np.ndarray, "n d+1"]:
    """``[phi, 1] / sqrt(2)`` for the unit rows phi of `x`: k = (1 + cosine) / 2, never negative."""
    unit = cosine(x)
    return np.hstack([unit, np.ones((len(unit), 1))]) / np.sqrt(2)


def rbf(
    x: Real[np.ndarray, "n d"],
    bandwidth: float | str = "median",
    *,
    tol: float = 1e-6,
    max_rank: int = 1024,
) -> Float[np.ndarray, "n r"]:
    """Features of k = ``exp(-|x - x'|^2 / (2 bandwidth^2))``, by pivoted Cholesky.

    Parameters
    ----------
    x
        Embeddings, in any unit; they are not normalised.
    bandwidth
        In the unit of `x`; "median" takes the median of the distances above zero (over at most
        1000 rows, evenly spaced), and 1 where there are none.
    tol
        Share of the kernel's trace that may be left out.
    max_rank
        Columns at most; a warning says so when `tol` was not reached.

    Returns
    -------
    Rows of unit norm, r columns.

    Raises
    ------
    InputError
        If a row is not finite, or `bandwidth` is not a positive number or "median".
    """
    rows = np.asarray(x, dtype=float)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise InputError("embedding", where=f"row {bad[0]}", expected="finite entries")
    width = median_distance(rows) if bandwidth == "median" else bandwidth
    if isinstance(width, str) or not 0 < width < np.inf:
        raise InputError("bandwidth", found=width, expected='a positive number or "median"')

    # Harbrecht, Peters & Schneider 2012: the row with the largest residual is the next pivot.
    factor = np.zeros((len(rows), min(max_rank, len(rows))))
    residual = np.ones(len(rows))
    rank = 0
    while rank < factor.shape[1] and residual.sum() > tol * len(rows):
        pivot = int(np.argmax(residual))
        distance2 = ((rows - rows[pivot]) ** 2).sum(axis=1)
        column = np.exp(-distance2 / (2 * width**2)) - factor[:, :rank] @ factor[pivot, :rank]
        column /= np.sqrt(residual[pivot])
        residual = np.maximum(residual - column**2, 0.0)
        residual[pivot] = 0.0
        factor[:, rank] = column
        rank += 1
    left = residual.sum() / len(rows)
    if left > tol:
        warnings.warn(
            f"rbf: {rank} columns leave {left:.2g} of the kernel's trace out; widen the bandwidth",
            stacklevel=2,
        )
    return cosine(factor[:, :rank])


def median_distance(x: Real[np.ndarray, "n d"]) -> float:
    """Bandwidth "median" of `rbf`: of the distances above 0 among at most 1000 rows, or 1."""
    from scipy.spatial.distance import pdist

    rows = np.asarray(x, dtype=float)
    some = rows[np.unique(np.linspace(0, len(rows) - 1, min(1000, len(rows))).astype(int))]
    distances = pdist(some)
    positive = distances[distances > 0]
    return float(np.median(positive)) if positive.size else 1.0


def from_gram(gram: Real[np.ndarray, "n n"], tol: float | None = None) -> Float[np.ndarray, "n r"]:
    """Features F with ``F @ F.T`` = `gram`: a kernel that somebody else computed.

    The matrix is symmetrised. Its eigenvalues below -1e-5 of the largest are an error, other
    negative ones are rounding and count as zero. Rows keep the norms the diagonal gives them.

    Parameters
    ----------
    gram
        Symmetric, positive semi-definite.
    tol
        Eigenvalues up to `tol` times the largest are dropped as rounding: by default 1e-6 for
        float32 and coarser matrices, 1e-13 for float64, where a smaller one still means something.

    Raises
    ------
    InputError
        If the matrix is not square, finite, symmetric (to 1e-3 of its largest entry) or positive
        semi-definite.
    """
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not gram.size:
        raise InputError("gram", found=f"shape {gram.shape}", expected="a square matrix")
    matrix = np.asarray(gram, dtype=float)
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(
            "gram",
            where=f"row {row}, column {column}",
            found=float(matrix[row, column]),
            expected="a finite number",
        )
    asymmetry = np.abs(matrix - matrix.T).max()
    if asymmetry > 1e-3 * np.abs(matrix).max():
        raise InputError(
            "gram", found=f"an asymmetry of {asymmetry:.3g}", expected="a symmetric matrix"
        )
    values, vectors = eigh((matrix + matrix.T) / 2)
    if values[-1] <= 0 or values[0] < -1e-5 * values[-1]:
        raise InputError(
            "gram",
            found=f"eigenvalues from {values[0]:.3g} to {values[-1]:.3g}",
            expected="a positive semi-definite matrix",
        )
    if tol is None:
        exact = np.issubdtype(gram.dtype, np.integer) or np.finfo(gram.dtype).eps < 1e-10
        tol = 1e-13 if exact else 1e-6
    kept = values > tol * values[-1]
    return (vectors[:, kept] * np.sqrt(values[kept]))[:, ::-1]


def combine_features(
    parts: Sequence[tuple[Real[np.ndarray, "n _"], float]],
) -> Float[np.ndarray, "n d"]:
    """Mix kernels: ``combine_features([(f, a), (g, 1 - a)])`` has k = a k_f + (1 - a) k_g.

    Parameters
    ----------
    parts
        Feature matrices of the same rows, each with its weight > 0. Rows are brought to unit
        norm first and weights to a sum of 1.

    Raises
    ------
    InputError
        If there is no part, a weight is not positive, or the numbers of rows differ.
    """
    weights = np.array([weight for _, weight in parts], dtype=float)
    if not parts or not np.all((weights > 0) & np.isfinite(weights)):
        raise InputError("weights", found=weights.tolist(), expected="one positive number per part")
    rows = [len(features) for features, _ in parts]
    if len(set(rows)) > 1:
        raise InputError("parts", found=f"{rows} rows", expected="the same rows in each")
    scale = np.sqrt(weights / weights.sum())
    return np.hstack([s * cosine(f) for s, (f, _) in zip(scale, parts, strict=True)])


@dataclass(frozen=True)
class LexicalEmbedder:
    """Unit features from the letters and words of texts: no model needed.

    TF-IDF over hashed n-grams (3 to 5 characters within words, 1 to 2 words; 2^15 cells each; case
    is ignored), reduced to at most `rank` dimensions, which is exact for up to `rank` texts. A text
    with nothing in it, such as the empty string, gets a dimension of its own.

    Only rows of one call can be compared: the coordinates are those of its texts. Two calls share
    one kernel when they share the inverse document frequencies: use what `fit` returns.
    """

    rank: int = 256
    idf: Float[np.ndarray, " cells"] | None = None

    def fit(self, texts: Sequence[str]) -> "LexicalEmbedder":
        """Return an embedder with the document frequencies of `texts`, for this and later calls."""
        return LexicalEmbedder(self.rank, _inverse_document_frequency(_ngram_counts(texts)))

    def __call__(self, texts: Sequence[str]) -> Float[np.ndarray, "n r"]:
        """Features of `texts`, by their own document frequencies unless `fit` gave others."""
        from sklearn.preprocessing import normalize

        if not len(texts):
            raise InputError("texts", found="none", expected="at least 1")
        counts = _ngram_counts(texts)
        idf = _inverse_document_frequency(counts) if self.idf is None else self.idf
        counts.data = counts.data * idf[counts.indices]
        reduced = _reduce(normalize(counts), self.rank)
        norms = np.linalg.norm(reduced, axis=1)
        blank = norms < 1e-6  # nothing there, or (above `rank` texts) nothing kept
        reduced[blank] = 0.0
        if blank.any():
            reduced = np.hstack([reduced, blank[:, None].astype(float)])
        return cosine(reduced)


def _ngram_counts(texts: Sequence[str]) -> Any:
    """Sparse counts, n x 2^16."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import HashingVectorizer

    def hashed(analyzer: str, shortest: int, longest: int) -> Any:
        return HashingVectorizer(
            analyzer=analyzer,  # pyright: ignore[reportArgumentType]
            ngram_range=(shortest, longest),
            n_features=2**15,
            alternate_sign=False,
            norm=None,  # pyright: ignore[reportArgumentType]
            token_pattern=r"\w+|[^\w\s]",
        ).transform(texts)

    return hstack([hashed("char_wb", 3, 5), hashed("word", 1, 2)], format="csr")


def _inverse_document_frequency(counts: Any) -> Float[np.ndarray, " cells"]:
    seen = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.log((1 + counts.shape[0]) / (1 + seen)) + 1


def _reduce(rows: Any, rank: int) -> Float[np.ndarray, "n r"]:
    """Coordinates of sparse `rows` along their `rank` leading principal directions, uncentred."""
    n = rows.shape[0]
    if n > 2000:  # beyond this the n x n matrix of all pairs costs more than a few products
        from sklearn.decomposition import TruncatedSVD

        return TruncatedSVD(rank, algorithm="arpack", random_state=0).fit_transform(rows)
    values, vectors = eigh(np.asarray((rows @ rows.T).todense()))
    kept = values > 1e-12 * max(values[-1], 1.0)
    kept[: max(n - rank, 0)] = False
    return (vectors[:, kept] * np.sqrt(values[kept]))[:, ::-1]


def __getattr__(name: str) -> Any:
    """Import `SentenceEmbedder` on first use: its module needs the extra `hf`."""
    if name == "SentenceEmbedder":
        from .embedders import SentenceEmbedder

        return SentenceEmbedder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
