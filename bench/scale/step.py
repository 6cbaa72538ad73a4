"""Bytes and seconds per training step of bornite.ray.fit, by the number of workers and the rows per step.

    step.py ROWS WORKERS…

The table is that of scale.py, and the circuit has width 16. The results are medians over the steps of one epoch: the time that the
driver waits for the workers, and the CPU time of all workers together.
"""

import json
import statistics
import sys
import time

import pyarrow
import ray
from scale import table

import bornite.ray

SETTINGS = {"memory": 20_000 * 64 * 14, "epochs": 1, "width": 16, "functions": 24, "structure": "chow-liu"}


class Holder(bornite.ray._Holder):
    """Records how long an answer took."""

    def answer(self, fit, step):
        start = time.process_time()
        answer = super().answer(fit, step)
        self.took = time.process_time() - start
        return answer

    def seconds(self):
        return self.took


class Pool(bornite.ray._Pool):
    def ask(self, fit, step):
        start = time.perf_counter()
        answers = super().ask(fit, step)
        waited = time.perf_counter() - start
        worked = sum(ray.get([actor.seconds.remote() for actor in self.actors]))
        self.blocks.steps.append((waited, worked, len(step), sum(map(len, answers)), len(answers)))
        return answers


def main():
    rows, *counts = map(int, sys.argv[1:])
    ray.init(num_cpus=max(counts) + 1, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    dataset = ray.data.from_arrow(pyarrow.table(table(rows, 1))).materialize()
    bornite.ray._Holder, bornite.ray._Pool = Holder, Pool
    for batch in (512, 4096):
        for count in counts:
            steps = bornite.ray._Blocks.steps = []
            bornite.ray.fit(dataset, workers=count, batch=batch, **SETTINGS)
            waited, worked, out, back, workers = (statistics.median(part) for part in zip(*steps[2:], strict=True))
            found = {"batch": batch, "workers": workers, "steps": len(steps)}
            found |= {"seconds": waited, "processor seconds": worked, "bytes out": out * workers, "bytes back": back}
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
