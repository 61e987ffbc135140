"""A forecast held against what really followed, both from files."""

from typing import Any

import numpy as np
import pandas as pd

from armillary import InputError

from .io import Columns, Recording, Table, column_names, read_recordings
from .measures import d_hellinger, d_stsp, mase, valid_time
from .preprocess import location_and_scale

LONG = 400  # rows from which the measures of long-run behaviour mean something


def score_files(
    true: str, pred: str, train: str | None, columns: Columns, season: int, rng: int
) -> list[dict[str, Any]]:
    """Scores of each series, and how many time stamps the two files share.

    Series are matched by name, or the only one of each file with the other; their rows by time
    stamp where both files have them, else in order.

    Raises
    ------
    InputError
        If nothing matches, or a value to compare is missing.
    """
    truth = read_recordings(true, columns)
    targets = _targets(truth, columns)
    made = read_recordings(pred, _for_prediction(columns, targets, pred))
    past = None if train is None else read_recordings(train, _as(columns, targets))
    ends = _interval_columns(pred, targets)
    spread = None if ends is None else read_recordings(pred, _for_prediction(columns, ends, pred))
    rows = []
    for left, right in _matched(truth, made):
        a, b = _aligned(left, right, true, pred)
        before = None if past is None else _named(past, left.name)
        row = {
            "unique_id": left.name,
            "n": len(a),
            **_scores(a, b, before, season, (true, pred), rng),
        }
        if spread is not None:
            band = _aligned(left, _named(spread, right.name), true, pred)[1]
            low, high = band[:, : len(targets)], band[:, len(targets) :]
            row["coverage"] = float(np.mean((low <= a) & (a <= high)))
        rows.append(row)
    return rows


def _scores(
    true: np.ndarray,
    pred: np.ndarray,
    past: Recording | None,
    season: int,
    files: tuple[str, str],
    rng: int,
) -> dict[str, float]:
    for name, values in zip(files, (true, pred), strict=True):
        gaps = np.flatnonzero(np.isnan(values).any(axis=1))
        if len(gaps):
            raise InputError(
                "a value to compare is missing",
                where=f"{name}: row {gaps[0] + 1} of those compared",
                expected="numbers in both files",
            )
    error = pred - true
    reference = true if past is None else past.y.to_numpy(dtype=float).reshape(-1, true.shape[1])
    mean, scale = location_and_scale(reference)
    scores = {
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "valid_time": float(valid_time(true, pred)),
    }
    if past is not None:
        scores["mase"] = mase(y_true=true, y_pred=pred, y_train=reference, season=season)
    if len(true) >= LONG:
        scaled = (true - mean) / scale, (pred - mean) / scale
        scores |= {"d_stsp": d_stsp(*scaled, rng=rng), "d_h": d_hellinger(*scaled)}
    return scores


def _targets(truth: Table, columns: Columns) -> tuple[str, ...]:
    return columns.target or truth.targets


def _as(columns: Columns, targets: tuple[str, ...]) -> Columns:
    return Columns(targets, columns.id, columns.time, columns.each, columns.series)


def _for_prediction(columns: Columns, targets: tuple[str, ...], path: str) -> Columns:
    """The same columns in a file that may be a `forecast.csv`, which has a few of its own."""
    if str(path).endswith((".npy", ".npz")):
        return Columns()
    if columns.each and "unique_id" in column_names(path):
        return Columns(("y",), columns.id, columns.time, series=columns.series)
    return _as(columns, targets)


def _interval_columns(path: str, targets: tuple[str, ...]) -> tuple[str, ...] | None:
    """Columns of lower and upper ends, if the file has them for every target."""
    if str(path).endswith((".npy", ".npz")):
        return None
    names = column_names(path)
    for name in names:
        head, mark, level = name.partition("_lo_")
        if mark and head == targets[0]:
            wanted = [f"{target}_{end}_{level}" for end in ("lo", "hi") for target in targets]
            return tuple(wanted) if set(wanted) <= set(names) else None
    return None


def _matched(truth: Table, made: Table) -> list[tuple[Recording, Recording]]:
    if len(truth.recordings) == len(made.recordings) == 1:
        return [(truth.recordings[0], made.recordings[0])]
    known = {each.name: each for each in truth.recordings}
    pairs = [(known[each.name], each) for each in made.recordings if each.name in known]
    if not pairs:
        raise InputError(
            "no series of the same name",
            where=made.path,
            found=", ".join(each.name for each in made.recordings[:3]),
            expected=", ".join(list(known)[:3]) + f", as {truth.path} has",
        )
    return pairs


def _named(table: Table, name: str) -> Recording:
    if len(table.recordings) == 1:
        return table.recordings[0]
    for each in table.recordings:
        if each.name == name:
            return each
    raise InputError(f"no series {name!r}", where=table.path)


def _aligned(
    left: Recording, right: Recording, true_file: str, pred_file: str
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that both have, by time stamp if both have stamps, else in order."""
    a, b = (pd.DataFrame(each.y) for each in (left, right))
    if a.shape[1] != b.shape[1] and not (b.shape[1] == 2 * a.shape[1]):
        raise InputError(
            f"{b.shape[1]} variable(s)", where=pred_file, expected=f"{a.shape[1]}, as {true_file}"
        )
    if left.stamped and right.stamped:
        a.index, b.index = left.times(), right.times()
        shared = a.index.intersection(b.index)
        if not len(shared):
            spans = [f"{i[0]} to {i[-1]}" for i in (right.stamps(), left.stamps())]
            raise InputError(
                "no time stamp in common",
                where=pred_file,
                found=spans[0],
                expected=f"some of {spans[1]}, as {true_file} has",
            )
        a, b = a.loc[shared], b.loc[shared]
    n = min(len(a), len(b))
    return a.to_numpy(dtype=float)[:n], b.to_numpy(dtype=float)[:n]
