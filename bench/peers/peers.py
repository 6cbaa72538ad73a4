"""Compares Bornite with its peers: the same operations on the same structures, cell by cell.

Every cell runs in its own process with a time and a memory limit, Bornite's right before the peer's.
The peers are called only through their documented functions. `bench/peers/run` creates the
environment and calls this script.
"""

import argparse
import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "benchmarks" / "peers.md"
SIDE = 28
STATES = 256
SITES = 784
SITE_STATES = 2


def cells(quick):
    """The cells to compare: the squared circuit with cirkit, the matrix product state with quimb."""
    for width in [16] if quick else [16, 64]:
        for operation in ["evaluate", "marginal", "sample"]:
            yield cell("quimb", "linear", "kronecker", width, operation, 1)
    for product in ["hadamard", "kronecker"]:
        for width in [8] if quick else [8, 16, 32]:
            for operation, batch in [
                ("evaluate", 1),
                ("evaluate", 256),
                ("partition", 1),
                ("marginal", 1),
                ("marginal", 256),
            ]:
                yield cell("cirkit", "image", product, width, operation, batch)


def cell(peer, tree, product, width, operation, batch):
    return {
        "peer": peer,
        "tree": tree,
        "product": product,
        "width": width,
        "operation": operation,
        "batch": batch,
    }


# The peers' side, in processes of their own.


def repeat(work, seconds):
    """The shortest wall time and the mean CPU time after a first run, or of the first run if it takes long."""
    runs, wall, cpu = 0, float("inf"), 0.0
    start = time.perf_counter()
    while runs < 2 or time.perf_counter() - start < seconds:
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        work()
        wall = min(wall, time.perf_counter() - wall_start)
        took = time.process_time() - cpu_start
        cpu = took if runs < 2 else cpu + (took - cpu) / runs
        runs += 1
        if time.perf_counter() - start > 10:
            break
    return {"seconds": wall, "cpu_seconds": cpu, "runs": runs}


def cirkit_work(product, width, operation, batch, seed):
    import cirkit.symbolic.functional as functional
    import torch
    from cirkit.pipeline import PipelineContext
    from cirkit.templates import data_modalities, utils
    from cirkit.utils.scope import Scope

    torch.manual_seed(seed)
    torch.set_default_dtype(torch.float64)
    weights = utils.Parameterization(dtype="complex", initialization="normal")
    circuit = data_modalities.image_data(
        (1, SIDE, SIDE),
        region_graph="quad-tree-2",
        input_layer="embedding",
        num_input_units=width,
        sum_product_layer={"hadamard": "cp-t", "kronecker": "tucker"}[product],
        num_sum_units=width,
        input_params={"weight": weights},
        sum_weight_param=weights,
    )
    context = PipelineContext(
        backend="torch", semiring="complex-lse-sum", fold=True, optimize=True
    )
    x = torch.randint(0, STATES, (batch, SIDE * SIDE))
    # Compile first, so that the parameters exist before anything is derived from the circuit.
    compiled = context.compile(circuit)
    if operation == "evaluate":
        run = lambda: compiled(x)
    else:
        squared = functional.multiply(circuit, functional.conjugate(circuit))
        if operation == "partition":
            partition = context.compile(functional.integrate(squared))
            run = lambda: partition()
        else:
            left = Scope([SIDE * y + c for y in range(SIDE) for c in range(SIDE // 2)])
            marginal = context.compile(functional.integrate(squared, scope=left))
            run = lambda: marginal(x)

    def work():
        with torch.no_grad():
            run()

    return work


def quimb_work(width, operation, seed):
    import numpy
    import quimb.tensor

    state = quimb.tensor.MPS_rand_state(
        SITES, bond_dim=width, phys_dim=SITE_STATES, dtype="complex128", seed=seed
    )
    x = numpy.random.default_rng(seed).integers(0, SITE_STATES, SITES)
    if operation == "evaluate":
        return lambda: state.amplitude(x)
    if operation == "sample":
        return lambda: list(state.sample(1, seed=seed))
    known = {state.site_ind(i): int(x[i]) for i in range(SITES // 2)}
    return lambda: state.isel(known).norm()


def peer_main(spec):
    limit = spec["memory_gib"] << 30
    # Private memory, not addresses: torch maps far more than it uses.
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    common = (spec["width"], spec["operation"])
    if spec["peer"] == "cirkit":
        work = cirkit_work(spec["product"], *common, spec["batch"], spec["seed"])
    else:
        work = quimb_work(*common, spec["seed"])
    print(json.dumps(repeat(work, spec["seconds"])))


# The side that compares.


def answer_of(command, timeout):
    """The JSON object that a command prints, or the reason why there is none."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"failed": f"not within {timeout} s at a load of {os.getloadavg()[0]:.0f}"}
    if run.returncode == 0:
        return json.loads(run.stdout.strip().splitlines()[-1])
    tail = run.stderr.strip().splitlines()
    reason = tail[-1] if tail else f"exit {run.returncode}"
    if any(w in reason for w in ["MemoryError", "memory", "bad_alloc"]):
        return {"failed": "out of memory"}
    if run.returncode < 0:
        return {"failed": f"ended by signal {-run.returncode}"}
    return {"failed": reason.split(":")[0]}


def bornite_command(options, spec, batch):
    shape = ["--tree", spec["tree"], "--product", spec["product"], "-k", str(spec["width"])]
    if spec["tree"] == "image":
        shape += ["--image", f"{SIDE}x{SIDE}", "--states", str(STATES)]
    else:
        shape += ["--variables", str(SITES), "--states", str(SITE_STATES)]
    run = ["--operation", spec["operation"], "--batch", str(batch)]
    rest = ["--seconds", str(options.seconds), "--seed", str(options.seed)]
    return [options.bornite, "bench", "case", *shape, *run, *rest]


def measure(options, keep):
    """Measures every cell, and passes all results so far to `keep` after each."""
    results = []
    for spec in cells(options.quick):
        ours = answer_of(bornite_command(options, spec, spec["batch"]), options.timeout)
        limits = {
            "memory_gib": options.memory_gib,
            "seconds": options.seconds,
            "seed": options.seed,
        }
        words = json.dumps({**spec, **limits})
        theirs = answer_of([sys.executable, __file__, "--peer", words], options.timeout)
        result = {**spec, "bornite": ours, "theirs": theirs, "load": os.getloadavg()[0]}
        print(json.dumps(result), file=sys.stderr, flush=True)
        results.append(result)
        keep(results)
    return results


def seconds(answer, key="seconds"):
    """A time with three digits."""
    s = answer.get(key)
    if s is None:
        return answer.get("failed", "–")
    value, unit = (s * 1e6, "µs") if s < 1e-3 else (s * 1e3, "ms") if s < 1 else (s, "s")
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def ratio(result, key):
    ours, theirs = result["bornite"].get(key), result["theirs"].get(key)
    if not ours or not theirs:
        return "–"
    x = theirs / ours
    return f"{x:,.2f}×" if x < 10 else f"{x:,.0f}×"


def table(results):
    head = [
        ("products", 0),
        ("K", 1),
        ("operation", 0),
        ("rows", 1),
        ("Bornite", 1),
        ("peer", 1),
        ("peer / Bornite", 1),
        ("by CPU time", 1),
    ]
    yield "| " + " | ".join(name for name, _ in head) + " |"
    yield "| " + " | ".join("--:" if number else "---" for _, number in head) + " |"
    for r in results:
        row = [r["product"].capitalize(), r["width"], NAMES[r["tree"], r["operation"]], r["batch"]]
        times = [seconds(r["bornite"]), seconds(r["theirs"])]
        row += [*times, ratio(r, "seconds"), ratio(r, "cpu_seconds")]
        yield "| " + " | ".join(map(str, row)) + " |"


NAMES = {
    ("image", "evaluate"): "evaluate",
    ("image", "partition"): "partition function",
    ("image", "marginal"): "half-image marginal",
    ("linear", "evaluate"): "amplitude",
    ("linear", "marginal"): "marginal of the first half",
    ("linear", "sample"): "sample",
}


def cpu_name():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(l.split(":")[1].strip() for l in lines if l.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown CPU"


def summary(results):
    """Lists the cells that the peer wins or could not finish."""
    def name(r):
        return f"{NAMES[r['tree'], r['operation']]}, {r['product']}, K = {r['width']}, {r['batch']} rows"

    both = [r for r in results if "seconds" in r["bornite"] and "seconds" in r["theirs"]]
    lost = [name(r) for r in both if r["theirs"]["seconds"] < r["bornite"]["seconds"]]
    failed = [f"{name(r)}: {r['theirs']['failed']}" for r in results if "failed" in r["theirs"]]
    ours = [f"{name(r)}: {r['bornite']['failed']}" for r in results if "failed" in r["bornite"]]
    yield f"- Cells in which the peer is faster: {'; '.join(lost) or 'none'}."
    yield f"- Cells that the peer could not finish: {'; '.join(failed) or 'none'}."
    yield f"- Cells that Bornite could not finish: {'; '.join(ours) or 'none'}."


def document(options, results):
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in ["libcirkit", "torch", "quimb"])
    loads = [r["load"] for r in results]
    circuits = [r for r in results if r["tree"] == "image"]
    states = [r for r in results if r["tree"] == "linear"]
    return "\n".join([
        "# Bornite and its peers",
        "",
        INTRODUCTION,
        f"- Machine: {cpu_name()}, {os.cpu_count()} cores; load {min(loads):.1f} to {max(loads):.1f}",
        f"- Date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
        f"- Peers: {versions}; Python {platform.python_version()}",
        f"- Seed: {options.seed}",
        f"- Cells: {len(results)} of {len(list(cells(options.quick)))} measured"
        f"{' (--quick: only the smallest widths)' if options.quick else ''}",
        f"- Limits per cell: {options.timeout} s, {options.memory_gib} GiB",
        *summary(results),
        "",
        f"## Squared circuit: image tree of {SIDE * SIDE} variables with {STATES} values, compared with libcirkit",
        "",
        *table(circuits),
        "",
        f"## Matrix product state: {SITES} sites with {SITE_STATES} values, compared with quimb",
        "",
        *table(states),
        "",
    ])


INTRODUCTION = """\
The same operations on the same structures, measured cell by cell in one run: random complex weights,
double precision, all cores. Generated by

```sh
bench/peers/run
```

Times do not include building and compiling a circuit, on either side. Bornite evaluates and
marginalizes an orthonormal circuit, and computes the partition function of one that is not. libcirkit
squares symbolically (`multiply` with the `conjugate`), integrates (`integrate`) and compiles, in the
`complex-lse-sum` semiring, folded and optimized. Its `cp-t` layers correspond to Hadamard, its `tucker`
layers to Kronecker, and its `quad-tree-2` to the tree. quimb uses `amplitude` for the amplitude, `isel`
and `norm` for the marginal, and `sample` for the sample.

Each cell runs in its own process with a time and memory limit; if a peer has no time, the reason is shown
instead. Times are for the whole batch, the shortest of the runs that fit into two seconds. On a busy
machine, this favors the side with more and shorter runs. *By CPU time* is the ratio of the mean time on
all cores together, which other programs disturb less. Time limits are wall time, so on a busy machine a
peer may exceed a limit that it would meet on an idle one; the load is shown next to it.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bornite", help="path of the bornite command")
    parser.add_argument("--quick", action="store_true", help="only the smallest widths")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to repeat each cell, in seconds")
    parser.add_argument("--timeout", type=int, default=120, help="time limit per cell, in seconds")
    parser.add_argument("--memory-gib", type=int, default=12, help="memory limit for a peer's cell, in GiB")
    parser.add_argument("--json", action="store_true", help="print the cells and do not write the page")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer_main(json.loads(options.peer))
        return
    if not options.bornite:
        parser.error("--bornite is required; bench/peers/run sets it")
    if options.json:
        print(json.dumps(measure(options, lambda _: None)))
        return
    measure(options, lambda all: DOCUMENT.write_text(document(options, all), encoding="utf-8"))
    print(f"wrote {DOCUMENT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
