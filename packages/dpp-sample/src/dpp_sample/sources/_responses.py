"""Candidates out of what a server answered: OpenAI-compatible responses and vLLM outputs.

Both carry the log-prob of each chosen token and no more. That is log p or log r, whichever the
server was asked for, and one cannot be had from the other:

* ``raw``: under the base model, before temperature and truncation. The law of the draws is known
  only if there were none, temperature 1 and top-p 1. Dividing a chosen token's log-prob by the
  temperature does not give it: the normaliser needs the whole vocabulary.
* ``processed``: under the law of the draws. The base model's own log p is known only at
  temperature 1 and top-p 1; otherwise the law of the draws takes its place, which a note says.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from armillary import InputError
from dpp_sample.errors import PoolWarning

from .candidates import Candidates, PoolKind, as_logprob

__all__ = ["from_openai", "from_vllm"]

_NO_END = (
    "no log-prob of the end token in the response: log p is without the factor p(end | text), "
    "which favours texts that stop where the model would rather go on"
)


def from_openai(
    response: Any,
    *,
    temperature: float,
    top_p: float = 1.0,
    logprobs: Literal["raw", "processed"] = "raw",
    pool_kind: PoolKind = "iid",
) -> Candidates:
    """Candidates of an OpenAI-compatible response, chat or (legacy) completion.

    Parameters
    ----------
    response
        The decoded JSON object, the client library's object, or several for one prompt. Ask the
        server for ``logprobs`` and, for many candidates, ``n``.
    temperature, top_p
        What was asked for. Also what the server fills in by itself counts: a field left out of a
        request is not always 1.
    logprobs
        Which law the server reports, see the module.
    pool_kind
        ``"enumerated"`` where the texts are a list without a proposal law; then any temperature
        does.

    Raises
    ------
    InputError
        Naming choice and token, for a log-prob that is missing, positive or a stand-in (-9999);
        for log-probs of the prompt (``echo``); for ``raw`` with a temperature or top-p other
        than 1.
    """
    _check_known(temperature, top_p, logprobs, pool_kind)
    texts, terms, complete, ended = [], [], [], True
    for place, choice in _choices(response):
        text, tokens, values = _openai_choice(choice, place)
        texts.append(text)
        terms.append(
            [
                as_logprob(v, name="logprob", where=f"{place}, token {t}")
                for t, v in enumerate(values)
            ]
        )
        complete.append(choice.get("finish_reason") == "stop")
        # A server that reports the end token gives one token more than the text has.
        ended &= not complete[-1] or "".join(tokens) != text
    return _candidates(
        texts, None, terms, complete, _processed(temperature, top_p, logprobs), pool_kind, ended
    )


def from_vllm(
    outputs: Any,
    *,
    logprobs_mode: Literal["raw_logprobs", "processed_logprobs"],
    temperature: float,
    top_p: float = 1.0,
    pool_kind: PoolKind = "iid",
) -> Candidates:
    """Candidates of vLLM's ``RequestOutput`` for one prompt, or of several for the same prompt.

    Parameters
    ----------
    outputs
        What ``LLM.generate`` returned for the prompt, as objects or as plain dicts.
        ``SamplingParams(logprobs=0)`` is enough: the chosen token's log-prob.
    logprobs_mode
        The engine's setting of that name. Its default is ``"raw_logprobs"``.
    temperature, top_p
        As in the ``SamplingParams``; top-k, min-p and penalties must be off with
        ``"raw_logprobs"``.
    pool_kind
        As in `from_openai`.

    Raises
    ------
    InputError
        Naming the candidate, where token ids and log-probs do not belong together; and as
        `from_openai`.
    """
    if logprobs_mode not in ("raw_logprobs", "processed_logprobs"):
        raise InputError(
            "logprobs_mode",
            found=logprobs_mode,
            expected="'raw_logprobs' or 'processed_logprobs'",
            instead="logits cannot be turned into log-probs of chosen tokens",
        )
    logprobs = logprobs_mode.removesuffix("_logprobs")
    _check_known(temperature, top_p, logprobs, pool_kind)
    texts, token_ids, terms, complete = [], [], [], []
    for place, candidate in _vllm_candidates(outputs):
        complete.append(_get(candidate, "finish_reason") == "stop")
        ids, values = _vllm_terms(candidate, place, stopped=complete[-1])
        texts.append(_text(_get(candidate, "text"), place))
        token_ids.append(ids)
        terms.append(
            [
                as_logprob(v, name="logprob", where=f"{place}, token {t}")
                for t, v in enumerate(values)
            ]
        )
    processed = _processed(temperature, top_p, logprobs)
    return _candidates(texts, token_ids, terms, complete, processed, pool_kind, True)


def _check_known(temperature: float, top_p: float, logprobs: str, pool_kind: str) -> None:
    if not temperature > 0 or not 0 < top_p <= 1:
        raise InputError(
            "temperature, top_p",
            found=f"{temperature}, {top_p}",
            expected="temperature > 0 and 0 < top_p <= 1",
        )
    if logprobs not in ("raw", "processed"):
        raise InputError("logprobs", found=logprobs, expected="'raw' or 'processed'")
    if logprobs == "raw" and (temperature, top_p) != (1, 1) and pool_kind == "iid":
        raise InputError(
            "the proposal log-prob cannot be recovered from raw log-probs of the chosen tokens",
            found=f"temperature {temperature:g}, top_p {top_p:g}",
            instead="ask the server for processed log-probs, or draw at temperature 1 and top_p 1; "
            "pool_kind='enumerated' (--pool-kind enumerated) does without a proposal",
        )


def _processed(temperature: float, top_p: float, logprobs: str) -> bool:
    return logprobs == "processed" and (temperature, top_p) != (1, 1)


def _candidates(
    texts: list[str],
    token_ids: list[list[int]] | None,
    terms: list[list[float]],
    complete: list[bool],
    processed: bool,
    pool_kind: PoolKind,
    ended: bool,
) -> Candidates:
    notes = []
    if processed:
        notes.append(
            "log p of the base model is not known: the law of the draws (after temperature and "
            "top-p) stands in its place"
        )
    if not ended:
        warnings.warn(_NO_END, PoolWarning, stacklevel=3)
        notes.append(_NO_END)
    log = np.array([float(np.sum(row)) for row in terms])
    return Candidates(
        texts=texts,
        token_ids=token_ids,
        logprob=log,
        proposal_logprob=None if pool_kind == "enumerated" else log,
        n_tokens=np.array([len(row) for row in terms]),
        complete=np.array(complete),
        pool_kind=pool_kind,
        notes=tuple(notes),
    )


def _get(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _text(text: Any, place: str) -> str:
    if not isinstance(text, str):
        raise InputError("expected a text", where=place, found=text, instead="tool calls have none")
    return text


def _several(answers: Any) -> list[Any]:
    alone = isinstance(answers, Mapping) or not isinstance(answers, Sequence)
    return [answers] if alone else list(answers)


def _choices(response: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    n = 0
    for one in _several(response):
        answer = one.model_dump() if hasattr(one, "model_dump") else one
        choices = answer.get("choices") if isinstance(answer, Mapping) else None
        if not choices:
            raise InputError("expected a response with choices", where="response", found=answer)
        lengths = 0
        for choice in choices:
            yield f"choice {n}", choice
            n += 1
            tokens = (choice.get("logprobs") or {}).get("tokens")
            lengths += len(tokens or ())
        # Beside the null of the first prompt token, the only trace that echo leaves.
        told = (answer.get("usage") or {}).get("completion_tokens")
        if told is not None and lengths > told + len(choices):
            raise InputError(
                f"log-probs of the prompt are included: {lengths} for {told} generated tokens",
                where="response",
                instead="ask without echo",
            )


def _openai_choice(choice: Mapping[str, Any], place: str) -> tuple[str, list[str], list[Any]]:
    """Text, tokens and log-probs of one choice."""
    given = choice.get("logprobs")
    if isinstance(given, Mapping) and given.get("content") is not None:
        content = given["content"]
        text = _text((choice.get("message") or {}).get("content"), place)
        tokens = [str(term.get("token")) for term in content]
        values = [term.get("logprob") for term in content]
    elif isinstance(given, Mapping) and given.get("token_logprobs") is not None:
        text = _text(choice.get("text"), place)
        tokens, values = [str(t) for t in given["tokens"]], list(given["token_logprobs"])
        if values and values[0] is None:
            raise InputError(
                "log-probs of the prompt are included: the first token has none",
                where=place,
                instead="ask without echo",
            )
    else:
        raise InputError("no logprobs", where=place, instead="ask the server for logprobs")
    if len(tokens) != len(values):
        raise InputError(
            f"{len(tokens)} tokens and {len(values)} log-probs do not belong together", where=place
        )
    if not values:
        raise InputError(
            "no log-probs: expected one a token, the end token's at least", where=place
        )
    return text, tokens, values


def _vllm_candidates(outputs: Any) -> Iterator[tuple[str, Any]]:
    several = _several(outputs)
    prompts = {repr(_get(o, "prompt_token_ids") or _get(o, "prompt")) for o in several}
    if len(prompts) > 1:
        raise InputError(
            "outputs", found=f"{len(prompts)} different prompts", expected="those of one prompt"
        )
    n = 0
    for output in several:
        for candidate in _get(output, "outputs") or ():
            yield f"candidate {n}", candidate
            n += 1
    if n == 0:
        raise InputError("outputs", found="no candidates", expected="vLLM RequestOutput objects")


def _vllm_terms(candidate: Any, place: str, *, stopped: bool) -> tuple[list[int], list[Any]]:
    """Token ids and the log-prob of each."""
    ids, given = [int(t) for t in _get(candidate, "token_ids")], _get(candidate, "logprobs")
    if given is None:
        raise InputError("no logprobs", where=place, instead="ask for SamplingParams(logprobs=0)")
    # Some servers cut the stop token off the ids and not off the log-probs. Its term belongs to
    # log p(text); it can be told where the last entry holds one token.
    if stopped and len(given) == len(ids) + 1 and len(given[-1]) == 1:
        ids.append(int(next(iter(given[-1]))))
    if len(given) != len(ids) or not ids:
        raise InputError(
            f"{len(ids)} token ids and {len(given)} log-probs do not belong together", where=place
        )
    values = []
    for t, (token, entry) in enumerate(zip(ids, given, strict=True)):
        # Keys are text where the output has gone through JSON.
        found = entry.get(token, entry.get(str(token)))
        values.append(found if not hasattr(found, "logprob") else found.logprob)
        if isinstance(found, Mapping):
            values[t] = found.get("logprob")
    return ids, values
