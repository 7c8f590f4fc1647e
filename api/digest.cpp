// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>

#include "api/arguments.h"
#include "api/call.h"
#include "dumps/npy.h"
#include "dumps/sha256.h"

namespace exact_topk::api {
namespace {

dumps::Dtype dtype_of(std::int32_t dtype) {
  switch (dtype) {
    case EXACT_TOPK_F32:
      return dumps::Dtype::f32;
    case EXACT_TOPK_BF16:
      return dumps::Dtype::bf16;
    case EXACT_TOPK_I32:
      return dumps::Dtype::i32;
    case EXACT_TOPK_F64:
      return dumps::Dtype::f64;
    case EXACT_TOPK_F8_E4M3:
    case EXACT_TOPK_U8:
      return dumps::Dtype::u8;
    default:
      throw std::invalid_argument(
          fmt::format("tensor.dtype is {}; it takes EXACT_TOPK_F32, I32, F64, "
                      "U8, F8_E4M3 or BF16",
                      dtype));
  }
}

constexpr std::int64_t kMostDimensions = 64;

std::string digest_of(const exact_topk_tensor* tensor) {
  require_struct(tensor, "tensor");
  const dumps::Dtype dtype = dtype_of(tensor->dtype);
  require(tensor->dimensions >= 0 && tensor->dimensions <= kMostDimensions,
          fmt::format("tensor.dimensions is {}; it takes 0 to {}",
                      tensor->dimensions, kMostDimensions));
  if (tensor->dimensions > 0) require_pointer(tensor->shape, "tensor.shape");
  const std::span shape(tensor->shape,
                        static_cast<std::size_t>(tensor->dimensions));
  std::size_t bytes = 0;
  try {
    bytes = dumps::tensor_bytes(dtype, shape);
  } catch (const std::runtime_error& fault) {
    throw std::invalid_argument(fmt::format("tensor.shape: {}", fault.what()));
  }
  if (bytes > 0) require_pointer(tensor->data, "tensor.data");
  dumps::Sha256 sha;
  sha.update(dumps::npy_header(dtype, shape));
  sha.update(std::span(static_cast<const std::byte*>(tensor->data), bytes));
  return sha.hex();
}

}  // namespace
}  // namespace exact_topk::api

exact_topk_status exact_topk_digest(const exact_topk_tensor* tensor,
                                    char digest[EXACT_TOPK_DIGEST_BYTES],
                                    char* sentence, size_t sentence_bytes) {
  using namespace exact_topk;
  return api::call({sentence, sentence_bytes}, [&] {
    api::require_pointer(digest, "digest");
    const std::string hex = api::digest_of(tensor);
    std::memcpy(digest, hex.c_str(), EXACT_TOPK_DIGEST_BYTES);
    return "";
  });
}

const char* exact_topk_version(void) { return EXACT_TOPK_VERSION; }
