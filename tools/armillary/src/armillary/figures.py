"""One look for every figure, and files that do not change when the data do not.

Colours are those of Okabe and Ito, told apart by the colour-blind; every line also has its own
dash and marker, so that a grey print still says which is which. Uncertainty is drawn as a band.
Figures are plain `matplotlib.figure.Figure` objects: pyplot and its global state are never
touched, and neither the user's matplotlibrc nor a notebook's style changes what is drawn.

Letters are saved as outlines. The SVG then needs no font where it is shown and looks the same
everywhere; what a reader or a search must find stands in the caption, not in the picture.
"""
# matplotlib's own stubs leave the types of many keyword arguments open:
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, overload

import matplotlib
import numpy as np
from cycler import cycler
from jaxtyping import Real, Shaped
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .errors import InputError
from .files import atomic

__all__ = ["COLORS", "LINESTYLES", "MARKERS", "band", "label_axes", "new", "save"]

COLORS = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # green
    "#CC79A7",  # purple
    "#D55E00",  # vermilion
    "#56B4E9",  # sky blue
    "#000000",  # black
    "#F0E442",  # yellow, faint on white: last
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINESTYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))

_INK = "#333333"
_STYLE: dict[str, Any] = {
    "font.size": 10.5,
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so every machine has it
    "axes.labelcolor": _INK,
    "axes.edgecolor": "#8a8a8a",
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.xmargin": 0.03,
    "axes.prop_cycle": cycler(color=COLORS)
    + cycler(linestyle=LINESTYLES)
    + cycler(marker=MARKERS)
    # Markers at even distances: on a dense curve they name the line instead of covering it.
    + cycler(linewidth=[1.8] * len(COLORS), markersize=[5.5] * len(COLORS))
    + cycler(markevery=[(0.02 * i, 0.1) for i in range(len(COLORS))]),
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "xtick.color": "#8a8a8a",
    "ytick.color": "#8a8a8a",
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "text.color": _INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "legend.handlelength": 2.6,  # long enough to show the dash
    "svg.fonttype": "path",
    "svg.hashsalt": "armillary",  # the ids inside an SVG are random without it
}


@overload
def new(width: float = 6.4, height: float = 4.0) -> tuple[Figure, Axes]: ...
@overload
def new(
    width: float = 6.4, height: float = 4.0, rows: int = 1, columns: int = 1
) -> tuple[Figure, Any]: ...
def new(
    width: float = 6.4, height: float = 4.0, rows: int = 1, columns: int = 1
) -> tuple[Figure, Any]:
    """Start a figure in our style.

    Parameters
    ----------
    width, height
        Size of the whole figure, in inches.
    rows, columns
        Panels. The layout keeps labels apart by itself.

    Returns
    -------
    The figure and its axes: one `Axes`, or an array of them where there is more than one panel,
    shaped (rows, columns) without the axes of length one.
    """
    with _style():
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns)


def band(
    ax: Axes,
    x: Shaped[np.ndarray, " n"] | Sequence[Any],
    low: Real[np.ndarray, " n"] | Sequence[float],
    mid: Real[np.ndarray, " n"] | Sequence[float],
    high: Real[np.ndarray, " n"] | Sequence[float],
    label: str | None = None,
    color: str | None = None,
) -> None:
    """Draw a line with its uncertainty as a band around it.

    Parameters
    ----------
    ax
        Where to draw.
    x
        Positions along the horizontal axis.
    low, mid, high
        Lower end, estimate and upper end at each position: ends, not half-widths. The estimate
        may lie outside (a bootstrap's can); NaN leaves a gap.
    label
        Its name in the legend.
    color
        One of `COLORS`, or any colour; the next of the style by default.

    Raises
    ------
    InputError
        If the lengths differ, or a lower end lies above its upper end.
    """
    lengths = {"x": len(x), "low": len(low), "mid": len(mid), "high": len(high)}
    if len(set(lengths.values())) > 1:
        raise InputError("band", found=str(lengths), expected="four sequences of one length")
    lower, upper = np.asarray(low, float), np.asarray(high, float)
    if crossed := np.flatnonzero(lower > upper).tolist():
        at = crossed[0]
        raise InputError(
            "band",
            where=f"position {at}",
            found=f"low {lower[at]:.4g} above high {upper[at]:.4g}",
            expected="the ends of an interval",
        )
    look = {} if color is None else {"color": color}
    (line,) = ax.plot(np.asarray(x), np.asarray(mid, float), label=label, **look)
    shade = line.get_color()
    ax.fill_between(np.asarray(x), lower, upper, color=shade, alpha=0.18, linewidth=0)
    for end in (lower, upper):  # thin edges keep bands that overlap apart in grey
        ax.plot(
            np.asarray(x),
            end,
            color=shade,
            alpha=0.55,
            linewidth=0.7,
            linestyle=line.get_linestyle(),
            marker="",
            markevery=None,
            markersize=0,
            label="_",
        )


def label_axes(ax: Axes, x: str, y: str, title: str = "") -> None:
    """Name the axes, with their units, and add a legend where anything carries a label.

    Parameters
    ----------
    ax
        The axes.
    x, y
        Quantity and unit, such as ``"time (s)"``.
    title
        What the panel shows, if the caption of the figure does not say it.
    """
    with _style():
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        if title:
            ax.set_title(title)
        if ax.get_legend_handles_labels()[1]:
            ax.legend()


def save(figure: Figure, stem: str | Path) -> list[Path]:
    """Save a figure as PNG (150 dots per inch) and SVG; the same data give the same bytes.

    Parameters
    ----------
    figure
        A figure of `new`.
    stem
        The path without suffix; a dot in its name stays (``beta-1.5`` gives ``beta-1.5.png``).

    Returns
    -------
    The PNG and the SVG, both written whole or not at all.
    """
    stem = Path(stem)
    # Neither the program's name and version nor the time: they would change the bytes.
    metadata = {
        "png": {"Software": None},
        "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
    }
    drawn: dict[str, bytes] = {}
    with _style():
        for kind, blank in metadata.items():
            buffer = BytesIO()
            figure.savefig(buffer, format=kind, dpi=150, facecolor="white", metadata=blank)
            drawn[kind] = buffer.getvalue()
    paths: list[Path] = []
    for kind, content in drawn.items():  # both are drawn before either file is touched
        path = stem.with_name(f"{stem.name}.{kind}")
        with atomic(path, "wb") as file:
            file.write(content)
        paths.append(path)
    return paths


@contextmanager
def _style() -> Iterator[None]:
    # Artists read the style when they are made, so it is set around the making, then put back.
    with matplotlib.rc_context():
        matplotlib.rcParams.update({**matplotlib.rcParamsDefault, "backend": "agg", **_STYLE})
        yield
