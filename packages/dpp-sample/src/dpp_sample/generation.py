"""Candidates for a file of prompts from a model in a local folder (extra ``hf``).

Nothing is fetched: the folder holds safetensors or one GGUF file, and code in it is not run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armillary import InputError, require
from armillary.files import read_jsonl, text_lines
from armillary.randomness import keyed, torch_generator

__all__ = ["GenerationSettings", "Prompt", "check_settings", "draw", "load_model", "read_prompts"]


@dataclass(frozen=True)
class Prompt:
    """One prompt: its id and its text."""

    id: str
    text: str


@dataclass(frozen=True)
class GenerationSettings:
    """How candidates are drawn; see `sources.hf_candidates`."""

    n: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_new_tokens: int = 128
    batch_size: int = 64
    chat: bool = True
    seed: int = 0


def read_prompts(path: Path) -> list[Prompt]:
    """Prompts of a file: one a line, or JSON Lines with ``prompt`` and, if given, ``prompt_id``.

    Raises
    ------
    InputError
        With the line, for a row without a prompt or an id that stands twice.
    """
    if ".jsonl" in path.suffixes:
        found = [(line, *_prompt(row, line, path)) for line, row in read_jsonl(path)]
    else:
        lines = enumerate(text_lines(path), start=1)
        found = [(line, f"q{line}", text.strip()) for line, text in lines if text.strip()]
    seen: dict[str, int] = {}
    for line, name, _ in found:
        if name in seen:
            raise InputError(
                f"prompt_id {name} stands twice, first on line {seen[name]}", where=f"{path}:{line}"
            )
        seen[name] = line
    if not found:
        raise InputError("no prompts in this file", where=str(path))
    return [Prompt(name, text) for _, name, text in found]


def check_settings(settings: GenerationSettings) -> None:
    """Refuse settings that no model could follow, before one is loaded.

    Raises
    ------
    InputError
        Naming the setting.
    MissingExtra
        Without transformers and torch.
    """
    require("torch", extra="dpp-sample[hf]")
    require("transformers", extra="dpp-sample[hf]")
    from .sources._hf import check_sampling

    check_sampling(
        settings.n,
        settings.temperature,
        settings.top_p,
        settings.top_k,
        settings.max_new_tokens,
        settings.batch_size,
    )


def load_model(folder: Path, device: str = "cpu") -> tuple[Any, Any]:
    """Model, in evaluation mode, and tokenizer of a local folder, or of one GGUF file.

    Raises
    ------
    InputError
        If the folder is not there or does not hold a model that transformers can read.
    MissingExtra
        Without transformers and torch.
    """
    torch = require("torch", extra="dpp-sample[hf]")
    transformers = require("transformers", extra="dpp-sample[hf]")
    # What is wrong with a model is one line of ours, and so is the progress.
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    named = folder.suffix == ".gguf" and folder.is_file()
    gguf = [folder] if named else sorted(folder.glob("*.gguf"))
    folder = folder.parent if named else folder
    if not folder.is_dir():
        raise InputError("--model", found=str(folder), expected="a folder with a model")
    options: dict[str, Any] = {"local_files_only": True}
    if named or (gguf and not list(folder.glob("*.safetensors"))):
        if len(gguf) > 1:
            names = ", ".join(path.name for path in gguf)
            raise InputError("--model", found=names, expected="one GGUF file in the folder")
        require("gguf", extra="dpp-sample[hf]")
        options["gguf_file"] = gguf[0].name
    else:
        options["use_safetensors"] = True  # a checkpoint of another kind is unpickled
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, **{k: v for k, v in options.items() if k != "use_safetensors"}
        )
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, **options
        )
        return model.to(device).eval(), tokenizer
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            "--model",
            found=f"{folder}: {reason}",
            expected="a folder with config.json and safetensors, or one GGUF file, "
            "and a device that torch has here",
        ) from error


def draw(model: Any, tokenizer: Any, prompt: Prompt, settings: GenerationSettings) -> list[dict]:
    """Rows of one prompt's candidates, as `sources.read_jsonl` takes them."""
    from .sources import hf_candidates

    chat = settings.chat and getattr(tokenizer, "chat_template", None) is not None
    found = hf_candidates(
        model,
        tokenizer,
        [{"role": "user", "content": prompt.text}] if chat else prompt.text,
        settings.n,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        max_new_tokens=settings.max_new_tokens,
        batch_size=settings.batch_size,
        generator=torch_generator(keyed(settings.seed, prompt.id)),
    )
    assert found.token_ids is not None and found.logprob is not None
    assert found.proposal_logprob is not None
    return [
        {
            "prompt_id": prompt.id,
            "id": f"{prompt.id}-{number}",
            "text": text,
            "logprob": float(logprob),
            "proposal_logprob": float(proposal),
            "n_tokens": len(ids),
            "complete": True,
            "token_ids": ids,
        }
        for number, (text, ids, logprob, proposal) in enumerate(
            zip(found.texts, found.token_ids, found.logprob, found.proposal_logprob, strict=True),
            start=1,
        )
    ]


def _prompt(row: dict[str, Any], line: int, path: Path) -> tuple[str, str]:
    text, name = row.get("prompt"), row.get("prompt_id", f"q{line}")
    if not isinstance(text, str) or not text.strip():
        raise InputError("prompt must be text", where=f"{path}:{line}", found=text)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise InputError(
            "prompt_id must be text or a whole number", where=f"{path}:{line}", found=name
        )
    return str(name), text
