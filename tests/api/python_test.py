# SPDX-License-Identifier: Apache-2.0
"""exact_topk.py against rows worked out by hand."""

import array
import ctypes
import hashlib
import io
import os
import struct
import subprocess
import sys
import threading
import unittest

import numpy

import exact_topk

PAGE_BYTES = 8448


def scale_row(scales):
    """A query and a cache whose scores are the scales: see tests/api/support.h."""
    cache = bytearray(PAGE_BYTES * max(1, -(-len(scales) // 64)))
    for position, scale in enumerate(scales):
        page, token = divmod(position, 64)
        cache[page * PAGE_BYTES + token * 128] = 0x38
        struct.pack_into("<f", cache, page * PAGE_BYTES + 8192 + token * 4, scale)
    query = memoryview(array.array("f", [1] + [0] * 127)).cast("B").cast("f", (1, 128))
    return {"query": query, "weights": array.array("f", [1]), "cache": cache, "keys": len(scales)}


def ints(*values):
    return array.array("i", values)


def floats(*values):
    return array.array("f", values)


class FakeTorch:
    """What of a torch tensor the module asks for."""

    def __init__(self, buffer, dtype, shape, device="cpu", contiguous=True):
        self.buffer, self.dtype, self.shape, self.device = buffer, "torch." + dtype, shape, device
        self.contiguous = contiguous

    def data_ptr(self):
        return self.buffer.buffer_info()[0]

    def is_contiguous(self):
        return self.contiguous


class CheckList(unittest.TestCase):
    scores = floats(1, 9, 2, 5, 5)  # 1, then 3; 4 ties with 3

    def test_holds_and_fails(self):
        right = exact_topk.check_list(self.scores, ints(1, 3), contract="sorted")
        self.assertTrue(right)
        self.assertIs(right.expect(), right)
        self.assertIn("sorted", right.levels)
        self.assertEqual(right.sentence, "")
        wrong = exact_topk.check_list(self.scores, ints(1, 4), k=2)
        self.assertFalse(wrong)
        self.assertEqual((wrong.missed, wrong.missed_ties, wrong.first_index, wrong.first_position), (1, 1, 1, 4))
        self.assertEqual(wrong.levels, ("valid", "values"))
        with self.assertRaisesRegex(exact_topk.Violation, r"missed \(positions 3\)") as raised:
            wrong.expect()
        self.assertIsInstance(raised.exception, AssertionError)
        self.assertIs(raised.exception.result, wrong)
        self.assertIn("held=False", repr(wrong))

    def test_every_contract_is_passed_on(self):
        for contract, held in zip(exact_topk.CONTRACTS, (True, True, True, False, False, True)):
            # 5 and 9 share no twelve bits, so that the base order is by position: 1, 3.
            entries = ints(1, 3) if contract == "base" else ints(3, 1)
            self.assertEqual(bool(exact_topk.check_list(self.scores, entries, contract=contract)), held, contract)

    def test_padding_k_and_64_bits(self):
        self.assertTrue(exact_topk.check_list(self.scores, array.array("q", [3, 1, -1]), k=2))
        self.assertFalse(exact_topk.check_list(self.scores, array.array("q", [3, 1, -1])))  # k is 3
        self.assertTrue(exact_topk.check_list(floats(), ints(-1, -1)))

    def test_slots(self):
        self.assertTrue(exact_topk.check_list(self.scores, ints(7 * 64 + 1, 7 * 64 + 3), page_table=ints(7)))
        self.assertEqual(exact_topk.check_list(self.scores, ints(1, 3), page_table=ints(7)).faults, 2)

    def test_value_rules(self):
        scores = floats(-0.0, 0.0, float("nan"))
        self.assertTrue(exact_topk.check_list(scores, ints(2)))
        self.assertTrue(exact_topk.check_list(scores, ints(1), nan_last=True))
        self.assertTrue(exact_topk.check_list(scores, ints(0), nan_last=True, zeros_equal=True))

    def test_read_only_and_bf16(self):
        codes = array.array("H", [0x3F80, 0x4110, 0x4000, 0x40A0, 0x40A0])  # the scores in bf16
        frozen = memoryview(codes).toreadonly()
        self.assertTrue(exact_topk.check_list(frozen, ints(1, 3)))
        self.assertFalse(exact_topk.check_list(frozen, ints(1, 4)))

    def test_torch(self):
        scores = FakeTorch(self.scores, "float32", (5,))
        self.assertTrue(exact_topk.check_list(scores, FakeTorch(ints(1, 3), "int32", (2,))))
        halves = FakeTorch(array.array("H", [0x3F80, 0x4110]), "bfloat16", (2,))
        self.assertTrue(exact_topk.check_list(halves, ints(1)))
        with self.assertRaisesRegex(ValueError, "scores is on the device cuda:0; copy it to the CPU"):
            exact_topk.check_list(FakeTorch(self.scores, "float32", (5,), "cuda:0"), ints(1, 3))
        with self.assertRaisesRegex(ValueError, "topk is not contiguous"):
            exact_topk.check_list(scores, FakeTorch(ints(1, 3), "int32", (2,), contiguous=False))
        with self.assertRaisesRegex(TypeError, "scores has the dtype complex64, which no check takes"):
            exact_topk.check_list(FakeTorch(self.scores, "complex64", (5,)), ints(1, 3))

    def test_bad_arguments(self):
        matrix = memoryview(self.scores).cast("B").cast("f", (1, 5))
        for kind, sentence, arguments in (
                (TypeError, "scores has elements of f64; it takes f32 or f16 or bf16",
                 (array.array("d", [1]), ints(0))),
                (TypeError, "topk has elements of f32; it takes i32 or i64", (self.scores, self.scores)),
                (TypeError, "scores is a list, which has neither", ([1.0], ints(0))),
                (TypeError, "scores has the format 'b', which no check takes", (array.array("b", [1]), ints(0))),
                (ValueError, "scores is not contiguous", (memoryview(self.scores)[::2], ints(0))),
                (ValueError, r"scores has the shape \(1, 5\); it takes 1 dimension", (matrix, ints(0))),
                (ValueError, "k is 0; it takes 1 to 2147483647", (self.scores, ints(0), 0)),
                (ValueError, "k is 4294967298; it takes 1 to", (self.scores, ints(1, 3), (1 << 32) + 2)),
                (TypeError, "k is 2.0; it takes an integer", (self.scores, ints(1, 3), 2.0)),
                (ValueError, "contract is 'exact'; it takes valid, values", (self.scores, ints(0), 1, "exact")),
                (ValueError, "list.contract is EXACT_TOPK_BASE, which knows neither",
                 (self.scores, ints(0), 1, "base", True)),
                (ValueError, "list.pages is 0, and 5 keys lie on 1 pages",
                 (self.scores, ints(0), 1, "set", False, False, ints()))):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                exact_topk.check_list(*arguments)


class Steps(unittest.TestCase):
    """Two rows of 3 columns: lengths 3 and 2, k 2."""

    @staticmethod
    def step(second=(0, 1)):
        scores = memoryview(floats(1, 3, 2, 5, 4, 99)).cast("B").cast("f", (2, 3))
        topk = memoryview(ints(1, 2, *second)).cast("B").cast("i", (2, 2))
        return scores, ints(3, 2), topk

    def test_rows_are_judged_each(self):
        self.assertEqual([bool(r) for r in exact_topk.check_lists(*self.step())], [True, True])
        self.assertEqual([bool(r) for r in exact_topk.check_lists(*self.step((0, 2)))], [True, False])  # 99 is bait
        tables = memoryview(ints(4, 9)).cast("B").cast("i", (2, 1))
        scores, lengths, _ = self.step()
        slots = memoryview(ints(257, 258, 576, 577)).cast("B").cast("i", (2, 2))
        self.assertEqual([bool(r) for r in exact_topk.check_lists(scores, lengths, slots, page_table=tables)],
                         [True, True])

    def test_watch_counts(self):
        reported = []
        watch = exact_topk.Watch(report=lambda step, row, result: reported.append((step, row, result.faults)))
        self.assertTrue(watch(*self.step()))
        self.assertFalse(watch(*self.step((0, 2))))
        self.assertFalse(watch(*self.step((1, 1))))
        self.assertEqual((watch.steps, watch.rows, watch.violations), (3, 6, 2))
        self.assertEqual(reported, [(1, 1, 1), (2, 1, 1)])
        self.assertTrue(str(watch).startswith("3 steps, 6 rows, 2 violations; first: step 1 row 1: entry 1 is 2"))

    def test_bad_steps(self):
        scores, lengths, topk = self.step()
        with self.assertRaisesRegex(ValueError, "lengths has 4 in row 1; it takes 0 to 3"):
            exact_topk.check_lists(scores, ints(3, 4), topk)
        with self.assertRaisesRegex(ValueError, r"lengths has the shape \(1,\); it takes \(2,\)"):
            exact_topk.check_lists(scores, ints(3), topk)
        with self.assertRaisesRegex(ValueError, "topk has 1 rows, and scores 2"):
            exact_topk.check_lists(scores, lengths, memoryview(ints(1, 2)).cast("B").cast("i", (1, 2)))


class Source(unittest.TestCase):
    def test_scores_and_lists(self):
        source = exact_topk.Source(**scale_row([1, 4, 2]))
        self.assertEqual(exact_topk.scores_f64(source).tolist(), [1, 4, 2])
        self.assertEqual(exact_topk.list_f64(source, 2).tolist(), [1, 2])
        right = exact_topk.check_scores(floats(1, 4, 2), source)
        self.assertTrue(right)
        self.assertEqual((right.max_error, right.relative_error, right.cosine), (0, 0, 1))
        wrong = exact_topk.check_scores(floats(1, 5, 2), source)
        self.assertEqual((wrong.held, wrong.max_error, wrong.first_position), (False, 0.25, 1))
        self.assertTrue(exact_topk.check_scores(floats(1, 5, 2), source, bound=0.25))
        self.assertTrue(exact_topk.check_list_f64(ints(1, 2), source))
        self.assertEqual(exact_topk.check_list_f64(ints(1, 0), source).beyond, 1)
        empty = exact_topk.Source(**scale_row([]))
        self.assertEqual(len(exact_topk.scores_f64(empty)) + len(exact_topk.list_f64(empty, 1)), 0)

    def test_formats(self):
        row = scale_row([1, 2])
        one = [0x3FC0] + [0] * 127  # 1.5 in bf16
        row["query"] = memoryview(array.array("H", one)).cast("B").cast("H", (1, 128))
        self.assertEqual(exact_topk.scores_f64(exact_topk.Source(**row)).tolist(), [1.5, 3])
        row["query"] = memoryview(bytearray([0x3C] + [0] * 127)).cast("B", (1, 128))
        self.assertEqual(exact_topk.scores_f64(exact_topk.Source(q_scale=floats(4), **row)).tolist(), [6, 12])
        row = scale_row([1, 2])
        self.assertEqual(exact_topk.scores_f64(exact_topk.Source(fp8="e4m3fnuz", **row)).tolist(), [0.5, 1])
        self.assertEqual(exact_topk.scores_f64(exact_topk.Source(page_layout="preshuffled16", **row)).tolist(), [1, 0])
        row["cache"] = bytes(PAGE_BYTES) + bytes(row["cache"])
        self.assertEqual(exact_topk.scores_f64(exact_topk.Source(page_table=ints(1), **row)).tolist(), [1, 2])

    def test_bad_arguments(self):
        row = scale_row([1, 2])
        for kind, sentence, change in (
                (ValueError, "fp8 is 'e5m2'; it takes e4m3fn or e4m3fnuz", {"fp8": "e5m2"}),
                (ValueError, "page_layout is 'rows'; it takes plain or preshuffled16", {"page_layout": "rows"}),
                (ValueError, r"weights has the shape \(2,\); it takes \(1,\)", {"weights": floats(1, 2)}),
                (ValueError, "cache has 100 bytes; it takes pages of 8448", {"cache": bytes(100)}),
                (ValueError, "query has the shape", {"query": row["weights"]}),
                (ValueError, "keys is -1; it takes 0 to", {"keys": -1})):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                exact_topk.Source(**{**row, **change})
        with self.assertRaisesRegex(ValueError, "source.cache_pages is 1, and 65 keys"):
            exact_topk.scores_f64(exact_topk.Source(**{**row, "keys": 65}))
        with self.assertRaisesRegex(ValueError, "source.q_scale is given; it goes with an F8_E4M3 query"):
            exact_topk.scores_f64(exact_topk.Source(q_scale=floats(1), **row))


class Digest(unittest.TestCase):
    def test_is_that_of_the_npy_file(self):
        # numpy.save of int32 [1, 2], as numpy 1.24 wrote it.
        self.assertEqual(exact_topk.digest(ints(1, 2)), "f03278057b4d5f43801f6d40872a9d20f6ef00d4b89530e1c5b25a9f7013b80c")
        with self.assertRaisesRegex(TypeError, "tensor has elements of i64"):
            exact_topk.digest(array.array("q", [1]))


class Threads(unittest.TestCase):
    def test_each_gets_its_own_verdict(self):
        wrong = []

        def check(thread):
            for _ in range(200):
                result = exact_topk.check_list(CheckList.scores, ints(1, 3 if thread % 2 else 2))
                if bool(result) != bool(thread % 2):
                    wrong.append(thread)

        threads = [threading.Thread(target=check, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Numpy(unittest.TestCase):
    def test_lists(self):
        scores = numpy.array([1, 9, 2, 5, 5], numpy.float32)
        self.assertTrue(exact_topk.check_list(scores, numpy.array([1, 3], numpy.int64)))
        self.assertTrue(exact_topk.check_list(scores.astype(numpy.float16), numpy.array([1, 3], numpy.int32)))
        scores.flags.writeable = False
        self.assertFalse(exact_topk.check_list(scores, numpy.array([1, 4], numpy.int32)))

    def test_only_contiguous_little_endian_arrays(self):
        scores = numpy.arange(6, dtype=numpy.float32)
        with self.assertRaisesRegex(ValueError, "scores is not contiguous"):
            exact_topk.check_list(scores[::2], ints(0))
        with self.assertRaisesRegex(ValueError, "scores is not contiguous"):
            exact_topk.check_list(scores[::-1], ints(0))
        with self.assertRaisesRegex(TypeError, "scores has the dtype >f4, which no check takes"):
            exact_topk.check_list(scores.astype(">f4"), ints(0))
        with self.assertRaisesRegex(TypeError, "scores has elements of f64"):
            exact_topk.check_list(scores.astype(numpy.float64), ints(0))
        with self.assertRaisesRegex(ValueError, "topk is not contiguous"):
            exact_topk.check_lists(scores.reshape(2, 3), ints(3, 3), numpy.zeros((2, 2), numpy.int32).T)
        self.assertTrue(exact_topk.check_list(scores[2:5], ints(2)))  # a slice is contiguous

    def test_steps_and_sources(self):
        scores = numpy.array([[1, 3, 2], [5, 4, 99]], numpy.float32)
        topk = numpy.array([[1, 2], [0, 1]], numpy.int64)
        self.assertTrue(exact_topk.Watch()(scores, numpy.array([3, 2], numpy.int64), topk))
        row = scale_row([1, 4, 2])
        row["cache"] = numpy.frombuffer(row["cache"], numpy.uint8).reshape(-1, PAGE_BYTES)
        self.assertEqual(exact_topk.list_f64(exact_topk.Source(**row), 2).tolist(), [1, 2])

    def test_digests_are_those_of_saved_files(self):
        for dtype in ("f4", "i4", "f8", "u1", "u2"):
            for shape in ((), (3,), (2, 3), (0,)):
                tensor = numpy.ones(shape, dtype)
                file = io.BytesIO()
                numpy.save(file, tensor)
                self.assertEqual(exact_topk.digest(tensor), hashlib.sha256(file.getvalue()).hexdigest())


class Loading(unittest.TestCase):
    def test_a_library_that_is_not_there_is_one_sentence(self):
        ran = subprocess.run([sys.executable, "-c", "import exact_topk"], stderr=subprocess.PIPE, text=True,
                             env=os.environ | {"EXACT_TOPK_LIBRARY": "/no/such/library.so"})
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr.splitlines()[-1], "^ImportError: the library cannot be opened .*/no/such/library.so"
                         ".*; EXACT_TOPK_LIBRARY may name it$")


class Layout(unittest.TestCase):
    def test_structures_are_the_headers(self):
        # A structure of another size is refused by the library itself; see struct_size.
        for name, size in (("_Scores", 24), ("_List", 56), ("_Source", 88), ("_Result", 104), ("_Tensor", 32)):
            self.assertEqual(ctypes.sizeof(getattr(exact_topk, name)), size)
        self.assertRegex(exact_topk.version(), r"^\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
