"""Scoring throughput for every interface, and the memory of streams and of fits in pieces.

    scale.py ROWS [MOST]

The table has 14 columns, like adult: six with numbers and eight with labels. A model of width 16 is fitted to 20,000 of its
rows. Every interface scores ROWS other rows three times, and the best run counts. Memory is measured for MOST / 10 and for
MOST rows; MOST is ten times ROWS by default.
"""

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv_writer
import pyarrow.parquet as pq

import bornite

COMMAND = Path(__file__).resolve().parents[2] / "target" / "release" / "bornite"
REPEATS = 3


def table(count, seed):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(count, 3))
    columns = {}
    for n in range(6):
        columns[f"number {n}"] = np.round(hidden[:, n % 3] * (n + 1) + rng.normal(size=count), 2)
    for n in range(8):
        place = hidden[:, n % 3] + 0.7 * rng.normal(size=count)
        codes = np.clip(((place + 2) / 4 * (n + 2)).astype(int), 0, n + 1)
        columns[f"label {n}"] = np.array([f"v{k}" for k in range(n + 2)])[codes]
    return columns


def best(work):
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def command(*arguments, threads):
    """The seconds and the peak memory, in MiB, of a run of the command."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    start = time.perf_counter()
    child = subprocess.Popen([COMMAND, *map(str, arguments)], env=environment, stdout=subprocess.DEVNULL)
    most = 0
    while child.poll() is None:
        # The peak of waited-for children would include the memory of this process.
        lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        most = max([most, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
        time.sleep(0.01)
    assert child.returncode == 0, arguments
    return time.perf_counter() - start, most / 1024


def write(file, rows):
    """Writes a Parquet file with this many rows, in row groups of a hundred thousand."""
    with pq.ParquetWriter(file, pa.table(table(1, 1)).schema) as writer:
        for start in range(0, rows, 100_000):
            writer.write_table(pa.table(table(min(100_000, rows - start), 1 + start)))


def score(task, batch):
    return task(batch)["log_density"].sum()


class Results(dict):
    """Results by name, which are also printed as they arrive."""

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        print(f"{name}: {value}", file=sys.stderr, flush=True)


def main():
    rows = int(sys.argv[1])
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 10 * rows
    results = Results(rows=rows, cpus=os.cpu_count())
    results["load before"] = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = bornite.fit(table(20_000, 0), width=16, epochs=3)
        path = folder / "m.model"
        model.save(path)
        results["parameters"] = model.circuit.num_parameters
        file = folder / f"rows-{rows}.parquet"
        write(file, rows)
        results["bytes of Parquet"] = file.stat().st_size
        for threads in (1, 2):
            seconds, _ = command("sample", path, "-n", rows // 10, "-o", folder / "s.parquet", threads=threads)
            results[f"sample, {threads} threads"] = {"rows/s": rows // 10 / seconds}
            seconds, _ = command("score", path, file, threads=threads)
            results[f"score Parquet, {threads} threads"] = {"rows/s": rows / seconds}
        for count in (most // 10, most):
            file = folder / "many.parquet"
            write(file, count)
            seconds, memory = command("score", path, file, threads=2)
            results[f"score Parquet {count}"] = {"rows/s": count / seconds, "MiB": memory}
            # One epoch from pieces: the sample of 64 MiB has about 75,000 rows.
            fit = ["fit", file, "--memory", "64M", "--structure", "chow-liu", "--width", 8, "--epochs", 1]
            seconds, memory = command(*fit, "-o", folder / "f.model", threads=2)
            results[f"fit in pieces {count}"] = {"rows/s": count / seconds, "seconds": seconds, "MiB": memory}
        held = pq.read_table(folder / f"rows-{rows}.parquet")
        for threads in (1, 2):
            task = model.batches("score", threads=threads)
            results[f"held in memory, {threads} threads"] = {"rows/s": rows / best(lambda: task(held))}
        plain = {n: held.column(n).to_numpy(zero_copy_only=False) for n in held.column_names}
        encoded, labels = [], []
        for name, column in plain.items():
            if column.dtype == object:
                values, codes = np.unique(column.astype(str), return_inverse=True)
                encoded.append((name, codes.astype(np.int64), values.tolist()))
            else:
                encoded.append((name, np.ascontiguousarray(column, np.float64), None))
        core = model._core
        encoded = [next(c for c in encoded if c[0] == name) for name in model._all]
        for threads in (1, 2):
            before = bornite._bornite.set_threads(threads)
            results[f"encoded and engine, {threads} threads"] = {
                "rows/s": rows / best(lambda: core.log_prob(encoded, "score"))
            }
            bornite._bornite.set_threads(before)
        pieces = held.combine_chunks().to_batches(max_chunksize=16384)
        task = model.batches("score", threads=1)
        for workers in (1, 2):
            with multiprocessing.get_context("spawn").Pool(workers) as pool:
                pool.starmap(score, [(task, piece) for piece in pieces[:workers]])
                seconds = best(lambda: pool.starmap(score, [(task, piece) for piece in pieces], chunksize=4))
                results[f"{workers} processes"] = {"rows/s": rows / seconds}
        for name, value in on_ray(model, folder / f"rows-{rows}.parquet", rows).items():
            results[name] = value
        csv = folder / "rows.csv"
        csv_writer.write_csv(held, csv)
        for threads in (1, 2):
            seconds, memory = command("score", path, csv, threads=threads)
            results[f"score CSV, {threads} threads"] = {"rows/s": rows / seconds, "MiB": memory}
    results["this process, MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results["load after"] = os.getloadavg()[0]
    print(json.dumps(results, indent=2))


def on_ray(model, file, rows):
    try:
        import ray
    except ImportError:
        return {}
    import bornite.ray

    found = {}
    # Do not use a cluster that happens to be running.
    ray.init(address="local", num_cpus=3, log_to_driver=False, include_dashboard=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    for workers in (1, 2):

        def work():
            data = ray.data.read_parquet(str(file))
            scored = bornite.ray.score(data, model, columns=[], workers=workers)
            assert scored.sum("log_density") < 0

        found[f"Ray, {workers} workers"] = {"rows/s": rows / best(work)}
    ray.shutdown()
    return found


if __name__ == "__main__":
    main()
