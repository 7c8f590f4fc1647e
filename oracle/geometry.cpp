// SPDX-License-Identifier: Apache-2.0
#include "oracle/geometry.h"

namespace exact_topk::oracle {

Geometry glm53() {
  return {.name = "glm53",
          .hidden = 6144,
          .q_lora = 2048,
          .heads = 32,
          .theta = 8e6};
}

Geometry glm51() {
  Geometry geometry = glm53();
  geometry.name = "glm51";
  geometry.theta = 1e6;
  return geometry;
}

Geometry dsv32() {
  return {.name = "dsv32",
          .hidden = 7168,
          .q_lora = 1536,
          .heads = 64,
          .theta = 1e4,
          .rope = Rope::kHalfSplit};
}

}  // namespace exact_topk::oracle
