"""One look for every figure, and files that do not change when the data do not.

Colours are those of Okabe and Ito, told apart by the colour-blind; every line also has its own
dash and marker, so that a grey print still says which is which. Uncertainty is drawn as a band.
Figures are plain `matplotlib.figure.Figure` objects: pyplot is never loaded, and the style of a
caller's own figures is left as it was.

Letters are saved as outlines. The SVG then needs no font where it is shown and looks the same
everywhere; what a reader or a search must find stands in the caption, not in the picture.
"""
# matplotlib's own stubs leave the types of many keyword arguments open:
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import Any, overload

import numpy as np
from cycler import cycler
from jaxtyping import Real, Shaped
from matplotlib import style
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

_DENSE = 25  # points on a line, above which not each gets its marker
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
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.xmargin": 0.03,
    "axes.prop_cycle": cycler(color=COLORS)
    + cycler(linestyle=LINESTYLES)
    + cycler(marker=MARKERS)
    + cycler(linewidth=[1.8] * len(COLORS), markersize=[5.5] * len(COLORS)),
    "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.08,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "xtick.color": "#8a8a8a",
    "ytick.color": "#8a8a8a",
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "text.color": _INK,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
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
    (line,) = ax.plot(np.asarray(x), np.asarray(mid, float), label=label)
    if color is not None:
        line.set_color(color)
    ax.fill_between(
        np.asarray(x),
        lower,
        upper,
        color=line.get_color(),
        alpha=0.2,
        linewidth=0.8,  # a thin edge keeps bands that overlap apart in grey
    )


def label_axes(ax: Axes, x: str, y: str, title: str = "") -> None:
    """Name the axes, with their units, and add a legend where anything carries a label.

    A legend of more than four names stands beside the panel, where it hides nothing.

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
        names = ax.get_legend_handles_labels()[1]
        if len(names) > 4:
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        elif names:
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
    _thin_markers(figure)
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


def _thin_markers(figure: Figure) -> None:
    # On a dense curve the markers would cover it; at even distances, each line starting a little
    # further on, they name it. Points that no line joins are data and all stay.
    for ax in figure.axes:
        for number, line in enumerate(ax.lines):
            joined = line.get_linestyle() not in ("None", "none", "", " ")
            if joined and line.get_markevery() is None and np.size(line.get_xdata()) > _DENSE:
                line.set_markevery((0.015 * number, 0.1))


def _style() -> AbstractContextManager[None]:
    # Artists read the style when they are made, so it is set around the making, then put back.
    return style.context(_STYLE, after_reset=True)
