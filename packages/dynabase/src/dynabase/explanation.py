"""The table behind ``dynabase explain``: each step, its neighbours, and what each part added."""

from typing import Any

from .forecaster import DynaBase
from .io import Recording


def explain_recording(
    recording: Recording, targets: tuple[str, ...], horizon: int, params: dict[str, Any]
) -> list[dict[str, Any]]:
    """One row for each step, neighbour and variable, the nearest neighbour first."""
    model = DynaBase(**params).fit(recording.y)
    stamps = recording.write(model.predict(horizon).index)
    times = recording.stamps()
    return [
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
