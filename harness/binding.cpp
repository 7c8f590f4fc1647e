// SPDX-License-Identifier: Apache-2.0
#include "harness/binding.h"

#include <fmt/format.h>

namespace exact_topk::harness {

Binding bind_device(const Description& candidate, int node_rank) {
  if (candidate.device == "cpu") return {};
  if (candidate.devices <= 0)
    return {node_rank,
            fmt::format("device {} ({})", node_rank, candidate.device)};
  const int device = node_rank % candidate.devices;
  return {device, fmt::format("device {} of {} ({})", device, candidate.devices,
                              candidate.device)};
}

}  // namespace exact_topk::harness
