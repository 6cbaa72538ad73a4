"""Compares Bornite with scikit-learn's tools on everyday tasks: imputation, classification and regression with missing features, anomalies.

Every data set is shuffled and split, 70 % to learn from and 30 % to be held against; all tools see the same rows and
the same missing cells. Means over seeds. The page has all cells, also those that Bornite loses.
"""

import argparse
import os
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import bornite
from bornite.sklearn import BorniteClassifier, BorniteOutlierDetector, BorniteRegressor

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "tasks.md"
MISSING = (0.0, 0.2, 0.5)
HOLES = 0.2
SHUFFLED_ROWS, SHUFFLED_CELLS = 0.2, 2
BUNDLED = {
    "iris": (datasets.load_iris, "petal width (cm)"),
    "wine": (datasets.load_wine, "alcohol"),
    "breast_cancer": (datasets.load_breast_cancer, None),
    "diabetes": (datasets.load_diabetes, "target"),
}
# File, class, number to predict, columns to drop.
TABLES = {
    "adult": ("income", "hr_per_week", ["fnlwgt"]),
    "titanic": ("survived", "fare", ["alive", "class", "who", "adult_male", "embark_town", "alone", "deck"]),
    "beijing": (None, "pm2.5", ["No"]),
    "shoppers": ("Revenue", None, []),
    "taxis": ("payment", "total", ["pickup", "dropoff", "fare"]),
}


class Set:
    """A data set: a frame with types, the class and the number to predict."""

    def __init__(self, name, frame, label, number):
        self.name, self.frame, self.label, self.number = name, frame, label, number


def bundled():
    for name, (load, number) in BUNDLED.items():
        found = load(as_frame=True)
        frame = found.frame
        label = None
        if hasattr(found, "target_names"):
            label = "class"
            frame = frame.drop(columns="target").assign(**{label: found.target_names[found.target]})
        yield Set(name, frame, label, number)


def tables(directory, rows):
    for name, (label, number, drop) in TABLES.items():
        path = directory / f"{name}.csv.gz"
        if not path.exists():
            continue
        frame = pd.read_csv(path, skipinitialspace=True, na_values=["?", "NA", ""], keep_default_na=False)
        frame = frame.drop(columns=[column for column in drop if column in frame])
        names = {column.lower(): column for column in frame}
        label, number = (names.get(str(column).lower()) for column in (label, number))
        frame = frame[frame[[c for c in (label, number) if c]].notna().all(axis=1)]
        for column in frame:
            if not pd.api.types.is_numeric_dtype(frame[column]):
                frame[column] = frame[column].astype(str).where(frame[column].notna(), None).astype("category")
        if label is not None:
            frame[label] = frame[label].astype(str)
        yield Set(name, frame.sample(min(rows, len(frame)), random_state=0).reset_index(drop=True), label, number)


def split(frame, seed):
    order = np.random.default_rng(seed).permutation(len(frame))
    cut = int(0.7 * len(frame))
    return frame.iloc[order[:cut]].reset_index(drop=True), frame.iloc[order[cut:]].reset_index(drop=True)


def without(frame, share, rng):
    """The frame with a fraction of its cells missing, and the mask."""
    mask = pd.DataFrame(rng.random(frame.shape) < share, columns=frame.columns)
    return frame.mask(mask), mask


def numeric(frame):
    return [column for column in frame if pd.api.types.is_numeric_dtype(frame[column])]


def as_numbers(frame):
    """The frame for scikit-learn's tools, with labels as codes."""
    words = [column for column in frame if column not in numeric(frame)]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    encoder = make_column_transformer((codes, words), remainder="passthrough", verbose_feature_names_out=False)
    encoder.set_output(transform="pandas").fit(frame)
    return lambda rows: encoder.transform(rows)[list(frame)].astype(float)


class Results:
    """Scores and seconds by task, data set, column of the page and tool."""

    def __init__(self):
        self.scores, self.seconds = {}, {}

    def add(self, task, name, tool, score, seconds=None):
        self.scores.setdefault(task, {}).setdefault(name, {}).setdefault(tool, []).append(score)
        if seconds is not None:
            self.seconds.setdefault(task, {}).setdefault(name, {}).setdefault(tool, []).append(seconds)
        print(f"{task:12} {name:28} {tool:24} {score:.4f} {'' if seconds is None else f'{seconds:.1f} s'}", flush=True)


def timed(work):
    """The result of `work` and its CPU seconds on all cores, which other programs disturb little."""
    start = time.process_time()
    return work(), time.process_time() - start


def impute(data, seed, results, effort):
    train, test = split(data.frame, seed)
    holes, mask = without(test, HOLES, np.random.default_rng(seed))
    columns = numeric(test)
    mask = mask & test.notna()
    mean, deviation = train[columns].mean(), train[columns].std().replace(0, 1)

    def errors(filled):
        return ((filled[columns] - test[columns]) / deviation)[mask[columns]].to_numpy(float)

    def score(tool, filled, seconds, other=None):
        results.add("impute", data.name, tool, float(np.sqrt(np.nanmean(errors(filled) ** 2))), seconds)
        other = filled if other is None else other
        results.add("absolute", data.name, tool, float(np.nanmean(np.abs(errors(other)))))

    def by_bornite():
        model = bornite.fit(train, effort=effort, seed=seed, as_is=True)
        return model, model.impute(holes, method="mean")

    # Means minimize the squared error; medians, the default, minimize the absolute error.
    (model, means), seconds = timed(by_bornite)
    score("Bornite", means, seconds, model.impute(holes))
    encode = as_numbers(train)
    a, b = encode(train), encode(holes)
    scale = StandardScaler().fit(a)
    for tool, imputer in {
        "mean": SimpleImputer(),
        "KNN": KNNImputer(),
        "iterative ridge": IterativeImputer(random_state=seed),
    }.items():

        def by_sklearn(imputer=imputer):
            filled = imputer.fit(scale.transform(a)).transform(scale.transform(b))
            return pd.DataFrame(scale.inverse_transform(filled), columns=a.columns)

        score(tool, *timed(by_sklearn))

    def by_boosting():
        masked = a.mask(np.random.default_rng(seed + 1).random(a.shape) < HOLES)
        filled = b.copy()
        for column in columns:
            others, known = [c for c in a if c != column], a[column].notna()
            trees = HistGradientBoostingRegressor(random_state=seed).fit(masked.loc[known, others], a.loc[known, column])
            filled[column] = b[column].where(b[column].notna(), trees.predict(b[others]))
        return filled

    score("boosting a column", *timed(by_boosting))


def classify(data, seed, results, effort):
    train, test = split(data.frame, seed)
    x, y = train.drop(columns=data.label), train[data.label]
    encode = as_numbers(x)
    classes = np.unique(y)
    several = np.random.default_rng(seed + 1)

    def auc(p, kept, order):
        truth = test[data.label].to_numpy()
        p = p[:, [list(order).index(c) for c in classes]]
        if len(classes) == 2:
            return roc_auc_score(truth == classes[1], p[:, 1])
        return roc_auc_score(truth, p / p.sum(axis=1, keepdims=True), multi_class="ovr", labels=classes)

    def with_masks():
        plain = encode(x)
        copies = [plain] + [plain.mask(several.random(plain.shape) < share) for share in MISSING[1:]]
        return HistGradientBoostingClassifier(random_state=seed).fit(pd.concat(copies), np.tile(y, len(copies)))

    linear = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000))
    words = [column for column in x if column not in numeric(x)]
    if words:
        hot = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough", sparse_threshold=0
        )
        linear = make_pipeline(hot, SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000))
    tools = {
        "Bornite": (lambda: BorniteClassifier(effort=effort, random_state=seed).fit(x, y), lambda rows: rows),
        "boosting": (lambda: HistGradientBoostingClassifier(random_state=seed).fit(encode(x), y), encode),
        "boosting with masks": (with_masks, encode),
        "logistic regression": (lambda: linear.fit(x, y), lambda rows: rows),
    }
    for tool, (make, reads) in tools.items():
        fitted, seconds = timed(make)
        for share in MISSING:
            rows, _ = without(test.drop(columns=data.label), share, np.random.default_rng(seed))
            p, asked = timed(lambda: fitted.predict_proba(reads(rows)))
            results.add("classify", f"{data.name}, {share:.0%}", tool, auc(p, None, fitted.classes_), seconds + asked)


def regress(data, seed, results, effort):
    train, test = split(data.frame, seed)
    x, y = train.drop(columns=data.number), train[data.number].astype(float)
    rows, truth = test.drop(columns=data.number), test[data.number].astype(float)
    encode = as_numbers(x)

    def by_bornite():
        tool = BorniteRegressor(effort=effort, random_state=seed).fit(x, y)
        return tool.predict(rows), tool.predict_quantile(rows, [0.05, 0.95])

    def by_boosting():
        mean = HistGradientBoostingRegressor(random_state=seed).fit(encode(x), y).predict(encode(rows))
        ends = [
            HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=seed)
            .fit(encode(x), y)
            .predict(encode(rows))
            for q in (0.05, 0.95)
        ]
        return mean, np.column_stack(ends)

    def by_ridge():
        tool = make_pipeline(SimpleImputer(), StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))).fit(encode(x), y)
        spread = 1.645 * np.std(y - tool.predict(encode(x)))
        mean = tool.predict(encode(rows))
        return mean, np.column_stack([mean - spread, mean + spread])

    for tool, make in {"Bornite": by_bornite, "boosting": by_boosting, "ridge": by_ridge}.items():
        (mean, ends), seconds = timed(make)
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        results.add("regress", data.name, tool, r2_score(truth, mean), seconds)
        results.add("coverage", data.name, tool, float(inside.mean()))
        results.add("width", data.name, tool, float(np.mean(ends[:, 1] - ends[:, 0]) / np.std(y)))


def shuffled(frame, rng):
    """The frame with two cells of some rows taken from other rows, and the indices of those rows."""
    frame = frame.copy()
    bad = rng.random(len(frame)) < SHUFFLED_ROWS
    for row in np.flatnonzero(bad):
        for column in rng.choice(frame.shape[1], SHUFFLED_CELLS, replace=False):
            frame.iat[row, column] = frame.iat[int(rng.integers(len(frame))), column]
    return frame, bad


def anomalies(data, seed, results, effort):
    train, test = split(data.frame, seed)
    test, bad = shuffled(test, np.random.default_rng(seed))
    detect("anomalies", data.name, train, test, bad, seed, results, effort)


def novelties(data, seed, results, effort):
    """Trains on rows of the most common class and detects rows of other classes, at most as many."""
    features, classes = data.frame.drop(columns=data.label), data.frame[data.label]
    usual = classes == classes.mode()[0]
    train, own = split(features[usual], seed)
    others = features[~usual].sample(min(len(own), int((~usual).sum())), random_state=seed)
    bad = np.repeat([False, True], [len(own), len(others)])
    test = pd.concat([own, others], ignore_index=True)
    detect("novelties", data.name, train, test, bad, seed, results, effort)


def detect(task, name, train, test, bad, seed, results, effort):
    encode = as_numbers(train)
    fill = SimpleImputer().fit(encode(train))
    scale = StandardScaler().fit(fill.transform(encode(train)))
    a, b = (scale.transform(fill.transform(encode(rows))) for rows in (train, test))

    detector, fitting = timed(lambda: BorniteOutlierDetector(effort=effort, random_state=seed).fit(train))

    def by_bornite(by):
        return lambda: -detector.set_params(by=by).score_samples(test)

    def by_mixture():
        tried = [GaussianMixture(k, reg_covar=1e-3, random_state=seed).fit(a) for k in (1, 2, 3, 5, 8)]
        return -min(tried, key=lambda mixture: mixture.bic(a)).score_samples(b)

    for tool, make in {
        "Bornite, either": by_bornite("either"),
        "Bornite, cells": by_bornite("cells"),
        "Bornite, density": by_bornite("density"),
        "isolation forest": lambda: -IsolationForest(random_state=seed).fit(a).score_samples(b),
        "local outlier factor": lambda: -LocalOutlierFactor(novelty=True).fit(a).score_samples(b),
        "Gaussian mixture": by_mixture,
    }.items():
        found, seconds = timed(make)
        seconds += fitting if tool.startswith("Bornite") else 0
        results.add(task, name, tool, roc_auc_score(bad, found), seconds)


HEADS = {
    "impute": ("Imputation", f"Root mean squared error of numbers in standard deviations, {HOLES:.0%} of all test cells missing; Bornite with `method=\"mean\"`. Lower is better.", min),
    "absolute": (None, "Mean absolute error on the same cells; Bornite with medians, its default.", min),
    "classify": ("Classification", "One-vs-rest AUC, with the given fraction of the test rows' features missing. Higher is better.", max),
    "regress": ("Regression", "R² of the predictions. Higher is better.", max),
    "coverage": (None, "Fraction of test rows inside the 90 % interval; 0.9 is ideal.", None),
    "width": (None, "Mean width of these intervals, in standard deviations of the target. Narrower is better at the same coverage.", None),
    "anomalies": ("Anomalies", f"AUROC for detecting the {SHUFFLED_ROWS:.0%} of test rows in which two cells were taken from other rows. Higher is better.", max),
    "novelties": ("Novelties", "AUROC for detecting rows of other classes after training on rows of the most common class without their label. Higher is better.", max),
}  # fmt: skip


def grid(found, best, form):
    tools = list(dict.fromkeys(tool for row in found.values() for tool in row))
    lines = ["| data set | " + " | ".join(tools) + " |", "|---|" + "--:|" * len(tools)]
    for name, row in found.items():
        means = {tool: float(np.mean(values)) for tool, values in row.items()}
        top = best(means.values()) if best else None
        cells = [
            "–" if tool not in means else f"**{means[tool]:{form}}**" if means[tool] == top else f"{means[tool]:{form}}"
            for tool in tools
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def lost(results):
    """Lists the rows in which another tool is better than Bornite's default."""
    lines = []
    for task, (title, _, best) in HEADS.items():
        if not title or task not in results.scores:
            continue
        rows = {
            name: {tool: float(np.mean(values)) for tool, values in row.items()}
            for name, row in results.scores[task].items()
        }
        behind = {}
        for name, means in rows.items():
            own = next(tool for tool in means if tool.startswith("Bornite"))
            top = best((tool for tool in means if tool == own or not tool.startswith("Bornite")), key=means.get)
            if means[top] != means[own]:
                behind[name] = f"{name} by {abs(means[top] - means[own]):.3f} ({top})"
        words = f"Bornite's default is best or tied in {len(rows) - len(behind)} of {len(rows)} rows"
        lines.append(f"- {title}: {words}" + (f"; behind on {', '.join(behind.values())}" if behind else "") + ".")
    return "\n".join(lines)


def page(results, settings):
    parts = [
        "# Everyday tasks",
        "Bornite's estimators and scikit-learn's, compared in one run on the same rows. The best result in each row is in bold. "
        f"Generated by `bench/tasks/run{settings['flags']}`: means of {settings['seeds']}, at most {settings['rows']:,} rows per table, 70 % of them "
        f'for training and 30 % for testing. Bornite uses `effort="{settings["effort"]}"`; all other tools use their default settings. '
        f"{settings['machine']}. Seconds are CPU time for fitting and querying together, summed over cores.",
        lost(results),
    ]
    for task, (title, text, best) in HEADS.items():
        if task not in results.scores:
            continue
        if title:
            parts.append(f"## {title}")
        parts += [text, grid(results.scores[task], best, ".3f")]
        if title:
            parts += ["Seconds:", grid(results.seconds[task], None, ".1f")]
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory with adult.csv.gz and the other tables")
    parser.add_argument("--quick", action="store_true", help="2,000 rows of each table and one seed")
    parser.add_argument("--rows", type=int, help="maximum number of rows per table")
    parser.add_argument("--seeds", type=int, help="number of repetitions, each with other rows held out")
    parser.add_argument("--only", nargs="*", help="data sets")
    parser.add_argument("--tasks", nargs="*", default=["impute", "classify", "regress", "anomalies", "novelties"])
    parser.add_argument("--effort", choices=["fast", "balanced", "best"], default=None)
    parser.add_argument("--output", type=Path, default=PAGE)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    effort = args.effort or ("fast" if args.quick else "balanced")
    seeds = args.seeds or (1 if args.quick else 3)
    rows = args.rows or (2_000 if args.quick else 30_000)
    sets = list(bundled())
    if args.data:
        sets += tables(args.data, rows)
    sets = [data for data in sets if not args.only or data.name in args.only]
    results, load = Results(), os.getloadavg()[0]
    given = {"--data": "DIRECTORY" if args.data else None, "--rows": args.rows, "--effort": args.effort}
    flags = "".join(f" {name} {value}" for name, value in given.items() if value) + (" --quick" if args.quick else "")
    for seed in range(seeds):
        for data in sets:
            if "impute" in args.tasks:
                impute(data, seed, results, effort)
            if "classify" in args.tasks and data.label:
                classify(data, seed, results, effort)
            if "regress" in args.tasks and data.number:
                regress(data, seed, results, effort)
            if "anomalies" in args.tasks:
                anomalies(data, seed, results, effort)
            if "novelties" in args.tasks and data.label:
                novelties(data, seed, results, effort)
        # After every seed, so that a run that is cut short leaves a page too.
        done = seed + 1
        settings = {
            "flags": f"{flags} --seeds {done}",
            "seeds": f"{done} seed{'s' if done > 1 else ''}",
            "rows": rows,
            "effort": effort,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end",
        }
        args.output.write_text(page(results, settings), encoding="utf-8")


if __name__ == "__main__":
    main()
