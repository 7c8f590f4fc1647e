// SPDX-License-Identifier: Apache-2.0
//
// The border of the C API: what is thrown behind it becomes a status and a
// sentence, and outputs are written only when all else is done.
#pragma once

#include <exact_topk/exact_topk.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

namespace exact_topk::api {

// The caller's buffer for a sentence.
struct Sentence {
  char* text;         // null: not wanted
  std::size_t bytes;  // of the buffer

  void say(std::string_view said) const noexcept {
    if (text == nullptr || bytes == 0) return;
    const std::size_t length = std::min(said.size(), bytes - 1);
    std::memcpy(text, said.data(), length);
    text[length] = '\0';
  }
};

// Runs `body`, which returns what is to be said of the row.
// std::invalid_argument is what an argument that is wrong throws.
template <typename Body>
exact_topk_status call(Sentence sentence, Body body) noexcept {
  try {
    sentence.say(body());
    return EXACT_TOPK_OK;
  } catch (const std::invalid_argument& fault) {
    sentence.say(fault.what());
    return EXACT_TOPK_BAD_ARGUMENT;
  } catch (const std::bad_alloc&) {
    sentence.say("memory ran out");
    return EXACT_TOPK_NO_MEMORY;
  } catch (const std::exception& fault) {
    sentence.say(fault.what());
    return EXACT_TOPK_FAILED;
  }
}

}  // namespace exact_topk::api
