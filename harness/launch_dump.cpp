// SPDX-License-Identifier: Apache-2.0
#include "harness/launch_dump.h"

#include <fmt/format.h>

#include "harness/checks/bitwise.h"
#include "harness/repro.h"

namespace exact_topk::harness {
namespace {

using cases::Lifetime;

dumps::Dtype dump_type(cases::DType dtype) {
  switch (dtype) {
    case cases::DType::kF32:
      return dumps::Dtype::f32;
    case cases::DType::kBf16:
      return dumps::Dtype::bf16;
    case cases::DType::kI32:
      return dumps::Dtype::i32;
    case cases::DType::kU8:
      break;
  }
  return dumps::Dtype::u8;
}

// Keys and scales, packed.
struct Keys {
  std::vector<uint8_t> bytes;
  std::vector<float> scales;
  void add(std::span<const uint8_t> key, float scale) {
    bytes.insert(bytes.end(), key.begin(), key.end());
    scales.push_back(scale);
  }
  int64_t count() const { return int64_t(scales.size()); }
  dumps::Tensor bytes_tensor() const {
    return {dumps::Dtype::u8,
            {count(), oracle::kHeadDim},
            std::as_bytes(std::span(bytes))};
  }
  dumps::Tensor scales_tensor() const {
    return {dumps::Dtype::f32, {count()}, std::as_bytes(std::span(scales))};
  }
};

}  // namespace

dumps::LeafInfo leaf_info(const CaseContext& c) {
  if (c.sink == nullptr) return {};
  return {repro_line(c.item, c.settings, c.group), c.group.rank(),
          c.group.size(), c.case_index};
}

LaunchDump::LaunchDump(DumpSink* sink, const cases::Case& item,
                       dumps::LeafInfo info,
                       const std::vector<std::string>& arms)
    : sink_(sink),
      item_(item),
      info_(std::move(info)),
      arms_(arms),
      name_(cases::name(item)) {}

void LaunchDump::input(const std::string& where, const std::string& name,
                       const dumps::Tensor& tensor) {
  for (const std::string& arm : arms_)
    sink_->add(arm, fmt::format("{}/{}/in/{}.npy", name_, where, name), tensor,
               info_);
}

void LaunchDump::layer_inputs(const LaunchInputs& inputs, int launch) {
  if (!writes_inputs()) return;
  for (const cases::Input tensor : inputs.used()) {
    const cases::InputInfo& about = inputs.info(tensor);
    if (about.lifetime == Lifetime::kStep || tensor == cases::Input::kCache)
      continue;
    input(fmt::format("launch{}", launch), about.name,
          {dump_type(about.dtype), about.shape, inputs.bytes(tensor, launch)});
  }
}

void LaunchDump::cached(const LaunchInputs& inputs, const cases::Plan& plan,
                        int launch, const std::string& where) {
  const auto cache = inputs.as<uint8_t>(cases::Input::kCache, launch);
  Keys keys;
  for (const int64_t slot : cases::cached_slots(plan)) {
    const oracle::CachedKey key =
        cached_key(cache, slot, item_.geometry.page_layout);
    keys.add(key.bytes, key.scale);
  }
  input(where, "cached_keys", keys.bytes_tensor());
  input(where, "cached_scales", keys.scales_tensor());
}

void LaunchDump::step_inputs(const LaunchInputs& inputs,
                             const cases::Plan& plan,
                             const cases::Poison& poison, int launch,
                             int step) {
  if (!writes_inputs()) return;
  const std::string where = fmt::format("launch{}/step{}", launch, step);
  for (const cases::Input tensor : inputs.used()) {
    const cases::InputInfo& about = inputs.info(tensor);
    if (about.lifetime == Lifetime::kStep)
      input(
          where, about.name,
          {dump_type(about.dtype), about.shape, inputs.bytes(tensor, launch)});
  }
  if (step == 0) cached(inputs, plan, launch, where);
  Keys stale;
  const std::vector<cases::Row>& rows = plan.steps[size_t(step)].rows;
  for (size_t row = 0; row < rows.size(); ++row)
    if (rows[row].live) stale.add(poison.keys[row], poison.scales[row]);
  input(where, "poison_keys", stale.bytes_tensor());
  input(where, "poison_scales", stale.scales_tensor());
}

void LaunchDump::results(const LaunchOutputs& outputs, const cases::Step& rows,
                         const std::string& arm, int launch, int step) {
  if (sink_ == nullptr) return;
  for (int row = 0; row < int(rows.rows.size()); ++row) {
    if (!rows.rows[size_t(row)].live) continue;
    const auto add = [&](xtk_tensor tensor, dumps::Dtype dtype) {
      if (!outputs.has(tensor)) return;
      const auto bytes = outputs.row<std::byte>(tensor, rows, row);
      result(
          arm, launch, step, row, output_name(tensor),
          {dtype, {int64_t(bytes.size() / dumps::dtype_bytes(dtype))}, bytes});
    };
    add(XTK_SCORES, dumps::Dtype::f32);
    add(XTK_LIST, dumps::Dtype::i32);
  }
}

void LaunchDump::result(const std::string& arm, int launch, int step, int row,
                        const char* what, const dumps::Tensor& tensor) {
  if (sink_ == nullptr) return;
  sink_->add(arm,
             fmt::format("{}/launch{}/step{}/row{}/{}.npy", name_, launch, step,
                         row, what),
             tensor, info_);
}

}  // namespace exact_topk::harness
