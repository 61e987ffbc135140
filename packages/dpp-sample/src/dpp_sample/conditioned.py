"""The K-DPP given that some rows are in the set.

Given the kept rows, the others follow the DPP of their parts orthogonal to the kept rows' span
(Kulesza & Taskar 2012, section 2.4.3), with the weights they had, for the k - |kept| places left.
Rows in the span of the kept ones cannot be drawn.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from .checks import as_count, as_kept, as_logs, as_rows
from .errors import RankError, rank_error
from .kdpp import KDPP
from .residuals import SPANNED, spanned_by, without_span


class ConditionedKDPP:
    """A `KDPP` whose sets hold the rows `keep`; with none it is the `KDPP` itself.

    Raises
    ------
    RankError
        If the rows span fewer than k dimensions, or a kept row lies in the span of the kept rows
        before it.
    """

    def __init__(
        self,
        features: Real[np.ndarray, "n d"],
        log_weight: Real[np.ndarray, " n"] | None = None,
        keep: Sequence[int] = (),
        *,
        k: int,
    ) -> None:
        rows = as_rows(features)
        self._n = len(rows)
        self.k = as_count(k, self._n)
        self.keep = as_kept(keep, self._n, k)
        logs = as_logs(log_weight, "log_weight", self._n)

        span = spanned_by(rows, self.keep, capacity=len(self.keep))
        if len(self.keep):
            rows = without_span(rows, span.basis)
        norm2 = np.einsum("ij,ij->i", rows, rows)
        self._free = np.flatnonzero(norm2 > SPANNED * span.norm2)
        left = self.k - len(self.keep)
        self._dpp = None
        if left == 0:
            return
        if not len(self._free):
            raise rank_error(len(self.keep), self.k, self._n)
        try:
            self._dpp = KDPP(rows[self._free], logs[self._free], k=min(left, len(self._free)))
            rank = self._dpp.rank
        except RankError as error:
            rank = error.rank or 0
        if self._dpp is None or rank < left:
            raise rank_error(len(self.keep) + rank, self.k, self._n)

    def sample(self, size: int, rng: np.random.Generator) -> Int[np.ndarray, "size k"]:
        """Draw `size` sets, kept rows included, ascending."""
        kept = np.tile(self.keep, (size, 1))
        if self._dpp is None:
            return np.sort(kept, axis=1)
        return np.sort(np.hstack([kept, self._free[self._dpp.sample(size, rng=rng)]]), axis=1)

    def log_prob(self, sets: Int[np.ndarray, "size k"]) -> Float[np.ndarray, " size"]:
        """Log probability of drawn sets, given the kept rows."""
        if self._dpp is None:
            return np.zeros(len(sets))
        drawn = sets[~np.isin(sets, self.keep)].reshape(len(sets), -1)
        return self._dpp.log_prob(np.searchsorted(self._free, drawn))

    def marginals(self) -> Float[np.ndarray, " n"]:
        """Probability of each row to be in the set: 1 for kept rows."""
        spread = np.zeros(self._n)
        spread[self.keep] = 1.0
        if self._dpp is not None:
            spread[self._free] = self._dpp.marginals()
        return spread

    @property
    def clipped(self) -> Bool[np.ndarray, " n"]:
        """Rows whose weight was raised to the lowest that can be represented."""
        spread = np.zeros(self._n, dtype=bool)
        if self._dpp is not None:
            spread[self._free] = self._dpp.clipped
        return spread
