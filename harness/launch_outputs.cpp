// SPDX-License-Identifier: Apache-2.0
#include "harness/launch_outputs.h"

#include <algorithm>

#include "oracle/geometry.h"

namespace exact_topk::harness {

const char* output_name(xtk_tensor tensor) {
  switch (tensor) {
    case XTK_X:
      return "x";
    case XTK_Q_LORA:
      return "q_lora";
    case XTK_MAILBOX:
      return "mailbox";
    case XTK_RAW_KEY:
      return "raw_key";
    case XTK_W:
      return "w";
    case XTK_INDEX_QUERY:
      return "query";
    case XTK_SCORES:
      return "scores";
    default:
      return "list";
  }
}

bool published(const Description& description, xtk_tensor tensor) {
  return (description.published >> tensor & 1) != 0;
}

OutputLayout::OutputLayout(const cases::Case& item, const cases::Plan& plan)
    : item_(item), plan_(plan) {}

int OutputLayout::element_bytes(xtk_tensor tensor) const {
  return tensor == XTK_X || tensor == XTK_Q_LORA || tensor == XTK_INDEX_QUERY
             ? 2
             : 4;
}

// From one row to the next; the list has rows of its own.
uint64_t OutputLayout::row_bytes(xtk_tensor tensor) const {
  const oracle::Geometry& g = item_.geometry;
  const auto elements = [&]() -> int64_t {
    switch (tensor) {
      case XTK_X:
        return g.hidden;
      case XTK_Q_LORA:
        return g.q_lora;
      case XTK_RAW_KEY:
        return oracle::kHeadDim;
      case XTK_W:
        return g.heads;
      case XTK_SCORES:
        return plan_.score_stride;
      default:  // mailbox and index query
        return int64_t{g.heads} * oracle::kHeadDim;
    }
  };
  return uint64_t(elements()) * uint64_t(element_bytes(tensor));
}

uint64_t OutputLayout::bytes(xtk_tensor tensor) const {
  if (tensor == XTK_LIST) return uint64_t(plan_.list_entries) * 4;
  return row_bytes(tensor) * uint64_t(item_.rows);
}

Extent OutputLayout::row(xtk_tensor tensor, const cases::Step& step,
                         int row) const {
  const int64_t keys = step.rows[size_t(row)].keys();
  if (tensor == XTK_LIST)
    return {uint64_t(step.indptr[size_t(row)]) * 4,
            uint64_t(std::min<int64_t>(keys, item_.geometry.k)) * 4};
  const uint64_t stride = row_bytes(tensor);
  return {stride * uint64_t(row),
          tensor == XTK_SCORES ? uint64_t(keys) * 4 : stride};
}

void LaunchOutputs::look(Candidate& candidate, const Description& description,
                         int layer) {
  for (const xtk_tensor tensor : kOutputs)
    if (published(description, tensor))
      views_[size_t(tensor)] = candidate.look(tensor, 0, layout_.bytes(tensor),
                                              storage_[size_t(tensor)]);
  cache_ = candidate.look(XTK_CACHE, layer,
                          uint64_t(plan_.pages) * oracle::kPageBytes,
                          storage_[XTK_CACHE]);
}

}  // namespace exact_topk::harness
