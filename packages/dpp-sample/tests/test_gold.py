import csv
import json
import sqlite3

import pytest

from armillary import InputError
from dpp_sample.gold import read_ambrosia, read_gsm8k


def write_gsm8k(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


PROBLEM = {"question": "How many?", "answer": "2 boxes of 500 are <<2*500=1000>>1,000.\n#### 1,000"}


def test_gsm8k_answers_follow_the_marks(tmp_path):
    other = {"question": "And 3 days later?", "answer": "It was 7 below 0.\n#### -7"}
    gold = read_gsm8k(write_gsm8k(tmp_path / "test.jsonl", PROBLEM, other))
    assert gold["0"].answers == ("1000",)
    clusters, targets = gold["0"].clusters(["It is 1000.0", "500", "I do not know"])
    assert (clusters == targets[0]).tolist() == [True, False, False]
    assert gold["1"].clusters(["so -7"])[0].tolist() == [0]


def test_gsm8k_names_the_line(tmp_path):
    with pytest.raises(InputError, match=r"test\.jsonl:2: no number after ####"):
        read_gsm8k(write_gsm8k(tmp_path / "test.jsonl", PROBLEM, PROBLEM | {"answer": "#### x"}))
    with pytest.raises(InputError, match=r"b\.jsonl:1: expected the texts question and answer"):
        read_gsm8k(write_gsm8k(tmp_path / "b.jsonl", {"question": "?"}))


@pytest.fixture
def ambrosia(tmp_path):
    """Two rows of the form of AMBROSIA, the database one folder up as there."""
    folder = tmp_path / "data"
    (folder / "scope").mkdir(parents=True)
    with sqlite3.connect(folder / "scope" / "gyms.sqlite") as connection:
        connection.execute("CREATE TABLE gyms (id INTEGER, classes TEXT)")
        connection.executemany("INSERT INTO gyms VALUES (?, ?)", [(1, "yoga"), (2, "box")])
    connection.close()
    queries = "SELECT id\n\nFROM gyms\n\nselect classes FROM gyms\n\nSELECT id FROM gyms"
    rows = [
        {"question": "All?", "gold_queries": queries, "db_file": "data/scope/gyms.sqlite"},
        {"question": "One?", "gold_queries": "SELECT 1", "db_file": "scope/gyms.sqlite"},
    ]
    with (folder / "ambrosia.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["question", "gold_queries", "db_file", "db_dump"])
        table.writeheader()
        table.writerows([row | {"db_dump": "x" * 200_000} for row in rows])
    return folder / "ambrosia.csv"


def test_ambrosia_readings_are_split_and_executed(ambrosia):
    gold = read_ambrosia(ambrosia)
    assert gold["0"].answers == (
        "SELECT id\n\nFROM gyms",
        "select classes FROM gyms",
        "SELECT id FROM gyms",
    )
    texts = ["SELECT id AS n FROM gyms ORDER BY 1 DESC", "SELECT 5", "DROP TABLE gyms"]
    clusters, targets = gold["0"].clusters(texts)
    assert targets.tolist() == [0, 1]  # two of the three readings return the same rows
    assert clusters.tolist() == [0, 2, -1]
    assert gold["1"].clusters(["SELECT 1"])[0].tolist() == [0]
    assert csv.field_size_limit() == 131_072


def test_ambrosia_names_the_row(ambrosia):
    text = ambrosia.read_text()
    ambrosia.write_text(text.replace("scope/gyms.sqlite,x", "scope/bars.sqlite,x"))
    with pytest.raises(InputError, match=r"ambrosia\.csv: row 0: no such database"):
        read_ambrosia(ambrosia)
    bad = ambrosia.with_name("b.csv")
    bad.write_text("question,sql\nWhy?,SELECT 1\n")
    with pytest.raises(InputError, match="row 0: expected question, gold_queries and db_file"):
        read_ambrosia(bad)


def write_candidates(path, prompt_id, texts):
    rows = [
        {"prompt_id": prompt_id, "text": text, "logprob": -1.0 - i, "embedding": [1.0, i]}
        for i, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def figures(folder):
    with (folder / "prompts.csv").open() as file:
        return next(csv.DictReader(file))


def test_select_finds_the_right_answer_of_gsm8k(run_command, tmp_path):
    gold = write_gsm8k(tmp_path / "test.jsonl", PROBLEM)
    texts = ["so 500", "it is 500", "then 500", "2 * 500 = 1000"]
    candidates = write_candidates(tmp_path / "c.jsonl", "0", texts)
    arguments = ("select", candidates, "-k", "2", "--gsm8k", gold, "--quiet")
    run_command("dpp-sample", *arguments, "--out", tmp_path / "o")
    assert float(figures(tmp_path / "o")["coverage"]) == 1
    recorded = json.loads((tmp_path / "o" / "result.json").read_text())
    assert {item["name"] for item in recorded["inputs"]} == {str(candidates), str(gold)}


def test_select_covers_the_readings_of_ambrosia(run_command, ambrosia, tmp_path):
    texts = ["SELECT id FROM gyms", "SELECT id FROM gyms;", "SELECT classes FROM gyms", "SELECT 7"]
    candidates = write_candidates(tmp_path / "c.jsonl", "0", texts)
    arguments = ("select", candidates, "-k", "2", "--ambrosia", ambrosia, "--quiet")
    run_command("dpp-sample", *arguments, "--out", tmp_path / "o")
    assert float(figures(tmp_path / "o")["coverage"]) == 1


def test_answers_that_do_not_fit_are_refused(run_command, assert_bad_input, tmp_path):
    gold = write_gsm8k(tmp_path / "test.jsonl", PROBLEM)
    candidates = write_candidates(tmp_path / "c.jsonl", "7", ["so 500", "or 1000"])
    arguments = ["select", candidates, "-k", "1", "--gsm8k", gold, "--out", tmp_path / "o"]
    result = run_command("dpp-sample", *arguments, check=False)
    assert_bad_input(result, "prompt 7", "no row of that number", "0 to 0")
    result = run_command("dpp-sample", *arguments, "--cluster", "number", check=False)
    assert_bad_input(result, "--cluster, --gsm8k and --ambrosia", "one of them at most")
    assert not (tmp_path / "o").exists()
