// SPDX-License-Identifier: Apache-2.0
#include "harness/dump_sink.h"

#include <fmt/format.h>

#include <stdexcept>

namespace exact_topk::harness {

void DumpSink::add(std::string_view arm, std::string_view leaf,
                   const dumps::Tensor& tensor, const dumps::LeafInfo& info) {
  const auto writer = writers_.find(arm);
  if (writer == writers_.end())
    throw std::logic_error(
        fmt::format("leaf {} is of arm '{}', which has no tree", leaf, arm));
  writer->second.add(leaf, tensor, info);
}

void DumpSink::finish() {
  for (auto& [arm, writer] : writers_) writer.finish();
}

}  // namespace exact_topk::harness
