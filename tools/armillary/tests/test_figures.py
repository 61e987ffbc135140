import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib import colors
from matplotlib.collections import PolyCollection
from PIL import Image

from armillary import InputError, figures

DRAW = """
import sys
from pathlib import Path
import matplotlib, numpy as np
matplotlib.rcParams["lines.linewidth"] = float(sys.argv[2])  # a user's own taste
kept = [key for key in matplotlib.rcParams if key != "backend"]  # reading that loads pyplot
before = {key: matplotlib.rcParams[key] for key in kept}
from armillary import figures
figure, (left, right) = figures.new(8, 3, columns=2)
x = np.linspace(0, 1, 50)
for shift, name in enumerate("abcdef"):
    figures.band(left, x, x**2 + shift - 0.1, x**2 + shift, x**2 + shift + 0.2, name)
right.scatter(x, np.cos(x), rasterized=True)
figures.label_axes(left, "time (s)", "loss (nats)", "Six runs")
figures.save(figure, sys.argv[1])
assert {key: matplotlib.rcParams[key] for key in kept} == before, "global state was left changed"
assert "matplotlib.pyplot" not in sys.modules, "pyplot was loaded"
"""


def test_same_data_same_bytes(tmp_path: Path) -> None:
    """In another process, at another time, under another hash seed and another matplotlibrc."""
    for name, seed, width in (("a", "1", "1"), ("b", "2", "7")):
        env = {"PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": seed, "HOME": str(tmp_path)}
        command = [sys.executable, "-c", DRAW, str(tmp_path / name), width]
        subprocess.run(command, check=True, env=env)
    for kind in ("png", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_files_name_neither_program_nor_date(tmp_path: Path) -> None:
    figure, ax = figures.new()
    ax.plot([1, 2, 3])
    png, svg = figures.save(figure, tmp_path / "f")
    with Image.open(png) as image:
        assert set(image.info) == {"dpi"}
        assert image.size == (960, 600)
    root = ElementTree.parse(svg).getroot()
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not tags & {"metadata", "title", "text"}, "letters must be outlines, and no metadata"
    assert "matplotlib" not in svg.read_text().lower().replace("matplotlib.axis", "")


def test_a_dot_in_the_name_is_kept(tmp_path: Path) -> None:
    saved = figures.save(figures.new()[0], tmp_path / "beta-1.5")
    assert [path.name for path in saved] == ["beta-1.5.png", "beta-1.5.svg"]
    assert sorted(tmp_path.iterdir()) == sorted(saved)


def test_a_figure_that_cannot_be_drawn_leaves_the_old_files(tmp_path: Path) -> None:
    saved = figures.save(figures.new()[0], tmp_path / "f")
    old = [path.read_bytes() for path in saved]
    figure, ax = figures.new()
    ax.set_xlabel("$no such formula")
    ax.set_title(r"$\nosuchcommand$")
    with pytest.raises(ValueError, match="nosuchcommand"):
        figures.save(figure, tmp_path / "f")
    assert [path.read_bytes() for path in saved] == old
    assert sorted(tmp_path.iterdir()) == sorted(saved)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        figures.save(figures.new()[0], tmp_path / "nowhere" / "f")


def test_every_line_can_be_told_from_every_other_without_its_colour() -> None:
    _, ax = figures.new()
    lines = [ax.plot([0, 1], [i, i])[0] for i in range(len(figures.COLORS))]
    looks = {(line.get_marker(), str(line.get_linestyle())) for line in lines}
    assert len(looks) == len({line.get_color() for line in lines}) == len(lines)
    assert len(set(figures.LINESTYLES)) == len(set(figures.MARKERS)) == len(figures.COLORS)


def test_the_first_two_colours_differ_in_grey() -> None:
    """Bars carry no dash and no marker, and most comparisons are of two."""
    grey = [np.dot([0.21, 0.72, 0.07], colors.to_rgb(color)) for color in figures.COLORS]
    assert abs(grey[0] - grey[1]) > 0.2


def test_panels_come_as_an_array() -> None:
    assert isinstance(figures.new()[1], matplotlib.axes.Axes)
    assert figures.new(columns=3)[1].shape == (3,)
    assert figures.new(rows=2, columns=3)[1].shape == (2, 3)


def test_a_band_reaches_from_low_to_high_in_the_colour_of_its_line() -> None:
    _, ax = figures.new()
    figures.band(ax, [0, 1, 2], [1, 1, np.nan], [2, 3, 4], [3, 5, 6], "m", figures.COLORS[2])
    (line,), (shade,) = ax.lines, ax.collections
    assert isinstance(shade, PolyCollection)
    assert line.get_color() == figures.COLORS[2]
    assert colors.same_color(shade.get_facecolor()[0][:3], figures.COLORS[2])
    corners = {tuple(corner) for corner in shade.get_paths()[0].vertices.tolist()}
    assert {(0, 1), (0, 3), (1, 1), (1, 5)} == corners
    assert [*line.get_ydata()] == [2, 3, 4]


@pytest.mark.unchecked
def test_a_band_says_what_is_wrong() -> None:
    _, ax = figures.new()
    with pytest.raises(InputError) as lengths:
        figures.band(ax, np.zeros(2), np.zeros(2), np.zeros(3), np.zeros(2))
    assert str(lengths.value) == (
        "band: expected four sequences of one length, found {'x': 2, 'low': 2, 'mid': 3, 'high': 2}"
    )
    with pytest.raises(InputError) as crossed:
        figures.band(ax, [0, 1], [0, 0.5], [0, 0], [0, 0.1])
    assert str(crossed.value) == (
        "position 1: band: expected the ends of an interval, found low 0.5 above high 0.1"
    )
    assert not ax.lines, "nothing is drawn of a band that is refused"


def test_markers_thin_out_on_a_dense_curve_alone(tmp_path: Path) -> None:
    figure, ax = figures.new()
    (sparse,) = ax.plot(np.arange(10))
    (dense,) = ax.plot(np.arange(500))
    (points,) = ax.plot(np.arange(500), linestyle="", marker="o")
    figures.save(figure, tmp_path / "f")
    assert sparse.get_markevery() is None
    assert dense.get_markevery() is not None
    assert points.get_markevery() is None


@pytest.mark.parametrize(("names", "beside"), [("abc", False), ("abcdef", True)])
def test_a_long_legend_stands_beside_the_panel(names: str, beside: bool, tmp_path: Path) -> None:
    figure, ax = figures.new()
    for name in names:
        ax.plot([0, 1], [0, 1], label=name)
    figures.label_axes(ax, "time (s)", "loss (nats)")
    figures.save(figure, tmp_path / "f")
    legend = ax.get_legend()
    assert legend is not None
    panel, box = ax.get_window_extent(), legend.get_window_extent()
    assert (box.x0 >= panel.x1) == beside
    assert box.x1 <= figure.bbox.x1, "the legend must not leave the figure"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (s)", "loss (nats)")
