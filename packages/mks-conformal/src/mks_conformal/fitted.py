"""What a region asks of a fitted score, and how it becomes a body.

`ResidualScore` is the common base of the kernel score and the baselines. Any other object with
`score_samples` serves as a score too: `as_score` wraps it with what can be learnt from residuals.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from armillary import InputError

from .body import Body, Box, thin
from .checks import as_rows, same_width
from .conformal import TIE_TOLERANCE
from .quadratic import Ellipsoid, Quadratic
from .whitening import Whitening, proposal_whitening

__all__ = ["ForeignScore", "ResidualScore", "as_score"]

RADIUS_INFLATION = 1.2

Rows = Float[np.ndarray, "m d"]


class ResidualScore(ABC):
    """A fitted score of residuals.

    Attributes
    ----------
    references_
        Residuals that the score was fitted on: all of them, since a ball must hold them.
    proposal_whitening_
        Coordinates in which they have about unit covariance.
    resolution_
        The size to which rounding errors of its values are relative.
    names_
        Names of the outputs, or None.
    """

    references_: Float[np.ndarray, "n d"]
    proposal_whitening_: Whitening
    resolution_: float
    names_: tuple[str, ...] | None = None

    @abstractmethod
    def score_samples(self, R: Any) -> Float[np.ndarray, " m"]:
        """Scores of residuals, larger is stranger."""

    def with_gradients(
        self,
        R: Rows,  # noqa: ARG002
    ) -> tuple[Float[np.ndarray, " m"], Rows] | None:
        """Scores and gradients in the residuals' own units; None where there are none."""
        return None

    def closed_form(self, q: float) -> Ellipsoid | Box | None:  # noqa: ARG002
        """The set { score <= q } where it is an ellipsoid or a box and not empty."""
        return None

    def far(self) -> Quadratic | None:
        """What the score is far from all residuals, if that is known and not all of it."""
        return None

    def body(self, q: float, references: Float[np.ndarray, "n d"] | None = None) -> Body:
        """The set { score <= q }, ties within rounding included."""
        references = self.references_ if references is None else references
        white = self.proposal_whitening_
        limit = q + TIE_TOLERANCE * max(self.resolution_, abs(q)) if np.isfinite(q) else q

        def inside(points: Rows) -> Bool[np.ndarray, " m"]:
            return self.score_samples(points) <= limit

        def excess(x: Float[np.ndarray, " d"]) -> tuple[float, Float[np.ndarray, " d"]]:
            found = self.with_gradients(x[None])
            assert found is not None
            return (float(found[0][0]) - q) / scale, found[1][0] / scale

        scale = max(abs(q), 1e-300)
        far, ellipsoid, bounded = self.far(), None, q < np.inf
        if far is not None and bounded:
            if far.flat:
                bounded = q < far.constant
            elif q > far.minimum:
                ellipsoid = far.sublevel(q)
        smooth = np.isfinite(q) and self.with_gradients(references[:1]) is not None
        return Body(
            inside=inside,
            references=thin(references),
            whitening=white,
            radius=RADIUS_INFLATION * float(np.linalg.norm(white(references), axis=1).max()),
            far=ellipsoid,
            closed=self.closed_form(q) if np.isfinite(q) else None,
            excess=excess if smooth else None,
            bounded=bounded,
            empty=bool(q == -np.inf),
        )


class ForeignScore(ResidualScore):
    """A score that a user wrote: membership alone, with proposals learnt from residuals."""

    def __init__(
        self, score: Any, residuals: Float[np.ndarray, "n d"], resolution: float | None = None
    ) -> None:
        self.score = score
        self.references_ = residuals
        self.proposal_whitening_ = proposal_whitening(residuals)
        if resolution is None:  # nothing is known of its units but the values it takes
            resolution = float(np.median(np.abs(self.score_samples(residuals))))
        self.resolution_ = resolution

    def score_samples(self, R: Any) -> Float[np.ndarray, " m"]:
        """Scores of residuals, larger is stranger."""
        rows = as_rows(R, "residuals")
        same_width(rows, self.references_.shape[1], "residuals")
        out = np.asarray(self.score.score_samples(rows), dtype=float)
        if out.shape != (len(rows),) or np.isnan(out).any():
            raise InputError("score.score_samples", expected="one number a row, no NaN")
        return out


def as_score(score: Any, residuals: Float[np.ndarray, "n d"]) -> ResidualScore:
    """A `ResidualScore` from one, or from any object with `score_samples`.

    Raises
    ------
    InputError
        If it has none.
    """
    if isinstance(score, ResidualScore):
        return score
    if not hasattr(score, "score_samples"):
        raise InputError("score", found=repr(score), expected="an object with score_samples")
    return ForeignScore(score, residuals)
