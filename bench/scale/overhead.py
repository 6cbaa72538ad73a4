"""The CPU time of scoring a row, for every path to the engine and for the engine alone.

    overhead.py FEW MANY

Each path scores FEW and then MANY rows with one thread or worker. The difference divided by MANY − FEW is the time per row
once start-up is amortized. CPU time includes that of all child processes and does not depend on other programs. Ray's
workers end with their dataset, and their CPU time is lost; for Ray it is the time that passes, which does depend on them.
The table is numeric: 14 columns with two decimals. A model of width 16 is fitted to 20,000 rows.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import bornite

COMMAND = Path(os.environ.get("BORNITE", Path(__file__).resolve().parents[2] / "target" / "release" / "bornite"))
TICKS = os.sysconf("SC_CLK_TCK")
PIECE = 16_384


def table(count, seed):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(count, 3))
    columns = [hidden[:, n % 3] * (n + 1) + rng.normal(size=count) for n in range(14)]
    return pa.table({f"number {n}": np.round(column, 2) for n, column in enumerate(columns)})


def cpu():
    """The CPU seconds of this process and of all its descendants, including those that ended."""
    parents, times = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            times[int(folder.name)] = sum(map(int, fields[11:15])) / TICKS

    def is_own(process):
        while process not in (0, os.getpid()):
            process = parents.get(process, 0)
        return process != 0

    return sum(seconds for process, seconds in times.items() if is_own(process))


def score(model, data):
    task = model.batches("score", threads=1)
    return sum(task(pa.table(batch))["log_density"].num_chunks for batch in data.to_batches(max_chunksize=PIECE))


def main():
    few, many = int(sys.argv[1]), int(sys.argv[2])
    results = {"rows": [few, many], "load before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bornite._bornite.set_threads(1)
        model = bornite.fit(table(20_000, 0), width=16, circuits=1, epochs=2)
        path = folder / "m.model"
        model.save(path)
        results["parameters"] = model.circuit.num_parameters
        rows = {count: table(count, 1) for count in (few, many)}
        files = {count: folder / f"{count}.parquet" for count in rows}
        for count, file in files.items():
            pq.write_table(rows[count], file, row_group_size=100_000)
        draws = np.resize(model.circuit.sample(PIECE, seed=1), (many, 14))
        environment = {**os.environ, "RAYON_NUM_THREADS": "1"}

        def engine(count):
            for start in range(0, count, PIECE):
                model.circuit.log_marginal(draws[start : min(start + PIECE, count)])

        def command(count):
            subprocess.run([COMMAND, "score", path, files[count]], env=environment, check=True, stdout=subprocess.DEVNULL)

        paths = {
            "engine": engine,
            "batches of a pyarrow table": lambda count: score(model, rows[count]),
            "command, Parquet": command,
        }
        ray = on_ray(model, files)
        paths |= ray[0]
        for name, work in paths.items():
            clock = time.monotonic if name.startswith("Ray") else cpu
            # The first run also warms up.
            times = []
            for count in (few, few, many):
                before = clock()
                work(count)
                if clock is cpu:
                    # Processes that have just ended are still being counted.
                    time.sleep(0.2)
                times.append(clock() - before)
            per_row = (times[2] - times[1]) / (many - few)
            results[name] = {"µs per row": per_row * 1e6, "s of start-up": times[1] - per_row * few}
            results[name]["relative to the engine"] = per_row * 1e6 / results["engine"]["µs per row"]
            print(name, results[name], file=sys.stderr, flush=True)
        ray[1]()
    results["load after"] = os.getloadavg()[0]
    print(json.dumps(results, indent=2, ensure_ascii=False))


def on_ray(model, files):
    try:
        import ray
    except ImportError:
        return {}, lambda: None
    import bornite.ray

    # Do not use a cluster that happens to be running.
    ray.init(address="local", num_cpus=2, log_to_driver=False, include_dashboard=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def read(count):
        assert ray.data.read_parquet(str(files[count])).sum("number 0") is not None

    def scored(count):
        data = ray.data.read_parquet(str(files[count]))
        assert bornite.ray.score(data, model, columns=[], workers=1).sum("log_density") < 0

    return {"Ray, one worker": scored, "Ray, reading and summing only": read}, ray.shutdown


if __name__ == "__main__":
    main()
