"""Many prompts: the pool of each, its selection, its diagnostics, over a stream of prompts.

A prompt's random stream is fixed by the seed and the prompt's id, so that its picks do not change
when other prompts are added, removed or moved to another machine. Prompts are read a batch at a
time, and each finished one is kept, so that memory stays bounded and an interrupted run resumes.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError
from armillary.checkpoint import Checkpoint, digest_of
from armillary.parallel import Progress, map_jobs
from armillary.randomness import keyed

from . import features as maps
from .clusters import number_clusters, one_hot, sql_clusters
from .errors import RankError
from .gold import read_ambrosia, read_gsm8k
from .metrics import coverage, distinct_n, vendi_score
from .pool import Pool, make_pool
from .selection import select
from .settings import PoolSettings, Reading, Settings
from .sources import Group, read_jsonl
from .sweeps import sweep, volumes

__all__ = [
    "Meanings",
    "build_pool",
    "each_prompt",
    "prompts",
    "select_prompt",
    "sweep_prompt",
]

T = TypeVar("T")
Embed = Callable[[list[str]], Float[np.ndarray, "n d"]]

# Share of the similarity that the cluster has, the rest is the text's: two answers that mean the
# same are close whatever they look like.
_CLUSTER_SHARE = 0.9
_BATCH = 16


def prompts(path: Path, settings: PoolSettings, reading: Reading) -> Iterator[Group]:
    """Groups of complete candidates, each with its embedding.

    Raises
    ------
    InputError
        As `read_jsonl`; for a prompt without a complete text; for an embedding that is not there.
    """
    from armillary.files import read_array

    given_rows = reading.embeddings
    matrix = None if given_rows is None else read_array(given_rows, mmap=True)
    if matrix is not None and (matrix.ndim != 2 or matrix.dtype.kind not in "fiu"):
        raise InputError(
            "embeddings",
            where=str(given_rows),
            expected=f"real numbers, one row for each row of {path}",
            found=f"{matrix.dtype} of shape {matrix.shape}",
        )
    embed = _embedder(settings.embedding)
    for group in read_jsonl(
        path, sort=reading.sort, embeddings=matrix, pool_kind=settings.pool_kind
    ):
        kept = group.only_complete()
        where = f"{path}: prompt {group.prompt_id}"
        if not len(kept):
            raise InputError(f"none of its {len(group)} texts is complete", where=where)
        given = kept.candidates.embedding
        if settings.embedding == "field" and given is None:
            raise InputError("no field embedding", where=where, instead="use --embedding lexical")
        if embed is not None:
            given = embed(kept.candidates.texts)
        elif given is None:
            given = maps.LexicalEmbedder()(kept.candidates.texts)
        yield replace(kept, candidates=replace(kept.candidates, embedding=given))


@dataclass(frozen=True, eq=False)
class Meanings:
    """The cluster of each row of a pool, and the clusters that a set should cover."""

    clusters: Int[np.ndarray, " n"]
    targets: Int[np.ndarray, " t"]


def build_pool(group: Group, settings: PoolSettings) -> tuple[Pool, Meanings | None]:
    """The pool of a prompt, and what its rows mean where clusters are asked for."""
    found = group.candidates
    assert found.embedding is not None, "prompts() gives each group its embedding"
    kernel: str | None = settings.kernel
    features, meanings = found.embedding, None
    if settings.cluster is not None:
        meanings = _meanings(group, settings.cluster)
        text = getattr(maps, settings.kernel)(features)
        parts = [(text, 1 - _CLUSTER_SHARE), (one_hot(meanings.clusters), _CLUSTER_SHARE)]
        features, kernel = maps.combine_features(parts), None
    pool = make_pool(
        found.texts,
        features,
        kernel=kernel,
        token_ids=found.token_ids,
        logprob=found.logprob,
        proposal_logprob=found.proposal_logprob,
        reward=found.reward,
        pool_kind=found.pool_kind,
        normalize=settings.normalize,
        length_normalize=settings.length_normalize,
        n_tokens=found.n_tokens,
    )
    if meanings is not None:
        meanings = replace(meanings, clusters=meanings.clusters[pool.index])
    return pool, meanings


def select_prompt(group: Group, settings: Settings) -> dict[str, Any]:
    """Choose from one prompt: the chosen rows, the prompt's figures, what stands against them.

    Raises
    ------
    InputError
        With the prompt's id, where no set of k can be chosen.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            pool, meanings = build_pool(group, settings.pool)
            chosen = select(
                pool,
                settings.k,
                method=settings.method,
                beta="auto" if settings.beta is None else settings.beta,
                lam=settings.lam,
                rounds=settings.rounds,
                refine=settings.refine,
                map_on=settings.map_on,
                keep=_kept_rows(group, pool, settings.keep),
                fill=settings.fill,
                smooth=settings.smooth,
                rng=keyed(settings.seed, group.prompt_id),
            )
        except InputError as error:
            raise _for_command(error, group.prompt_id, settings.keep) from error
    rows = np.asarray(chosen.indices)
    weights = pool.at(chosen.beta, settings.lam, settings.smooth)
    texts = [pool.texts[row] for row in rows]
    figures: dict[str, Any] = {
        "prompt_id": group.prompt_id,
        "n": len(pool.row),
        "unique": len(pool),
        "ess": chosen.ess,
        "pareto_k": chosen.pareto_k,
        "beta": chosen.beta,
        "n_eff": chosen.n_eff,
        "kl_estimate": chosen.kl_estimate,
        "log_det": float(chosen.log_det),
        "vendi": vendi_score(pool.features[rows]),
        "mean_logprob": None
        if group.candidates.logprob is None
        else float(pool.at(1.0, 0.0).log_quality[rows].mean()),
        "distinct_2": distinct_n(texts),
        "logprob_sd": weights.logprob_sd,
        "reward_sd": weights.reward_sd,
    }
    if meanings is not None and meanings.targets.size:
        figures["coverage"] = coverage(meanings.clusters[rows], meanings.targets)
    # The library says the same thing as a warning and as a note.
    notes = dict.fromkeys([*(str(warning.message) for warning in caught), *chosen.notes])
    return {
        "selected": [
            group.rows[pool.index[row]]
            | {
                "prompt_id": group.prompt_id,
                "rank": rank,
                "marginal": None if chosen.marginals is None else float(chosen.marginals[row]),
                "gain": None if chosen.gains is None else float(chosen.gains[rank - 1]),
                "copies": int(pool.counts[row]),
            }
            for rank, row in enumerate(rows, start=1)
        ],
        "figures": figures | {"notes": "; ".join(notes)},
        "seen": [name for row in group.rows if (name := _id(row)) in settings.keep],
    }


def sweep_prompt(group: Group, settings: Settings) -> dict[str, Any]:
    """Points of every method on one prompt (`sweeps.sweep`), and the area under each frontier."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each point stands beside the others: no verdicts here
        try:
            pool, _ = build_pool(group, settings.pool)
            if group.candidates.logprob is None:
                raise InputError("no logprob", instead="without it there is no quality to trade")
            points = sweep(pool, settings.k, rng=keyed(settings.seed, group.prompt_id))
        except InputError as error:
            raise _for_command(error, group.prompt_id) from error
    return {
        "points": [{"prompt_id": group.prompt_id, **point} for point in points],
        "volumes": volumes(points),
    }


def each_prompt(
    function: Callable[[Group, Any], T],
    groups: Iterable[Group],
    settings: Any,
    *,
    jobs: int,
    kept: Checkpoint,
    basis: object,
    progress: Progress,
) -> Iterator[Any]:
    """Apply `function(group, settings)` to every prompt, in order, unless `kept` has its value.

    `basis` is what a value rests on beside the settings and the prompt's rows: other files.

    Yields
    ------
    The values, as they come back from JSON.
    """
    stream = iter(progress(groups, description="prompts"))
    while batch := list(islice(stream, _BATCH * max(1, abs(jobs)))):
        keys = [digest_of([basis, settings, group.prompt_id, group.rows]) for group in batch]
        todo = [
            (key, group) for key, group in zip(keys, batch, strict=True) if key not in kept.done
        ]
        values = map_jobs(_Call(function, settings), [group for _, group in todo], jobs=jobs)
        for (key, _), value in zip(todo, values, strict=True):
            kept.add(key, value)
        yield from (kept.done[key] for key in keys)


@dataclass(frozen=True)
class _Call:
    """`function(group, settings)` as something that travels to another process."""

    function: Callable[[Group, Any], Any]
    settings: Any

    def __call__(self, group: Group) -> Any:
        return self.function(group, self.settings)


def _embedder(name: str | None) -> Embed | None:
    """What embeds the texts, or None where the rows' own embedding serves if there is one."""
    if name in (None, "field"):
        return None
    if name == "lexical":
        return lambda texts: maps.LexicalEmbedder()(texts)  # weights of each prompt's own pool
    from .embedders import SentenceEmbedder

    return SentenceEmbedder(name)


def _meanings(group: Group, name: str) -> Meanings:
    kind, _, file = name.partition(":")
    texts = group.candidates.texts
    if kind in ("gsm8k", "ambrosia") and file:
        answers = {"gsm8k": read_gsm8k, "ambrosia": read_ambrosia}[kind](Path(file))
        if group.prompt_id not in answers:
            raise InputError(
                f"no row of that number in {file}",
                expected=f"the number of a row as prompt_id, 0 to {len(answers) - 1}",
            )
        return Meanings(*answers[group.prompt_id].clusters(texts))
    if name == "number":
        clusters = number_clusters(texts)
    elif kind == "sql" and file:
        clusters = sql_clusters(texts, file)
    else:
        raise InputError("--cluster", found=name, expected="number or sql:DATABASE")
    return Meanings(clusters, np.unique(clusters[clusters >= 0]))


def _kept_rows(group: Group, pool: Pool, keep: Sequence[str]) -> list[int]:
    """Rows of the pool that the ids of `keep` name in this prompt."""
    rows: dict[int, str] = {}
    seen: set[str] = set()
    for source, row in enumerate(group.rows):
        name = _id(row)
        if name is None or name not in keep:
            continue
        if name in seen:
            raise InputError(f"--keep {name}: this id stands twice")
        seen.add(name)
        at = int(pool.row[source])
        if at in rows:
            raise InputError(f"--keep {rows[at]} and {name} are copies of each other")
        rows[at] = name
    return list(rows)


def _id(row: dict[str, Any]) -> str | None:
    """A row's id as the command line writes it; ids may be whole numbers, as prompt ids may."""
    name = row.get("id")
    return str(name) if isinstance(name, str | int) and not isinstance(name, bool) else None


def _for_command(error: InputError, prompt_id: str, keep: Sequence[str] = ()) -> InputError:
    """The library's error in the command's words, with the prompt it is about."""
    what = f"--keep {', '.join(keep)}" if error.what == "keep" else error.what
    way_out = error.instead
    if way_out is not None:
        way_out = way_out.replace('fill="quality"', "--fill quality").replace(" k", " -k")
    where = f"prompt {prompt_id}" + (f", {error.where}" if error.where else "")
    kind = InputError if not isinstance(error, RankError) else RankError
    return kind(what, where=where, found=error.found, expected=error.expected, instead=way_out)
