import json

import pandas as pd


def test_the_demo_shows_a_cycle_and_what_breaks_it(run_command, result_schema, tmp_path):
    ran = run_command("dynabase", "demo", "--json", "--out", tmp_path)
    result = json.loads(ran.stdout)

    result_schema(result)
    assert result["elapsed_s"] < 60
    found = result["metrics"]
    assert found["d_stsp_reconstruct"] < found["d_stsp_parrot"]
    assert abs(found["d_stsp_reconstruct"] - found["d_stsp_itself"]) < 1
    assert found["mase_elnino"] < 1.1 and found["coverage_elnino"] > 0.8
    for name in ("report.html", "attractors.png", "spectra.svg", "elnino.png"):
        assert (tmp_path / name).stat().st_size > 0
    assert len(pd.read_csv(tmp_path / "elnino.csv")) == 732
    assert list(pd.read_csv(tmp_path / "lorenz63.csv")) == ["t", "x", "y", "z"]
