"""The record of one command: what went in, what came out, and how long it took.

A `Run` is a context manager around the body of a verb. Files are staged in a hidden folder
inside ``--out`` and moved to their places together when the block ends well; when it raises, they
are removed, so that a failed command leaves no partial output. On a clean end it writes
``result.json`` (schema ``armillary/result/1``), prints the tables, or the JSON with ``--json``.
"""

import json
import os
import platform
import re
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .errors import ArmillaryError, InputError, one_line
from .files import jsonable, refuse_overwrite, sha256, write_json, writing
from .method import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SCHEMA", "Common", "Run", "envelope", "format_table"]

SCHEMA = "armillary/result/1"

T = TypeVar("T")


@dataclass(frozen=True)
class Common:
    """The options that every verb takes."""

    out: Path | None = None
    """Folder for the results [default: armillary-out/<package>/<verb>]."""

    seed: int = 0
    """Seed of every random draw. Same seed, same machine: same result."""

    json: bool = False
    """Print the result as JSON on standard output, and nothing else there."""

    device: str = "cpu"
    """Where models run: cpu, cuda, cuda:1, mps."""

    jobs: int = 1
    """Processes to use for independent pieces of work; -1 takes every core."""

    quiet: bool = False
    """No progress and no messages."""

    debug: bool = False
    """Show the traceback of an error."""


class Run:
    """One run of one verb.

    Parameters
    ----------
    method
        The package's card.
    command
        The verb's name.
    common
        The common options of the command line.
    params
        The verb's own options, as they go into the record.

    Attributes
    ----------
    metrics
        Numbers of the result, by name; not finite becomes null.
    claims
        Records of measured claims (`reproduce` fills it).
    artefacts
        Captions of the files written, by name.
    report
        Whether to write ``report.html`` too.
    directly
        Whether outputs go to ``--out`` as they are made instead of being staged: for long work
        whose finished parts must outlive an interruption.
    """

    def __init__(
        self, method: Method, command: str, common: Common, params: Mapping[str, object]
    ) -> None:
        self.method = method
        self.command = command
        self.common = common
        self.params = dict(params)
        self.seed = common.seed
        self.jobs = common.jobs
        self.device = common.device
        self.out = common.out or Path("armillary-out") / method.dist / command
        self.metrics: dict[str, object] = {}
        self.claims: list[dict[str, object]] = []
        self.warnings: list[str] = []
        self.artefacts: dict[str, str] = {}
        self.report = False
        self.directly = False
        self._inputs: dict[Path, str] = {}
        self._tables: list[tuple[str, list[dict[str, object]], bool]] = []
        self._staging: Path | None = None
        self._created: list[Path] = []
        self._unfinished: Path | None = None
        self._resumed = False
        self._started = time.perf_counter()
        self._catcher = warnings.catch_warnings()

    def __enter__(self) -> Self:
        if self.common.seed < 0:
            raise InputError("--seed", found=self.common.seed, expected="a whole number >= 0")
        if self.common.jobs == 0:
            raise InputError("--jobs", found=0, expected="a number of processes, or -1 for all")
        with writing(self.out):  # the name may be too long
            taken = self.out.exists() and not self.out.is_dir()
        if taken:
            raise InputError("--out", found=str(self.out), expected="a folder, not a file")
        # A library function says what it doubts by `warnings`; a command puts it on record.
        self._catcher.__enter__()
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = self._show_warning
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._catcher.__exit__(kind, error, trace)
        try:
            if kind is None:
                self._finish()
        finally:
            # Bad input leaves nothing behind, but what an earlier run finished, or this one before
            # the disk was full, is not lost to it.
            bad = isinstance(error, ArmillaryError) and not isinstance(error.__cause__, OSError)
            if self._unfinished is not None and (kind is None or (bad and not self._resumed)):
                self._unfinished.unlink(missing_ok=True)
            if self._staging is not None:
                shutil.rmtree(self._staging, ignore_errors=True)
            for folder in reversed(self._created):  # ours, and empty when the block raised
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()

    def input(self, path: str | Path) -> Path:
        """Record a file that the command reads, with its digest, and give its path back."""
        path = Path(path)
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(
                "expected a file, which can be read twice, found a pipe or a device",
                where=str(path),
                instead="save it as a file first",
            )
        self._inputs[path] = sha256(path)
        return path

    def path(self, name: str, caption: str = "") -> Path:
        """Where to write the output `name`, which becomes an artefact of this run."""
        refuse_overwrite(self.out / name, self._inputs)
        self.artefacts[name] = caption
        place = (self.out if self.directly else self._stage()) / name
        self._make(place.parent)
        return place

    def unfinished(self, name: str, *, resume: bool) -> Path:
        """Where a long verb keeps its finished items (`armillary.checkpoint`) until it is done.

        The file outlives an interruption and a full disk, for ``--resume``; it goes when the run
        ends well, when the input of a run that did not resume proves bad, and now, unless `resume`.
        """
        self._make(self.out)
        self._unfinished = self.out / name
        refuse_overwrite(self._unfinished, self._inputs)
        self._resumed = resume and self._unfinished.exists()
        if not resume:
            self._unfinished.unlink(missing_ok=True)
        return self._unfinished

    def figure(self, figure: "Figure", name: str, caption: str = "") -> None:
        """Save a figure as ``name.png`` and ``name.svg``."""
        from .figures import save

        self.path(f"{name}.png", caption)
        save(figure, self.path(f"{name}.svg", caption).with_suffix(""))

    def table(
        self,
        rows: Iterable[Mapping[str, object]],
        title: str = "",
        columns: Sequence[str] | None = None,
        *,
        recorded: bool = True,
    ) -> None:
        """Put a table on standard output and, if `recorded`, into the result and the report."""
        kept = [
            {key: row.get(key) for key in columns} if columns is not None else dict(row)
            for row in rows
        ]
        self._tables.append((title, kept, recorded))

    def warn(self, text: str) -> None:
        """Put a doubt on record, once, and show it."""
        text = one_line(text)
        if text not in self.warnings:
            self.warnings.append(text)
            self.note(f"warning: {text}")

    def note(self, text: str) -> None:
        """Tell the user something on standard error."""
        if not self.common.quiet:
            print(text, file=sys.stderr)

    def progress(
        self, items: Iterable[T], total: float | None = None, description: str = ""
    ) -> Iterator[T]:
        """Pass the items on, with a bar on standard error when that is a terminal."""
        if self.common.quiet or not sys.stderr.isatty():
            yield from items
            return
        from rich.console import Console
        from rich.progress import track

        yield from track(
            items,
            description=description,
            total=total,
            console=Console(stderr=True),
            transient=True,
        )

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._started

    def result(self) -> dict[str, object]:
        """The record as it stands, fit for JSON."""
        record = envelope(self.method, self.command)
        record |= {
            "params": self.params,
            "seed": self.seed,
            "versions": versions(self.method.dist),
            "inputs": [
                {"name": str(path), "sha256": digest} for path, digest in self._inputs.items()
            ],
            "metrics": self.metrics,
            "warnings": self.warnings,
            "artefacts": [
                {"name": name, "caption": caption} for name, caption in self.artefacts.items()
            ],
            "tables": [
                {"title": t, "rows": rows} for t, rows, recorded in self._tables if recorded
            ],
            "elapsed_s": round(self.elapsed_s, 3),
            "peak_memory_mib": peak_memory_mib(),
        }
        if self.claims:
            record["claims"] = self.claims
        return jsonable(record)

    def _finish(self) -> None:
        if self.report:
            from .report import write_report

            staged = self.path("report.html")
            write_report(self.result(), staged.parent)
        record = self.result()
        staging = self._stage()
        write_json(staging / "result.json", record)
        names = [*self.artefacts, "result.json"]  # the record last: it stands for the whole
        for name in names:
            refuse_overwrite(self.out / name, self._inputs)
            if (self.out / name).is_dir():
                raise InputError(
                    "expected a file or nothing, found a folder", where=f"{self.out / name}"
                )
        for name in names:
            if (staging / name).exists():
                self._make((self.out / name).parent)
                (staging / name).replace(self.out / name)
        if self.common.json:
            print(json.dumps(record, allow_nan=False))
        else:
            self._print(record)
        self.note(f"results: {self.out}")

    def _print(self, record: Mapping[str, Any]) -> None:
        tables = [(title, rows) for title, rows, _ in self._tables]
        if not tables and self.metrics:
            tables = [("", [{"metric": k, "value": v} for k, v in record["metrics"].items()])]
        for number, (title, rows) in enumerate(tables):
            print(("\n" if number else "") + (f"{title}\n" if title else "") + format_table(rows))

    def _stage(self) -> Path:
        if self._staging is None:
            self._make(self.out)
            self._staging = self.out / f".partial-{os.getpid()}"
            self._staging.mkdir(exist_ok=True)
        return self._staging

    def _make(self, folder: Path) -> None:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                "--out", found=str(folder), expected="a folder that can be written"
            ) from error
        self._created.extend(reversed(missing))

    def _show_warning(self, message: Warning | str, category: type[Warning], *_: object) -> None:
        plain = issubclass(category, UserWarning)
        self.warn(str(message) if plain else f"{category.__name__}: {message}")


def envelope(method: Method, command: str) -> dict[str, object]:
    """A result record with every field of the schema, and nothing in it yet."""
    return {
        "schema": SCHEMA,
        "package": method.dist,
        "version": method.version,
        "command": command,
        "params": {},
        "seed": None,
        "versions": {},
        "inputs": [],
        "metrics": {},
        "warnings": [],
        "artefacts": [],
        "elapsed_s": 0.0,
        "peak_memory_mib": peak_memory_mib(),
    }


def format_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as aligned text: one line of headings, numbers to the right, four digits."""
    if not rows:
        return "(no rows)"
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    numeric = [all(_is_number(row.get(column)) for row in rows) for column in columns]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    lines = [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in [columns, *cells]
    ]
    return "\n".join(lines)


def peak_memory_mib() -> float:
    """Largest resident memory of this program so far, in MiB."""
    if sys.platform == "linux":
        # getrusage counts from the fork: a child of a large process would seem as large. The
        # high-water mark of the address space is new in a new program.
        with Path("/proc/self/status").open() as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        return round(peak / 2**10, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def versions(dist: str) -> dict[str, str]:
    """Versions of Python, the package and what it needs; of an extra's libraries if loaded."""
    found = {"python": platform.python_version(), dist: version(dist)}
    for line in requires(dist) or ():
        match = re.match(r"[A-Za-z0-9._-]+", line)
        if match is None:
            continue
        name = match.group()
        if "extra ==" in line and name.replace("-", "_") not in sys.modules:
            continue
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: object) -> str:
    if value is None or value != value:  # nan is not equal to itself
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return one_line(str(value))
