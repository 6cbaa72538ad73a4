"""Measures the memory and the throughput of streams over a narrow table of up to 10⁸ rows and more.

    python3 bench/scale/narrow.py [COUNT ...] [--command PATH] [--only score|impute|sample]

10⁶ and 10⁷ rows by default. The table has three columns: a label, a whole number that depends on it, and a number with one
decimal; of the rows to impute, every eighth lacks a cell. A million rows are generated once and piped to the command
repeatedly, so no table is stored. Prints one line per run: rows per second, and the peak memory of the command. Needs
nothing but Python and the command (`cargo build --release -p bornite-cli`).
"""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PIECE = 10**6
HEADER = b"kind,count,size\n"


def rows(count, seed, share):
    """Lines of CSV, in which this share of the rows lacks a cell."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        kind = rng.randrange(4)
        cells = ["wxyz"[kind], str((kind + rng.randrange(3)) % 5), f"{rng.gauss(kind, 1):.1f}"]
        if rng.random() < share:
            cells[rng.randrange(3)] = ""
        lines.append(",".join(cells))
    return ("\n".join(lines) + "\n").encode()


def run(command, piece, count):
    """Pipes this many rows to a command. Returns its seconds and its peak memory in MiB."""
    start = time.monotonic()
    feed = subprocess.PIPE if piece else subprocess.DEVNULL
    child = subprocess.Popen(command, stdin=feed, stdout=subprocess.DEVNULL)
    memory = []
    watch = threading.Thread(target=follow, args=(child, memory))
    watch.start()
    if piece:
        lines = piece.splitlines(keepends=True) if count % PIECE else []
        with child.stdin as pipe:
            pipe.write(HEADER)
            for _ in range(count // PIECE):
                pipe.write(piece)
            pipe.write(b"".join(lines[: count % PIECE]))
    watch.join()
    if child.returncode:
        sys.exit(f"{command} failed")
    return time.monotonic() - start, max(memory)


def follow(child, memory):
    """Waits for a process, and collects its peak memory in MiB."""
    while child.poll() is None:
        # The peak of waited-for children would include the memory of this process.
        lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        memory.extend(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counts", nargs="*", type=int, default=[10**6, 10**7])
    parser.add_argument("--command", default="target/release/bornite")
    parser.add_argument("--only", choices=["score", "impute", "sample"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder, "train.csv"), Path(folder, "narrow.model")
        table.write_bytes(HEADER + rows(5000, 1, 0))
        fit = [options.command, "fit", table, "-o", model, "--width", "4", "--epochs", "4"]
        subprocess.run(fit, check=True, stdout=subprocess.DEVNULL)
        works = {
            "score": ([options.command, "score", model, "-"], rows(PIECE, 2, 0)),
            "impute": ([options.command, "impute", model, "-", "-o", "/dev/null"], rows(PIECE, 3, 1 / 8)),
            "sample": ([options.command, "sample", model, "-o", "/dev/null", "-n"], None),
        }
        for name in [options.only] if options.only else works:
            command, piece = works[name]
            for count in options.counts:
                given = command if piece else [*command, str(count)]
                seconds, memory = run(given, piece, count)
                print(f"{name:6} {count:>11,} rows  {count / seconds:>10,.0f} rows/s  {memory:6.1f} MiB", flush=True)


if __name__ == "__main__":
    main()
