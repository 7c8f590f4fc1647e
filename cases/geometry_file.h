// SPDX-License-Identifier: Apache-2.0
//
// geometry_file.h - geometries by name: presets, and JSON files for anything
// else.
//
//     {"hidden": 6144, "q_lora": 2048, "heads": 32, "theta": 8e6, "rope":
//     "interleaved", "hadamard": true,
//      "scale": "ue8m0", "fp8": "e4m3fn", "page_layout": "plain", "k": 2048,
//      "layer_norm_eps": 1e-6, "rms_eps": 1e-5}
//
// hidden, q_lora, heads and theta must be given; the others default to glm53's
// values. head_dim, rope_dims and page_tokens may be given and must then be
// 128, 64 and 64. Any other field is refused, so that a misspelt one is not
// silently ignored, and so is a field that comes twice. The geometry is named
// after the file's stem, which becomes part of case names and dump paths:
// letters, digits, dots, dashes and underscores, and no preset's name.
#pragma once

#include <string>

#include "oracle/geometry.h"

namespace exact_topk::cases {

// Whether --geometry TEXT names a file: it holds a slash or ends in .json. Any
// other text names a preset.
bool names_geometry_file(const std::string& text);

// The preset of that name, or the geometry in the file of that path. Throws
// std::invalid_argument: one sentence naming the file and the field.
oracle::Geometry find_geometry(const std::string& preset_or_path);

}  // namespace exact_topk::cases
