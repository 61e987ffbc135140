"""The table behind ``dynabase explain``: each step, its neighbours, and what each part added."""

from typing import Any

from .batch import in_the_commands_words
from .forecaster import DynaBase
from .io import Recording


def explain_recording(
    recording: Recording, targets: tuple[str, ...], horizon: int, params: dict[str, Any]
) -> tuple[list[dict[str, Any]], DynaBase]:
    """One row for each step, neighbour and variable, the nearest neighbour first; the model."""
    asked: dict[str, Any] = {"horizon": horizon, **params}
    with in_the_commands_words():
        model = DynaBase(**asked).fit(recording.y)
    stamps = recording.write(model.predict(horizon).index)
    times = recording.stamps()
    rows = [
        {
            "step": record.step,
            "ds": stamps[record.step - 1],
            "rank": rank + 1,
            "variable": target,
            "neighbour": row,
            "neighbour_ds": times[row],
            "distance": record.distances[rank],
            "weight": record.weights[rank],
            "successor": record.successor[at],
            "deviation": record.deviation[at],
            "velocity": record.velocity[at],
            "value": record.value[at],
        }
        for record in model.explain(horizon)
        for rank, row in enumerate(record.neighbours)
        for at, target in enumerate(targets)
    ]
    return rows, model
