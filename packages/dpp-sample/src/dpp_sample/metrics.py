"""How good and how different a set of chosen texts is."""

import re
from collections import Counter
from collections.abc import Sequence
from math import comb, exp, log

import numpy as np
from jaxtyping import Bool, Int, Real

from armillary import InputError

from .features import cosine


def vendi_score(features: Real[np.ndarray, "n d"], q: float = 1.0) -> float:
    """Effective number of different rows (Friedman & Dieng 2022, arXiv 2210.02410).

    The exponential of the order-`q` Renyi entropy of the eigenvalues of ``F F^T / n``, F the rows
    at unit norm. They are taken as squared singular values of F: no n x n matrix is formed.

    Parameters
    ----------
    features
        Rows are normalised here.
    q
        Order >= 0, inf included; 0 counts the rank, 1 is Shannon's entropy.

    Returns
    -------
    A number from 1 (all alike) to n (all orthogonal).
    """
    if not q >= 0:
        raise InputError("q", found=q, expected="a number >= 0")
    unit = cosine(features)
    if not len(unit):
        raise InputError("features", found="0 rows", expected="at least 1")
    values = np.linalg.svd(unit, compute_uv=False) ** 2 / len(unit)
    values = values[values > 1e-12]
    if q == 1:
        return float(np.exp(-np.sum(values * np.log(values))))
    if q == np.inf:
        return float(1 / values.max())
    return float(np.sum(values**q) ** (1 / (1 - q)))


def distinct_n(texts: Sequence[str], n: int = 2) -> float:
    """Different n-grams over all n-grams of the set, in (0, 1]; nan when there is none.

    Tokens are words and single punctuation marks, casefolded (Li et al. 2016, arXiv 1510.03055).
    """
    grams = [gram for text in texts for gram in _ngrams(_tokens(text), n)]
    return len(set(grams)) / len(grams) if grams else float("nan")


def self_bleu(texts: Sequence[str]) -> float:
    """Mean BLEU-4 of each text against all others, in [0, 1]; small is diverse.

    Add-one smoothing of the orders above 1, brevity penalty by the nearest length (Zhu et al. 2018,
    arXiv 1802.01886). One text alone: nan.
    """
    if len(texts) < 2:
        return float("nan")
    tokens = [_tokens(text) for text in texts]
    return float(np.mean([_bleu(t, tokens[:i] + tokens[i + 1 :]) for i, t in enumerate(tokens)]))


def coverage(clusters: Int[np.ndarray, " k"], targets: Int[np.ndarray, " t"]) -> float:
    """Share of the different `targets` that occur in `clusters`; -1 (a failure) is no target."""
    wanted = set(np.asarray(targets).tolist()) - {-1}
    if not wanted:
        raise InputError("targets", found="no cluster", expected="at least 1 other than -1")
    return len(wanted & set(np.asarray(clusters).tolist())) / len(wanted)


def pass_at_k(correct: Bool[np.ndarray, " n"], k: int) -> float:
    """Chance that `k` of these n answers, drawn at random, hold a correct one.

    ``1 - C(n - c, k) / C(n, k)`` for c correct answers (Chen et al. 2021, arXiv 2107.03374); for
    k = n it says whether any is correct.
    """
    n, right = len(correct), int(np.sum(correct))
    if not 1 <= k <= n:
        raise InputError("k", found=k, expected=f"a number from 1 to the {n} answers")
    return 1 - comb(n - right, k) / comb(n, k)


def hypervolume(
    points: Real[np.ndarray, "n 2"] | Sequence[tuple[float, float]], ref: tuple[float, float]
) -> float:
    """Area that the points dominate above `ref`, both coordinates maximised.

    Points that do not exceed `ref` in both are ignored.
    """
    rows = np.asarray(points, dtype=float).reshape(-1, 2)
    if not np.isfinite(rows).all() or not np.isfinite(ref).all():
        raise InputError("points and ref", expected="finite numbers")
    above = rows[(rows > ref).all(axis=1)]
    area, reached = 0.0, ref[1]
    for x, y in above[np.argsort(-above[:, 0])]:
        if y > reached:
            area += (x - ref[0]) * (y - reached)
            reached = y
    return float(area)


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.casefold())


def _ngrams(tokens: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def _bleu(tokens: list[str], references: list[list[str]]) -> float:
    if not tokens:
        return 0.0
    total = 0.0
    for n in range(1, 5):
        grams = Counter(_ngrams(tokens, n))
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            allowed |= Counter(_ngrams(reference, n))
        smooth = int(n > 1)
        hits = (grams & allowed).total() + smooth
        if not hits:
            return 0.0
        total += log(hits / (grams.total() + smooth)) / 4
    nearest = min((len(r) for r in references), key=lambda m: (abs(m - len(tokens)), m))
    return exp(total + min(0.0, 1 - nearest / len(tokens)))
