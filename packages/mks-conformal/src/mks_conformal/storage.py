"""Saved regions: an NPZ of plain arrays and one JSON header. Nothing is ever unpickled.

Keys: ``header`` (JSON: format, kind, names, alpha, the score's options), ``prediction`` (m, d),
the score's arrays under ``score_``, and for split regions ``scores_0``, ``scores_1``, ... (sorted
calibration scores, one array a group) with ``weights_0``, ... where there are weights, ``group``
(m,), and where they vary by row ``factor`` (m, d, d) and ``test_weight`` (m,). For full conformal
``residuals`` (n, d) instead. The score itself is kept as references or landmarks, whitening and
kernel; the exact score's Cholesky factor is computed again on loading.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from armillary import InputError
from armillary.files import read_arrays, write_arrays

from .baselines import BoxScore, EllipsoidScore
from .conformal import Calibration
from .fitted import ResidualScore
from .full import FullConformal, FullLaw
from .kernel_names import kernel_from_spec
from .kernel_score import MultivariateKernelScore
from .law import SplitLaw
from .nystrom import NystromCore
from .region import RegionSet
from .score import ExactCore
from .whitening import Whitening

__all__ = ["FORMAT", "around", "load_region", "save_region"]

FORMAT = "mks-conformal/region/1"

Arrays = dict[str, Shaped[np.ndarray, "..."]]


def save_region(region: RegionSet, path: str | Path) -> None:
    """Save the regions of a `RegionSet`.

    Raises
    ------
    InputError
        For cv+ and jackknife+ (as many scores as folds), slices, a score or kernel that is a
        user's own function, and a folder that cannot be written.
    """
    law = region.law
    if not isinstance(law, SplitLaw | FullLaw):
        kind = type(law).__name__.removesuffix("Law").lower()
        raise InputError("region", found=f"a {kind} region", expected="split or full to be saved")
    header: dict[str, Any] = {
        "format": FORMAT,
        "kind": "split" if isinstance(law, SplitLaw) else "full",
        "names": None if region.names is None else list(region.names),
        "alpha": law.alpha,
    }
    arrays: Arrays = {"prediction": law.prediction}
    if law.factor is not None:
        arrays["factor"] = law.factor
    if isinstance(law, SplitLaw):
        header["score"], score_arrays = _encode(law.rule)
        header["calibrations"] = len(law.calibrations)
        header["resolution"] = law.calibrations[0].resolution
        arrays["group"] = law.group
        if law.test_weight is not None:
            arrays["test_weight"] = law.test_weight
        for k, calibration in enumerate(law.calibrations):
            arrays[f"scores_{k}"] = calibration.scores
            if calibration.weights is not None:
                arrays[f"weights_{k}"] = calibration.weights
    else:
        rule = law.rule
        header["score"] = {
            "kernel": rule.kernel.spec(),
            "lam": _text(rule.lam),
            "centered": rule.centered,
        }
        score_arrays = _encode_whitening("whitening", law.whitening)
        score_arrays |= _encode_whitening("proposal", law.proposal_whitening)
        arrays["residuals"] = law.references
    arrays |= {f"score_{name}": value for name, value in score_arrays.items()}
    write_arrays(path, header=np.array(json.dumps(header)), **arrays)


def load_region(path: str | Path) -> RegionSet:
    """The regions that `save_region` saved.

    Raises
    ------
    InputError
        If the file is missing, no NPZ, holds pickled objects, lacks a key, or an array has
        another shape than its key promises.
    """
    saved = _Saved(path)
    header = saved.header
    names = header.get("names")
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise saved.bad("names", names, "a list of names")
    alpha = header.get("alpha")
    if not isinstance(alpha, float):
        raise saved.bad("alpha", alpha, "a number")
    prediction = saved.floats("prediction", None, None)
    m, d = prediction.shape
    if names is not None and len(names) != d:
        raise saved.bad("names", f"{len(names)} name(s)", f"{d}, one an output")
    factor = saved.floats("factor", m, d, d) if "factor" in saved.arrays else None
    if header.get("kind") == "full":
        law: Any = _load_full(saved, prediction, float(alpha), factor)
    elif header.get("kind") == "split":
        law = _load_split(saved, prediction, float(alpha), factor, names)
    else:
        raise saved.bad("kind", header.get("kind"), "split or full")
    return RegionSet(law, None if names is None else tuple(names))


def around(region: RegionSet, prediction: Float[np.ndarray, "m d"]) -> RegionSet:
    """The same regions around other predictions.

    Raises
    ------
    InputError
        If they differ by row (groups, weights, a scale that follows x), or the number of outputs
        is another.
    """
    law = region.law
    if prediction.shape[1] != region.n_outputs:
        raise InputError(
            "predictions", expected=f"{region.n_outputs} output(s)", found=prediction.shape[1]
        )
    if isinstance(law, FullLaw) and law.factor is None:
        return RegionSet(replace(law, prediction=prediction), region.names)
    alike = isinstance(law, SplitLaw) and law.factor is None and law.test_weight is None
    if not isinstance(law, SplitLaw) or not alike or len(law.calibrations) > 1:
        raise InputError(
            "region", found="one that differs by row", expected="the same region for every row"
        )
    group = np.zeros(len(prediction), dtype=int)
    return RegionSet(replace(law, prediction=prediction, group=group), region.names)


class _Saved:
    """A file's arrays and header; every access checks what it gives."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.arrays = read_arrays(path)
        text = self.array("header")
        try:
            if text.dtype.kind != "U" or text.shape:
                raise ValueError("no text")
            self.header = json.loads(str(text))
            if not isinstance(self.header, dict) or self.header.get("format") != FORMAT:
                raise ValueError("another format")
        except ValueError as error:
            raise self.bad("header", str(error), f"JSON of format {FORMAT}") from error

    def bad(self, key: str, found: object, expected: str) -> InputError:
        return InputError(key, where=str(self.path), found=found, expected=expected)

    def array(self, key: str) -> Shaped[np.ndarray, "..."]:
        if key not in self.arrays:
            raise InputError(
                "expected a saved region", where=str(self.path), found=f"no array {key!r}"
            )
        return self.arrays[key]

    def floats(self, key: str, *shape: int | None) -> Float[np.ndarray, "..."]:
        """A float array of this shape, None standing for any length."""
        array = self.array(key)
        fits = array.ndim == len(shape) and all(
            want in (None, have) for want, have in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype != np.float64:
            want = ", ".join("any" if length is None else str(length) for length in shape)
            found = f"{array.dtype} of shape {array.shape}"
            raise self.bad(key, found, f"float64 of shape ({want})")
        if not np.isfinite(array).all():
            raise self.bad(key, "NaN or infinity", "finite numbers")
        return array

    def whitening(self, key: str, d: int) -> Whitening:
        return Whitening(
            self.floats(f"score_{key}_location", d),
            self.floats(f"score_{key}_matrix", d, d),
            self.floats(f"score_{key}_inverse", d, d),
        )

    def options(self) -> dict[str, Any]:
        """The score's options, with the kernel and the ridge as objects."""
        options = self.header.get("score")
        if not isinstance(options, dict):
            raise self.bad("score", options, "the options of a score")
        out = dict(options)
        if out.get("kernel") is not None:
            try:
                out["kernel"] = kernel_from_spec(out["kernel"])
                out["lam"] = float(out["lam"])
            except (KeyError, TypeError, ValueError) as error:
                raise self.bad("score", str(error), "a saved kernel and its ridge") from error
            if not out["lam"] > 0 or not isinstance(out.get("centered"), bool):
                raise self.bad("score", options, "a ridge above 0 and whether it is centred")
        return out


def _load_split(
    saved: _Saved,
    prediction: Float[np.ndarray, "m d"],
    alpha: float,
    factor: Float[np.ndarray, "m d d"] | None,
    names: list[str] | None,
) -> SplitLaw:
    m, d = prediction.shape
    count, resolution = saved.header.get("calibrations"), saved.header.get("resolution")
    if not isinstance(count, int) or count < 1 or not isinstance(resolution, float):
        raise saved.bad("calibrations", count, "a whole number >= 1, and their resolution")
    calibrations = []
    for k in range(count):
        scores = saved.floats(f"scores_{k}", None)
        weights = (
            saved.floats(f"weights_{k}", len(scores)) if f"weights_{k}" in saved.arrays else None
        )
        calibrations.append(Calibration(scores, weights, resolution))
    group = saved.array("group")
    if group.shape != (m,) or group.dtype.kind != "i" or not np.isin(group, range(count)).all():
        raise saved.bad("group", f"{group.dtype} of shape {group.shape}", f"{m} group number(s)")
    weight = saved.floats("test_weight", m) if "test_weight" in saved.arrays else None
    rule = _decode(saved, d, None if names is None else tuple(names))
    return SplitLaw(rule, prediction, alpha, tuple(calibrations), group, factor, weight)


def _load_full(
    saved: _Saved,
    prediction: Float[np.ndarray, "m d"],
    alpha: float,
    factor: Float[np.ndarray, "m d d"] | None,
) -> FullLaw:
    d = prediction.shape[1]
    options = saved.options()
    if options.get("kernel") is None:
        raise saved.bad("score", options, "a kernel")
    residuals = saved.floats("residuals", None, d)
    white, proposal = saved.whitening("whitening", d), saved.whitening("proposal", d)
    rule = FullConformal(white(residuals), options["kernel"], options["lam"], options["centered"])
    return FullLaw(rule, white, residuals, proposal, prediction, alpha, factor)


def _encode_whitening(key: str, white: Whitening) -> Arrays:
    return {
        f"{key}_location": white.location,
        f"{key}_matrix": white.matrix,
        f"{key}_inverse": white.inverse,
    }


def _encode(score: ResidualScore) -> tuple[dict[str, Any], Arrays]:
    """Options and arrays of a score."""
    if isinstance(score, EllipsoidScore | BoxScore):
        kind = "ellipsoid" if isinstance(score, EllipsoidScore) else "box"
        return {"kind": kind}, {"references": score.references_}
    if not isinstance(score, MultivariateKernelScore):
        raise InputError("score", found=repr(score), expected="one of this package to be saved")
    arrays: Arrays = {"references": score.references_}
    arrays |= _encode_whitening("whitening", score.whitening_)
    arrays |= _encode_whitening("proposal", score.proposal_whitening_)
    options: dict[str, Any] = {"kind": "kernel", "scale": score.scale, "kernel": None}
    if score.core_ is not None:
        options |= {
            "kernel": score.core_.kernel.spec(),
            "lam": _text(score.core_.lam),
            "centered": score.core_.centered,
            "bandwidth": score.bandwidth_,
            "resolution": score.core_.resolution,
        }
    if isinstance(score.core_, NystromCore):
        core = score.core_
        arrays |= {"landmarks": core.z, "values": core.values, "shrunk": core.shrunk}
        arrays |= {"line": core.line, "offset": core.offset}
        options["constant"] = core.constant
    return options, arrays


def _decode(saved: _Saved, d: int, names: tuple[str, ...] | None) -> ResidualScore:
    options = saved.options()
    references = saved.floats("score_references", None, d)
    if options.get("kind") == "ellipsoid":
        return EllipsoidScore(references, names)
    if options.get("kind") == "box":
        return BoxScore(references, names)
    if options.get("kind") != "kernel":
        raise saved.bad("score", options.get("kind"), "kernel, ellipsoid or box")
    kernel = options["kernel"]
    given = {"scale": options.get("scale"), "centered": options.get("centered", True)}
    score = MultivariateKernelScore("gaussian+linear" if kernel is None else kernel, **given)
    score.n_features_in_, score.names_, score.references_ = d, names, references
    score.whitening_ = saved.whitening("whitening", d)
    score.proposal_whitening_ = saved.whitening("proposal", d)
    score.kernel_, score.bandwidth_ = kernel, options.get("bandwidth")
    score.lam_, score.table_ = options.get("lam"), []
    score.selected_ = "ellipsoid" if kernel is None else "kernel"
    score.core_, score.resolution_ = None, 1.0
    if kernel is not None:
        score.core_ = _decode_core(saved, options, score)
        score.resolution_ = score.core_.resolution
        if score.scale == "mahalanobis":
            score.resolution_ /= options["lam"]
    return score


def _decode_core(
    saved: _Saved, options: dict[str, Any], score: MultivariateKernelScore
) -> ExactCore | NystromCore:
    kernel, lam, centered = options["kernel"], options["lam"], options["centered"]
    if "score_landmarks" not in saved.arrays:
        return ExactCore(score.whitening_(score.references_), kernel, lam, centered)
    core = NystromCore.__new__(NystromCore)  # its sums over all rows are in the file
    core.kernel, core.lam, core.centered = kernel, lam, centered
    core.z = saved.floats("score_landmarks", None, score.n_features_in_)
    core.values = saved.floats("score_values", len(core.z))
    core.shrunk = saved.floats("score_shrunk", len(core.z), None)
    core.line = saved.floats("score_line", len(core.z))
    core.offset = saved.floats("score_offset", core.shrunk.shape[1])
    constant, resolution = options.get("constant"), options.get("resolution")
    if not (isinstance(constant, float) and isinstance(resolution, float)):
        raise saved.bad("score", constant, "a number, and its resolution")
    core.constant, core.resolution = constant, resolution
    return core


def _text(lam: float) -> float | str:
    return float(lam) if np.isfinite(lam) else "inf"  # JSON has no infinity
