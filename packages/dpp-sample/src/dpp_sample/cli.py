"""The command `dpp-sample`: signatures, help and printing; the work is in the other modules."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from armillary import InputError
from armillary.cli import Common, CommonOptions, command
from armillary.run import Run

from .method import METHOD
from .settings import PoolSettings, Reading, Settings

main = command(METHOD)

Beta = Literal["auto"] | float
Size = Annotated[int, Parameter(name=["--k", "-k"])]
PoolOptions = Annotated[PoolSettings, Parameter(name="*", group=Group("Pool", sort_key=2))]
FileOptions = Annotated[Reading, Parameter(name="*", group=Group("File", sort_key=1))]
_POOL, _READING = PoolSettings(), Reading()


def select(
    file: Path,
    /,
    *,
    k: Size = 5,
    method: Literal["map", "sample", "refresh"] = "map",
    beta: Beta = "auto",
    lam: float = 1.0,
    fill: Literal["error", "quality"] = "error",
    keep: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    refine: bool = False,
    rounds: int = 4,
    smooth: Literal["none", "psis"] = "none",
    gsm8k: Path | None = None,
    ambrosia: Path | None = None,
    pool: PoolOptions = _POOL,
    reading: FileOptions = _READING,
    common: CommonOptions = Common(),
) -> None:
    """Choose K answers for every prompt of a file.

    Writes `selected.jsonl` (the chosen rows with rank, marginal and gain) and `prompts.csv`
    (one row a prompt, with the diagnostics).

    Parameters
    ----------
    file
        Candidates in JSON Lines, the rows of a prompt together.
    k
        Answers for each prompt.
    method
        The most probable set, a draw from the law, or a draw after several rounds.
    beta
        Inverse temperature of the whole string.
    lam
        Nats per unit of reward.
    fill
        What to do where fewer than k different answers exist.
    keep
        Values of the field `id` of rows that must be chosen.
    refine
        Improve the set by exchanges (map).
    rounds
        Rounds after the first (refresh).
    smooth
        Smooth the weights' tail: steadier, but not exact.
    gsm8k
        GSM8K's test file; answers are clustered by number, coverage is 1 where one is right.
    ambrosia
        AMBROSIA's table, its databases beside it; coverage is the share of readings found.
    """
    from dataclasses import replace

    from armillary.files import write_csv, write_jsonl

    from .batch import select_prompt

    benchmarks = {"gsm8k": gsm8k, "ambrosia": ambrosia}
    named = [f"{name}:{path}" for name, path in benchmarks.items() if path is not None]
    if len([*named, *filter(None, [pool.cluster])]) > 1:
        raise InputError("--cluster, --gsm8k and --ambrosia", expected="one of them at most")
    settings = Settings(
        k=k,
        method=method,
        beta=None if beta == "auto" else float(beta),
        lam=lam,
        fill=fill,
        smooth=smooth,
        refine=refine,
        rounds=rounds,
        keep=tuple(keep or ()),
        seed=common.seed,
        pool=replace(pool, cluster=named[0]) if named else pool,
    )
    _check_distinct(settings.keep)
    with Run(METHOD, "select", common, _record(settings)) as run:
        found = _each_prompt(run, file, select_prompt, settings, reading)
        unknown = set(settings.keep) - {name for value in found for name in value["seen"]}
        if unknown:
            raise InputError(
                f"--keep {', '.join(sorted(unknown))}", expected="the id of a row", where=str(file)
            )
        figures = [value["figures"] for value in found]
        selected = [row for value in found for row in value["selected"]]
        write_jsonl(run.path("selected.jsonl"), selected)
        write_csv(run.path("prompts.csv"), figures)
        _put_on_record(run, figures, k=k, method=method)
        shown = ["prompt_id", "rank", "text", "logprob", "marginal", "gain"]
        run.table(
            [{key: _short(row.get(key)) for key in shown} for row in selected[:20]],
            "Selected" + (f", the first 20 of {len(selected)}" if len(selected) > 20 else ""),
        )


def pareto(
    file: Path,
    /,
    *,
    k: Size = 5,
    pool: PoolOptions = _POOL,
    reading: FileOptions = _READING,
    common: CommonOptions = Common(),
) -> None:
    """Quality against diversity, for every method.

    Writes `pareto.csv` (every point of every prompt), `pareto.png` and `pareto.svg`.

    Parameters
    ----------
    file
        Candidates in JSON Lines with log-probs, the rows of a prompt together.
    k
        Answers for each prompt.
    """
    from armillary.files import write_csv

    from .batch import sweep_prompt
    from .figures import frontier_figure

    settings = Settings(k=k, seed=common.seed, pool=pool)
    with Run(METHOD, "pareto", common, _record(settings)) as run:
        found = _each_prompt(run, file, sweep_prompt, settings, reading)
        write_csv(run.path("pareto.csv"), [row for value in found for row in value["points"]])
        volumes = [value["volumes"] for value in found]
        run.metrics |= {"n_prompts": len(found), "k": k}
        run.metrics["hypervolume"] = {
            name: sum(v[name] for v in volumes) / len(volumes) for name in volumes[0]
        }
        run.figure(
            frontier_figure([value["points"] for value in found]),
            "pareto",
            f"Quality against diversity of sets of {k}, mean over {len(found)} prompts; "
            "a marker is one setting of a method.",
        )
        run.table(
            [{"method": n, "hypervolume": v} for n, v in run.metrics["hypervolume"].items()],
            f"Area under the frontier, mean over {len(found)} prompts (larger is better)",
        )


def check(
    file: Path,
    /,
    *,
    k: Size = 5,
    beta: Beta = "auto",
    lam: float = 1.0,
    pool: PoolOptions = _POOL,
    reading: FileOptions = _READING,
    common: CommonOptions = Common(),
) -> int:
    """Look at a file's pools: whether they are large enough for sampling.

    Exits with 1 when any prompt has a Pareto k above 0.7 or an effective pool size below 4 k.
    Writes `prompts.csv`.

    Parameters
    ----------
    file
        Candidates in JSON Lines, the rows of a prompt together.
    k
        Answers that are to be drawn for each prompt.
    beta
        Inverse temperature of the whole string.
    lam
        Nats per unit of reward.
    """
    from armillary.files import write_csv

    from .batch import select_prompt
    from .result import MOST_PARETO_K

    settings = Settings(
        k=k,
        method="sample",
        beta=None if beta == "auto" else float(beta),
        lam=lam,
        fill="quality",
        seed=common.seed,
        pool=pool,
    )
    with Run(METHOD, "check", common, _record(settings)) as run:
        found = _each_prompt(run, file, select_prompt, settings, reading)
        rows = [value["figures"] for value in found]
        for row in rows:
            heavy = (row["pareto_k"] or 0.0) > MOST_PARETO_K
            # No figure at all (fewer than k answers) is no reason for trust; a list has none.
            small = pool.pool_kind == "iid" and (row["n_eff"] is None or row["n_eff"] < 4 * k)
            row["ok"] = not (heavy or small)
        write_csv(run.path("prompts.csv"), rows)
        _put_on_record(run, rows, k=k, method="sample")
        run.metrics["n_bad"] = sum(not row["ok"] for row in rows)
        shown = [
            "prompt_id",
            "n",
            "unique",
            "ess",
            "pareto_k",
            "beta",
            "n_eff",
            "kl_estimate",
            "ok",
        ]
        run.table(rows, f"Pools for sampling {k}", columns=shown)
    return 0 if all(row["ok"] for row in rows) else 1


def generate(
    *,
    model: Path,
    prompts: Path,
    n: int = 256,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    max_new_tokens: int = 128,
    batch_size: int = 64,
    raw: bool = False,
    resume: bool = False,
    common: CommonOptions = Common(),
) -> None:
    """Draw candidates from a model in a folder, with log p and log r of each.

    Writes `candidates.jsonl`, which the other verbs read.

    Parameters
    ----------
    model
        Folder with config.json and safetensors, or a GGUF file.
    prompts
        One prompt a line, or JSON Lines with `prompt` and `prompt_id`.
    n
        Draws for each prompt; those that do not end are left out.
    temperature
        Token-level temperature.
    top_p
        Share of the nucleus.
    top_k
        Most probable tokens kept; 0 keeps all.
    max_new_tokens
        A text that has not ended by then is left out.
    batch_size
        Texts drawn at once.
    raw
        Give the prompt as it is, without the model's chat template.
    resume
        Keep the prompts that an interrupted run has finished in the same folder.
    """
    from dataclasses import asdict

    from armillary.checkpoint import Checkpoint, digest_of
    from armillary.files import write_jsonl

    from .generation import GenerationSettings, check_settings, draw, load_model, read_prompts

    settings = GenerationSettings(
        n, temperature, top_p, top_k, max_new_tokens, batch_size, not raw, common.seed
    )
    with Run(METHOD, "generate", common, asdict(settings) | {"model": str(model)}) as run:
        asked = read_prompts(run.input(prompts))
        check_settings(settings)
        network, tokenizer = load_model(model, common.device)
        kept = Checkpoint(run.unfinished("unfinished.jsonl", resume=resume))
        rows: list[dict[str, Any]] = []
        for prompt in run.progress(asked, description="prompts"):
            key = digest_of([settings, prompt, str(model)])
            if key not in kept.done:
                kept.add(key, draw(network, tokenizer, prompt, settings))
            rows += kept.done[key]
        write_jsonl(run.path("candidates.jsonl"), rows)
        run.metrics |= {
            "n_prompts": len(asked),
            "n_candidates": len(rows),
            "share_complete": len(rows) / (n * len(asked)),
        }


def _each_prompt(
    run: Run, file: Path, function: Any, settings: Settings, reading: Reading
) -> list[Any]:
    """Apply `function` to every prompt of the file; all that is read goes on record."""
    from armillary.checkpoint import Checkpoint
    from armillary.files import sha256

    from .batch import each_prompt, prompts

    if settings.k < 1:
        raise InputError("-k", found=settings.k, expected="a whole number >= 1")
    cluster = settings.pool.cluster or ""
    beside = [run.input(p) for p in (reading.embeddings, cluster.partition(":")[2]) if p]
    run.input(file)
    basis = [METHOD.version, run.command, *map(sha256, beside)]
    kept = Checkpoint(run.unfinished("unfinished.jsonl", resume=reading.resume))
    groups = prompts(file, settings.pool, reading)
    values = each_prompt(
        function, groups, settings, jobs=run.jobs, kept=kept, basis=basis, progress=run.progress
    )
    return list(values)


def _record(settings: Any) -> dict[str, object]:
    from dataclasses import asdict

    record = asdict(settings)
    return {"beta": "auto", **{k: v for k, v in record.items() if v is not None}}


def _put_on_record(run: Run, figures: list[dict[str, Any]], *, k: int, method: str) -> None:
    def mean(name: str) -> float | None:
        seen = [row[name] for row in figures if row.get(name) is not None]
        return sum(seen) / len(seen) if seen else None

    run.metrics |= {
        "n_prompts": len(figures),
        "k": k,
        "method": method,
        "beta": mean("beta"),
        "mean_ess": mean("ess"),
        "mean_pareto_k": mean("pareto_k"),
        "mean_n_eff": mean("n_eff"),
        "mean_kl_estimate": mean("kl_estimate"),
        "mean_quality": mean("mean_logprob"),
        "mean_vendi": mean("vendi"),
        "distinct_2": mean("distinct_2"),
        "seconds_per_prompt": run.elapsed_s / len(figures),
    }
    if any("coverage" in row for row in figures):
        run.metrics["coverage"] = mean("coverage")
    doubtful = [row for row in figures if row["notes"]]
    if doubtful:
        first = f"prompt {doubtful[0]['prompt_id']}: {doubtful[0]['notes']}"
        more = f"; {len(doubtful)} of {len(figures)} prompts have notes, see prompts.csv"
        run.warn(first + (more if len(doubtful) > 1 else ""))


def _check_distinct(keep: tuple[str, ...]) -> None:
    for name in keep:
        if keep.count(name) > 1:
            raise InputError(f"--keep {name} is given twice")


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > 70:
        return value[:67] + "..."
    return value
