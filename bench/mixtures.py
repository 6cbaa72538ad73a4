"""Gaussian mixtures on the continuous tables: full covariances, components by validation.

Columns with more than 30 distinct values, centred and scaled by the mean and deviation of the rows to learn from: the same as
`cargo run --example learn -- uci`. A ridge of 1e-3 is added to the diagonal of every covariance.
"""

import argparse
import csv
import gzip
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

COMPONENTS = [*range(1, 11), 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 35, 38, 41, 44, 47, 50]


def read(path: Path) -> list[np.ndarray]:
    with gzip.open(path, "rt", newline="") as file:
        names, *rows = csv.reader(file)
    table = np.array(rows, dtype=float)
    split, table = table[:, names.index("split")], np.delete(table, names.index("split"), axis=1)
    table = table[:, [len(np.unique(column)) > 30 for column in table.T]]
    train = table[split == 0]
    return [(table[split == n] - train.mean(0)) / train.std(0) for n in range(3)]


def best(parts: list[np.ndarray], most: int) -> tuple[int, float, float]:
    train, valid, test = parts
    found = (0, -np.inf, -np.inf)
    for k in COMPONENTS:
        if k > min(most, len(train) // 2):
            break
        mixture = GaussianMixture(k, reg_covar=1e-3, random_state=0, max_iter=300).fit(train)
        if (score := mixture.score(valid)) > found[1]:
            found = (k, score, mixture.score(test))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--most", type=int, default=50, help="the most components")
    parser.add_argument("--sets", help="names with commas between; all where not given")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names = arguments.sets.split(",") if arguments.sets else None
    done = {}
    if arguments.out.exists():
        with arguments.out.open(newline="") as file:
            done = {row["set"]: row for row in csv.DictReader(file)}
    for path in sorted(arguments.data.glob("*.csv.gz")):
        name = path.name.removesuffix(".csv.gz")
        if (names is None or name in names) and done.get(name, {}).get("most") != str(arguments.most):
            k, valid, test = best(read(path), arguments.most)
            print(f"{name}: {k} components, validation {valid:.3f}, test {test:.3f}", flush=True)
            done[name] = {"set": name, "k": k, "valid": valid, "test": test, "most": arguments.most}
            with arguments.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, ["set", "k", "valid", "test", "most"])
                writer.writeheader()
                writer.writerows(done.values())


if __name__ == "__main__":
    main()
