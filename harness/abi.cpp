// SPDX-License-Identifier: Apache-2.0
#include "harness/abi.h"

#include <algorithm>

#include "cases/order.h"
#include "harness/binding.h"

namespace exact_topk::harness {

xtk_geometry abi_geometry(const oracle::Geometry& g) {
  xtk_geometry abi{};
  abi.struct_size = sizeof abi;
  abi.hidden = g.hidden;
  abi.q_lora = g.q_lora;
  abi.heads = g.heads;
  abi.head_dim = oracle::kHeadDim;
  abi.rope_dims = oracle::kRopeDims;
  abi.page_tokens = oracle::kPageTokens;
  abi.k = g.k;
  abi.rope = g.rope == oracle::Rope::kInterleaved ? XTK_ROPE_INTERLEAVED
                                                  : XTK_ROPE_HALF_SPLIT;
  abi.hadamard = g.hadamard ? 1 : 0;
  abi.scale =
      g.scale == oracle::Scale::kUe8m0 ? XTK_SCALE_UE8M0 : XTK_SCALE_F32;
  abi.fp8 = g.fp8 == oracle::Fp8::kE4m3fn ? XTK_FP8_E4M3FN : XTK_FP8_E4M3FNUZ;
  abi.page_layout = g.page_layout == oracle::PageLayout::kPlain
                        ? XTK_PAGE_PLAIN
                        : XTK_PAGE_PRESHUFFLED16;
  abi.layer_norm_eps = g.layer_norm_eps;
  abi.rms_eps = g.rms_eps;
  return abi;
}

xtk_kind abi_kind(cases::Kind kind) {
  switch (kind) {
    case cases::Kind::kIndex:
      return XTK_KIND_INDEX;
    case cases::Kind::kDense:
      return XTK_KIND_DENSE;
    case cases::Kind::kEmbed:
      break;
  }
  return XTK_KIND_EMBED;
}

xtk_tensor abi_tensor(cases::Input input) {
  // Both name the inputs in the same order.
  static_assert(int(cases::Input::kEmbedding) == XTK_EMBEDDING &&
                int(cases::Input::kWeightsProj) == XTK_WEIGHTS_PROJ &&
                int(cases::Input::kCache) == XTK_CACHE &&
                int(cases::Input::kTokens) == XTK_TOKENS &&
                int(cases::Input::kIndptr) == XTK_INDPTR &&
                cases::kInputs == XTK_X);
  return static_cast<xtk_tensor>(input);
}

int abi_partials(const cases::Case& item, int launch) {
  switch (cases::kind_of(item, launch)) {
    case cases::Kind::kIndex:
      return item.tp;
    case cases::Kind::kDense:
      return 1;
    case cases::Kind::kEmbed:
      break;
  }
  return 0;
}

xtk_open_options abi_options(const cases::Case& item, const cases::Plan& plan,
                             const Settings& settings,
                             const Description& candidate) {
  xtk_open_options options{};
  options.struct_size = sizeof options;
  options.device = bind_device(candidate, settings.device).device;
  options.geometry = abi_geometry(item.geometry);
  options.max_rows = item.rows;
  for (int launch = 0; launch < item.launches; ++launch)
    options.max_partials =
        std::max(options.max_partials, abi_partials(item, launch));
  options.layers = item.launches;
  options.pages = plan.pages;
  options.table_width = plan.table_width;
  options.vocabulary =
      cases::has_kind(item, cases::Kind::kEmbed) ? cases::kVocabulary : 0;
  options.max_keys = plan.max_keys;
  options.score_stride = plan.score_stride;
  options.rope_positions = plan.rope_positions;
  options.list_entries = plan.list_entries;
  options.wave_size = settings.wave;
  options.blocks = settings.blocks;
  options.schedule =
      settings.schedule.empty() ? nullptr : settings.schedule.c_str();
  options.seed = settings.seed;
  return options;
}

xtk_open_options abi_select_options(const cases::Case& item, int64_t max_keys,
                                    int64_t list_entries,
                                    const Settings& settings,
                                    const Description& candidate) {
  cases::Plan plan;
  plan.max_keys = plan.score_stride = max_keys;
  plan.list_entries = list_entries;
  xtk_open_options options = abi_options(item, plan, settings, candidate);
  options.layers = 0;
  return options;
}

}  // namespace exact_topk::harness
