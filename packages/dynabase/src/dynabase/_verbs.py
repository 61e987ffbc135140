"""What the verbs share: their options, and reading a file on record."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from armillary import InputError
from armillary.run import Run

if TYPE_CHECKING:
    from armillary.checkpoint import Checkpoint

    from .forecaster import DynaBase
    from .io import Columns, Table

Alpha = Literal["forecast", "reconstruct", "parrot", "mse", "horizon", "dsr"] | float
Beta = Literal["mse"] | float
Auto = Literal["auto"] | int
Goal = Literal["mse", "horizon", "dsr"]
Several = Annotated[list[str] | None, Parameter(consume_multiple=True)]
PANELS = 6  # series in a figure


@dataclass(frozen=True)
class TableOptions:
    """Which columns of the file hold what."""

    target: Several = None
    """Columns to forecast [default: all but those of series and time]."""

    id: str | None = None
    """Column that names the series of a long table [default: unique_id, if there is one]."""

    time: str | None = None
    """Column of time stamps; none: rows are equally spaced [default: ds, or what looks like it]."""

    each: bool = False
    """The columns of a wide table are series of their own, not coordinates of one system."""

    series: str | None = None
    """Take this one series of several."""


@dataclass(frozen=True)
class MapOptions:
    """How a state is made and compared."""

    delays: Auto = "auto"
    """Values of each coordinate in a state vector."""

    tau: Auto = "auto"
    """Samples between delays."""

    mode: Literal["shift", "vector"] = "shift"
    """Whether the map advances the newest values or the whole delay vector."""

    n_neighbors: Auto = "auto"
    """Neighbours averaged over; auto: 1 on clean data, 10 on noisy data."""

    theiler: Auto = "auto"
    """Samples within which two rows are neighbours in time only."""

    trust_radius: Literal["auto", "none"] | float = "auto"
    """Longest deviation from a neighbour, in scaled units; auto: guards alpha above 1."""

    detrend: str | None = None
    """linear, diff or seasonal:P, taken off before and put back after."""

    log: bool = False
    """Work on the logarithm of positive data."""


TableArgument = Annotated[TableOptions, Parameter(name="*")]
MapArgument = Annotated[MapOptions, Parameter(name="*")]
ALL, AUTO = TableOptions(), MapOptions()  # the defaults


def map_params(settings: MapOptions, seed: int, **gains: Any) -> dict[str, Any]:
    """Parameters of `DynaBase`, once they make sense; what does not is named as an option."""
    from ._model import Settings

    radius = None if settings.trust_radius == "none" else settings.trust_radius
    params = {**gains, **vars(settings), "trust_radius": radius, "random_state": seed}
    asked: dict[str, Any] = {"horizon": 1, **params}
    try:
        Settings(**asked).checked()
    except InputError as error:
        option = "--" + error.what.replace("_", "-")
        raise InputError(option, found=error.found, expected=error.expected) from error
    return params


def chosen_columns(options: TableOptions) -> "Columns":
    """The columns that were asked for."""
    from .io import Columns

    target = None if options.target is None else tuple(options.target)
    return Columns(target, options.id, options.time, options.each, options.series)


def read(run: Run, file: Path, options: TableOptions) -> "Table":
    """Read a file's series and put on record what they are."""
    from .io import read_recordings

    table = read_recordings(run.input(file), chosen_columns(options))
    missing = sum(each.missing for each in table.recordings)
    if missing:
        run.note(f"{missing} time stamp(s) are missing and count as gaps")
    if len(table.targets) > 1:
        run.note(
            f"{', '.join(table.targets)}: coordinates of one system; --each takes them one by one"
        )
    run.metrics |= {
        "n_series": len(table.recordings),
        "n_rows": sum(len(each.y) for each in table.recordings),
        "n_missing": sum(each.incomplete for each in table.recordings),
        "n_missing_stamps": missing,
    }
    return table


def describe(run: Run, model: "DynaBase") -> None:
    """Put on record what a model settled, and pass its advice on."""
    from .batch import described, in_options

    run.metrics |= described(model)
    for remark in model.advice_:
        run.note(in_options(remark))


def checkpoint(run: Run, resume: bool) -> "Checkpoint":
    """What an interrupted run has finished, if it is to be kept."""
    from armillary.checkpoint import Checkpoint

    return Checkpoint(run.unfinished("unfinished.jsonl", resume=resume))


def draw_forecasts(run: Run, table: "Table", values: list[Any], level: float | None) -> None:
    """Draw the first forecasts."""
    from .figures import forecast_figure, forecast_panels

    panels = forecast_panels(table, values)[:PANELS]
    run.figure(
        forecast_figure(panels, level),
        "forecast",
        "The end of each series, and its forecast"
        + ("." if level is None else f" with {level:.0%} intervals of each step."),
    )
