// SPDX-License-Identifier: Apache-2.0
//
// Which device a rank takes. The ranks of a node share its visible devices out
// in turn: rank r of the node takes device r modulo their number. The runtime
// of the device decides what is visible (HIP_VISIBLE_DEVICES and its like); a
// candidate says how many that are.
#pragma once

#include <string>

#include "harness/loader.h"

namespace exact_topk::harness {

struct Binding {
  int device = 0;    // ordinal for xtk_open
  std::string text;  // "device 1 of 2 (nvidia)"; empty where all ranks share
                     // the one device that the CPU plays
};

// Of the node's rank `node_rank`. Where the number of devices is unknown, each
// rank takes its own.
Binding bind_device(const Description& candidate, int node_rank);

}  // namespace exact_topk::harness
