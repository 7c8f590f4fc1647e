// SPDX-License-Identifier: Apache-2.0
//
// Incremental SHA-256 over OpenSSL's EVP interface. One object makes one
// digest: update() as often as needed, then hex().
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace exact_topk::dumps {

class Sha256 {
 public:
  Sha256();

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);

  // The digest as 64 lower-case hex digits. Ends the computation: the object
  // takes no more bytes.
  std::string hex();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// The digest of one piece of memory.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace exact_topk::dumps
