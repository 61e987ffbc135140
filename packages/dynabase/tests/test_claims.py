"""The claims: what they say, and one of them measured by the real command."""

import json

import pytest

from armillary.claims import Claim
from dynabase import peers
from dynabase.claims import CLAIMS


def test_every_claim_of_the_design_is_there():
    ids = [claim.id for claim in CLAIMS]
    assert ids == [f"C{n}" for n in range(1, 11)] + ["R1", "R2", "R3"]
    for claim in CLAIMS:
        assert isinstance(claim, Claim) and claim.says and claim.expected
        assert claim.measure.__doc__.startswith(f"{claim.id}: ")


def test_one_claim_by_the_command(run_command, result_schema, tmp_path):
    ran = run_command("dynabase", "reproduce", "C6", "--quick", "--json", "--out", tmp_path)
    result = json.loads(ran.stdout)

    result_schema(result)
    (claim,) = result["claims"]
    assert claim["id"] == "C6" and claim["verdict"] == "holds"
    assert {row["system"] for row in claim["rows"]} == {"van_der_pol", "selkov"}


def test_a_missing_peer_is_said_and_nothing_else_breaks(monkeypatch, tmp_path, capfd):
    """Without the extra a claim that needs it is not measured, and its status is 0."""
    from armillary import MissingExtra
    from dynabase.cli import main

    def gone():
        raise MissingExtra("fracast", extra="dynabase[bench]")

    monkeypatch.setattr(peers, "foundation_model", gone)
    assert main(["reproduce", "C9", "--quick", "--json", "--out", str(tmp_path)]) == 0
    (claim,) = json.loads(capfd.readouterr().out)["claims"]
    assert claim["verdict"] == "not measured" and "dynabase[bench]" in claim["why"]


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["C1", "C2", "C3", "C4", "C5", "C10"])
def test_claims_that_need_no_peer_hold_in_a_quick_run(run_command, tmp_path, claim):
    ran = run_command("dynabase", "reproduce", claim, "--quick", "--json", "--out", tmp_path)
    assert json.loads(ran.stdout)["claims"][0]["verdict"] in ("holds", "undecided")
