// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of an open candidate in device memory: one buffer a tensor, and
// one a layer where the ABI says so. Tensors that kernels follow as indices
// (positions, slots, page tables ...) are checked as they are written, and name
// no row until then, so that no launch can be sent out of its buffers by its
// inputs.

#include <cstdint>
#include <vector>

#include "kernels/candidate.h"
#include "kernels/device_buffer.h"

namespace exact_topk::kernels {

class Tensors {
 public:
  // The options have been checked.
  explicit Tensors(const xtk_open_options& options);

  // Bytes of one layer's buffer; 0 for a tensor that is not held or does not
  // exist.
  uint64_t bytes(xtk_tensor tensor) const;
  // Device memory of a tensor; `layer` is ignored for one that exists once.
  template <class T>
  T* data(xtk_tensor tensor, int layer = 0) const {
    return buffer(tensor, layer).as<T>();
  }
  void write(xtk_tensor tensor, int layer, uint64_t offset, uint64_t bytes,
             const void* source);
  void read(xtk_tensor tensor, int layer, uint64_t offset, uint64_t bytes,
            void* destination) const;
  // Refuses what write() and read() would refuse for the whole tensor.
  void require_layer(xtk_tensor tensor, int layer) const;

 private:
  const DeviceBuffer& buffer(xtk_tensor tensor, int layer) const;
  void require_range(xtk_tensor tensor, int layer, uint64_t offset,
                     uint64_t bytes, const void* memory) const;

  int layers_;  // of those that exist once a layer
  std::vector<std::vector<DeviceBuffer>> buffers_;  // by tensor, then by layer
  std::vector<int64_t>
      limits_;  // by tensor: values written are -1 or below this; 0: no index
};

}  // namespace exact_topk::kernels
