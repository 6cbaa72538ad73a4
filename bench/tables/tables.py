"""Samples and answers of models of real tables, compared with their rows.

Every table is shuffled, and a tenth of it is held out. The command fits a model to the rest with default settings.

- Two-sample score: XGBoost learns to distinguish training rows from samples, with three folds. 2 - 2 AUC is 1 if it
  cannot distinguish them, and 0 if it always can.
- The same score for samples from copulas' GaussianMultivariate, fitted to the same rows with text as codes.
- Questions: probabilities of random events of two and three columns, from the model and from counting training rows,
  compared with the held-out rows.
"""

import argparse
import io
import json
import os
import platform
import random
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
from copulas.multivariate import GaussianMultivariate
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from xgboost import XGBClassifier

# Rows with missing values are left out, as in the published figures; a row number carries no information.
TABLES = {"adult": [], "beijing": ["No"], "shoppers": []}
PUBLISHED = {"adult": (0.855, 0.841), "beijing": (0.570, 0.772), "shoppers": (0.894, 0.736)}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "tables.md"
SAMPLES = 20_000
SEED = 0


def table(path, drop):
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    frame = frame.drop(columns=drop)
    known = ~frame.isin(["", "NA", "?"]).any(axis=1)
    return frame[known].sample(frac=1, random_state=SEED).reset_index(drop=True)


def numbers(*frames):
    """The columns of several frames as numbers; text becomes codes that all frames share."""
    both = pd.concat(frames, ignore_index=True)
    out = pd.DataFrame(index=both.index)
    for name in both.columns:
        values = pd.to_numeric(both[name], errors="coerce")
        if values.isna().any():
            values = both[name].astype("category").cat.codes
        out[name] = values.astype(float)
    ends = np.cumsum([len(f) for f in frames])
    return [out.iloc[end - len(f) : end] for f, end in zip(frames, ends)]


def by_copula(real, frame):
    """Samples of a Gaussian copula over the same numbers, with text codes and whole numbers rounded to the nearest valid value."""
    start = time.monotonic()
    copula = GaussianMultivariate()
    copula.fit(real.reset_index(drop=True))
    fitted = time.monotonic()
    made = copula.sample(SAMPLES)[list(real.columns)]
    sampled = time.monotonic()
    for name in real.columns:
        values = pd.to_numeric(frame[name], errors="coerce")
        if values.isna().any() or (values % 1 == 0).all():
            made[name] = made[name].round().clip(real[name].min(), real[name].max())
    return made, fitted - start, sampled - fitted


def auc(real, made):
    x = pd.concat([real, made]).to_numpy()
    y = np.r_[np.zeros(len(real)), np.ones(len(made))]
    scores = np.zeros(len(y))
    folds = StratifiedKFold(3, shuffle=True, random_state=SEED)
    for train, test in folds.split(x, y):
        # Both kinds of rows get the same total weight.
        weight = np.where(y[train] == 1, 1 / y[train].sum(), 1 / (1 - y[train]).sum())
        trees = XGBClassifier(n_estimators=100, max_depth=6, n_jobs=2, random_state=SEED)
        trees.fit(x[train], y[train], sample_weight=weight / weight.mean())
        scores[test] = trees.predict_proba(x[test])[:, 1]
    return roc_auc_score(y, scores)


def condition(frame, name, rng):
    """A random condition on a column, as text and as a function of rows."""
    values = pd.to_numeric(frame[name], errors="coerce")
    quoted = "'" + name.replace("'", "''") + "'"
    if values.isna().any() or values.nunique() <= 12:
        value = rng.choice(list(frame[name]))
        literal = value if not values.isna().any() else "'" + value.replace("'", "''") + "'"
        return f"{quoted} = {literal}", lambda rows: rows[name] == value
    cut = rng.choice(list(frame[name]))
    if rng.random() < 0.5:
        return f"{quoted} <= {cut}", lambda rows: pd.to_numeric(rows[name]) <= float(cut)
    return f"{quoted} > {cut}", lambda rows: pd.to_numeric(rows[name]) > float(cut)


def questions(train, count):
    rng = random.Random(SEED)
    for n in range(count):
        names = rng.sample(list(train.columns), 2 + n % 2)
        yield [condition(train, name, rng) for name in names]


def share(rows, conditions):
    holds = np.ones(len(rows), bool)
    for _, condition in conditions:
        holds &= condition(rows).to_numpy()
    return holds.mean()


def errors(bornite, model, train, test, count):
    found = []
    for conditions in questions(train, count):
        text = "P(" + ", ".join(text for text, _ in conditions) + ")"
        answer = subprocess.run([bornite, "query", model, text, "--json"], capture_output=True, text=True)
        p = json.loads(answer.stdout)["value"] if answer.returncode == 0 else float("nan")
        truth, counted = share(test, conditions), share(train, conditions)
        found.append((abs(p - truth), abs(counted - truth), truth))
    return np.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bornite", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--time", default="60s")
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--work", type=Path, default=Path("bench/tables/work"))
    parser.add_argument("--alone", action="store_true", help="without the Gaussian copula")
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    lines = []
    for name in args.tables:
        rows = table(args.data / f"{name}.csv.gz", TABLES[name])
        held = len(rows) // 10
        test, train = rows[:held], rows[held:]
        paths = {part: args.work / f"{name}.{part}.csv" for part in ("train", "samples")}
        train.to_csv(paths["train"], index=False)
        model = args.work / f"{name}.model"
        start = time.monotonic()
        fit = ["fit", paths["train"], "-o", model, "--time", args.time, "--force"]
        subprocess.run([args.bornite, *fit], check=True)
        fitted = time.monotonic()
        sample = ["sample", model, "-n", str(SAMPLES), "--seed", "1"]
        made = subprocess.run([args.bornite, *sample], capture_output=True, text=True, check=True)
        sampled = time.monotonic()
        made = pd.read_csv(io.StringIO(made.stdout), dtype=str, keep_default_na=False)
        made.to_csv(paths["samples"], index=False)
        real, fake = numbers(train, made[train.columns])
        score = 2 - 2 * max(auc(real, fake), 0.5)
        columns = {c: auc(real[[c]], fake[[c]]) for c in train.columns}
        worst = ", ".join(f"{c} {a:.3f}" for c, a in sorted(columns.items(), key=lambda i: -i[1])[:4])
        found = errors(args.bornite, model, train, test, args.questions)
        frequent = found[found[:, 2] >= 0.01]
        rare = found[found[:, 2] < 0.01]
        copula = None
        if not args.alone:
            drawn, learning, drawing = by_copula(real, train)
            copula = (2 - 2 * max(auc(real, drawn), 0.5), learning, drawing)
            print(f"{name}: Gaussian copula {copula[0]:.3f}; fit {learning:.0f} s, samples {drawing:.1f} s")
        lines.append((name, score, fitted - start, sampled - fitted, frequent, rare, worst, copula))
        print(f"{name}: score {score:.3f}; fit {fitted - start:.0f} s, samples {sampled - fitted:.1f} s")
        print(f"  columns that are easiest to distinguish, by AUC: {worst}")
        for kind, errors_of in (("frequent", frequent), ("rare", rare)):
            if len(errors_of):
                own, counted = np.nanmean(errors_of[:, :2], axis=0)
                lost = int(np.isnan(errors_of[:, 0]).sum())
                print(f"  {len(errors_of)} {kind} events: error {own:.5f}, by counting {counted:.5f}, {lost} not answered")
    cores, load = os.cpu_count(), os.getloadavg()[0]
    machine = f"{platform.machine()}, {cores} cores, load {load:.1f} at the end"
    args.page.write_text(page(lines, args.time, machine), encoding="utf-8")


def page(lines, fit_time, machine):
    has_copula = any(copula for *_, copula in lines)
    alone = "" if has_copula else " --alone"
    of_copula = (
        "The Gaussian copula is `GaussianMultivariate` from the copulas package, fitted in the same run."
        if has_copula
        else "The Gaussian copula, `GaussianMultivariate` from the copulas package, was left out because its fits take minutes more."
    )
    parts = [
        "# Tables: samples and answers",
        f"Generated by `bench/tables/run{alone}` with `fit --time {fit_time}` and otherwise default settings ({machine}). A tenth of each table is held out. Rows "
        "with missing values are left out, as in the published figures.",
        "## Samples",
        "The score is 2 − 2·AUC of an XGBoost classifier (100 trees, three folds) that distinguishes training rows from 20,000 samples: 1 if it cannot, 0 if it "
        "always can. " + of_copula + " The figures of TabPC and TabDiff are published ones, from "
        "[arXiv 2603.23016](https://arxiv.org/abs/2603.23016), with other splits and preprocessing and trained on a GPU.",
    ]
    head = ["table", "Bornite", "Gaussian copula", "TabPC", "TabDiff", "fit, s", "copula", "20,000 samples, s", "copula"]
    rows = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for name, score, fit, sample, _, _, _, copula in lines:
        peer = [f"{copula[0]:.3f}", f"{copula[1]:.0f}", f"{copula[2]:.1f}"] if copula else ["–"] * 3
        tabpc, tabdiff = PUBLISHED[name]
        cells = [f"{score:.3f}", peer[0], f"{tabpc:.3f}", f"{tabdiff:.3f}", f"{fit:.0f}", peer[1], f"{sample:.1f}", peer[2]]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    parts += ["\n".join(rows), "The single columns that are easiest to distinguish, by AUC (0.5 is perfect):"]
    parts.append("\n".join(f"- {name}: {worst}" for name, *_, worst, _ in lines))
    parts += [
        "## Answers",
        "Mean absolute error of the probabilities of 100 random events of two and three columns, compared with the held-out rows: for the model, "
        "and for counting training rows. Frequent events occur in at least 1 % of the held-out rows.",
    ]
    head = ["table", "frequent events", "Bornite", "counting", "rare events", "Bornite", "counting"]
    rows = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for name, _, _, _, frequent, rare, _, _ in lines:
        cells = []
        for found in (frequent, rare):
            own, counted = np.nanmean(found[:, :2], axis=0) if len(found) else (np.nan, np.nan)
            cells += [str(len(found)), f"{own:.5f}", f"{counted:.5f}"]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
