# SPDX-License-Identifier: Apache-2.0
"""make_seeds.py DATA OUT: seeds of the fuzzer, made from the safetensors files under DATA.

A fuzzer wants small files. Each capture is cut to its first rows, columns, entries and pages, so that every dtype, tensor
and metadata value of the captures is there in a few kilobytes; malformed files and vectors are cut to 4,096 bytes.
"""
import json
import pathlib
import struct
import sys

MOST = {"scores": (3, 12), "topk": (3, 4), "page_table": (3, 2), "index_q": (3, 2, 128), "q_scale": (3, 2), "head_weights": (3, 2),
        "index_cache": (3, 8448), "lengths": (3,), "starts": (3,)}
CUT = 4096


def cut(shape, most, item, data):
    """The corner of an array: shape, bytes an element, bytes."""
    if not shape:
        return data
    step = len(data) // shape[0] if shape[0] else 0
    return b"".join(cut(shape[1:], most[1:], item, data[i * step:(i + 1) * step]) for i in range(min(shape[0], most[0])))


def shrink(raw):
    length = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
    out, body = {}, b""
    for name, tensor in header.items():
        if name == "__metadata__":
            out[name] = tensor
            continue
        begin, end = tensor["data_offsets"]
        if end > len(data):
            raise ValueError("truncated")
        if name not in MOST:
            raise ValueError("no capture")
        shape = [min(a, b) for a, b in zip(tensor["shape"], MOST[name])]
        part = cut(tensor["shape"], MOST[name], 0, data[begin:end])
        if name == "lengths":
            width = 8 if tensor["dtype"] == "I64" else 4
            values = [int.from_bytes(part[i:i + width], "little") for i in range(0, len(part), width)]
            part = b"".join(min(v, 12).to_bytes(width, "little") for v in values)
        if name == "starts":
            part = bytes(len(part))
        if name == "page_table":
            part = b"".join(struct.pack("<i", i % 2 + 1) for i in range(len(part) // 4))
        out[name] = {"dtype": tensor["dtype"], "shape": shape, "data_offsets": [len(body), len(body) + len(part)]}
        body += part
    text = json.dumps(out).encode()
    return struct.pack("<Q", len(text)) + text + body


def main():
    data, out = map(pathlib.Path, sys.argv[1:])
    for path in sorted(data.glob("**/*.safetensors")):
        raw = path.read_bytes()
        try:
            seed = shrink(raw)
        except (ValueError, KeyError):
            seed = raw[:CUT]
        (out / (path.parent.name + "-" + path.stem)).write_bytes(seed)


main()
