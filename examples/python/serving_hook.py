# SPDX-License-Identifier: Apache-2.0
"""A serving loop whose every decode step is checked by one line, `watch(...)`, and what it says at the end.

    python3 serving_hook.py [STEPS]

The loop is a small one: four requests decode, a selector picks 64 keys of each. On every hundredth step the selector
loses a key, as a kernel does whose buffer overflows.
"""

import array
import random
import sys

import exact_topk

K, REQUESTS, COLUMNS = 64, 4, 512


def select(scores, lengths, step):
    """The server's own selection: [REQUESTS, K] positions, -1 past a short row's keys."""
    topk = array.array("i")
    for r, n in enumerate(lengths):
        row = scores[r * COLUMNS:r * COLUMNS + n]
        best = sorted(sorted(range(n), key=lambda position: (-row[position], position))[:K])
        if step % 100 == 99 and r == 0 and n > K:
            best[0] = next(position for position in range(n) if position not in best)
        topk.extend(best + [-1] * (K - len(best)))
    return topk


def matrix(elements, columns):
    """[REQUESTS, columns] of a flat array; numpy arrays and torch tensors have their shape already."""
    view = memoryview(elements)
    return view.cast("B").cast(view.format, (REQUESTS, columns))


def serve(steps):
    generator = random.Random(1)
    watch = exact_topk.Watch(contract="set")
    for step in range(steps):
        lengths = array.array("i", [100 + step, 200 + step, 30 + step, 3])
        scores = array.array("f", (generator.gauss(0, 1) for _ in range(REQUESTS * COLUMNS)))
        topk = select(scores, lengths, step)
        watch(matrix(scores, COLUMNS), lengths, matrix(topk, K))
    return watch


if __name__ == "__main__":
    print(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
