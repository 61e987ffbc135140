"""Sentence embeddings from a transformers encoder in a local folder (extra ``hf``)."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float

from armillary import InputError, require

__all__ = ["SentenceEmbedder"]

# What mean pooling over one encoder reproduces of a sentence-transformers folder.
_KNOWN_STEPS = {"Transformer", "Pooling", "Normalize"}


class SentenceEmbedder:
    """Unit embeddings: the mean of an encoder's last hidden states over the tokens of a text.

    Nothing is fetched and nothing in the folder is run: weights are read from safetensors, code
    beside them is not.

    Parameters
    ----------
    path_or_model
        A folder with an encoder and its tokenizer, as transformers or sentence-transformers save
        them; or an object whose ``encode(texts)`` gives one vector a text, such as a loaded
        ``SentenceTransformer``.
    batch_size
        Texts encoded at once.
    device
        Where a folder's model runs.

    Raises
    ------
    InputError
        If there is no such folder, it holds no safetensors, or it asks for something else than
        mean pooling.
    """

    def __init__(self, path_or_model: Any, *, batch_size: int = 32, device: str = "cpu") -> None:
        self.batch_size = batch_size
        if isinstance(path_or_model, str | os.PathLike):
            self._encode = _MeanPooling(Path(path_or_model), device)
        elif callable(getattr(path_or_model, "encode", None)):
            self._encode = path_or_model.encode
        else:
            raise InputError(
                "path_or_model",
                found=f"an object of type {type(path_or_model).__name__}",
                expected="a local folder, or an object with encode(texts)",
            )

    def __call__(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
        """Unit rows for `texts`.

        A text with nothing in it, which a model that ends at once produces, gets the last
        dimension for itself; no other text has a part in that.
        """
        if not len(texts):
            raise InputError("texts", found="none", expected="at least 1")
        # Texts of like length together: little padding.
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        encoded = [np.asarray(self._encode([texts[row] for row in batch])) for batch in batches]
        rows = np.zeros((len(texts), encoded[0].shape[1] + 1))
        rows[order, :-1] = np.concatenate(encoded)
        blank = np.array([not text.strip() for text in texts])
        rows[blank] = 0.0
        rows[blank, -1] = 1.0
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class _MeanPooling:
    """The encoder of a folder."""

    def __init__(self, folder: Path, device: str) -> None:
        self.torch = cast(Any, require("torch", extra="dpp-sample[hf]"))
        transformers = cast(Any, require("transformers", extra="dpp-sample[hf]"))
        if not folder.is_dir():
            raise InputError(
                "no such folder", where=str(folder), instead="an embedder is read from local files"
            )
        if not any(folder.glob("*.safetensors")):
            raise InputError(
                "no *.safetensors in this folder",
                where=str(folder),
                instead="weights in pickle files are not read",
            )
        _refuse_other_pooling(folder)
        options = {"local_files_only": True, "trust_remote_code": False}
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        self.model = transformers.AutoModel.from_pretrained(
            folder, use_safetensors=True, dtype=self.torch.float32, **options
        ).to(device)
        self.model.eval()
        told = _read(folder / "sentence_bert_config.json").get("max_seq_length")
        room = getattr(self.model.config, "max_position_embeddings", None)
        self.max_length = min(int(length) for length in (told, room, 8192) if length)

    def __call__(self, texts: list[str]) -> Float[np.ndarray, "b d"]:
        batch = self.tokenizer(
            texts, padding=True, truncation=True, max_length=self.max_length, return_tensors="pt"
        ).to(self.model.device)
        with self.torch.no_grad():
            states = self.model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None].to(states.dtype)
        return ((states * mask).sum(1) / mask.sum(1).clamp(min=1)).double().cpu().numpy()


def _refuse_other_pooling(folder: Path) -> None:
    steps = [
        str(step.get("type")).rsplit(".", 1)[-1] for step in _read(folder / "modules.json", [])
    ]
    pooling = _read(folder / "1_Pooling" / "config.json")
    modes = {
        name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True
    }
    other = [*sorted(set(steps) - _KNOWN_STEPS), *sorted(modes - {"pooling_mode_mean_tokens"})]
    if other:
        raise InputError(
            "this model is more than an encoder with mean pooling",
            where=str(folder),
            found=", ".join(other),
            instead="pass it loaded: SentenceEmbedder(SentenceTransformer(folder))",
        )


def _read(path: Path, default: Any = None) -> Any:
    empty = {} if default is None else default
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty
