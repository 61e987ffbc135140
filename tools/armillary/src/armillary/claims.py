"""A paper's claims, measured: what it says, what was expected here, what came out, the verdict.

A claim is a function that measures; what it measures is a set of checks, each a value with its
interval and the region that the claim allows. One rule (`Check.verdict`) turns a check into a
verdict, and a claim's verdict is the worst of its checks. Finished claims are kept in
``claims.jsonl`` under ``--out`` and not computed again with ``--resume``.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .checkpoint import Checkpoint, digest_of
from .errors import InputError
from .files import jsonable
from .run import Run

__all__ = ["Check", "Claim", "Effort", "Measured", "NotMeasured", "Verdict", "reproduce"]


class Verdict(StrEnum):
    """What the measurement says of a claim."""

    HOLDS = "holds"
    UNDECIDED = "undecided"
    FAILS = "does not hold"
    NOT_MEASURED = "not measured"


class NotMeasured(Exception):
    """Raised by a claim's function to say why it cannot be measured here."""


@dataclass(frozen=True)
class Check:
    """One measured number against the region that the claim allows.

    Parameters
    ----------
    name
        What was measured, with its unit.
    value
        The estimate.
    low, high
        Its interval; by default the value itself, which is right for exact quantities.
    at_least, at_most
        The allowed region, ends included.
    note
        How it was measured, if the name does not say it.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    at_least: float = -math.inf
    at_most: float = math.inf
    note: str = ""

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that the verdict looks at."""
        return (
            self.value if self.low is None else self.low,
            self.value if self.high is None else self.high,
        )

    @property
    def verdict(self) -> Verdict:
        """Holds when the whole interval is allowed, fails when none of it is, else undecided."""
        low, high = self.interval
        if math.isnan(self.value) or math.isnan(low) or math.isnan(high):
            return Verdict.UNDECIDED
        if self.at_least <= low and high <= self.at_most:
            return Verdict.HOLDS
        if high < self.at_least or low > self.at_most:
            return Verdict.FAILS
        return Verdict.UNDECIDED


@dataclass(frozen=True)
class Measured:
    """What a claim's function returns.

    Parameters
    ----------
    checks
        What the verdict rests on; at least one.
    rows
        The table behind it.
    notes
        What a reader must know beside the numbers.
    scope
        On what the claim was measured, when that is narrower than what the paper says.
    """

    checks: Sequence[Check]
    rows: Sequence[Mapping[str, object]] = ()
    notes: Sequence[str] = ()
    scope: str = ""


@dataclass(frozen=True)
class Effort:
    """How much work a claim may do, and where its figures go."""

    quick: bool
    seed: int
    jobs: int
    run: Run


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Parameters
    ----------
    id
        Short name, as the command takes it.
    says
        The paper's statement.
    expected
        What was expected at this scale.
    measure
        Measures it; raises `NotMeasured` where it cannot.
    promised
        Whether the package promises it: `reproduce` exits with 1 when it does not hold.
    minutes
        Of the full measurement on two cores.
    """

    id: str
    says: str
    expected: str
    measure: Callable[[Effort], Measured]
    promised: bool = True
    minutes: float = 1.0


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """A claim's verdict from those of its checks: fails before undecided before holds."""
    return min(verdicts, key=(Verdict.FAILS, Verdict.UNDECIDED, Verdict.HOLDS).index)


def measure_claim(claim: Claim, effort: Effort) -> dict[str, object]:
    """Measure one claim and return its record, fit for JSON."""
    started = time.perf_counter()
    record: dict[str, object] = {
        "id": claim.id,
        "says": claim.says,
        "expected": claim.expected,
        "promised": claim.promised,
        "quick": effort.quick,
    }
    try:
        measured = claim.measure(effort)
    except NotMeasured as reason:
        record |= {"verdict": Verdict.NOT_MEASURED, "why": str(reason), "checks": [], "rows": []}
        record["notes"] = []
    else:
        if not measured.checks:
            raise ValueError(f"claim {claim.id} measured nothing")
        record |= {
            "verdict": worst([check.verdict for check in measured.checks]),
            "checks": [_check_record(check) for check in measured.checks],
            "rows": [dict(row) for row in measured.rows],
            "notes": list(measured.notes),
            "scope": measured.scope,
        }
    record["seconds"] = round(time.perf_counter() - started, 1)
    return jsonable(record)


def reproduce(
    run: Run, claims: Sequence[Claim], ids: Sequence[str], *, quick: bool, resume: bool
) -> int:
    """Measure claims, keep each as it finishes, and print what came out.

    Returns
    -------
    1 when a promised claim does not hold, else 0.

    Raises
    ------
    InputError
        If an id is not among the claims.
    """
    known = {claim.id: claim for claim in claims}
    for name in ids:
        if name not in known:
            raise InputError("claim", found=repr(name), expected="one of " + ", ".join(known))
    chosen = [known[name] for name in dict.fromkeys(ids)] if ids else list(claims)
    run.directly = True  # finished claims and their figures must outlive an interruption
    store = run.path("claims.jsonl")
    if not resume:
        store.unlink(missing_ok=True)
    finished = Checkpoint(store)
    records: list[dict[str, Any]] = []
    for number, claim in enumerate(chosen, start=1):
        key = digest_of([claim.id, quick, run.seed, run.method.version])
        if key not in finished.done:
            run.note(f"[{number}/{len(chosen)}] {claim.id}: about {_minutes(claim, quick)}")
            before = set(run.artefacts)
            record = measure_claim(claim, Effort(quick, run.seed, run.jobs, run))
            record["artefacts"] = {k: v for k, v in run.artefacts.items() if k not in before}
            finished.add(key, record)
        record = finished.done[key]
        run.artefacts.update(record["artefacts"])
        records.append(record)
        run.note(f"    {record['verdict']} ({record['seconds']} s)")
    run.claims = records
    run.metrics |= {
        verdict.value.replace(" ", "_"): sum(r["verdict"] == verdict for r in records)
        for verdict in Verdict
    }
    _show(run, records)
    broken = [r["id"] for r in records if r["promised"] and r["verdict"] == Verdict.FAILS]
    for name in broken:
        run.warn(f"the promised claim {name} does not hold")
    return 1 if broken else 0


def _check_record(check: Check) -> dict[str, object]:
    low, high = check.interval
    return {
        "name": check.name,
        "value": check.value,
        "low": low,
        "high": high,
        "at_least": check.at_least,
        "at_most": check.at_most,
        "verdict": check.verdict,
        "note": check.note,
    }


def _minutes(claim: Claim, quick: bool) -> str:
    return "a minute or less" if quick or claim.minutes <= 1 else f"{claim.minutes:g} minutes"


def _show(run: Run, records: Sequence[Mapping[str, Any]]) -> None:
    rows: list[dict[str, object]] = []
    for record in records:
        for check in record["checks"] or [None]:
            rows.append(
                {
                    "claim": record["id"],
                    "check": check["name"] if check else record.get("why", ""),
                    "measured": check["value"] if check else None,
                    "interval": _region(check["low"], check["high"]) if check else "",
                    "allowed": _region(check["at_least"], check["at_most"]) if check else "",
                    "verdict": check["verdict"] if check else record["verdict"],
                }
            )
    run.table(rows, "Claims, as measured", recorded=False)  # the record has them as claims


def _region(low: float | None, high: float | None) -> str:
    if low is None:
        return "any" if high is None else f"<= {high:.4g}"
    if high is None:
        return f">= {low:.4g}"
    return f"{low:.4g}" if low == high else f"{low:.4g} .. {high:.4g}"
