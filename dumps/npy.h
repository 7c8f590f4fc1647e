// SPDX-License-Identifier: Apache-2.0
//
// The .npy 1.0 header, the frame in which every tensor of a digest tree is
// hashed and stored (SPEC section 8).
//
// A leaf's digest is the SHA-256 of npy_header(dtype, shape) followed by the
// tensor's little-endian bytes, so the dtype and the shape are part of what is
// compared, and a dumped tensor opens with numpy.load. The header is written
// byte for byte as numpy writes it. Nothing here reads .npy files: a tree's
// reader knows dtype and shape from its .jsonl lines and expects exactly this
// header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace exact_topk::dumps {

// Element types of dumped tensors. FP8 codes are u8; bf16 has no numpy type and
// is stored as its 16 bits ('<u2').
enum class Dtype { f32, i32, f64, u8, bf16 };

// The name used in .jsonl lines: "f32", "i32", "f64", "u8", "bf16".
std::string_view dtype_name(Dtype dtype);

// The inverse of dtype_name; std::runtime_error for any other name.
Dtype dtype_from_name(std::string_view name);

// Bytes of one element.
std::size_t dtype_bytes(Dtype dtype);

// Bytes of a tensor without its header; std::runtime_error where a dimension is
// negative or the product overflows.
std::size_t tensor_bytes(Dtype dtype, std::span<const std::int64_t> shape);

// Magic, version, header length, dictionary, spaces and a newline: a multiple
// of 64 bytes. A shape is (), (n,), (a, b)...
std::string npy_header(Dtype dtype, std::span<const std::int64_t> shape);

}  // namespace exact_topk::dumps
