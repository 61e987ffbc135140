"""The pool: the distinct candidates of one prompt, and what each draw said about them.

Equal strings are merged. Rows of L with the same phi are collinear, so a set holds at most one
copy, and summing over which copy it was adds the copies' weights: the merged log weight is the
logsumexp over the copies, exactly. Keeping one copy with the weight of one would bias the law.

Three kinds of pool differ in what a draw says:

* ``"iid"``: draws from a proposal r; w = q / r, copies add up;
* ``"enumerated"``: a list (beam search, cache); w = q, copies are ignored;
* ``"gumbel_topk"``: drawn from r without replacement (Kool et al. 2019, arXiv 1903.06059);
  w = q / P(perturbed log r > kappa).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
from jaxtyping import Float, Int, Real

from armillary import InputError

from . import normalize as canonical
from .checks import as_logs, as_rows, one_of
from .errors import PoolWarning
from .weights import Weights, effective_size, log_sum_by, pareto_smoothed

KINDS = ("iid", "enumerated", "gumbel_topk")
_ROUNDING = 1e-4  # log-probs summed in float32 may come out this far above 0

FeatureMap = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Pool:
    """Merged candidates of one prompt: n rows, N draws. Made by `make_pool`.

    Parameters
    ----------
    texts, features
        One row per distinct string, in order of first appearance.
    counts
        Draws of each row.
    kind
        "iid", "enumerated" or "gumbel_topk".
    index
        The source row that `texts` was taken from: the first copy.
    row, form
        Row of each draw, and the number of its exact string: rows merged by `normalize` hold
        several.
    logprob, proposal_logprob, reward
        Of each draw, in source order; nats, nats, the reward's own unit.
    length
        What log p is divided by, per draw; 1 without length normalisation.
    kappa
        The threshold of a "gumbel_topk" pool, nats.
    """

    texts: list[str]
    features: Float[np.ndarray, "n d"]
    counts: Int[np.ndarray, " n"]
    kind: str
    index: list[int]
    row: Int[np.ndarray, " N"]
    form: Int[np.ndarray, " N"]
    logprob: Float[np.ndarray, " N"]
    proposal_logprob: Float[np.ndarray, " N"]
    reward: Float[np.ndarray, " N"]
    length: Float[np.ndarray, " N"]
    kappa: float | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, beta: float, lam: float = 1.0, smooth: str = "none") -> Weights:
        """Quality and weights at ``log q = beta log p + lam reward``.

        Parameters
        ----------
        beta
            Inverse temperature of the whole string, >= 0.
        lam
            Nats per unit of reward.
        smooth
            "psis" replaces the upper tail of the draws' weights by fitted quantiles. It steadies
            the weights and makes the sampler inexact.
        """
        one_of(smooth, "smooth", ("none", "psis"))
        n = len(self)
        log_quality = log_sum_by(*self._by_form(self._log_quality(beta, lam)), n)
        log_weight, share2 = log_quality, np.ones(n)
        ess = pareto_k = float("nan")
        if self.kind != "enumerated":
            draws = self.draw_log_weight(beta, lam)
            pareto_k, smoothed = pareto_smoothed(draws)
            draws = smoothed if smooth == "psis" else draws
            ess = effective_size(draws)
            log_weight = log_sum_by(self.row, draws, n)
            share2 = np.bincount(self.row, np.exp(2 * (draws - log_weight[self.row])), n)
        return Weights(
            log_quality,
            log_weight,
            share2,
            ess,
            pareto_k,
            logprob_sd=float(np.std(beta * self.logprob / self.length)),
            reward_sd=float(np.std(lam * self.reward)),
        )

    def draw_log_weight(self, beta: float, lam: float = 1.0) -> Float[np.ndarray, " N"]:
        """Log importance weight of each draw; log q in an enumerated pool."""
        log_quality = self._log_quality(beta, lam)
        if self.kind == "enumerated":
            return log_quality
        if self.kind == "gumbel_topk":
            assert self.kappa is not None
            return log_quality - _log_inclusion(self.proposal_logprob - self.kappa)
        return log_quality - self.proposal_logprob

    def _log_quality(self, beta: float, lam: float) -> Float[np.ndarray, " N"]:
        if not (np.isfinite(beta) and beta >= 0):
            raise InputError("beta", found=beta, expected="a finite number >= 0")
        if not np.isfinite(lam):
            raise InputError("lam", found=lam, expected="a finite number")
        return beta * self.logprob / self.length + lam * self.reward

    def _by_form(
        self, log_values: Float[np.ndarray, " N"]
    ) -> tuple[Int[np.ndarray, " f"], Float[np.ndarray, " f"]]:
        """The row of each exact string, and its value: copies say the same but for rounding."""
        forms, first = np.unique(self.form, return_index=True)
        best = np.full(len(forms), -np.inf)
        np.maximum.at(best, self.form, log_values)
        return self.row[first], best


def make_pool(
    texts: Sequence[str],
    features: Real[np.ndarray, "N _"],
    *,
    kernel: str | FeatureMap | None = "shifted",
    token_ids: Sequence[Sequence[int]] | None = None,
    logprob: Any = None,
    proposal_logprob: Any = None,
    reward: Any = None,
    pool_kind: str = "iid",
    normalize: str | Callable[[str], Hashable] | None = None,
    length_normalize: bool = False,
    n_tokens: Any = None,
    kappa: float | None = None,
) -> Pool:
    """Merge the candidates of one prompt into a `Pool`.

    Parameters
    ----------
    texts, features
        One text and one embedding per draw, N rows.
    kernel
        From embeddings to phi: "shifted" (k = (1 + cosine) / 2), "cosine", "rbf" or a function;
        None says that `features` are phi already.
    token_ids
        Tokens of each draw. They tell strings apart where given, the text otherwise.
    logprob
        log p of each draw under the base model, summed over the whole string, <= 0. None means
        equal quality; without a law the pool counts as "enumerated", with a warning.
    proposal_logprob
        log r of each draw, under the law that really drew it. None means r = p.
    reward
        Added to log q, times `lam`; None means 0.
    pool_kind
        "iid", "enumerated" or "gumbel_topk".
    normalize
        Merge by a canonical form: "strip", "nfkc", "casefold", "sql" or a function of the text. A
        row's quality is then the sum over its distinct strings, its text and features those of
        the most probable one.
    length_normalize
        Divide log p by `n_tokens` in log q. What is sampled is then not the tempered law.
    n_tokens
        Tokens of each draw, >= 1.
    kappa
        Of a "gumbel_topk" pool of N strings: the (N + 1)-th largest perturbed log r.

    Raises
    ------
    InputError
        If lengths differ, a number is not finite or out of range (named by row), a string is
        repeated in a "gumbel_topk" pool, or an argument is missing.
    """
    if isinstance(texts, str):
        raise TypeError("texts: expected a sequence of texts, found one str")
    texts = list(texts)
    rows = as_rows(features)
    n_draws = len(texts)
    if len(rows) != n_draws:
        raise InputError("features", found=f"{len(rows)} rows", expected=f"{n_draws}, one a text")
    one_of(pool_kind, "pool_kind", KINDS)
    if logprob is None and pool_kind != "enumerated":
        warn(
            "no log-probabilities: quality is equal and the pool counts as enumerated",
            PoolWarning,
            stacklevel=2,
        )
        pool_kind = "enumerated"
    if (kappa is None) == (pool_kind == "gumbel_topk") or not np.isfinite(kappa or 0.0):
        raise InputError("kappa", found=kappa, expected='a number for "gumbel_topk", else None')
    log_p = _logprobs(logprob, "logprob", n_draws)
    log_r = (
        log_p
        if proposal_logprob is None
        else _logprobs(proposal_logprob, "proposal_logprob", n_draws)
    )
    length = np.ones(n_draws)
    if length_normalize:
        length = _lengths(n_tokens, n_draws)

    identities: Sequence[Hashable] = texts
    if token_ids is not None:
        if len(token_ids) != n_draws:
            raise InputError(
                "token_ids", found=f"{len(token_ids)} rows", expected=f"{n_draws}, one a text"
            )
        identities = [tuple(ids) for ids in token_ids]
    form = _numbered(identities)
    row = form if normalize is None else _numbered(_canonical(texts, normalize))
    if pool_kind == "gumbel_topk" and form.max() + 1 < n_draws:
        again = int(np.flatnonzero(np.bincount(form) > 1)[0])
        copies = np.flatnonzero(form == again)[:2]
        raise InputError(
            "texts",
            found=f"the same string in rows {copies[0]} and {copies[1]}",
            expected='distinct strings in a "gumbel_topk" pool',
        )
    index = _most_probable(row, log_p)
    return Pool(
        texts=[texts[i] for i in index],
        features=_feature_map(kernel)(rows[index]),
        counts=np.bincount(row),
        kind=pool_kind,
        index=index,
        row=row,
        form=form,
        logprob=log_p,
        proposal_logprob=log_r,
        reward=as_logs(reward, "reward", n_draws),
        length=length,
        kappa=kappa,
    )


def _logprobs(values: Any, name: str, n: int) -> Float[np.ndarray, " N"]:
    """Log-probabilities, each finite and at most 0."""
    logs = as_logs(values, name, n)
    bad = np.flatnonzero(logs > _ROUNDING)
    if bad.size:
        raise InputError(
            name,
            where=f"row {bad[0]}",
            found=float(logs[bad[0]]),
            expected="a finite number <= 0",
        )
    return np.minimum(logs, 0.0)


def _lengths(n_tokens: Any, n: int) -> Float[np.ndarray, " N"]:
    if n_tokens is None:
        raise InputError("n_tokens", expected="the tokens of each draw, to normalise by length")
    length = as_logs(n_tokens, "n_tokens", n)
    if length.min() < 1:
        row = int(np.argmin(length))
        raise InputError("n_tokens", where=f"row {row}", found=float(length[row]), expected=">= 1")
    return length


def _numbered(keys: Sequence[Hashable]) -> Int[np.ndarray, " N"]:
    """Equal keys get equal numbers, counted in order of first appearance."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=int)


def _canonical(texts: list[str], normalize: str | Callable[[str], Hashable]) -> list[Hashable]:
    function = canonical.form(normalize) if isinstance(normalize, str) else normalize
    known = {text: function(text) for text in set(texts)}
    return [known[text] for text in texts]


def _most_probable(row: Int[np.ndarray, " N"], log_p: Float[np.ndarray, " N"]) -> list[int]:
    """The draw of highest log p in each row, the first of equals."""
    order = np.lexsort((np.arange(len(row)), -log_p, row))
    return order[np.unique(row[order], return_index=True)[1]].tolist()


def _feature_map(kernel: str | FeatureMap | None) -> FeatureMap:
    if kernel is None:
        return lambda phi: phi
    if callable(kernel):
        return kernel
    from . import features  # brings scikit-learn: only when a map is needed

    return getattr(features, one_of(kernel, "kernel", ("shifted", "cosine", "rbf")))


def _log_inclusion(above: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Log of ``1 - exp(-exp(x))``, the probability that a perturbed log r exceeds kappa."""
    with np.errstate(over="ignore", divide="ignore"):
        exact = np.log(-np.expm1(-np.exp(above)))
    return np.where(above < -30, above, exact)
