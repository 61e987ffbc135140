"""Files as people have them: wide and long, calendars, gaps, and every fault with its place."""

import numpy as np
import pandas as pd
import pytest

from armillary import InputError
from dynabase import recordings
from dynabase._frames import extended
from dynabase.io import Columns, column_names, read_recordings


@pytest.fixture
def table(tmp_path):
    """Write a text as a CSV file and read its series."""

    def read(text, *, name="data.csv", **columns):
        path = tmp_path / name
        path.write_text(text)
        return read_recordings(path, Columns(**columns))

    return read


def with_stamps(stamps):
    lines = (f"{stamp},{np.sin(i)}" for i, stamp in enumerate(stamps))
    return "\n".join(["ds,y", *lines]) + "\n"


CALENDARS = {
    "month end": (
        pd.date_range("2024-01-31", periods=24, freq="ME").strftime("%Y-%m-%d"),
        ["2026-01-31", "2026-02-28", "2026-03-31"],
    ),
    "month start": (
        pd.date_range("2024-01-01", periods=24, freq="MS").strftime("%Y-%m-%d"),
        ["2026-01-01", "2026-02-01", "2026-03-01"],
    ),
    "Wednesdays": (
        pd.date_range("2024-01-03", periods=24, freq="W-WED").strftime("%Y-%m-%d"),
        ["2024-06-19", "2024-06-26", "2024-07-03"],
    ),
    "15 minutes": (
        pd.date_range("2024-03-30 22:30", periods=24, freq="15min").strftime("%Y-%m-%d %H:%M"),
        ["2024-03-31 04:30", "2024-03-31 04:45", "2024-03-31 05:00"],
    ),
    "business days": (
        pd.bdate_range("2024-03-01", periods=26).strftime("%Y-%m-%d"),
        ["2024-04-08", "2024-04-09", "2024-04-10"],
    ),
    "mid-month": (
        [f"2024-{month:02}-15" for month in range(1, 13)],
        ["2025-01-15", "2025-02-15", "2025-03-15"],
    ),
    "two month ends": (["2024-01-31", "2024-02-29"], ["2024-03-31", "2024-04-30", "2024-05-31"]),
    "months": (["2024-01", "2024-02", "2024-03"], ["2024-04", "2024-05", "2024-06"]),
    "quarters": (["1959Q3", "1959Q4", "1960Q1"], ["1960Q2", "1960Q3", "1960Q4"]),
    "quarter ends": (
        ["2023-03-31", "2023-06-30", "2023-09-30", "2023-12-31"],
        ["2024-03-31", "2024-06-30", "2024-09-30"],
    ),
    "years": (["1700", "1701", "1702"], [1703, 1704, 1705]),
    "year ends": (
        ["2020-12-31", "2021-12-31", "2022-12-31"],
        ["2023-12-31", "2024-12-31", "2025-12-31"],
    ),
    "compact": (["20240130", "20240131", "20240201"], ["20240202", "20240203", "20240204"]),
    "points": (
        ["30.01.2024", "31.01.2024", "01.02.2024"],
        ["02.02.2024", "03.02.2024", "04.02.2024"],
    ),
    "day first": (
        ["30/01/2024", "31/01/2024", "01/02/2024"],
        ["02/02/2024", "03/02/2024", "04/02/2024"],
    ),
    "with a zone": (
        ["2024-03-30T22:30:00+01:00", "2024-03-30T22:45:00+01:00", "2024-03-30T23:00:00+01:00"],
        ["2024-03-30T23:15:00+01:00", "2024-03-30T23:30:00+01:00", "2024-03-30T23:45:00+01:00"],
    ),
    "seconds": (["0.02", "0.04", "0.06"], [0.08, 0.1, 0.12]),
    "rounded thirds": (["0.333", "0.667", "1.0", "1.333"], [1.667, 2.0, 2.333]),
    "samples": (["10", "20", "30"], [40, 50, 60]),
}


@pytest.mark.parametrize("name", CALENDARS)
@pytest.mark.parametrize("long", [False, True])
def test_time_stamps_continue_as_the_file_writes_them(table, name, long):
    stamps, expected = CALENDARS[name]
    text = with_stamps(stamps)
    if long:
        head, *lines = text.splitlines()
        text = "\n".join(["unique_id," + head, *(f"a,{line}" for line in lines)])

    recording = table(text).only()

    assert recording.missing == 0
    ahead = recording.write(extended(recording.y.index, 3)[len(stamps) :])
    written = recording.stamps() + ahead
    if isinstance(expected[0], float):
        assert written == pytest.approx([*map(float, stamps), *expected], abs=1e-3)
    else:
        assert written == [*map(type(expected[0]), stamps), *expected]


@pytest.mark.parametrize(
    ("stamps", "missing"),
    [
        (pd.date_range("2024-01-01", periods=45).delete([21, 22, 23]).strftime("%Y-%m-%d"), 3),
        (
            pd.date_range("2020-01-31", periods=48, freq="ME").delete([5, 30]).strftime("%Y-%m-%d"),
            2,
        ),
        (pd.bdate_range("2024-01-01", periods=260).delete([15, 60]).strftime("%Y-%m-%d"), 2),
        ([1700, 1701, 1703, 1704], 1),
        (["0.02", "0.04", "0.08", "0.10"], 1),
        (["2024-01", "2024-02", "2024-04", "2024-05"], 1),
        (["1959Q1", "1959Q2", "1960Q1", "1960Q2"], 2),
    ],
)
def test_missing_stamps_become_rows_of_nan(table, stamps, missing):
    recording = table(with_stamps(stamps)).only()

    assert recording.missing == recording.incomplete == missing
    assert len(recording.y) == len(stamps) + missing
    assert set(map(str, stamps)) - {str(s) for s in recording.stamps()} <= {"0.10"}


def test_a_long_table_may_mix_its_series(table):
    rows = ("b,2024-01-01,1", "a,2024-01-01,2", "b,2024-01-02,", "a,2024-01-02,4", "a,2024-01-03,5")
    text = "\n".join(["unique_id,ds,y", *rows])
    found = table(text).recordings

    assert [each.name for each in found] == ["b", "a"]
    assert [len(each.y) for each in found] == [2, 3]
    assert found[0].incomplete == 1 and found[0].missing == 0


def test_a_wide_table_is_one_system_or_with_each_many_series(table):
    text = "ds,x,y\n2024-01-01,1,2\n2024-01-02,3,4\n"

    together, apart = table(text), table(text, each=True)

    assert together.targets == ("x", "y") and together.only().y.shape == (2, 2)
    assert [each.name for each in apart.recordings] == ["x", "y"]
    assert table(text, target=("y",)).only().y.tolist() == [2, 4]


def test_time_is_found_by_name_or_because_it_is_no_number(table):
    assert table("day,y\n2024-01-01,1\n2024-01-02,2\n").targets == ("y",)
    assert table("t,x\n0.0,1\n0.1,2\n").targets == ("x",)
    assert table("x,y\n0.0,1\n0.1,2\n").targets == ("x", "y")
    assert table("x,when\n1,2024-01-01\n2,2024-01-02\n", time="when").targets == ("x",)
    assert table("ds,y\n5,1\n9,2\n11,3\n", time="none", target=("y",)).only().missing == 0


def test_parquet_holds_the_same(tmp_path):
    frame = pd.DataFrame(
        {
            "unique_id": ["a"] * 24 + ["b"] * 24,
            "ds": list(pd.date_range("2024-01-31", periods=24, freq="ME")) * 2,
            "y": np.sin(np.arange(48)),
        }
    )
    frame.to_parquet(tmp_path / "data.parquet")
    found = read_recordings(tmp_path / "data.parquet").recordings

    assert [each.name for each in found] == ["a", "b"]
    assert found[1].y.tolist() == frame["y"][24:].tolist()
    assert found[0].stamps()[-1].startswith("2025-12-31")


def test_arrays_are_mapped_into_memory(tmp_path):
    values = np.random.default_rng(0).normal(size=(50, 2))
    np.save(tmp_path / "rows.npy", values)
    np.savez(tmp_path / "run.npz", trajectory=values[:, 0], indices=np.arange(50))

    rows = read_recordings(tmp_path / "rows.npy")
    assert rows.targets == ("x0", "x1") and not rows.only().stamped
    assert np.array_equal(rows.only().y.to_numpy(), values)
    assert read_recordings(tmp_path / "run.npz").only().y.tolist() == values[:, 0].tolist()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ds,y\n2024-01-01,1\n2024-01-02,2\n\n2024-01-02,3\n", ("data.csv:3 and 5", "twice")),
        (
            "ds,y\n2024-01-01,1\n2024-01-03,2\n2024-01-02,3\n",
            ("data.csv:3 and 4", "after 2024-01-03"),
        ),
        (
            "unique_id,ds,y\na,2024-01-01,1\nb,2024-01-01,1\na,2024-01-01,2\n",
            ("data.csv:2 and 4", "2024-01-01 twice"),
        ),
        ("ds,y\n2024-01-01,1\n2024-01-02,fast\n", ("data.csv:3:2", "fast", "a number")),
        ("ds,y\n2024-01-01,1\n2024-01-02,inf\n", ("data.csv:3:2", "inf", "finite")),
        ("ds,y\n2024-01-01,1\nsoon,2\n", ("data.csv:3", "'soon'", "2024-01-01")),
        ("ds,y\n2024-01-01,1\n,2\n", ("data.csv:3", "an empty field")),
        ("ds,y\n01/02/2024,1\n01/03/2024,2\n", ("data.csv:2", "told apart", "YYYY-MM-DD")),
        ("ds,y\n0.0,1\n0.1,2\n0.13,3\n0.2,4\n", ("data.csv:3 and 4", "equal steps")),
        (
            "ds,y\n2024-01-01 00:00,1\n2024-01-01 00:07,1\n2024-01-01 01:00,1\n2024-01-02 00:07,1",
            ("data.csv:", "equally spaced", "--time none"),
        ),
        ("ds,y\n1700000001,1\n1700100007,2\n1701000107,1\n", ("data.csv:", "equally spaced")),
        ("ds\n2024-01-01\n", ("data.csv:1", "columns of numbers")),
        ("", ("data.csv", "empty")),
        ("ds,y\n", ("data.csv", "rows")),
    ],
)
def test_faults_are_named_with_their_place(table, text, words):
    with pytest.raises(InputError) as caught:
        table(text)
    for word in words:
        assert word in str(caught.value)


def test_columns_that_are_not_there(table):
    text = "unique_id,ds,y\na,2024-01-01,1\n"
    with pytest.raises(InputError, match="'z'"):
        table(text, target=("z",))
    with pytest.raises(InputError, match=r"no series 'q'.*found a"):
        table(text, series="q")
    with pytest.raises(InputError, match="used twice"):
        table(text, time="y", target=("y",))
    with pytest.raises(InputError, match="wide tables"):
        table(text, each=True)


def test_several_series_where_one_is_wanted(table):
    with pytest.raises(InputError, match="--series"):
        table("unique_id,ds,y\na,2024-01-01,1\nb,2024-01-01,1\n").only()


@pytest.mark.parametrize(
    ("name", "n", "first"), [("elnino", 732, 23.11), ("sunspots", 309, 5), ("lynx", 114, 269)]
)
def test_the_package_s_own_series(name, n, first):
    y = recordings.load(name)
    recording = read_recordings(recordings.path(name)).only()

    assert len(y) == n and y[0] == first
    assert recording.y.tolist() == y.tolist() and recording.missing == 0
    assert column_names(recordings.path(name)) == ["ds", "y"]


def test_own_series_equal_those_of_statsmodels():
    datasets = pytest.importorskip("statsmodels.api").datasets
    sea = datasets.elnino.load_pandas().data.drop(columns="YEAR").to_numpy().ravel()
    spots = datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()

    assert np.array_equal(recordings.load("elnino"), sea)
    assert np.array_equal(recordings.load("sunspots"), spots)
