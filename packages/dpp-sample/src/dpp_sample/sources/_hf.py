"""Draw candidates from a transformers model, with log p and log r of every draw.

`generate` cannot be asked for both laws without keeping n x steps x vocabulary numbers, and its own
random draws cannot be given a `torch.Generator`. Two small observers do instead:

* a forward hook sees the model's raw logits before any processor: they give log p;
* a `LogitsProcessor`, last in the list, sees the scores after whatever the checkpoint's generation
  file still does to them (repetition penalty, minimum length, suppressed tokens). It applies
  temperature, top-k and top-p, records log r, draws the token, and leaves `generate` no choice.

So log r is measured where the draw is made, never assumed equal to log p.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
import torch
from scipy.special import logsumexp
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedTokenizerBase,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from armillary import InputError
from dpp_sample.errors import PoolWarning

from .candidates import Candidates

__all__ = ["hf_candidates"]


def hf_candidates(
    model: torch.nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    prompt: str | Sequence[int] | Sequence[Mapping[str, str]],
    n: int,
    *,
    temperature: float | Sequence[float] = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    max_new_tokens: int = 128,
    batch_size: int = 64,
    incomplete: Literal["drop", "keep"] = "drop",
    generator: torch.Generator | None = None,
) -> Candidates:
    """Draw `n` texts from a causal (or encoder-decoder) language model.

    Parameters
    ----------
    model
        A transformers model, or a PEFT adapter around one, in evaluation mode, on any device. The
        sampling defaults in its generation file (temperature, top-k, top-p ...) are not used; what
        else stands there (a repetition penalty, a minimum length) acts and is part of log r.
    tokenizer
        The model's own; decodes the draws.
    prompt
        A text as it is, a list of token ids, or a list of chat messages
        (``{"role": ..., "content": ...}``) for the tokenizer's chat template.
    n
        Number of draws, before incomplete ones are dropped.
    temperature
        Token-level temperature > 0. Of several, each gets an equal part of the n draws (the first
        ones one more where n does not divide), and log r is that of the mixture (balance
        heuristic): log r(y) = log sum_j (n_j / n) r_j(y).
    top_p, top_k
        Nucleus and top-k truncation of the proposal, in transformers' order; 1 and 0: none.
    max_new_tokens
        A text that has not ended by then is incomplete.
    batch_size
        Texts drawn at once. Part of the seed: another batch size draws other texts.
    incomplete
        ``"drop"`` leaves out texts without an end token: the target is then the model's law over
        texts of at most `max_new_tokens` tokens, and log r is right up to a constant. ``"keep"``
        keeps them, with a warning.
    generator
        Source of randomness, on any device; None is torch's global one.

    Raises
    ------
    InputError
        For an argument out of range, a model in training mode, a model without an end token, a
        prompt too long for the model, or when no draw was complete.
    """
    temperatures = check_sampling(n, temperature, top_p, top_k, max_new_tokens, batch_size)
    if model.training:
        raise InputError(
            "model is in training mode: dropout makes its log-probs random",
            instead="call model.eval()",
        )
    ids = _prompt_ids(model, tokenizer, prompt, max_new_tokens)
    ends = _end_ids(model, tokenizer)
    laws = [_warpers(t, top_k, top_p) for t in temperatures]

    share = [n // len(laws) + (j < n % len(laws)) for j in range(len(laws))]
    batches = [
        _draw(
            model, ids, laws, j, min(batch_size, share[j] - start), ends, max_new_tokens, generator
        )
        for j in range(len(laws))
        for start in range(0, share[j], batch_size)
    ]
    token_ids = [row for batch in batches for row in batch.rows()]
    log_p = np.concatenate([batch.log_p.numpy() for batch in batches])
    log_each = np.concatenate([batch.log_r.numpy() for batch in batches])
    complete = np.concatenate([~batch.alive.cpu().numpy() for batch in batches])
    # The shares are those drawn, not those that ended: what is kept of law j has density
    # r_j / P_j(complete), and the expected number kept is n_j P_j(complete).
    log_r = np.asarray(logsumexp(log_each + np.log(np.array(share) / n), axis=1))

    found = Candidates(
        texts=[_text(tokenizer, row, ends) for row in token_ids],
        token_ids=token_ids,
        # Sums of float32 log-probs may end a rounding error above 0.
        logprob=np.minimum(log_p, 0.0),
        proposal_logprob=np.minimum(log_r, 0.0),
        n_tokens=np.array([len(row) for row in token_ids]),
        complete=complete,
    )
    unfinished = int((~complete).sum())
    if unfinished == 0:
        return found
    if unfinished < n and incomplete == "drop":
        return found.only_complete()
    if incomplete == "drop":
        raise InputError(
            f"none of {n} texts ended within max_new_tokens={max_new_tokens}",
            instead="raise max_new_tokens, ask for a shorter answer, or incomplete='keep'",
        )
    note = (
        f"{unfinished} of {n} texts did not end within {max_new_tokens} tokens and are kept: "
        "their log-probs are those of prefixes, the target is no longer a law over whole texts"
    )
    warnings.warn(note, PoolWarning, stacklevel=2)
    return replace(found, notes=(note,))


class _Recorder(LogitsProcessor):
    """Draws the tokens of one batch and keeps its running sums; last in the list."""

    def __init__(
        self,
        laws: list[LogitsProcessorList],
        own: int,
        size: int,
        ends: list[int],
        generator: torch.Generator | None,
        device: torch.device,
    ) -> None:
        self.laws, self.own, self.generator = laws, own, generator
        self.ends = torch.tensor(ends, device=device)
        self.raw: torch.Tensor | None = None
        self.alive = torch.ones(size, dtype=torch.bool, device=device)
        self.tokens: list[torch.Tensor] = []
        self.kept: list[torch.Tensor] = []
        self.log_p = torch.zeros(size, dtype=torch.float64)
        self.log_r = torch.zeros(size, len(laws), dtype=torch.float64)

    def see_raw(self, _module: object, _inputs: object, output: Any) -> None:
        """Forward hook: the last position's logits as the model gave them."""
        self.raw = output.logits[:, -1].detach().to(self.alive.device, torch.float32)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        if self.raw is None:
            raise InputError(
                "generate did not call this model's own forward: log p cannot be measured",
                found=type(self).__name__,
            )
        of_law = [torch.log_softmax(law(input_ids, scores).float(), dim=-1) for law in self.laws]
        probs = of_law[self.own].exp()
        if self.generator is not None:
            probs = probs.to(self.generator.device)
        token = torch.multinomial(probs, 1, generator=self.generator).to(scores.device)

        alive = self.alive.cpu()
        gained = torch.log_softmax(self.raw, dim=-1).gather(1, token)[:, 0].cpu().double()
        self.log_p += torch.where(alive, gained, 0.0)
        each = torch.cat([law.gather(1, token) for law in of_law], dim=1).cpu().double()
        # A finished row is padded: what it "draws" afterwards is no part of the text.
        self.log_r += torch.where(alive[:, None], each, 0.0)
        self.tokens.append(token[:, 0])
        self.kept.append(self.alive)
        self.alive = self.alive & ~torch.isin(token[:, 0], self.ends)
        return torch.full_like(scores, -torch.inf).scatter_(1, token, 0.0)

    def rows(self) -> list[list[int]]:
        """Token ids of each draw, to its first end token inclusive."""
        tokens = torch.stack(self.tokens, dim=1).tolist()
        lengths = torch.stack(self.kept, dim=1).sum(dim=1).tolist()
        return [row[:length] for row, length in zip(tokens, lengths, strict=True)]


def _draw(
    model: Any,
    ids: torch.Tensor,
    laws: list[LogitsProcessorList],
    own: int,
    size: int,
    ends: list[int],
    max_new_tokens: int,
    generator: torch.Generator | None,
) -> _Recorder:
    recorder = _Recorder(laws, own, size, ends, generator, ids.device)
    # Explicit values: a field left None is filled from the checkpoint's generation file. Greedy,
    # because the recorder has drawn already and the model's own warpers must not act after it.
    config = GenerationConfig(
        do_sample=False,
        num_beams=1,
        num_return_sequences=1,
        max_new_tokens=max_new_tokens,
        eos_token_id=ends,
        pad_token_id=ends[0],
        return_dict_in_generate=False,
        use_cache=True,
    )
    batch = ids.expand(size, -1)
    # An adapter (PEFT) passes generate on to the model inside it, whose forward is the one called.
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    hook = inner.register_forward_hook(recorder.see_raw)
    try:
        with torch.no_grad():
            out = model.generate(
                batch,
                attention_mask=torch.ones_like(batch),
                generation_config=config,
                logits_processor=LogitsProcessorList([recorder]),
            )
    finally:
        hook.remove()
        recorder.raw = None  # size x vocabulary numbers, and the recorders of all batches stay
    followed = out[:, -len(recorder.tokens) :]
    drawn, kept = torch.stack(recorder.tokens, dim=1), torch.stack(recorder.kept, dim=1)
    if followed.shape != drawn.shape or not torch.equal(followed[kept], drawn[kept]):
        raise InputError(
            "generate did not follow the recorded draws, so their log-probs are not known",
            instead="remove assisted or contrastive decoding from model.generation_config",
        )
    return recorder


def check_sampling(
    n: int,
    temperature: float | Sequence[float],
    top_p: float,
    top_k: int,
    max_new_tokens: int,
    batch_size: int,
) -> list[float]:
    """Refuse what no model could follow, and give the temperatures as a list.

    Raises
    ------
    InputError
        Naming the first argument out of range.
    """
    for name, value in (("n", n), ("max_new_tokens", max_new_tokens), ("batch_size", batch_size)):
        if value < 1:
            raise InputError(name, found=value, expected="a whole number >= 1")
    if top_k < 0 or not 0 < top_p <= 1:
        raise InputError(
            "top_k, top_p", found=f"{top_k}, {top_p}", expected="top_k >= 0 and 0 < top_p <= 1"
        )
    return _temperatures(temperature, n)


def _temperatures(temperature: float | Sequence[float], n: int) -> list[float]:
    several = list(temperature) if isinstance(temperature, Sequence) else [temperature]
    if not several or len(several) > n:
        raise InputError(
            "temperature", found=f"{len(several)} values for n={n}", expected="between 1 and n"
        )
    for value in several:
        if not (np.isfinite(value) and value > 0):
            raise InputError(
                "temperature",
                found=value,
                expected="a number > 0",
                instead="temperature 0 draws one text only; a small one, .1, has a law",
            )
    return [float(value) for value in several]


def _warpers(temperature: float, top_k: int, top_p: float) -> LogitsProcessorList:
    warpers = LogitsProcessorList()
    if temperature != 1:
        warpers.append(TemperatureLogitsWarper(temperature))
    if top_k > 0:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        warpers.append(TopPLogitsWarper(top_p))
    return warpers


def _prompt_ids(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    prompt: str | Sequence[int] | Sequence[Mapping[str, str]],
    max_new_tokens: int,
) -> torch.Tensor:
    if isinstance(prompt, str):
        ids = list(cast(Any, tokenizer)(prompt)["input_ids"])
    elif len(prompt) > 0 and isinstance(prompt[0], Mapping):
        chat = cast(Any, tokenizer).apply_chat_template(
            list(prompt), add_generation_prompt=True, tokenize=True, return_dict=True
        )
        ids = list(chat["input_ids"])
    else:
        ids = [int(token) for token in cast(Sequence[int], prompt)]
    if not ids:
        raise InputError("prompt", found="no tokens", expected="at least one")
    room = getattr(model.config, "max_position_embeddings", None)
    if (
        room is not None
        and not model.config.is_encoder_decoder
        and len(ids) + max_new_tokens > room
    ):
        raise InputError(
            f"prompt of {len(ids)} tokens and max_new_tokens={max_new_tokens}",
            expected=f"at most the model's {room} positions together",
        )
    return torch.tensor([ids], device=model.device)


def _end_ids(model: Any, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    for holder in (model.generation_config, model.config, tokenizer):
        ends = getattr(holder, "eos_token_id", None)
        if ends is not None and ends != []:
            return [int(end) for end in (ends if isinstance(ends, (list, tuple)) else [ends])]
    raise InputError(
        "the model names no end token, so no text is ever complete",
        instead="set model.generation_config.eos_token_id",
    )


def _text(tokenizer: PreTrainedTokenizerBase, ids: list[int], ends: list[int]) -> str:
    body = ids[:-1] if ids[-1] in ends else ids
    return cast(str, tokenizer.decode(body, skip_special_tokens=True))
