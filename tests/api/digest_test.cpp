// SPDX-License-Identifier: Apache-2.0
#include <exact_topk/exact_topk.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "dumps/sha256.h"

namespace {

using testing::StartsWith;

struct Digested {
  exact_topk_status status;
  std::string text;  // the digest, or the sentence
};

Digested digest(const exact_topk_tensor* tensor) {
  char hex[EXACT_TOPK_DIGEST_BYTES] = "unwritten",
       sentence[EXACT_TOPK_SENTENCE_BYTES] = "";
  const exact_topk_status status =
      exact_topk_digest(tensor, hex, sentence, sizeof sentence);
  if (status != EXACT_TOPK_OK) {
    EXPECT_STREQ(hex, "unwritten");
  }
  return {status, status == EXACT_TOPK_OK ? hex : sentence};
}

exact_topk_tensor tensor_of(int dtype, const void* data,
                            const std::vector<std::int64_t>& shape) {
  return {sizeof(exact_topk_tensor), dtype, data, shape.data(),
          static_cast<std::int64_t>(shape.size())};
}

// The .npy bytes as SPEC section 8 has them.
std::string npy_digest(const std::string& descr, const std::string& shape,
                       std::span<const std::byte> data) {
  std::string dictionary = fmt::format(
      "{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  while ((10 + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string file = "\x93NUMPY";
  file += {'\x01', '\x00', static_cast<char>(dictionary.size()), '\x00'};
  file += dictionary;
  file.append(reinterpret_cast<const char*>(data.data()), data.size());
  return exact_topk::dumps::sha256_hex(std::as_bytes(std::span(file)));
}

TEST(Digest, IsThatOfTheNpyFile) {
  const std::vector<std::int32_t> words{1, -1, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(words));
  struct Format {
    int dtype;
    const char* descr;
    std::size_t size;
  };
  for (const Format& format :
       {Format{EXACT_TOPK_F32, "<f4", 4}, Format{EXACT_TOPK_I32, "<i4", 4},
        Format{EXACT_TOPK_F64, "<f8", 8}, Format{EXACT_TOPK_U8, "|u1", 1},
        Format{EXACT_TOPK_F8_E4M3, "|u1", 1},
        Format{EXACT_TOPK_BF16, "<u2", 2}}) {
    const std::vector<std::int64_t> shape{3};
    const exact_topk_tensor tensor =
        tensor_of(format.dtype, words.data(), shape);
    EXPECT_EQ(digest(&tensor).text,
              npy_digest(format.descr, "(3,)", bytes.first(3 * format.size)));
  }
  const std::vector<std::int64_t> matrix{2, 3}, scalar, empty{0, 4};
  exact_topk_tensor tensor = tensor_of(EXACT_TOPK_I32, words.data(), matrix);
  EXPECT_EQ(digest(&tensor).text, npy_digest("<i4", "(2, 3)", bytes));
  tensor = tensor_of(EXACT_TOPK_I32, words.data(), scalar);
  EXPECT_EQ(digest(&tensor).text, npy_digest("<i4", "()", bytes.first(4)));
  tensor = tensor_of(EXACT_TOPK_I32, nullptr, empty);
  EXPECT_EQ(digest(&tensor).text, npy_digest("<i4", "(0, 4)", {}));
}

// sha256sum of the file that numpy 1.24's save() writes of int32 [1, 2].
TEST(Digest, IsThatOfNumpysOwnFile) {
  const std::int32_t words[] = {1, 2};
  const std::vector<std::int64_t> shape{2};
  const exact_topk_tensor tensor = tensor_of(EXACT_TOPK_I32, words, shape);
  EXPECT_EQ(digest(&tensor).text,
            "f03278057b4d5f43801f6d40872a9d20f6ef00d4b89530e1c5b25a9f7013b80c");
}

TEST(Digest, EveryBadArgumentHasItsSentence) {
  const std::int32_t word = 1;
  const std::vector<std::int64_t> one{1}, negative{-2},
      huge{std::numeric_limits<std::int64_t>::max(), 8};
  const auto said = [](exact_topk_tensor tensor) {
    const Digested digested = digest(&tensor);
    EXPECT_EQ(digested.status, EXACT_TOPK_BAD_ARGUMENT);
    return digested.text;
  };
  EXPECT_EQ(digest(nullptr).text, "tensor is NULL");
  exact_topk_tensor tensor = tensor_of(EXACT_TOPK_I32, &word, one);
  tensor.struct_size = 3;
  EXPECT_EQ(said(tensor), "tensor.struct_size is 3; this library knows 32");
  EXPECT_EQ(said(tensor_of(EXACT_TOPK_F16, &word, one)),
            "tensor.dtype is 2; it takes EXACT_TOPK_F32, I32, F64, U8, F8_E4M3 "
            "or BF16");
  EXPECT_EQ(said(tensor_of(EXACT_TOPK_I32, &word, negative)),
            "tensor.shape: (-2,) is no shape of a tensor");
  EXPECT_THAT(said(tensor_of(EXACT_TOPK_I32, &word, huge)),
              StartsWith("tensor.shape: (9223372036854775807, 8) is no shape"));
  EXPECT_EQ(said(tensor_of(EXACT_TOPK_I32, nullptr, one)),
            "tensor.data is NULL");
  tensor = tensor_of(EXACT_TOPK_I32, &word, one);
  tensor.shape = nullptr;
  EXPECT_EQ(said(tensor), "tensor.shape is NULL");
  tensor.dimensions = -1;
  EXPECT_EQ(said(tensor), "tensor.dimensions is -1; it takes 0 to 64");
  tensor.dimensions = 65;
  EXPECT_EQ(said(tensor), "tensor.dimensions is 65; it takes 0 to 64");
  char sentence[32];
  tensor = tensor_of(EXACT_TOPK_I32, &word, one);
  EXPECT_EQ(exact_topk_digest(&tensor, nullptr, sentence, sizeof sentence),
            EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "digest is NULL");
}

TEST(Version, IsTheProjects) {
  EXPECT_THAT(exact_topk_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+.*"));
}

}  // namespace
