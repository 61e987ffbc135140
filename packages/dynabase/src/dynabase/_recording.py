"""A series in the form that the map works on: its delay vectors, searchable, and how they move."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ._run import Path, Shift
from .embed import delay_embed
from .neighbours import Context


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A series and the context of its delay vectors.

    Row r of the context ends at time r + `offset` of the series.
    """

    series: Float[np.ndarray, "T d"]
    context: Context
    lags: Int[np.ndarray, " m"]  # 0, tau, 2 tau, ...
    shifted: bool  # only the newest values are advanced by the map

    @classmethod
    def of(
        cls,
        series: Float[np.ndarray, "T d"],
        *,
        m: int = 1,
        tau: int = 1,
        theiler: int = 0,
        shifted: bool = True,
    ) -> "Recording":
        """Embed a series; with one delay the vectors are its own rows and nothing is shifted."""
        rows = series if m == 1 else delay_embed(series, m, tau)
        return cls(series, Context(rows, theiler=theiler), tau * np.arange(m), shifted and m > 1)

    @property
    def offset(self) -> int:
        """Time of the first delay vector."""
        return int(self.lags[-1])

    @property
    def q(self) -> int:
        """Leading coordinates of a state that the map advances."""
        return self.series.shape[1] if self.shifted else self.context.rows.shape[1]

    def shift(self, rows: Int[np.ndarray, " b"]) -> Shift | None:
        """What a rollout needs, besides the rows themselves, to start from them."""
        if not self.shifted:
            return None
        span = np.arange(-self.offset, 1)
        return Shift(self.lags, self.series[rows[:, None] + self.offset + span])

    def newest(self, path: Path) -> Float[np.ndarray, "n b d"]:
        """The series' own values along a rollout."""
        return path.values[:, :, : self.series.shape[1]]
