"""What the package carries: real candidates of a small language model, with their log-probs.

`PROVENANCE.md` beside this file says what they are; `scripts/make_pools.py` made them.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from armillary.files import read_arrays, read_json
from dpp_sample.features import cosine
from dpp_sample.sources import Candidates, PoolKind, read_jsonl

__all__ = ["Drawn", "RealPrompt", "pools_file", "real_pools"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Drawn:
    """Candidates with two embeddings that come from unrelated models.

    Parameters
    ----------
    candidates
        Its ``embedding`` (MiniLM, unit rows) is the one to select by.
    evaluation
        WordLlama, unit rows: to judge the diversity of a selection by what it was not made with.
    """

    candidates: Candidates
    evaluation: Float[np.ndarray, "n d"]

    def __len__(self) -> int:
        return len(self.candidates)


@dataclass(frozen=True)
class RealPrompt:
    """One prompt and what SmolLM2-135M-Instruct answered.

    Parameters
    ----------
    prompt_id, prompt
        A short name, and the user's message.
    pool
        256 complete texts, independent draws at temperature 1.
    colder
        By temperature (0.7, 0.5): 64 complete texts each, with the log r they were drawn by.
    beams
        By penalty (0.2, 0.5, 1.0): the 8 texts of one diverse beam search. They have no proposal
        law, may hold copies, and a text may be cut off (``complete``).
    """

    prompt_id: str
    prompt: str
    pool: Drawn
    colder: dict[float, Drawn]
    beams: dict[float, Drawn]


def real_pools() -> list[RealPrompt]:
    """The eight shipped prompts."""
    arrays = read_arrays(_FOLDER / "pools.npz")
    ids = np.split(arrays["token_ids"].astype(int), np.cumsum(arrays["lengths"].astype(int))[:-1])
    sets: dict[str, Drawn] = {}
    start = 0
    kinds: list[tuple[str, PoolKind]] = [("pools", "iid"), ("beams", "enumerated")]
    for name, kind in kinds:
        for group in read_jsonl(_FOLDER / f"{name}.jsonl.gz", pool_kind=kind):
            rows = slice(start, start + len(group))
            start = rows.stop
            candidates = replace(
                group.candidates,
                token_ids=[row.tolist() for row in ids[rows]],
                embedding=cosine(arrays["selection"][rows]),
            )
            sets[group.prompt_id] = Drawn(candidates, cosine(arrays["evaluation"][rows]))
    return [
        RealPrompt(
            prompt_id=name,
            prompt=prompt,
            pool=sets[name],
            colder={t: sets[f"{name}-{t}"] for t in (0.7, 0.5)},
            beams={penalty: sets[f"{name}-beam{penalty}"] for penalty in (0.2, 0.5, 1.0)},
        )
        for name, prompt in read_json(_FOLDER / "pools.json")["prompts"].items()
    ]


def pools_file() -> Path:
    """The draws (not the beams) as a file that `read_jsonl` and the command read."""
    return _FOLDER / "pools.jsonl.gz"
