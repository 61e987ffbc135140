"""The fixed-size determinantal point process of a weighted pool, sampled exactly at low rank.

`P(S) = prod over S of w_i * det[phi_i . phi_j]_S / Z` over sets of k rows (Kulesza & Taskar 2012,
section 5). With B = diag(sqrt(w)) Phi = U diag(s) V^T nothing of size n x n is ever formed:

* a set of k eigenvectors is drawn with probability proportional to the product of its s^2, by
  elementary symmetric polynomials in log space (`symmetric`);
* given the eigenvectors, items are proposed from a mixture of their squared entries and accepted
  by how much of their row is left outside the rows chosen before. A proposal costs O(log n), and
  k items need k (1 + 1/2 + ... + 1/k) of them on average: a draw does not depend on n otherwise.

Set-up O(n d min(n, d)).
"""

import math
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int, Integer, Real

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from .checks import as_count, as_logs, as_rows
from .errors import rank_error
from .graded import spectrum
from .residuals import SPANNED, log_volume
from .symmetric import log_esp, log_inclusion

LOWEST = -600.0  # nats below the largest weight: sqrt(exp) of more leaves float64
_BLOCK = 200_000  # numbers handled at once: what a cache holds


class KDPP:
    """A k-DPP with L = diag(e^{lw/2}) Phi Phi^T diag(e^{lw/2}).

    Parameters
    ----------
    features
        Rows phi, of any norm above 0.
    log_weight
        log w of each row, nats, up to a constant; None means equal.
    k
        Size of the sets.

    Attributes
    ----------
    k, rank
        Size of the sets, and the number of dimensions that the rows span.
    eigenvalues
        Logs of the non-zero eigenvalues of L, descending.
    log_normalizer
        log Z: the log of the sum over all sets of size k of det L_S.
    clipped
        Rows whose weight (norm included) lies more than 600 nats below the largest. They are
        treated as if it were 600; draws, `log_prob` and `marginals` are of that law.

    Raises
    ------
    RankError
        If the rows span fewer than k dimensions.
    InputError
        If an argument has the wrong shape, is not finite or out of range.

    Examples
    --------
    >>> dpp = KDPP(np.eye(3), np.log([2.0, 1.0, 1.0]), k=2)
    >>> dpp.marginals().round(6)
    array([0.8, 0.6, 0.6])
    """

    def __init__(
        self,
        features: Real[np.ndarray, "n d"],
        log_weight: Real[np.ndarray, " n"] | None = None,
        *,
        k: int,
    ) -> None:
        rows = as_rows(features)
        logs = as_logs(log_weight, "log_weight", len(rows))
        self.k = as_count(k, len(rows))

        # norms are weights: unit rows make both the range of the weights and the rank plain
        norms = np.linalg.norm(rows, axis=1)
        self._unit = rows / norms[:, None]
        logs = logs + 2 * np.log(norms)
        top = logs.max()
        below = logs - top
        self.clipped: Bool[np.ndarray, " n"] = below < LOWEST
        self._log_weight = np.maximum(below, LOWEST)

        self._vectors, log_values = spectrum(self._unit, self._log_weight, self.k)
        self.rank = len(log_values)
        if self.rank < self.k:
            raise rank_error(self.rank, self.k, len(rows))
        self._log_values = log_values
        self._table = np.ascontiguousarray(log_esp(log_values, self.k).T)
        self.eigenvalues: Float[np.ndarray, " r"] = log_values + top
        self.log_normalizer = float(self._table[-1, -1] + self.k * top)

    def sample(
        self, size: int | None = None, *, rng: RngLike = None
    ) -> Int[np.ndarray, " k"] | Int[np.ndarray, "size k"]:
        """Draw one set, or `size` independent ones; the rows of a set come in ascending order."""
        generator = as_generator(rng)
        if size is None:
            return self._draw(1, generator)[0]
        count = as_count(size, 2**31, "size")
        block = max(1, _BLOCK // (self._proposals * self.k))
        return np.concatenate(
            [self._draw(min(block, count - done), generator) for done in range(0, count, block)]
        )

    def log_prob(self, sets: Integer[np.ndarray, "*sets k"]) -> Float[np.ndarray, "*sets"]:
        """Log probability of each set of k rows; -inf for a repeated row or a volume of zero."""
        index = np.asarray(sets)
        if index.dtype.kind not in "iu":
            raise TypeError(f"sets: expected whole numbers, found dtype {index.dtype}")
        if index.ndim == 0 or index.shape[-1] != self.k:
            raise InputError("sets", found=f"shape {index.shape}", expected=f"(..., {self.k})")
        n = len(self._unit)
        if index.size and (index.min() < 0 or index.max() >= n):
            wrong = index[(index < 0) | (index >= n)][0]
            raise InputError("sets", found=f"row {wrong}", expected=f"rows 0 to {n - 1}")
        flat = index.reshape(-1, self.k)
        block = max(1, _BLOCK // (self.k * self._unit.shape[1]))
        volumes = [
            log_volume(self._unit[flat[start : start + block]])
            for start in range(0, len(flat), block)
        ]
        logs = self._log_weight[flat].sum(axis=1) + np.concatenate([np.zeros(0), *volumes])
        return np.reshape(logs - self._table[-1, -1], index.shape[:-1])

    def marginals(self) -> Float[np.ndarray, " n"]:
        """Probability of each row to be in the set; they sum to k."""
        included = np.exp(log_inclusion(self._log_values, self.k))
        return np.minimum(self._vectors**2 @ included, 1.0)

    @property
    def _proposals(self) -> int:
        """Proposals made at a time: enough for 95 of 100 draws (those of a coupon collector)."""
        return math.ceil(self.k * (math.log(self.k) + 3))

    def _draw(self, size: int, rng: np.random.Generator) -> Int[np.ndarray, "size k"]:
        return self._items(self._eigenvectors(size, rng), rng)

    def _eigenvectors(self, size: int, rng: np.random.Generator) -> Int[np.ndarray, "size k"]:
        """Draw sets of eigenvectors, last one first.

        e_l(m) / e_l(last) is the distribution function of the last index of an l-subset, so
        that each index is one inversion, not a walk down all r.
        """
        sets = np.empty((size, self.k), dtype=int)
        last = np.full(size, self.rank)
        logs = np.log1p(-rng.random((self.k + 1, size)))
        for order in range(self.k, 0, -1):
            column = self._table[order]
            last = column.searchsorted(column[last] + logs[order]) - 1
            sets[:, order - 1] = last
        return sets

    def _items(
        self, sets: Int[np.ndarray, "size k"], rng: np.random.Generator
    ) -> Int[np.ndarray, "size k"]:
        """Draw the items of each set of eigenvectors, ascending.

        Item j + 1 has probability proportional to the squared residual of its row, in the k
        coordinates, outside the rows of the j items before. Rows are proposed by squared norm,
        and looked at in order; each is accepted with the share of it that is left, which is
        (k - j) / k on average. All draws take their next item at the same time. Since what is
        left only shrinks, a proposal that was refused stays so under the same random number.
        """
        size, k = sets.shape
        items = np.full((size, k), -1)
        live = np.arange(size)
        basis = np.zeros((size, 0, k))
        while live.size:
            rows = self._propose(sets[live], rng)
            x = self._vectors[rows[:, :, None], sets[live][:, None, :]]
            # the floor keeps a copy of a chosen row out, whose residual is rounding noise
            share = np.maximum(rng.random(rows.shape), SPANNED)
            bar = share * np.vecdot(x, x)
            x -= (x @ np.swapaxes(basis, 1, 2)) @ basis
            left = np.vecdot(x, x)
            draw = np.arange(len(live))
            found, directions = [items[live]], [basis]
            for _ in range(k):
                accepted = left > bar
                first = accepted.argmax(axis=1)
                hit = accepted[draw, first]
                if not hit.any():
                    break
                v = x[draw, first]
                # the zero vector where nothing was accepted
                v /= np.sqrt(np.where(hit, np.vecdot(v, v), np.inf))[:, None]
                along = np.matvec(x, v)
                x -= along[:, :, None] * v[:, None, :]
                left -= along**2
                found.append(np.where(hit, rows[draw, first], -1)[:, None])
                directions.append(v[:, None, :])
            items[live] = np.sort(np.concatenate(found, axis=1), axis=1)[:, -k:]
            unfinished = items[live, 0] < 0
            basis = np.concatenate(directions, axis=1)[unfinished]
            live = live[unfinished]
        return items

    def _propose(
        self, sets: Int[np.ndarray, "a k"], rng: np.random.Generator
    ) -> Int[np.ndarray, "a m"]:
        """Rows by squared norm over each set's columns: a column at random, then a row of it."""
        shape = (len(sets), self._proposals)
        column = np.take_along_axis(sets, rng.integers(self.k, size=shape), axis=1)
        key = (column << self._bits) + rng.integers(2**self._bits, size=shape)
        return self._keys.searchsorted(key, side="right") - column * len(self._vectors)

    @property
    def _bits(self) -> int:
        return 63 - self.rank.bit_length()

    @cached_property
    def _keys(self) -> Int[np.ndarray, " nr"]:
        """All columns' distribution functions in one sorted array.

        The column's number stands in the high bits, the probability in the low ones.
        """
        cumulative = np.cumsum(self._vectors**2, axis=0)
        whole = np.rint(cumulative / cumulative[-1] * 2.0**self._bits).astype(np.int64)
        return (whole + (np.arange(self.rank) << self._bits)).T.ravel()
