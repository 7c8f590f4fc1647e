// SPDX-License-Identifier: Apache-2.0
#include "dumps/sha256.h"

#include <gtest/gtest.h>

namespace exact_topk::dumps {
namespace {

std::string digest_of(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

// FIPS 180-2, appendix B, and the digest of nothing.
TEST(Sha256, KnownVectors) {
  EXPECT_EQ(digest_of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest_of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(digest_of(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  Sha256 sha;
  sha.update("a");
  sha.update("");
  sha.update("bc");
  EXPECT_EQ(sha.hex(), digest_of("abc"));
}

}  // namespace
}  // namespace exact_topk::dumps
