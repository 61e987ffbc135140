"""Candidates out of JSON Lines, streamed group by group: the rows of one prompt stand together.

A row is ``{"prompt_id": "q7", "text": "...", "logprob": -31.4, "proposal_logprob": -29.8,
"n_tokens": 12, "complete": true, "reward": 0.2, "embedding": [...], "token_ids": [...]}``. Only
``text`` is required; a field that one row of a prompt has, all its rows must have. Other fields
are left as they are, but a ``temperature`` or ``top_p`` other than 1 says that the texts were not
drawn from the law of ``logprob``, so that ``proposal_logprob`` must be there.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from jaxtyping import Float

from armillary import InputError
from armillary.files import PathLike, excerpt
from armillary.files import read_jsonl as read_objects

from .candidates import Candidates, PoolKind, as_logprob, as_number

__all__ = ["Group", "read_jsonl"]

_SHARED = ("logprob", "proposal_logprob", "n_tokens", "reward", "embedding", "token_ids")
# Terms that a sum may have where the row does not say.
_MANY_TOKENS = 10_000


@dataclass(frozen=True)
class Group:
    """The rows of one prompt.

    Parameters
    ----------
    prompt_id
        As text. Rows without one all belong to the prompt ``"all"``.
    rows
        The objects as read.
    lines
        The line of each, from 1.
    candidates
        The same as arrays.
    """

    prompt_id: str
    rows: list[dict[str, Any]]
    lines: list[int]
    candidates: Candidates

    def __len__(self) -> int:
        return len(self.rows)

    def only_complete(self) -> Self:
        """The group without the rows that say ``"complete": false``."""
        keep = [i for i, row in enumerate(self.rows) if row.get("complete", True)]
        return replace(
            self,
            rows=[self.rows[i] for i in keep],
            lines=[self.lines[i] for i in keep],
            candidates=self.candidates.only_complete(),
        )


def read_jsonl(
    path: PathLike,
    *,
    sort: bool = False,
    embeddings: Float[np.ndarray, "n d"] | None = None,
    pool_kind: PoolKind = "iid",
) -> Iterator[Group]:
    """Groups of candidates by ``prompt_id``, in the order of the file, one group in memory.

    Parameters
    ----------
    path
        ``.jsonl``, or ``.jsonl.gz``.
    sort
        Bring the rows of a prompt together first (prompts by first appearance, rows in their
        order); holds the whole file in memory.
    embeddings
        One row for each row of the file, in place of the field ``embedding``. May be a memory map.
    pool_kind
        As in `make_pool`.

    Raises
    ------
    InputError
        With ``file:line``, for the first row that cannot be used; with both lines, for a prompt in
        two separate places; for an empty file; for embeddings of another length than the file.
    """
    name = os.fspath(path)
    last_line: dict[str, int] = {}
    n_read = 0
    for prompt_id, lines, rows in _runs(path, sort=sort):
        if prompt_id in last_line:
            raise InputError(
                f"prompt {prompt_id} stands in two separate places, "
                f"lines {last_line[prompt_id]} and {lines[0]}",
                where=name,
                instead="bring its rows together with --sort (sort=True)",
            )
        last_line[prompt_id] = lines[-1]
        given = None if embeddings is None else embeddings[n_read : n_read + len(rows)]
        n_read += len(rows)
        if embeddings is not None and n_read > len(embeddings):
            break
        places = [f"{name}:{line}" for line in lines]
        yield Group(prompt_id, rows, lines, _candidates(rows, places, prompt_id, given, pool_kind))
    if n_read == 0:
        raise InputError("no rows in this file", where=name)
    if embeddings is not None and n_read != len(embeddings):
        more = "at least " * (n_read > len(embeddings))
        raise InputError(
            "embeddings",
            found=f"{len(embeddings)} rows",
            expected=f"one for each row of {name}, {more}{n_read}",
        )


def _runs(path: PathLike, *, sort: bool) -> Iterator[tuple[str, list[int], list[dict[str, Any]]]]:
    """Prompt, lines and rows of each unbroken run of one prompt (with `sort`: of each prompt)."""
    name = os.fspath(path)
    runs: dict[str, tuple[list[int], list[dict[str, Any]]]] = {}
    named, first = None, 0
    for line, row in read_objects(path):
        if named is None:
            named, first = "prompt_id" in row, line
        if named != ("prompt_id" in row):
            has, lacks = (first, line) if named else (line, first)
            raise InputError(f"no prompt_id, but line {has} has one", where=f"{name}:{lacks}")
        prompt_id = _prompt_id(row.get("prompt_id", "all"), f"{name}:{line}")
        if not sort and runs and prompt_id not in runs:
            yield from ((key, *run) for key, run in runs.items())
            runs = {}
        lines, rows = runs.setdefault(prompt_id, ([], []))
        lines.append(line)
        rows.append(row)
    yield from ((key, *run) for key, run in runs.items())


def _candidates(
    rows: list[dict[str, Any]],
    places: list[str],
    prompt_id: str,
    embeddings: Float[np.ndarray, "n d"] | None,
    pool_kind: PoolKind,
) -> Candidates:
    has = {field: _all_or_none(field, rows, places, prompt_id) for field in _SHARED}
    numbered = list(zip(rows, places, strict=True))
    if has["logprob"] and not has["proposal_logprob"] and pool_kind == "iid":
        for row, place in numbered:
            _refuse_unknown_proposal(row, place)
    counts = [_count(row["n_tokens"], at) for row, at in numbered] if has["n_tokens"] else None

    def logs(field: str) -> Float[np.ndarray, " n"] | None:
        if not has[field]:
            return None
        most = counts or [_MANY_TOKENS] * len(rows)
        return np.array(
            [
                as_logprob(row[field], name=field, where=at, n_tokens=m)
                for (row, at), m in zip(numbered, most, strict=True)
            ]
        )

    if embeddings is None and has["embedding"]:
        embeddings = _embeddings(rows, places)
    if embeddings is not None:
        embeddings = _checked(np.asarray(embeddings, dtype=float), places)
    return Candidates(
        texts=[_text(row, at) for row, at in numbered],
        token_ids=[_ids(row["token_ids"], at) for row, at in numbered]
        if has["token_ids"]
        else None,
        logprob=logs("logprob"),
        proposal_logprob=logs("proposal_logprob"),
        n_tokens=None if counts is None else np.array(counts),
        complete=np.array([_complete(row, at) for row, at in numbered]),
        reward=np.array([_reward(row["reward"], at) for row, at in numbered])
        if has["reward"]
        else None,
        embedding=embeddings,
        pool_kind=pool_kind,
    )


def _all_or_none(field: str, rows: list[dict[str, Any]], places: list[str], prompt_id: str) -> bool:
    lacking = [place for row, place in zip(rows, places, strict=True) if field not in row]
    if lacking and len(lacking) < len(rows):
        raise InputError(
            f"no {field}, which other rows of prompt {prompt_id} have", where=lacking[0]
        )
    return not lacking


def _refuse_unknown_proposal(row: dict[str, Any], place: str) -> None:
    for setting in ("temperature", "top_p"):
        if row.get(setting, 1) != 1:
            raise InputError(
                f"{setting} is not 1 and there is no proposal_logprob, which cannot be recovered "
                "from logprob",
                where=place,
                found=row[setting],
                instead="ask for processed log-probs as proposal_logprob, or draw at temperature 1 "
                "and top_p 1; --pool-kind enumerated does without a proposal",
            )


def _prompt_id(value: object, place: str) -> str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise InputError("prompt_id must be text or a whole number", where=place, found=value)


def _text(row: dict[str, Any], place: str) -> str:
    if "text" not in row:
        raise InputError("no text", where=place, found=f"the fields {', '.join(row) or '(none)'}")
    if not isinstance(row["text"], str):
        raise InputError("text must be a string", where=place, found=row["text"])
    return row["text"]


def _count(value: object, place: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise InputError("n_tokens must be a whole number >= 1", where=place, found=value)


def _complete(row: dict[str, Any], place: str) -> bool:
    value = row.get("complete", True)
    if not isinstance(value, bool):
        raise InputError("complete must be true or false", where=place, found=value)
    return value


def _reward(value: object, place: str) -> float:
    number = as_number(value)
    if number is None:
        raise InputError("reward must be a finite number", where=place, found=value)
    return number


def _ids(value: object, place: str) -> list[int]:
    if isinstance(value, list) and value and all(type(token) is int for token in value):
        return value
    raise InputError("token_ids must be a list of whole numbers", where=place, found=value)


def _embeddings(rows: list[dict[str, Any]], places: list[str]) -> Float[np.ndarray, "n d"]:
    vectors = [row["embedding"] for row in rows]
    for vector, place in zip(vectors, places, strict=True):
        if not isinstance(vector, list) or not vector or any(as_number(x) is None for x in vector):
            raise InputError(
                "embedding must be a list of finite numbers",
                where=place,
                found=excerpt(str(vector)),
            )
        if len(vector) != len(vectors[0]):
            raise InputError(
                f"embedding has length {len(vector)}, that of {places[0]} {len(vectors[0])}",
                where=place,
            )
    return np.array(vectors, dtype=float)


def _checked(embeddings: Float[np.ndarray, "n d"], places: list[str]) -> Float[np.ndarray, "n d"]:
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(embeddings, axis=1)
    for row in np.flatnonzero(~(np.isfinite(norms) & (norms > 0))):
        raise InputError(
            "embedding must have a finite norm above 0",
            where=places[row],
            found=f"norm {norms[row]:g}",
        )
    return embeddings
