"""The command `mks-conformal`: signatures, help and printing; the work is in other modules."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from armillary import InputError
from armillary.cli import Common, CommonOptions, command
from armillary.run import Run

from .method import METHOD

if TYPE_CHECKING:
    from .region import RegionSet

main = command(METHOD)

Alpha = Annotated[float, Parameter(name="--alpha")]
SHOWN = 20  # rows of a table on the screen


def fit(
    data: Path,
    /,
    *,
    targets: str,
    model: Path,
    features: str | None = None,
    estimator: Literal["forest", "ridge", "hgb"] = "forest",
    alpha: Alpha = 0.1,
    method: Literal["split", "full"] = "split",
    test_size: float = 0.0,
    predict: Path | None = None,
    common: CommonOptions = Common(),
) -> None:
    """Fit a regressor to a table and save its region.

    Writes the region to `--model` and `predictions.csv`: a column `pred_NAME` for each target.
    The regressor itself is not stored.

    Parameters
    ----------
    data
        CSV or Parquet with a row for each case; columns by name.
    targets
        Columns to predict, separated by commas.
    model
        Where the region goes (.npz).
    features
        Columns to predict from [default: all others].
    estimator
        200 random trees, ridge regression, or histogram gradient boosting, one a target.
    alpha
        Miscoverage: the region holds the truth with probability at least 1 - alpha.
    method
        Whether calibration residuals are the score's references too (full).
    test_size
        Share of the rows kept aside to measure coverage.
    predict
        Table of rows to predict [default: the rows of the data].
    """
    from .fitting import fit_table

    params = {"targets": targets, "features": features, "estimator": estimator, "alpha": alpha}
    params |= {"method": method, "test_size": test_size, "model": str(model)}
    params |= {"predict": None if predict is None else str(predict)}
    with Run(METHOD, "fit", common, params) as run:
        fitted = fit_table(
            run.input(data),
            targets,
            features,
            estimator=estimator,
            alpha=alpha,
            method=method,
            test_size=test_size,
            predict=None if predict is None else run.input(predict),
            seed=run.seed,
            jobs=run.jobs,
        )
        from armillary.files import write_csv

        names = [f"pred_{name}" for name in fitted.names]
        rows = [
            {"row": i, **dict(zip(names, values, strict=True))}
            for i, values in enumerate(fitted.region.prediction.tolist())
        ]
        write_csv(run.path("predictions.csv", "Predictions, one row a case"), rows)
        _put_on_record(run, fitted.metrics)
        _save(run, fitted.region, model)


def calibrate(
    pairs: Path,
    /,
    *,
    pred: str,
    true: str,
    model: Path,
    alpha: Alpha = 0.1,
    score_size: float = 0.5,
    test_size: float = 0.0,
    common: CommonOptions = Common(),
) -> None:
    """Make a region for the predictions of any model, from held-out predictions and targets.

    Parameters
    ----------
    pairs
        CSV or Parquet with predictions and targets of rows that the model has not seen.
    pred
        Columns of the predictions, separated by commas.
    true
        Columns of the targets, in the same order.
    model
        Where the region goes (.npz).
    alpha
        Miscoverage: the region holds the truth with probability at least 1 - alpha.
    score_size
        Share of the rows, at random, that fits the score; the others calibrate it.
    test_size
        Share of the rows kept aside to measure coverage.
    """
    from .fitting import calibrate_pairs
    from .io import read_pairs

    params = {"pred": pred, "true": true, "alpha": alpha, "score_size": score_size}
    params |= {"test_size": test_size, "model": str(model)}
    with Run(METHOD, "calibrate", common, params) as run:
        table = read_pairs(run.input(pairs), pred, true)
        fitted = calibrate_pairs(
            table, alpha=alpha, score_size=score_size, test_size=test_size, seed=run.seed
        )
        _put_on_record(run, fitted.metrics)
        _save(run, fitted.region, model)


def contains(
    candidates: Path,
    /,
    *,
    model: Path,
    pred: str,
    true: str,
    common: CommonOptions = Common(),
) -> None:
    """Test candidate vectors against the region around their predictions.

    Writes `contains.csv`: row, score, p-value, and 1 for inside or 0.

    Parameters
    ----------
    candidates
        CSV or Parquet with predictions and candidates.
    model
        A region of `fit` or `calibrate`.
    pred
        Columns of the predictions, separated by commas.
    true
        Columns of the candidates; matched by name with the outputs of the region if they bear
        their names, else by position.
    """
    import csv

    from .fitting import verdicts
    from .io import chosen_order, read_pairs
    from .storage import around

    params = {"pred": pred, "true": true, "model": str(model)}
    with Run(METHOD, "contains", common, params) as run:
        region = _load(run, model)
        table = read_pairs(run.input(candidates), pred, true)
        order = chosen_order(table.true, region.names)
        if order is None:
            if region.names is not None:
                run.note(f"outputs by position: {', '.join(region.names)}")
            order = list(range(table.target.shape[1]))
        prediction, target = table.prediction[:, order], table.target[:, order]
        region = around(region, prediction)
        n_inside, shown = 0, []
        with run.path("contains.csv", "One row a candidate").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["row", "score", "pvalue", "inside"])
            for start, score, pvalue, inside in verdicts(region, target):
                lines = zip(score.tolist(), pvalue.tolist(), inside.tolist(), strict=True)
                rows = [(start + i, s, p, int(w)) for i, (s, p, w) in enumerate(lines)]
                writer.writerows(rows)
                n_inside += sum(row[3] for row in rows)
                shown += rows[: SHOWN - len(shown)]
        n = len(target)
        share = n_inside / n
        run.metrics |= {
            "n": n,
            "n_inside": n_inside,
            "coverage": share,
            "coverage_se": (share * (1 - share) / n) ** 0.5,
            "alpha": region.alpha,
        }
        columns = ["row", "score", "pvalue", "inside"]
        title = f"{n_inside} of {n} inside at alpha {region.alpha:g}"
        run.table(
            [dict(zip(columns, row, strict=True)) for row in shown],
            title + (f"; the first {SHOWN}" if n > SHOWN else ""),
        )


def volume(
    *, model: Path, rtol: float = 0.02, row: int = 0, common: CommonOptions = Common()
) -> None:
    """Volume of a saved region, in the product of the outputs' units.

    Parameters
    ----------
    model
        A region of `fit` or `calibrate`.
    rtol
        Relative standard error to reach; points double up to 640,000.
    row
        Which of the saved rows, where regions differ by row.
    """
    from dataclasses import asdict

    with Run(METHOD, "volume", common, {"model": str(model), "rtol": rtol, "row": row}) as run:
        region = _load(run, model)
        found = region.volume(_row(region, row), rtol=rtol, rng=run.seed)
        record = asdict(found)
        run.metrics |= {"volume": found.value, "volume_se": found.se, "alpha": region.alpha}
        run.metrics |= {key: value for key, value in record.items() if key not in ("value", "se")}
        run.table([{"volume": found.value, "se": found.se, "log volume": found.log_value}])


def plot(
    *,
    model: Path,
    dims: str = "0,1",
    row: int = 0,
    common: CommonOptions = Common(),
) -> None:
    """Draw a saved region over two outputs: its slice, level sets, and a sample's projection.

    Writes `region.png` and `region.svg`.

    Parameters
    ----------
    model
        A region of `fit` or `calibrate`.
    dims
        The two outputs, by number from 0 or by name.
    row
        Which of the saved predictions it is drawn about.
    """
    from armillary.figures import new

    from .plots import plot_region

    with Run(METHOD, "plot", common, {"model": str(model), "dims": dims, "row": row}) as run:
        region = _load(run, model)
        i = _row(region, row)
        chosen = (0, 1) if region.n_outputs == 1 else _dims(region, dims)
        figure, ax = new(6.0, 5.2)
        plot_region(region, i, chosen, ax, level_sets=True)
        caption = f"Region of row {row} at miscoverage {region.alpha:g}"
        if region.n_outputs > 1:
            caption += (
                ": the slice in which the other outputs are at their prediction plus mean "
                "residual, with the level sets of the p-value in it; dots are the projection of a "
                "uniform sample of the whole region"
            )
        run.figure(figure, "region", caption)
        box = region.bounding_box(i)
        names = region.names or tuple(map(str, range(region.n_outputs)))
        run.table(
            [
                {"output": name, "prediction": p, "low": low, "high": high}
                for name, p, low, high in zip(
                    names, region.prediction[i].tolist(), *box.tolist(), strict=True
                )
            ],
            "The box that encloses the region",
        )


def compare(
    pairs: Path,
    /,
    *,
    pred: str,
    true: str,
    alpha: Alpha = 0.1,
    splits: int = 10,
    common: CommonOptions = Common(),
) -> None:
    """Compare kernel score, density score, ellipsoid, box and Bonferroni on your own pairs.

    Each random split uses 40 % of the rows for the score, 30 % to calibrate and 30 % to test,
    the same for every method. Writes `compare.csv`, `compare.png` and `compare.svg`.

    Parameters
    ----------
    pairs
        CSV or Parquet with predictions and targets of rows that the model has not seen.
    pred
        Columns of the predictions, separated by commas.
    true
        Columns of the targets, in the same order.
    alpha
        Miscoverage.
    splits
        Random splits.
    """
    from armillary.files import write_csv

    from .checks import check_alpha
    from .contest import over_splits
    from .figures import contest_figure
    from .fitting import compared
    from .io import read_pairs

    check_alpha(alpha, "--alpha")
    if splits < 2:
        raise InputError("--splits", found=splits, expected="a whole number >= 2")
    params = {"pred": pred, "true": true, "alpha": alpha, "splits": splits}
    with Run(METHOD, "compare", common, params) as run:
        residuals = read_pairs(run.input(pairs), pred, true).residuals
        found, (n_cal, n_test) = compared(residuals, alpha, splits, run.seed, run.jobs)
        rows = over_splits(found)
        write_csv(run.path("compare.csv", "One row a method"), rows)
        coverages = {name: [split[name].coverage for split in found] for name in found[0]}
        run.figure(
            contest_figure(rows, coverages, alpha, n_cal, n_test),
            "compare",
            f"Left: coverage on {n_test} test rows, {splits} random splits, with the band of a "
            f"single split that exchangeability gives for {n_cal} calibration rows. Right: volume "
            "relative to the ellipsoid, geometric mean over splits with its 95 % interval.",
        )
        run.table(rows, f"Means over {splits} splits; ratio to the ellipsoid")
        best = rows[0]
        ratio = {row["method"]: row["ratio"] for row in rows}
        run.metrics |= {"alpha": alpha, "n_cal": n_cal, "n_test": n_test}
        run.metrics |= {"coverage": best["coverage"], "coverage_se": best["coverage_se"]}
        run.metrics |= {"volume": best["volume"], "volume_ratio_ellipsoid": best["ratio"]}
        mks, box = rows[0]["log_volume"], next(r for r in rows if r["method"] == "box")
        assert isinstance(mks, float)
        assert isinstance(box["log_volume"], float)
        from math import exp

        run.metrics["volume_ratio_box"] = exp(mks - box["log_volume"])
        run.metrics["ratios"] = ratio


def _load(run: Run, model: Path) -> "RegionSet":
    path = run.input(model)  # a missing file is told before anything heavy is loaded

    from .storage import load_region

    return load_region(path)


def _save(run: Run, region: "RegionSet", model: Path) -> None:
    """Write the region where the user wants it; last, so that a failure leaves none."""
    from armillary.files import refuse_overwrite

    from .storage import save_region

    if model.suffix != ".npz":
        raise InputError("--model", found=str(model), expected="a file that ends in .npz")
    for entry in run.result()["inputs"]:  # type: ignore[union-attr]
        refuse_overwrite(model, {Path(entry["name"]): ""})
    save_region(region, model)
    run.note(f"region saved to {model}")


def _put_on_record(run: Run, metrics: dict[str, Any]) -> None:
    run.metrics |= metrics
    shown = ["n_cal", "alpha", "coverage", "volume", "volume_se", "volume_ratio_ellipsoid"]
    shown += ["volume_ratio_box", "selected"]
    run.table([{name: metrics.get(name) for name in shown}], "Region")


def _row(region: "RegionSet", row: int) -> int:
    if not 0 <= row < len(region):
        raise InputError("--row", found=row, expected=f"0 to {len(region) - 1}")
    return row


def _dims(region: "RegionSet", dims: str) -> tuple[int, int]:
    """Two outputs by number or name."""
    parts = [part.strip() for part in dims.split(",")]
    names = region.names or ()
    known = [*names, *map(str, range(region.n_outputs))]
    if len(parts) != 2 or not all(part in known for part in parts):
        raise InputError("--dims", found=dims, expected=f"two of {', '.join(known)}")
    first, second = (names.index(p) if p in names else int(p) for p in parts)
    if first == second:
        raise InputError("--dims", found=dims, expected="two different outputs")
    return first, second
