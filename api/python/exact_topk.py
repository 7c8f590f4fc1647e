# SPDX-License-Identifier: Apache-2.0
"""exact-topk's checks of sparse-attention selection, from Python: one file over libexact_topk (exact_topk.3).

    import exact_topk
    exact_topk.check_list(scores, topk, k=2048).expect()

Tensors are anything contiguous in host memory that has the buffer protocol (array.array, bytes, memoryview), an
__array_interface__ (numpy) or torch's data_ptr() (CPU tensors). Nothing is converted: a dtype, shape or stride that a
parameter does not take is a TypeError or ValueError that names it. Formats that Python has no name for go by their
codes: uint16 is bf16, uint8 is FP8 (e4m3fn) in a query and plain bytes in a cache.

Each check gives a Result, which is true where it held; result.expect() raises Violation where it did not. Calls release
the GIL and share nothing, so threads may check at once.

The library is found at $EXACT_TOPK_LIBRARY, else beside this file, else where this file is installed, else by the
system's loader.
"""

import array
import ctypes
import operator
import os
import threading

__all__ = ["CONTRACTS", "Result", "Source", "Violation", "Watch", "check_list", "check_list_f64", "check_lists",
           "check_scores", "digest", "list_f64", "scores_f64", "version"]

CONTRACTS = ("valid", "values", "set", "position", "sorted", "base")

_SONAME = "libexact_topk.so.0"
_HEAD_DIM, _PAGE_TOKENS, _PAGE_BYTES = 128, 64, 8448
_BAD_ARGUMENT, _NO_MEMORY = 1, 2
_CODES = {"f32": 1, "f16": 2, "bf16": 3, "f8": 4, "i32": 5, "i64": 6, "f64": 7, "u8": 8}


def _structure(name, fields):
    """A ctypes structure that begins with struct_size."""
    return type(name, (ctypes.Structure,), {"_fields_": [("struct_size", ctypes.c_uint32)] + fields})


_i32, _i64, _u32, _f64, _pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32, ctypes.c_double, ctypes.c_void_p

_Scores = _structure("_Scores", [("dtype", _i32), ("data", _pointer), ("n", _i64)])
_List = _structure("_List", [
    ("dtype", _i32), ("entries", _pointer), ("count", _i64), ("k", _i32), ("contract", _i32), ("nan_last", _i32),
    ("zeros_equal", _i32), ("page_table", _pointer), ("pages", _i64)])
_Source = _structure("_Source", [
    ("query_dtype", _i32), ("query", _pointer), ("q_scale", _pointer), ("weights", _pointer), ("cache", _pointer),
    ("cache_pages", _i64), ("page_table", _pointer), ("pages", _i64), ("keys", _i64), ("heads", _i32),
    ("cache_fp8", _i32), ("page_layout", _i32), ("reserved", _i32)])
_Result = _structure("_Result", [
    ("held", _i32), ("levels", _u32), ("bits", _i32), ("faults", _i64), ("missed", _i64), ("missed_ties", _i64),
    ("extra", _i64), ("beyond", _i64), ("order_errors", _i64), ("first_index", _i64), ("first_position", _i64),
    ("max_error", _f64), ("relative_error", _f64), ("cosine", _f64)])
_Tensor = _structure("_Tensor", [("dtype", _i32), ("data", _pointer), ("shape", _pointer), ("dimensions", _i64)])


def _load():
    here = os.path.dirname(os.path.realpath(__file__))
    candidates = [os.environ.get("EXACT_TOPK_LIBRARY"), os.path.join(here, _SONAME),
                  os.path.join(here, "..", "..", _SONAME)]
    if candidates[0] is None:
        candidates = [path for path in candidates[1:] if os.path.exists(path)] + [_SONAME]
    try:
        library = ctypes.CDLL(candidates[0])
    except OSError as fault:
        raise ImportError("the library cannot be opened (%s); EXACT_TOPK_LIBRARY may name it" % fault) from None
    library.exact_topk_version.restype = ctypes.c_char_p
    sentence = [ctypes.c_char_p, ctypes.c_size_t]
    for function, arguments in (
            ("check_list", [_pointer] * 3), ("check_scores", [_pointer, _pointer, _f64, _pointer]),
            ("check_list_f64", [_pointer, _pointer, _f64, _pointer]), ("scores_f64", [_pointer, _pointer]),
            ("list_f64", [_pointer, _i32, _pointer]), ("digest", [_pointer, ctypes.c_char_p])):
        getattr(library, "exact_topk_" + function).argtypes = arguments + sentence
    return library


_library = _load()


def version():
    """The version of the library."""
    return _library.exact_topk_version().decode()


def _call(function, *arguments):
    """Calls the library; its sentence, or the exception that its status stands for."""
    sentence = ctypes.create_string_buffer(512)
    status = getattr(_library, "exact_topk_" + function)(*arguments, sentence, len(sentence))
    said = sentence.value.decode()
    if status:
        raise {_BAD_ARGUMENT: ValueError, _NO_MEMORY: MemoryError}.get(status, RuntimeError)(said)
    return said


def _number(name, value, least):
    """An integer that an int32 holds; ctypes would cut it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError("%s is %r; it takes an integer" % (name, value)) from None
    if not least <= number < 1 << 31:
        raise ValueError("%s is %d; it takes %d to %d" % (name, number, least, (1 << 31) - 1))
    return number


def _made(structure, **fields):
    return structure(struct_size=ctypes.sizeof(structure), **fields)


class Violation(AssertionError):
    """A check that did not hold; str() says what is wrong, .result is all that was found."""

    def __init__(self, result):
        super().__init__(result.sentence)
        self.result = result


class Result:
    """What a check found; see exact_topk_result in exact_topk.h. True where it held."""

    _NAMES = [name for name, _ in _Result._fields_[1:] if name not in ("held", "levels")]
    __slots__ = _NAMES + ["held", "levels", "sentence"]

    def __init__(self, found, sentence):
        for name in self._NAMES:
            setattr(self, name, getattr(found, name))
        self.held = bool(found.held)
        self.levels = tuple(name for bit, name in enumerate(CONTRACTS, 1) if found.levels >> bit & 1)
        self.sentence = sentence

    def __bool__(self):
        return self.held

    def __repr__(self):
        return "Result(held=%s, missed=%d, order_errors=%d, max_error=%.3g, relative_error=%.3g, cosine=%.8f%s)" % (
            self.held, self.missed, self.order_errors, self.max_error, self.relative_error, self.cosine,
            ", sentence=%r" % self.sentence if self.sentence else "")

    def expect(self):
        """Itself where it held; else raises Violation."""
        if not self.held:
            raise Violation(self)
        return self


def _checked(function, *arguments):
    found = _made(_Result)
    return Result(found, _call(function, *arguments, ctypes.byref(found)))


# --- Tensors ---------------------------------------------------------------------------------------------------------

_KINDS = {("f", 2): "f16", ("f", 4): "f32", ("f", 8): "f64", ("i", 4): "i32", ("i", 8): "i64", ("u", 1): "u8",
          ("u", 2): "bf16"}
_BYTES = {dtype: size for (_, size), dtype in _KINDS.items()}
_TORCH = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int32": "i32", "int64": "i64",
          "uint8": "u8", "float8_e4m3fn": "u8"}
_FORMATS = dict.fromkeys("efd", "f") | dict.fromkeys("bhilqn", "i") | dict.fromkeys("BHILQN", "u")


class _View:
    """Contiguous memory of somebody else's, kept alive: address, dtype and shape."""

    def __init__(self, name, given):
        self.name = name
        self.keep = given
        if isinstance(given, _View):
            self.dtype, self.shape, self.address = given.dtype, given.shape, given.address
        elif hasattr(given, "data_ptr"):
            self._of_torch(given)
        elif hasattr(given, "__array_interface__"):
            self._of_interface(given.__array_interface__)
        else:
            self._of_buffer(given)

    def _fail(self, kind, fault):
        raise kind("%s %s" % (self.name, fault))

    def _of_torch(self, tensor):
        if str(tensor.device) != "cpu":
            self._fail(ValueError, "is on the device %s; copy it to the CPU" % tensor.device)
        if not tensor.is_contiguous():
            self._fail(ValueError, "is not contiguous")
        word = str(tensor.dtype).split(".")[-1]
        self.dtype = _TORCH.get(word) or self._fail(TypeError, "has the dtype %s, which no check takes" % word)
        self.shape, self.address = tuple(tensor.shape), tensor.data_ptr()

    def _of_interface(self, interface):
        typestr, self.shape = interface["typestr"], tuple(interface["shape"])
        size = int(typestr[2:])
        if typestr[0] == ">" or (typestr[1], size) not in _KINDS:
            self._fail(TypeError, "has the dtype %s, which no check takes" % typestr)
        self.dtype = _KINDS[typestr[1], size]
        strides = interface.get("strides")
        if strides is not None and self._count() > 0:
            step = size
            for length, stride in zip(reversed(self.shape), reversed(strides)):
                if length > 1 and stride != step:
                    self._fail(ValueError, "is not contiguous")
                step *= length
        if interface.get("data") is None:
            self._fail(TypeError, "has an __array_interface__ without data")
        self.address = interface["data"][0]

    def _of_buffer(self, given):
        try:
            view = memoryview(given)
        except TypeError:
            self._fail(TypeError, "is a %s, which has neither the buffer protocol nor an __array_interface__"
                       % type(given).__name__)
        if not view.c_contiguous:
            self._fail(ValueError, "is not contiguous")
        code = view.format.lstrip("<=@")
        if (_FORMATS.get(code), view.itemsize) not in _KINDS:
            self._fail(TypeError, "has the format %r, which no check takes" % view.format)
        self.dtype, self.shape = _KINDS[_FORMATS[code], view.itemsize], view.shape
        raw = ctypes.c_char * view.nbytes
        # What may not be written is copied: ctypes gives the address of no read-only buffer.
        self.keep = raw.from_buffer_copy(view) if view.readonly else raw.from_buffer(view)
        self.address = ctypes.addressof(self.keep)

    def _count(self):
        count = 1
        for length in self.shape:
            count *= length
        return count

    def take(self, dtypes, dimensions=None):
        """Itself, of one of the dtypes and of as many dimensions."""
        if self.dtype not in dtypes:
            self._fail(TypeError, "has elements of %s; it takes %s" % (self.dtype, " or ".join(dtypes)))
        if dimensions is not None and len(self.shape) != dimensions:
            self._fail(ValueError, "has the shape %s; it takes %d dimension%s"
                       % (self.shape, dimensions, "s"[:dimensions > 1]))
        return self

    def row(self, index):
        """Row `index` of the first dimension."""
        row = object.__new__(_View)
        row.name, row.keep, row.dtype, row.shape = self.name, self, self.dtype, self.shape[1:]
        row.address = self.address + index * row._count() * _BYTES[self.dtype]
        return row

    def integers(self):
        """The elements, of i32 or i64, as Python numbers."""
        element = {"i32": _i32, "i64": _i64}[self.dtype]
        return list((element * self._count()).from_address(self.address))


def _shaped(name, given, dtypes, shape):
    view = _View(name, given).take(dtypes, len(shape))
    if view.shape != shape:
        view._fail(ValueError, "has the shape %s; it takes %s" % (view.shape, shape))
    return view


# --- Checks ----------------------------------------------------------------------------------------------------------

def _scores_of(scores, name="scores"):
    view = _View(name, scores).take(("f32", "f16", "bf16"), 1)
    return _made(_Scores, dtype=_CODES[view.dtype], data=view.address, n=view.shape[0]), view


def _list_of(topk, k, contract, nan_last, zeros_equal, page_table):
    if contract not in CONTRACTS:
        raise ValueError("contract is %r; it takes %s" % (contract, ", ".join(CONTRACTS)))
    view = _View("topk", topk).take(("i32", "i64"), 1)
    pages = None if page_table is None else _View("page_table", page_table).take(("i32",), 1)
    made = _made(_List, dtype=_CODES[view.dtype], entries=view.address, count=view.shape[0],
                 k=_number("k", view.shape[0] if k is None else k, 1), contract=CONTRACTS.index(contract) + 1,
                 nan_last=bool(nan_last), zeros_equal=bool(zeros_equal),
                 page_table=pages and pages.address, pages=pages.shape[0] if pages else 0)
    return made, (view, pages)


class Source:
    """What one row's scores were computed from.

    query: bf16 (uint16 codes or torch), f32, f16 or FP8 (uint8 codes or torch) [heads, 128], as multiplied; FP8 needs
    q_scale, f32 [heads]. weights: f32 [heads]. cache: bytes [pages, 8448]. keys: n. page_table: i32, of the row; None:
    position p is at slot p. fp8 and page_layout are the cache's.
    """

    def __init__(self, query, weights, cache, keys, page_table=None, q_scale=None, fp8="e4m3fn", page_layout="plain"):
        for name, value, words in (("fp8", fp8, ("e4m3fn", "e4m3fnuz")),
                                   ("page_layout", page_layout, ("plain", "preshuffled16"))):
            if value not in words:
                raise ValueError("%s is %r; it takes %s" % (name, value, " or ".join(words)))
        query = _View("query", query).take(("bf16", "f32", "f16", "u8"), 2)
        heads = query.shape[0]
        if query.shape[1] != _HEAD_DIM:
            query._fail(ValueError, "has the shape %s; it takes (heads, 128)" % (query.shape,))
        weights = _shaped("weights", weights, ("f32",), (heads,))
        cache = _View("cache", cache).take(("u8",))
        if cache._count() % _PAGE_BYTES:
            cache._fail(ValueError, "has %d bytes; it takes pages of 8448" % cache._count())
        scales = None if q_scale is None else _shaped("q_scale", q_scale, ("f32",), (heads,))
        pages = None if page_table is None else _View("page_table", page_table).take(("i32",), 1)
        self.keys = _number("keys", keys, 0)
        self._keep = (query, weights, cache, scales, pages)
        self._made = _made(
            _Source, query_dtype=_CODES["f8" if query.dtype == "u8" else query.dtype], query=query.address,
            q_scale=scales and scales.address, weights=weights.address, cache=cache.address,
            cache_pages=cache._count() // _PAGE_BYTES, page_table=pages and pages.address,
            pages=pages.shape[0] if pages else 0, keys=self.keys, heads=heads, cache_fp8=fp8 == "e4m3fnuz",
            page_layout=page_layout == "preshuffled16")


def check_list(scores, topk, k=None, contract="set", nan_last=False, zeros_equal=False, page_table=None):
    """One row's list against its own scores (f32, f16 or bf16 [n]).

    topk: i32 or i64, its min(n, k) entries and then -1; k: len(topk) if not given. With page_table entries are slots.
    """
    row, scores = _scores_of(scores)
    made, keep = _list_of(topk, k, contract, nan_last, zeros_equal, page_table)
    return _checked("check_list", ctypes.byref(row), ctypes.byref(made))


def check_lists(scores, lengths, topk, contract="set", nan_last=False, zeros_equal=False, page_table=None):
    """check_list of each row of a step: scores [rows, columns], lengths i32 or i64 [rows], topk [rows, k], page_table
    i32 [rows, pages]. A list of Results."""
    scores = _View("scores", scores).take(("f32", "f16", "bf16"), 2)
    topk = _View("topk", topk).take(("i32", "i64"), 2)
    rows, columns = scores.shape
    ns = _shaped("lengths", lengths, ("i32", "i64"), (rows,)).integers()
    tables = None if page_table is None else _View("page_table", page_table).take(("i32",), 2)
    for view in filter(None, (topk, tables)):
        if view.shape[0] != rows:
            view._fail(ValueError, "has %d rows, and scores %d" % (view.shape[0], rows))
    results = []
    for r, n in enumerate(ns):
        if not 0 <= n <= columns:
            raise ValueError("lengths has %d in row %d; it takes 0 to %d" % (n, r, columns))
        row = scores.row(r)
        row.shape = (n,)
        results.append(check_list(row, topk.row(r), None, contract, nan_last, zeros_equal, tables and tables.row(r)))
    return results


def check_scores(scores, source, bound=1e-4):
    """One row's scores against the f64 ones of a Source, within bound times the row's largest |reference|."""
    row, scores = _scores_of(scores)
    return _checked("check_scores", ctypes.byref(row), ctypes.byref(source._made), bound)


def check_list_f64(topk, source, k=None, contract="set", bound=1e-4, page_table=None):
    """One row's list against the f64 scores of a Source alone: no key may be listed or missed that scores within the
    bound do not explain. contract: valid, values, set or position."""
    made, keep = _list_of(topk, k, contract, False, False, page_table)
    return _checked("check_list_f64", ctypes.byref(source._made), ctypes.byref(made), bound)


def scores_f64(source):
    """The f64 scores of a Source, as an array.array of doubles."""
    return _filled("d", source.keys, lambda out: _call("scores_f64", ctypes.byref(source._made), out))


def list_f64(source, k):
    """The positions of the k best f64 scores, in base order, as an array.array of int32."""
    k = _number("k", k, 1)
    return _filled("i", min(source.keys, k), lambda out: _call("list_f64", ctypes.byref(source._made), k, out))


def _filled(code, count, fill):
    out = array.array(code, bytes(array.array(code).itemsize * count))
    fill(out.buffer_info()[0] if count else None)
    return out


def digest(tensor):
    """The SHA-256 of the tensor's .npy bytes, as digest trees have it; 64 hex digits."""
    view = _View("tensor", tensor).take(("f32", "i32", "f64", "u8", "bf16"))
    shape = (_i64 * len(view.shape))(*view.shape)
    hexadecimal = ctypes.create_string_buffer(65)
    _call("digest", ctypes.byref(_made(_Tensor, dtype=_CODES[view.dtype], data=view.address,
                                       shape=ctypes.addressof(shape), dimensions=len(view.shape))), hexadecimal)
    return hexadecimal.value.decode()


class Watch:
    """Counts the violations of a serving loop: call it with every step's tensors (the arguments of check_lists).

        watch = exact_topk.Watch(contract="set")
        ...
        watch(scores, lengths, topk, page_table=tables)     # in the loop
        print(watch)

    `report` is called with (step, row, result) for each row that fails; the first is kept as .first. Threads may share
    a Watch.
    """

    def __init__(self, report=None, **rules):
        self.rules = rules
        self.report = report
        self.steps = self.rows = self.violations = 0
        self.first = None
        self._lock = threading.Lock()

    def __call__(self, scores, lengths, topk, page_table=None):
        results = check_lists(scores, lengths, topk, page_table=page_table, **self.rules)
        failed = [(row, result) for row, result in enumerate(results) if not result]
        with self._lock:
            step, self.steps = self.steps, self.steps + 1
            self.rows += len(results)
            self.violations += len(failed)
            if failed and self.first is None:
                self.first = (step,) + failed[0]
        if self.report:
            for row, result in failed:
                self.report(step, row, result)
        return not failed

    def __str__(self):
        text = "%d steps, %d rows, %d violations" % (self.steps, self.rows, self.violations)
        if self.first:
            text += "; first: step %d row %d: %s" % (self.first[0], self.first[1], self.first[2].sentence)
        return text
