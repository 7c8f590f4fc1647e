// SPDX-License-Identifier: Apache-2.0
#include "dumps/sha256.h"

#include <array>
#include <stdexcept>

namespace exact_topk::dumps {
namespace {

void require(bool done) {
  if (!done)
    throw std::runtime_error("OpenSSL cannot compute a SHA-256 digest");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ &&
          EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

void Sha256::update(std::string_view text) {
  update(std::as_bytes(std::span(text)));
}

std::string Sha256::hex() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, 32> digest;
  require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
  std::string text;
  for (const unsigned char byte : digest)
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.hex();
}

}  // namespace exact_topk::dumps
