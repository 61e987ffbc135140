"""Where candidates come from: a model, a server's answer, a file.

Each source gives texts of one prompt with log p, their log-prob under the base model, and log r,
that under the law they were drawn from. A source that cannot know one of them refuses rather than
guess, since every weight of the pool is a difference of the two.

* `hf_candidates` draws from a transformers model (extra ``hf``)
* `from_openai` reads an OpenAI-compatible response, `from_vllm` vLLM's outputs
* `read_jsonl` streams a file of rows, one group a prompt
"""

from typing import TYPE_CHECKING, Any

from armillary import require

from ._responses import from_openai as from_openai
from ._responses import from_vllm as from_vllm
from ._rows import Group as Group
from ._rows import read_jsonl as read_jsonl
from .candidates import Candidates as Candidates
from .candidates import PoolKind as PoolKind

if TYPE_CHECKING:
    from ._hf import hf_candidates as hf_candidates

__all__ = [
    "Candidates",
    "Group",
    "PoolKind",
    "from_openai",
    "from_vllm",
    "hf_candidates",
    "read_jsonl",
]


def __getattr__(name: str) -> Any:
    # torch is an extra, and seconds to import: not before it is asked for.
    if name == "hf_candidates":
        require("transformers", extra="dpp-sample[hf]")
        require("torch", extra="dpp-sample[hf]")
        from ._hf import hf_candidates

        return hf_candidates
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
