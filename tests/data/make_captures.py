# SPDX-License-Identifier: Apache-2.0
"""make_captures.py OUT: captures written by the safetensors package, with expected.json, for tests/data/captures_python.

Scores, lists and FP8 values are worked out here with numpy and ml_dtypes alone, from the definitions: nothing of the
project is used. Scores are the f64 sums rounded once to the format of the file, so that they pass with a bound of 0.

    python3 -m pip install safetensors numpy ml_dtypes
"""
import json
import pathlib
import sys

import ml_dtypes
import numpy as np
import safetensors.numpy

HEADS, DIM, TOKENS, PAGE = 4, 128, 64, 8448
LENGTHS, STARTS, COLUMNS, K = [300, 5, 0, 129], [3, 0, 0, 130], 303, 96
FN, FNUZ = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz


def save(path, tensors, metadata):
    safetensors.numpy.save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, path, metadata)


def make_cache(rng, pages, fp8, preshuffled):
    """The bytes of the pages, and the f64 keys and scales by slot."""
    keys = np.clip(rng.standard_normal((pages, TOKENS, DIM)) * 64, -240, 240).astype(fp8)
    scales = (2.0 ** rng.integers(-9, -5, (pages, TOKENS))).astype(np.float32)
    codes = keys.view(np.uint8)
    if preshuffled:  # [token / 16][dim / 16][token % 16][dim % 16]
        codes = codes.reshape(pages, 4, 16, 8, 16).transpose(0, 1, 3, 2, 4)
    cache = np.concatenate([codes.reshape(pages, -1), scales.view(np.uint8).reshape(pages, -1)], axis=1)
    assert cache.shape == (pages, PAGE)
    return cache, keys.astype(np.float64).reshape(-1, DIM), scales.astype(np.float64).reshape(-1)


def radix(scores):
    bits = np.asarray(scores, np.float32).view(np.uint32)
    return np.where(bits >> 31, ~bits, bits | 0x80000000).astype(np.int64)


def top_k(scores, order):
    best = np.lexsort((np.arange(len(scores)), -radix(scores)))[:K]
    return best if order == "sorted" else np.sort(best)


def capture(seed, score_type, query_type, fp8, preshuffled, slots, order, list_type):
    rng = np.random.default_rng(seed)
    rows, pages = len(LENGTHS), 16
    cache, keys, scales = make_cache(rng, pages, fp8, preshuffled)
    query = rng.standard_normal((rows, HEADS, DIM)).astype(np.float32)
    weights = rng.standard_normal((rows, HEADS)).astype(np.float32)
    tensors = {"head_weights": weights, "index_cache": cache, "lengths": np.array(LENGTHS, list_type), "starts": np.array(STARTS, np.int32)}
    if query_type == FN:
        q_scale = (np.abs(query).max(axis=2) / 448).astype(np.float32)
        q8 = (query / q_scale[..., None]).astype(FN)
        tensors |= {"index_q": q8, "q_scale": q_scale}
        query = q8.astype(np.float64) * q_scale[..., None].astype(np.float64)
    else:
        tensors["index_q"] = query.astype(query_type)
        query = tensors["index_q"].astype(np.float64)
    tables = np.stack([rng.permutation(np.arange(1, pages))[:6] for _ in range(rows)]).astype(np.int32)
    scores = np.full((rows, COLUMNS), 77, score_type)  # bait outside the windows
    topk = np.full((rows, K), -1, list_type)
    for r, (n, start) in enumerate(zip(LENGTHS, STARTS)):
        positions = np.arange(n)
        slot = tables[r][positions // TOKENS] * TOKENS + positions % TOKENS if slots else positions
        dots = np.maximum(keys[slot] @ query[r].T, 0)
        scores[r, start:start + n] = (dots @ weights[r].astype(np.float64) * scales[slot]).astype(score_type)
        best = top_k(scores[r, start:start + n].astype(np.float32), order)
        topk[r, :len(best)] = slot[best]
    tensors |= {"scores": scores, "topk": topk}
    if slots:
        tensors["page_table"] = tables
    metadata = {"contract": order, "entries": "slot" if slots else "position", "page_layout": "preshuffled16" if preshuffled else "plain",
                "fp8": "e4m3fn" if fp8 == FN else "e4m3fnuz", "written_by": "safetensors " + safetensors.__version__}
    return tensors, metadata


def main():
    out = pathlib.Path(sys.argv[1])
    expected = {}

    def add(name, status, why, made, fails=None):
        save(out / (name + ".safetensors"), *made)
        expected[name] = {"status": status, "why": why} | ({"fails": fails} if fails else {})

    f16 = (1, np.float16, np.float32, FN, True, True, "position", np.int32)
    add("f16-scores", 0, "F16 scores, F32 query, preshuffled pages, slots, windows", capture(*f16))
    add("bf16-scores", 0, "BF16 scores, F16 query, e4m3fnuz keys, sorted lists, I64",
        capture(2, ml_dtypes.bfloat16, np.float16, FNUZ, False, True, "sorted", np.int64))
    add("f8-query", 0, "F32 scores, FP8 query with q_scale, no page table",
        capture(3, np.float32, FN, FN, False, False, "position", np.int64))
    add("bf16-query", 0, "F32 scores, BF16 query, e4m3fnuz keys in preshuffled pages",
        capture(4, np.float32, ml_dtypes.bfloat16, FNUZ, True, True, "sorted", np.int32))

    tensors, metadata = capture(*f16)
    row = tensors["scores"][0, STARTS[0]:STARTS[0] + LENGTHS[0]]
    most = int(np.argmax(np.abs(row)))
    beyond = np.copysign(np.float16(np.inf), row[most])
    row[most] = np.nextafter(np.nextafter(row[most], beyond), beyond)
    add("f16-two-ulps", 1, "the largest F16 score two ulps further out", (tensors, metadata), "scores")

    tensors, metadata = capture(*f16)
    add("f16-wrong-layout", 1, "preshuffled pages declared plain", (tensors, metadata | {"page_layout": "plain"}), "scores")
    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
