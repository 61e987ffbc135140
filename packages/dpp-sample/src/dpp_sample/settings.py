"""What the verbs can be told; the text under a field is its help on the command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["PoolSettings", "Reading", "Settings"]


@dataclass(frozen=True)
class Reading:
    """How a file of candidates is read."""

    embeddings: Path | None = None
    """An .npy file with one row for each row of the file."""

    sort: bool = False
    """The rows of a prompt may stand apart; reads the whole file first."""

    resume: bool = False
    """Keep what an interrupted run has finished in the same folder."""


@dataclass(frozen=True)
class PoolSettings:
    """How the rows of a prompt become a pool; see `make_pool`."""

    kernel: Literal["shifted", "cosine", "rbf"] = "shifted"
    """Similarity of two embeddings."""

    embedding: str | None = None
    """lexical, field, or the folder of a sentence embedder [default: field if there is one]."""

    cluster: str | None = None
    """Answers that mean the same are close: number, or sql:DATABASE."""

    normalize: Literal["strip", "nfkc", "casefold", "sql"] | None = None
    """Count texts as one that are equal in this form."""

    pool_kind: Literal["iid", "enumerated"] = "iid"
    """Draws from a model, or a list."""

    length_normalize: bool = False
    """Divide log p by the number of tokens."""


@dataclass(frozen=True)
class Settings:
    """How a prompt's set is chosen; see `select`."""

    k: int
    method: str = "map"
    beta: float | None = None
    lam: float = 1.0
    fill: str = "error"
    smooth: str = "none"
    map_on: str = "quality"
    refine: bool = False
    rounds: int = 4
    keep: tuple[str, ...] = ()
    seed: int = 0
    pool: PoolSettings = PoolSettings()
