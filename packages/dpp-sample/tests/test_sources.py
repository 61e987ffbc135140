"""Answers of servers and JSON Lines: log-probs are summed as they are, or refused with a place."""

import json
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from armillary import InputError
from dpp_sample import sources
from dpp_sample.errors import PoolWarning
from dpp_sample.sources import Candidates, from_openai, from_vllm, read_jsonl

# ---------------------------------------------------------------------------------------- OpenAI


def chat(*choices, reason="stop", **rest):
    """A chat response; each choice is a list of (token, log-prob), its text their tokens joined."""
    return {
        "choices": [
            {
                "index": i,
                "message": {"role": "assistant", "content": "".join(t for t, _ in terms)},
                "logprobs": {"content": [{"token": t, "logprob": v} for t, v in terms]},
                "finish_reason": reason,
            }
            for i, terms in enumerate(choices)
        ],
        **rest,
    }


def three(middle):
    """Three choices of three tokens, the second's log-prob in question."""
    return chat(*[[("a", -0.3), ("b", middle), ("c", -0.4)]] * 3)


def completion(tokens, values, *, text=None, reason="stop", **rest):
    return {
        "choices": [
            {
                "text": "".join(tokens) if text is None else text,
                "logprobs": {"tokens": tokens, "token_logprobs": values},
                "finish_reason": reason,
            }
        ],
        **rest,
    }


@pytest.fixture
def no_end_warned():
    with pytest.warns(PoolWarning, match="no log-prob of the end token") as caught:
        yield
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("sentinel", "shown"), [(-9999.0, "-9999.0"), (None, "null"), (1.0, "1.0"), (-1e30, "-1e+30")]
)
def test_a_stand_in_for_a_missing_log_prob_is_refused(sentinel, shown):
    with pytest.raises(InputError) as caught:
        from_openai(three(sentinel), temperature=1)
    assert str(caught.value).startswith("choice 0, token 1: ")
    assert shown in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), True, "-0.5", -9999, -1001.0])
def test_what_is_no_log_prob_is_refused(value):
    with pytest.raises(InputError, match="choice 0, token 1"):
        from_openai(three(value), temperature=1)


@pytest.mark.usefixtures("no_end_warned")
@pytest.mark.parametrize(("value", "total"), [(3e-9, -0.7), (-120.5, -121.2)])
def test_rounding_and_rare_tokens_are_accepted(value, total):
    found = from_openai(three(value), temperature=1)
    np.testing.assert_allclose(found.logprob, [total] * 3, rtol=1e-12)
    np.testing.assert_array_equal(found.proposal_logprob, found.logprob)
    assert found.texts == ["abc"] * 3
    assert found.n_tokens.tolist() == [3] * 3
    assert found.complete.all()


def test_the_missing_end_token_is_warned_of_once_and_recorded():
    with pytest.warns(PoolWarning) as caught:
        found = from_openai([three(-0.1), three(-0.2)], temperature=1)
    assert len(caught) == 1
    assert len(found) == 6
    assert "p(end | text)" in found.notes[0]


def test_an_end_token_that_is_there_is_summed_without_warning():
    response = chat([("a", -0.3), ("<|im_end|>", -2.0)])
    response["choices"][0]["message"]["content"] = "a"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = from_openai(response, temperature=1)
    assert found.logprob.tolist() == [-2.3]
    assert found.notes == ()


def test_a_text_cut_off_is_incomplete():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it has no end token to miss
        found = from_openai(chat([("a", -0.3)], reason="length"), temperature=1)
    assert found.complete.tolist() == [False]
    assert len(found.only_complete()) == 0


@pytest.mark.usefixtures("no_end_warned")
def test_legacy_completions():
    found = from_openai(completion([" x", " y"], [-0.5, -1.75]), temperature=1)
    assert found.texts == [" x y"]
    assert found.logprob.tolist() == [-2.25]


def test_an_echoed_prompt_is_refused():
    response = completion(["Q", ":", " x", " y"], [None, -4.1, -0.5, -1.75])
    with pytest.raises(InputError, match="log-probs of the prompt are included"):
        from_openai(response, temperature=1)


def test_an_echoed_prompt_is_seen_by_the_usage_too():
    # A server that knows the first prompt token's log-prob (after a start token) sends no null.
    tokens, values = ["Q", ":", " x", " y"], [-3.0, -4.1, -0.5, -1.75]
    with pytest.raises(InputError, match="prompt are included: 4 for 2 generated tokens"):
        from_openai(completion(tokens, values, usage={"completion_tokens": 2}), temperature=1)


def test_lists_of_different_length_are_refused():
    with pytest.raises(InputError, match="choice 0: 2 tokens and 3 log-probs"):
        from_openai(completion([" x", " y"], [-0.5, -1.0, -1.0]), temperature=1)


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ({"error": {"message": "no"}}, "expected a response with choices"),
        ({"choices": []}, "expected a response with choices"),
        ([{"choices": [{"text": "a", "logprobs": None}]}], "choice 0: no logprobs"),
        (chat([]), "choice 0: no log-probs"),
    ],
)
def test_responses_without_log_probs(response, words):
    with pytest.raises(InputError, match=words):
        from_openai(response, temperature=1)


def test_a_tool_call_has_no_text():
    response = chat([("a", -0.3)], reason="tool_calls")
    response["choices"][0]["message"]["content"] = None
    with pytest.raises(InputError, match="choice 0: expected a text"):
        from_openai(response, temperature=1)


def test_the_client_library_s_object_is_read():
    response = chat([("a", -0.3), ("<end>", -1.0)])
    response["choices"][0]["message"]["content"] = "a"
    found = from_openai(SimpleNamespace(model_dump=lambda: response), temperature=1)
    assert found.logprob.tolist() == [-1.3]


@pytest.mark.parametrize("asked", [{"temperature": 0.7}, {"temperature": 1, "top_p": 0.9}])
def test_raw_log_probs_do_not_give_the_proposal(asked):
    with pytest.raises(InputError, match="cannot be recovered from raw log-probs") as caught:
        from_openai(three(-0.1), **asked)
    assert "processed log-probs" in str(caught.value)
    assert "--pool-kind enumerated" in str(caught.value)


@pytest.mark.usefixtures("no_end_warned")
def test_an_enumerated_list_needs_no_proposal():
    found = from_openai(three(-0.1), temperature=0.7, pool_kind="enumerated")
    assert found.proposal_logprob is None
    assert found.pool_kind == "enumerated"


@pytest.mark.usefixtures("no_end_warned")
def test_processed_log_probs_stand_for_the_base_law_and_say_so():
    found = from_openai(three(-0.1), temperature=0.7, logprobs="processed")
    np.testing.assert_allclose(found.proposal_logprob, [-0.8] * 3)
    assert "the law of the draws" in found.notes[0]


@pytest.mark.usefixtures("no_end_warned")
def test_processed_at_temperature_1_is_the_base_law():
    found = from_openai(three(-0.1), temperature=1, logprobs="processed")
    assert not any("law of the draws" in note for note in found.notes)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_a_temperature_without_a_law_is_refused(temperature):
    with pytest.raises(InputError, match="temperature > 0"):
        from_openai(three(-0.1), temperature=temperature)


# ------------------------------------------------------------------------------------------ vLLM


def as_object(value):
    """A nested dict as attribute access, the dicts of log-probs left dicts with int keys."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return SimpleNamespace(**{key: as_object(item) for key, item in value.items()})
    if isinstance(value, dict):
        return {key: as_object(item) for key, item in value.items()}
    return [as_object(item) for item in value] if isinstance(value, list) else value


def vllm_output(*outputs, prompt="Q"):
    return {"prompt": prompt, "prompt_token_ids": None, "outputs": list(outputs)}


def output(ids, terms, reason="stop", text="t"):
    logprobs = [{i: {"logprob": v, "rank": 1} for i, v in term.items()} for term in terms]
    return {"text": text, "token_ids": ids, "logprobs": logprobs, "finish_reason": reason}


@pytest.mark.parametrize("shape", ["dict", "object", "json"])
def test_vllm_sums_the_chosen_tokens(shape):
    raw = vllm_output(
        output([11, 2], [{11: -0.5, 5: -1.0}, {2: -1.75}]),
        output([7], [{7: -3.0}], reason="length"),
    )
    shapes = {"dict": lambda x: x, "object": as_object, "json": lambda x: json.loads(json.dumps(x))}
    found = from_vllm([shapes[shape](raw)], logprobs_mode="raw_logprobs", temperature=1)
    assert found.logprob.tolist() == [-2.25, -3.0]
    assert found.token_ids == [[11, 2], [7]]
    assert found.n_tokens.tolist() == [2, 1]
    assert found.complete.tolist() == [True, False]
    assert found.notes == ()


def test_the_term_of_a_trimmed_stop_token_is_kept():
    trimmed = output([11, 22], [{11: -0.5}, {22: -1.75}, {2: -3.2}])
    found = from_vllm(vllm_output(trimmed), logprobs_mode="raw_logprobs", temperature=1)
    np.testing.assert_allclose(found.logprob, [-5.45])
    assert found.token_ids == [[11, 22, 2]]


@pytest.mark.parametrize(
    "broken",
    [
        output([11, 22], [{11: -0.5}, {22: -1.75}, {2: -3.2, 3: -4.0}]),  # which one was drawn?
        output([11, 22], [{11: -0.5}, {22: -1.75}, {2: -3.2}], reason="length"),
        output([11, 22, 2], [{11: -0.5}, {22: -1.75}]),
    ],
)
def test_ids_and_log_probs_of_different_length_are_refused(broken):
    fine = output([2], [{2: -0.5}])
    with pytest.raises(InputError) as caught:
        from_vllm(vllm_output(fine, broken), logprobs_mode="raw_logprobs", temperature=1)
    ids, terms = len(broken["token_ids"]), len(broken["logprobs"])
    assert f"candidate 1: {ids} token ids and {terms} log-probs" in str(caught.value)


def test_a_chosen_token_without_log_prob_is_refused():
    missing = output([11, 2], [{11: -0.5}, {5: -1.0}])
    with pytest.raises(InputError, match=r"candidate 0, token 1: .*found null"):
        from_vllm(vllm_output(missing), logprobs_mode="raw_logprobs", temperature=1)


def test_outputs_of_two_prompts_are_refused():
    several = [vllm_output(output([2], [{2: -0.5}]), prompt=p) for p in ("Q", "R")]
    with pytest.raises(InputError, match="2 different prompts"):
        from_vllm(several, logprobs_mode="raw_logprobs", temperature=1)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"logprobs_mode": "raw_logprobs", "temperature": 0.7}, "cannot be recovered"),
        ({"logprobs_mode": "raw_logprobs", "temperature": 1, "top_p": 0.9}, "cannot be recovered"),
        ({"logprobs_mode": "raw_logits", "temperature": 1}, "logits cannot be turned"),
    ],
)
@pytest.mark.unchecked
def test_vllm_provenance(asked, words):
    with pytest.raises(InputError, match=words):
        from_vllm(vllm_output(output([2], [{2: -0.5}])), **asked)


def test_vllm_without_logprobs():
    bare = {"text": "t", "token_ids": [2], "logprobs": None, "finish_reason": "stop"}
    with pytest.raises(InputError, match=r"SamplingParams\(logprobs=0\)"):
        from_vllm(vllm_output(bare), logprobs_mode="raw_logprobs", temperature=1)


# ------------------------------------------------------------------------------------ JSON Lines


@pytest.fixture
def file(tmp_path):
    def write(*rows, newline="\n", start=""):
        path = tmp_path / "pools.jsonl"
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_bytes((start + "".join(line + newline for line in lines)).encode())
        return path

    return write


def row(prompt="q7", text="a", **fields):
    return {"prompt_id": prompt, "text": text, **fields}


def only(path, **options):
    (group,) = read_jsonl(path, **options)
    return group


def refusal(path, **options):
    with pytest.raises(InputError) as caught:
        list(read_jsonl(path, **options))
    return str(caught.value).replace(str(path), "pools.jsonl")


FULL = {
    "logprob": -31.4,
    "proposal_logprob": -29.8,
    "n_tokens": 12,
    "complete": True,
    "reward": 0.2,
    "embedding": [0.6, 0.8],
    "token_ids": [5, 2],
}


def test_a_full_row(file):
    group = only(file(row(**FULL), row(text="b", **{**FULL, "complete": False, "extra": 1})))
    found = group.candidates
    assert (group.prompt_id, group.lines, found.texts) == ("q7", [1, 2], ["a", "b"])
    assert group.rows[1]["extra"] == 1
    np.testing.assert_array_equal(found.logprob, [-31.4] * 2)
    np.testing.assert_array_equal(found.proposal_logprob, [-29.8] * 2)
    np.testing.assert_array_equal(found.n_tokens, [12] * 2)
    np.testing.assert_array_equal(found.reward, [0.2] * 2)
    np.testing.assert_array_equal(found.embedding, [[0.6, 0.8]] * 2)
    assert found.token_ids == [[5, 2]] * 2
    assert found.complete.tolist() == [True, False]


def test_only_text_is_required(file):
    group = only(file({"text": "a"}, {"text": ""}))
    found = group.candidates
    assert group.prompt_id == "all"
    assert found.texts == ["a", ""]  # a model may end at once: a string like any other
    assert found.complete.all()
    for field in ("logprob", "proposal_logprob", "n_tokens", "reward", "embedding", "token_ids"):
        assert getattr(found, field) is None


def test_only_complete_keeps_rows_and_candidates_in_step(file):
    path = file(row(text="a"), row(text="b", complete=False), row(text="c", complete=True))
    group = only(path).only_complete()
    assert [r["text"] for r in group.rows] == group.candidates.texts == ["a", "c"]
    assert group.lines == [1, 3]
    assert group.candidates.notes == ("1 of 3 texts did not end: dropped",)


def test_groups_are_streamed_in_the_order_of_the_file(file):
    path = file(row("q1"), row("q1", "b"), row("q2"), row(3), "not JSON")
    groups = read_jsonl(path)
    assert [next(groups).prompt_id for _ in range(2)] == ["q1", "q2"]
    with pytest.raises(InputError, match="5: expected a JSON object"):
        next(groups)


def test_bom_crlf_and_blank_lines(file):
    path = file(row(), "", row(text="b"), newline="\r\n", start="\ufeff")
    assert only(path).lines == [1, 3]


def test_normal_forms_of_unicode_stay_apart(file):
    texts = ["\u00e9", "e\u0301"]
    assert only(file(*[row(text=text) for text in texts])).candidates.texts == texts


def test_a_prompt_in_two_places(file):
    path = file(row("q1"), row("q1"), row("q2"), row("q1", "late"))
    message = refusal(path)
    assert "prompt q1" in message
    assert "lines 2 and 4" in message
    assert "--sort" in message
    groups = list(read_jsonl(path, sort=True))
    assert [g.prompt_id for g in groups] == ["q1", "q2"]
    assert groups[0].lines == [1, 2, 4]


@pytest.mark.parametrize("field", ["logprob", "proposal_logprob"])
@pytest.mark.parametrize(
    ("value", "shown"), [(3.2, "3.2"), ("-3", "-3"), (True, "True"), (None, "null")]
)
def test_log_probs_that_are_none(file, field, value, shown):
    path = file(row(**{field: -1.0}), row(**{field: value}))
    assert refusal(path) == (f"pools.jsonl:2: {field} must be a finite number <= 0, found {shown}")


def test_a_sum_just_above_zero_is_rounding(file):
    assert only(file(row(logprob=1e-4))).candidates.logprob.tolist() == [0.0]
    assert "finite number <= 0" in refusal(file(row(logprob=1.1e-4)))


@pytest.mark.parametrize("fields", [{"logprob": -9999.0}, {"logprob": -1e30}])
def test_sentinels_in_rows(file, fields):
    assert "pools.jsonl:1: logprob must be a log-prob, not a stand-in" in refusal(
        file(row(**fields))
    )


def test_a_long_text_may_have_a_low_log_prob(file):
    assert only(file(row(logprob=-9998.5))).candidates.logprob.tolist() == [-9998.5]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("[1,2", "pools.jsonl:2: expected a JSON object, found '[1,2'"),
        ("[1,2]", "pools.jsonl:2: expected a JSON object, found '[1,2]'"),
        ({"prompt_id": "q7"}, "pools.jsonl:2: no text"),
        (row(text=3), "pools.jsonl:2: text must be a string, found 3"),
        (row(n_tokens=0), "pools.jsonl:2: n_tokens must be a whole number >= 1, found 0"),
        (row(complete="yes"), "pools.jsonl:2: complete must be true or false, found yes"),
        (row(reward="good"), "pools.jsonl:2: reward must be a finite number, found good"),
        (row(token_ids=[1.5]), "pools.jsonl:2: token_ids must be"),
        (row(embedding=[1, "x"]), "pools.jsonl:2: embedding must be a list of finite numbers"),
        (row(embedding=[]), "pools.jsonl:2: embedding must be a list of finite numbers"),
        ({"prompt_id": None, "text": "a"}, "pools.jsonl:2: prompt_id must be"),
        ({"text": "a"}, "pools.jsonl:2: no prompt_id, but line 1 has one"),
    ],
)
def test_bad_rows(file, bad, words):
    fine = {"n_tokens": 3, "complete": True, "reward": 1.0, "token_ids": [1], "embedding": [1.0]}
    first = row(**{key: fine[key] for key in fine if isinstance(bad, dict) and key in bad})
    assert words in refusal(file(first, bad))


def test_some_rows_without_a_field(file):
    assert refusal(file(row(logprob=-1.0), row(), row())) == (
        "pools.jsonl:2: no logprob, which other rows of prompt q7 have"
    )


@pytest.mark.parametrize("setting", [{"temperature": 0.7}, {"top_p": 0.9}])
def test_a_proposal_that_cannot_be_known(file, setting):
    path = file(row(logprob=-1.0, temperature=1, top_p=1.0), row(logprob=-1.0, **setting))
    message = refusal(path)
    assert message.startswith(f"pools.jsonl:2: {next(iter(setting))} is not 1 and there is no")
    assert "cannot be recovered" in message
    assert "--pool-kind enumerated" in message
    assert len(only(path, pool_kind="enumerated")) == 2
    assert len(only(file(row(logprob=-1.0, proposal_logprob=-2.0, **setting)))) == 1


def test_embeddings_of_different_length(file):
    message = refusal(file(row(embedding=[1, 2]), row(embedding=[1, 2, 3])))
    assert message == "pools.jsonl:2: embedding has length 3, that of pools.jsonl:1 2"


@pytest.mark.parametrize(("vector", "norm"), [([0, 0], "norm 0"), ([1e200, 1e200], "norm inf")])
def test_embeddings_without_a_direction(file, vector, norm):
    message = refusal(file(row(embedding=[1, 2]), row(embedding=vector)))
    assert message == f"pools.jsonl:2: embedding must have a finite norm above 0, found {norm}"


def test_embeddings_from_beside_the_file(file):
    path = file(row("q1", embedding=[1, 0]), row("q2", embedding=[1, 0]))
    vectors = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)
    groups = list(read_jsonl(path, embeddings=vectors))
    np.testing.assert_array_equal([g.candidates.embedding[0] for g in groups], vectors)
    for wrong in (vectors[:1], np.ones((3, 2))):
        message = refusal(path, embeddings=wrong)
        assert f"found {len(wrong)} rows" in message
        assert "2" in message.split("found")[0]
    assert "pools.jsonl:1: embedding must have" in refusal(path, embeddings=0 * vectors)


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file(file, content):
    assert refusal(file(start=content)) == "pools.jsonl: no rows in this file"


# ------------------------------------------------------------------------------------ the module


def test_take_keeps_every_field_in_step():
    whole = Candidates(["a", "b"], [[1], [2]], np.array([-1.0, -2.0]), notes=("x",))
    part = whole.take([1], "y")
    assert (part.texts, part.token_ids, part.logprob.tolist()) == (["b"], [[2]], [-2.0])
    assert part.notes == ("x", "y")
    assert part.complete is None


def test_a_missing_extra_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'dpp-sample\[hf\]'"):
        sources.hf_candidates  # noqa: B018
