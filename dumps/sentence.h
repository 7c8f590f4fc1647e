// SPDX-License-Identifier: Apache-2.0
//
// The one sentence that a user is told of an exception: its own where it is one
// of ours, and where it comes from the standard library the path and the cause,
// without the library's way of putting them.
#pragma once

#include <exception>
#include <string>

namespace exact_topk::dumps {

// One line, without a newline at its end.
std::string sentence_of(const std::exception& error);

}  // namespace exact_topk::dumps
