"""`Candidates`, what every source returns: the texts of one prompt and their log-probs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np
from jaxtyping import Bool, Float, Int

from armillary import InputError

__all__ = ["Candidates", "PoolKind", "as_logprob", "as_number"]

PoolKind = Literal["iid", "enumerated", "gumbel_topk"]

# A float32 sum of log-probs may end this much above 0.
_ROUNDING = 1e-4
# Servers put a number where they have none: -9999 for "not in the top list", -1e30 for NaN. No
# model draws a token of log-prob -1000, so anything below, a token, is one of those.
_LOWEST = -1000.0
_SENTINELS = (-9999.0,)


@dataclass(frozen=True)
class Candidates:
    """n texts of one prompt, one entry a draw, in the order in which they were drawn.

    Parameters
    ----------
    texts
        The decoded texts, without the end token.
    token_ids
        The tokens of each text, the end token included. They are the identity of a string: two
        token sequences may decode to one text.
    logprob
        log p(y) in nats, summed to the end token inclusive: the base model's own law.
    proposal_logprob
        log r(y), the law that the texts were really drawn from. None: the same as `logprob`.
    n_tokens
        Number of terms in those sums.
    complete
        Whether the text reached its end token. None: all did.
    reward
        A score of each text, on the scale of log-probs.
    embedding
        A vector for each text.
    pool_kind
        How the texts came about; see `make_pool`.
    notes
        What the reader had to assume or leave out, one sentence each.
    """

    texts: list[str]
    token_ids: list[list[int]] | None = None
    logprob: Float[np.ndarray, " n"] | None = None
    proposal_logprob: Float[np.ndarray, " n"] | None = None
    n_tokens: Int[np.ndarray, " n"] | None = None
    complete: Bool[np.ndarray, " n"] | None = None
    reward: Float[np.ndarray, " n"] | None = None
    embedding: Float[np.ndarray, "n d"] | None = None
    pool_kind: PoolKind = "iid"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int] | Int[np.ndarray, " m"], *notes: str) -> Self:
        """The candidates in `rows`, in that order, with `notes` added."""
        chosen = [int(row) for row in rows]
        kept: dict[str, Any] = {"notes": (*self.notes, *notes)}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):
                kept[field.name] = [value[row] for row in chosen]
            elif isinstance(value, np.ndarray):
                kept[field.name] = value[chosen]
        return replace(self, **kept)

    def only_complete(self) -> Self:
        """The candidates that reached their end token.

        Leaving out the others is rejection sampling: the target is then the law over complete
        texts, and log r is right up to one constant, which no weight depends on.
        """
        if self.complete is None or self.complete.all():
            return self
        rows = np.flatnonzero(self.complete)
        return self.take(rows, f"{len(self) - len(rows)} of {len(self)} texts did not end: dropped")


def as_number(value: object) -> float | None:
    """A finite number of a JSON file, else None; true and false are no numbers."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer beyond float64
        return None
    return number if math.isfinite(number) else None


def as_logprob(value: object, *, name: str, where: str, n_tokens: int = 1) -> float:
    """A log-prob from a stranger's file: finite, at most 0, no stand-in for a missing number.

    Parameters
    ----------
    value
        What stands there.
    name, where
        What it is and its place, for the message.
    n_tokens
        Number of terms that the value sums.
    """
    number = as_number(value)
    if number is None or number > _ROUNDING:
        found = "null" if value is None else value
        raise InputError(f"{name} must be a finite number <= 0", where=where, found=found)
    if number in _SENTINELS or number < _LOWEST * n_tokens:
        raise InputError(
            f"{name} must be a log-prob, not a stand-in for a missing one",
            where=where,
            found=value,
        )
    return min(number, 0.0)
