// SPDX-License-Identifier: Apache-2.0
//
// Exit statuses of the program (SPEC section 7).
#pragma once

namespace exact_topk::harness {

inline constexpr int kPassedStatus = 0;  // every check passed
inline constexpr int kFailedStatus =
    1;  // a check failed, or a plug-in ended its rank
inline constexpr int kErrorStatus =
    2;  // usage, bad input, or the run could not be made
inline constexpr int kNoDeviceStatus = 77;  // no device of the kind needed

}  // namespace exact_topk::harness
