// SPDX-License-Identifier: Apache-2.0
//
// The ABI's border: what it says of itself, what it refuses and with which
// sentence, and that refusals change nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/opened.h"

namespace exact_topk::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

auto sentence(const std::string& part) {
  return AllOf(HasSubstr(part), Not(HasSubstr("\n")));
}

TEST(Abi, Description) {
  EXPECT_EQ(xtk_abi_version(), XTK_ABI_VERSION);
  xtk_description d{};
  EXPECT_EQ(xtk_describe(&d), XTK_INVALID);
  EXPECT_THAT(xtk_last_error(nullptr), sentence("struct_size of 0"));
  d.struct_size = sizeof(d);
  ASSERT_EQ(xtk_describe(&d), XTK_OK);
  EXPECT_STREQ(d.name, "exact-topk cpu");
  EXPECT_STREQ(d.device, "cpu");
  EXPECT_STREQ(d.contract, "base");
  EXPECT_EQ(d.stages, 7u);
  EXPECT_EQ(d.wave_sizes, 96u);
  EXPECT_EQ(d.published, 0xFFFFFFFu);
  EXPECT_EQ(d.repeatable, 1);
  EXPECT_EQ(d.clobbers_score_tail, 0);
  const std::vector<std::string> arms(d.arms, d.arms + 4);
  EXPECT_EQ(arms, (std::vector<std::string>{"base", "head", "base+grouped",
                                            "base+slices"}));
  EXPECT_EQ(d.arms[4], nullptr);
  EXPECT_EQ(d.devices, 1);
  // A caller of before `devices` was there keeps what lies behind its struct.
  d = {};
  d.struct_size = offsetof(xtk_description, devices);
  d.devices = -7;
  ASSERT_EQ(xtk_describe(&d), XTK_OK);
  EXPECT_STREQ(d.name, "exact-topk cpu");
  EXPECT_EQ(d.struct_size, offsetof(xtk_description, devices));
  EXPECT_EQ(d.devices, -7);
  d.struct_size = offsetof(xtk_description, devices) - 1;
  EXPECT_EQ(xtk_describe(&d), XTK_INVALID);
}

TEST(Abi, OpenRefuses) {
  const std::vector<
      std::pair<const char*, std::function<void(xtk_open_options&)>>>
      faults = {
          {"options has a struct_size of 3",
           [](auto& o) { o.struct_size = 3; }},
          {"geometry has a struct_size of 0",
           [](auto& o) { o.geometry.struct_size = 0; }},
          {"device is 1; it is from 0 to 0", [](auto& o) { o.device = 1; }},
          {"hidden is 100; it is a multiple of 64",
           [](auto& o) { o.geometry.hidden = 100; }},
          {"q_lora is 0", [](auto& o) { o.geometry.q_lora = 0; }},
          {"heads is 136; it is a multiple of 8 up to 128",
           [](auto& o) { o.geometry.heads = 136; }},
          {"head_dim is 64", [](auto& o) { o.geometry.head_dim = 64; }},
          {"rope_dims is 32", [](auto& o) { o.geometry.rope_dims = 32; }},
          {"page_tokens is 16", [](auto& o) { o.geometry.page_tokens = 16; }},
          {"k is 2049; it is from 1 to 2048",
           [](auto& o) { o.geometry.k = 2049; }},
          {"rope is 2", [](auto& o) { o.geometry.rope = 2; }},
          {"hadamard is -1", [](auto& o) { o.geometry.hadamard = -1; }},
          {"scale is 2", [](auto& o) { o.geometry.scale = 2; }},
          {"fp8 is 2", [](auto& o) { o.geometry.fp8 = 2; }},
          {"page_layout is 2", [](auto& o) { o.geometry.page_layout = 2; }},
          {"layer_norm_eps is nan",
           [](auto& o) {
             o.geometry.layer_norm_eps =
                 std::numeric_limits<float>::quiet_NaN();
           }},
          {"rms_eps is -1", [](auto& o) { o.geometry.rms_eps = -1; }},
          {"max_rows is 9; it is from 0 to 8", [](auto& o) { o.max_rows = 9; }},
          {"max_partials is -1", [](auto& o) { o.max_partials = -1; }},
          {"layers is -2", [](auto& o) { o.layers = -2; }},
          {"pages is 33554432", [](auto& o) { o.pages = 1 << 25; }},
          {"table_width is -1", [](auto& o) { o.table_width = -1; }},
          {"vocabulary is -1", [](auto& o) { o.vocabulary = -1; }},
          {"max_keys is 1048641; it is from 0 to 1048640",
           [](auto& o) { o.max_keys = o.score_stride = 1048641; }},
          {"score_stride is 511; it is from 512",
           [](auto& o) { o.score_stride = 511; }},
          {"rope_positions is -1", [](auto& o) { o.rope_positions = -1; }},
          {"list_entries is -1", [](auto& o) { o.list_entries = -1; }},
          {"wave_size is 96", [](auto& o) { o.wave_size = 96; }},
          {"blocks is -1", [](auto& o) { o.blocks = -1; }},
          {"sideways", [](auto& o) { o.schedule = "sideways"; }},
      };
  for (const auto& [part, spoil] : faults) {
    auto options = small_options();
    spoil(options);
    int dummy = 0;
    auto* candidate = reinterpret_cast<xtk_candidate*>(&dummy);
    EXPECT_EQ(xtk_open(&options, &candidate), XTK_INVALID) << part;
    EXPECT_EQ(candidate, nullptr);
    EXPECT_THAT(xtk_last_error(nullptr), sentence(part));
  }
  EXPECT_EQ(xtk_open(nullptr, nullptr), XTK_INVALID);
  xtk_candidate* candidate = nullptr;
  EXPECT_EQ(xtk_open(nullptr, &candidate), XTK_INVALID);
  EXPECT_THAT(xtk_last_error(nullptr), sentence("options is a null pointer"));
}

TEST(Abi, NullCandidate) {
  EXPECT_EQ(xtk_wait(nullptr), XTK_INVALID);
  EXPECT_EQ(xtk_launch(nullptr, nullptr), XTK_INVALID);
  EXPECT_THAT(xtk_last_error(nullptr), sentence("candidate is a null pointer"));
  EXPECT_EQ(xtk_tensor_bytes(nullptr, XTK_X), 0u);
  EXPECT_EQ(xtk_scratch_bytes(nullptr, nullptr), 0u);
  EXPECT_EQ(xtk_view(nullptr, XTK_X, 0), nullptr);
  xtk_close(nullptr);
}

class AbiOpen : public testing::Test {
 protected:
  void refused(xtk_status status, const std::string& part,
               xtk_status expected = XTK_INVALID) {
    EXPECT_EQ(status, expected) << part;
    EXPECT_THAT(xtk_last_error(candidate_.get()), sentence(part));
  }
  xtk_candidate* get() { return candidate_.get(); }

  Opened candidate_{small_options()};
};

TEST_F(AbiOpen, TensorBytes) {
  EXPECT_EQ(xtk_tensor_bytes(get(), XTK_EMBEDDING), 16u * 256 * 2);
  EXPECT_EQ(xtk_tensor_bytes(get(), XTK_WQ_B), 8u * 128 * 128 * 2);
  EXPECT_EQ(xtk_tensor_bytes(get(), XTK_WEIGHTS_PROJ), 8u * 256 * 4);
  EXPECT_EQ(xtk_tensor_bytes(get(), XTK_CACHE), 10u * 8448);
  EXPECT_EQ(xtk_tensor_bytes(get(), XTK_PARTIALS), 4u * 8 * 256 * 4);
  EXPECT_EQ(xtk_tensor_bytes(get(), XTK_PAGE_TABLE), 8u * 8 * 4);
  EXPECT_EQ(xtk_tensor_bytes(get(), XTK_SCORES), 8u * 520 * 4);
  EXPECT_EQ(xtk_tensor_bytes(get(), XTK_LIST), 4200u * 4);
  EXPECT_EQ(xtk_tensor_bytes(get(), XTK_TENSOR_COUNT), 0u);
}

// Base at R = 8: q_a x in f32, histograms of 16 slices with 4,096 bins, what is
// known of 16 slices, room for 4,096 candidates. Head: 64-bit pairs of every
// hand-off, 6 gathers of 64 slices with 32 words above all. FACTS section 5:
// the published head arm needs less than its base, too.
TEST(Scratch, HeadNeedsLessThanBaseAtThePublishedShapes) {
  for (const int partials : {8, 4}) {
    for (const int rows : {2, 4, 8}) {
      if (partials == 4 && rows == 8) continue;
      xtk_open_options options = small_options();
      options.geometry.hidden = 6144;
      options.geometry.q_lora = 2048;
      options.geometry.heads = 32;
      options.max_rows = rows;
      options.max_partials = partials;
      const Opened candidate(options);
      const uint64_t base = xtk_scratch_bytes(candidate.get(), "base");
      const uint64_t head = xtk_scratch_bytes(candidate.get(), "head");
      EXPECT_GE(base, 8u * 4 * (2048 + 16 * 4096 + 4096));
      EXPECT_GE(head, 8u * 8 * (6 * 64 * 32) + 8u * 4 * 4096);
      EXPECT_LT(head, base) << rows << " rows, T " << partials;
    }
  }
}

TEST_F(AbiOpen, ScratchOfAnArm) {
  const auto of = [&](const char* arm) {
    return xtk_scratch_bytes(get(), arm);
  };
  EXPECT_EQ(of(nullptr), of("base+grouped"));
  EXPECT_LT(of("base"), of("base+grouped"));
  EXPECT_LT(of("head"), of("base+slices"));
  EXPECT_EQ(of("tail"), 0u);
}

TEST_F(AbiOpen, WriteReadAndView) {
  const std::vector<float> values = {1, 2, 3};
  candidate_.write(XTK_RESIDUAL, 0, values, 5);
  std::vector<float> back(3);
  candidate_.check(xtk_read(get(), XTK_RESIDUAL, 0, 20, 12, back.data()));
  EXPECT_EQ(back, values);
  const void* view = xtk_view(get(), XTK_RESIDUAL, 0);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(std::memcmp(static_cast<const char*>(view) + 20, values.data(), 12),
            0);
  EXPECT_NE(xtk_view(get(), XTK_CACHE, 0), xtk_view(get(), XTK_CACHE, 1));
  EXPECT_EQ(xtk_view(get(), XTK_CACHE, 2), nullptr);

  float word = 0;
  refused(xtk_read(get(), XTK_X, 0, 4095, 4, &word),
          "x holds 4096 bytes; 4 at 4095");
  refused(xtk_read(get(), XTK_X, 0, ~uint64_t{0}, 4, &word),
          "x holds 4096 bytes");
  refused(xtk_read(get(), XTK_X, 0, 4, ~uint64_t{0}, &word),
          "x holds 4096 bytes");
  refused(xtk_read(get(), XTK_X, 1, 0, 4, &word),
          "x exists once; layer 0 is passed for it, not 1");
  refused(xtk_read(get(), XTK_CACHE, 2, 0, 4, &word),
          "cache has no layer 2; 2 are held");
  refused(xtk_read(get(), static_cast<xtk_tensor>(99), 0, 0, 4, &word),
          "there is no tensor 99");
  refused(xtk_read(get(), XTK_X, 0, 0, 4, nullptr),
          "the memory for x is a null pointer");
  refused(xtk_write(get(), XTK_X, 0, 0, 4, nullptr),
          "the memory for x is a null pointer");
}

TEST_F(AbiOpen, IndicesThatWouldLeaveTheBuffers) {
  const std::vector<std::tuple<xtk_tensor, int32_t, const char*>> largest = {
      {XTK_TOKENS, 15, "tokens"},
      {XTK_POSITIONS, 511, "positions"},
      {XTK_SLOTS, 639, "slots"},
      {XTK_PAGE_TABLE, 9, "page_table"},
      {XTK_INDPTR, 4200, "indptr"}};
  for (const auto& [tensor, value, name] : largest) {
    candidate_.write(tensor, 0, std::vector<int32_t>{value}, 2);
    candidate_.write(tensor, 0, std::vector<int32_t>{-1}, 3);
    const std::vector<int32_t> wrong = {0, value + 1};
    refused(xtk_write(get(), tensor, 0, 8, 8, wrong.data()),
            "element 3 of " + std::string(name) + " is " +
                std::to_string(value + 1));
    refused(xtk_write(get(), tensor, 0, 2, 4, wrong.data()), "whole elements");
    EXPECT_EQ(candidate_.read<int32_t>(tensor, 0, 4)[2], value)
        << "a refused write changes nothing";
    const int32_t below = -2;
    refused(xtk_write(get(), tensor, 0, 0, 4, &below), "element 0 of");
  }
}

TEST_F(AbiOpen, LaunchRefuses) {
  const xtk_launch_args good{.struct_size = sizeof(xtk_launch_args),
                             .arm = "base",
                             .layer = 0,
                             .kind = XTK_KIND_INDEX,
                             .rows = 8,
                             .partials = 4};
  const auto launch = [&](auto spoil) {
    xtk_launch_args args = good;
    spoil(args);
    return xtk_launch(get(), &args);
  };
  refused(xtk_launch(get(), nullptr), "args is a null pointer");
  refused(launch([](auto& a) { a.struct_size = 8; }),
          "args has a struct_size of 8");
  refused(launch([](auto& a) { a.arm = nullptr; }), "arm is a null pointer");
  refused(launch([](auto& a) { a.arm = "tail"; }), "there is no arm 'tail'",
          XTK_UNSUPPORTED);
  refused(launch([](auto& a) { a.layer = 2; }),
          "layer is 2; it is from 0 to 1");
  refused(launch([](auto& a) { a.kind = 3; }), "kind is 3");
  refused(launch([](auto& a) { a.rows = 9; }), "rows is 9; it is from 1 to 8");
  refused(launch([](auto& a) { a.rows = 0; }), "rows is 0");
  refused(launch([](auto& a) { a.partials = 5; }),
          "partials is 5; it is from 1 to 4");
  refused(launch([](auto& a) { a.kind = XTK_KIND_DENSE; }),
          "partials is 4; it is from 1 to 1");
  refused(launch([](auto& a) { a.kind = XTK_KIND_EMBED; }),
          "partials is 4; it is from 0 to 0");
  candidate_.check(launch([](auto&) {}));
}

TEST_F(AbiOpen, SelectRefuses) {
  const std::vector<float> scores(100, 1.0f);
  const std::vector<int64_t> starts = {0, 50};
  const std::vector<int32_t> lengths = {50, 50};
  const std::vector<int32_t> indptr = {0, 10};
  const std::vector<int32_t> table = {0, 1};
  std::vector<int32_t> list(20, -5);
  const xtk_select_args good{.struct_size = sizeof(xtk_select_args),
                             .arm = "base",
                             .rows = 2,
                             .k = 10,
                             .scores = scores.data(),
                             .scores_count = 100,
                             .row_start = starts.data(),
                             .lengths = lengths.data(),
                             .page_table = table.data(),
                             .table_width = 1,
                             .indptr = indptr.data(),
                             .list = list.data(),
                             .list_entries = 20};
  const std::vector<int32_t> negative = {50, -1};
  const std::vector<int32_t> too_far = {0, 11};
  const std::vector<int64_t> late = {0, 51};
  const auto select = [&](auto spoil) {
    xtk_select_args args = good;
    spoil(args);
    return xtk_select(get(), &args);
  };
  refused(select([](auto& a) { a.struct_size = 8; }),
          "args has a struct_size of 8");
  refused(select([](auto& a) { a.arm = "tail"; }), "there is no arm 'tail'",
          XTK_UNSUPPORTED);
  refused(select([](auto& a) { a.rows = 9; }), "rows is 9");
  refused(select([](auto& a) { a.k = 0; }), "k is 0; it is from 1 to 2048");
  refused(select([](auto& a) { a.scores = nullptr; }),
          "scores is a null pointer");
  refused(select([](auto& a) { a.row_start = nullptr; }),
          "row_start is a null pointer");
  refused(select([](auto& a) { a.lengths = nullptr; }),
          "lengths is a null pointer");
  refused(select([](auto& a) { a.indptr = nullptr; }),
          "indptr is a null pointer");
  refused(select([](auto& a) { a.list = nullptr; }), "list is a null pointer");
  refused(select([&](auto& a) { a.lengths = negative.data(); }),
          "row 1 has -1 keys");
  refused(select([&](auto& a) { a.row_start = late.data(); }),
          "row 1 takes 50 scores from 51; there are 100");
  refused(select([&](auto& a) { a.indptr = too_far.data(); }),
          "row 1 writes 10 entries at 11; the list has 20");
  refused(select([](auto& a) { a.table_width = 0; }),
          "row 0 has 50 keys on 1 pages; its page table has 0 columns");
  EXPECT_EQ(list, std::vector<int32_t>(20, -5));
  candidate_.check(select([](auto&) {}));
  // What a selection works on is the last one's: no two are replayed together.
  candidate_.check(select([](auto&) {}));
  const xtk_replay_args both{.struct_size = sizeof(both),
                             .stage = XTK_STAGE_SELECT,
                             .part = nullptr,
                             .replays = 1,
                             .cold = 0,
                             .calls = 2};
  double microseconds = 0;
  refused(xtk_replay(get(), &both, &microseconds),
          "there are 1 calls of stage 4 to replay, not 2");
}

TEST_F(AbiOpen, ScoreRefuses) {
  const std::vector<uint16_t> query(8 * 128, 0);
  const std::vector<float> weights(8, 1.0f);
  const std::vector<uint8_t> cache(2 * 8448, 0);
  const std::vector<int32_t> table = {1, 2};
  const int32_t length = 64;
  const int32_t longer = 65;
  std::vector<float> scores(100, -5.0f);
  const xtk_score_args good{.struct_size = sizeof(xtk_score_args),
                            .arm = "base",
                            .rows = 1,
                            .index_query = query.data(),
                            .weights = weights.data(),
                            .cache = cache.data(),
                            .pages = 2,
                            .page_table = table.data(),
                            .table_width = 2,
                            .lengths = &length,
                            .scores = scores.data(),
                            .score_stride = 100};
  const auto score = [&](auto spoil) {
    xtk_score_args args = good;
    spoil(args);
    return xtk_score(get(), &args);
  };
  refused(score([](auto& a) { a.cache = nullptr; }), "cache is a null pointer");
  refused(score([](auto& a) { a.pages = 0; }), "pages is 0");
  refused(score([](auto& a) { a.score_stride = 63; }),
          "row 0 has 64 keys; it has from 0 to 63");
  refused(score([&](auto& a) { a.lengths = &longer; }),
          "entry 1 of row 0's page table is 2; pages are 0 to 1");
  EXPECT_EQ(scores, std::vector<float>(100, -5.0f));
  candidate_.check(score([](auto&) {}));
  EXPECT_EQ(scores[63], 0.0f);
  EXPECT_EQ(scores[64], -5.0f);
}

TEST_F(AbiOpen, ReplayAndWitness) {
  xtk_witness_row witness{};
  witness.struct_size = sizeof(witness);
  refused(xtk_witness(get(), 0, &witness), "no witness before a launch");
  double microseconds = -1;
  xtk_replay_args args{.struct_size = sizeof(args),
                       .stage = XTK_STAGE_LAUNCH,
                       .part = nullptr,
                       .replays = 3,
                       .cold = 0,
                       .calls = 0};
  refused(xtk_replay(get(), &args, &microseconds),
          "there is no call of stage 1 to replay");
  const xtk_launch_args launch{.struct_size = sizeof(launch),
                               .arm = "base",
                               .layer = 0,
                               .kind = XTK_KIND_INDEX,
                               .rows = 2,
                               .partials = 1};
  candidate_.check(xtk_launch(get(), &launch));
  for (const char* part : {static_cast<const char*>(nullptr), "front",
                           "key-and-query", "scoring", "selection"}) {
    args.part = part;
    for (const int cold : {0, 1}) {
      args.cold = cold;
      microseconds = -1;
      candidate_.check(xtk_replay(get(), &args, &microseconds));
      EXPECT_GT(microseconds, 0.0);
    }
  }
  // Ready replays are run once; those of other arguments are made anew.
  args.part = "empty";
  candidate_.check(xtk_prepare_replay(get(), &args));
  for (const int replays : {3, 3, 2}) {
    args.replays = replays;
    candidate_.check(xtk_replay(get(), &args, &microseconds));
  }
  args.part = "coffee";
  refused(xtk_prepare_replay(get(), &args), "stage 1 has no part 'coffee'",
          XTK_UNSUPPORTED);
  refused(xtk_replay(get(), &args, &microseconds),
          "stage 1 has no part 'coffee'", XTK_UNSUPPORTED);
  // A caller of before `calls` was there repeats one.
  args.part = nullptr;
  args.calls = 2;
  refused(xtk_replay(get(), &args, &microseconds),
          "there are 1 calls of stage 1 to replay, not 2");
  args.struct_size = offsetof(xtk_replay_args, calls);
  candidate_.check(xtk_replay(get(), &args, &microseconds));
  args.struct_size = sizeof(args);
  candidate_.check(xtk_launch(get(), &launch));
  candidate_.check(xtk_replay(get(), &args, &microseconds));
  args.calls = 65;
  refused(xtk_replay(get(), &args, &microseconds),
          "calls is 65; it is from 0 to 64");
  args.calls = 0;
  args.replays = 0;
  refused(xtk_replay(get(), &args, &microseconds), "replays is 0");
  refused(xtk_replay(get(), &args, nullptr), "microseconds is a null pointer");
  refused(xtk_witness(get(), 2, &witness),
          "there is no row 2; the last launch or selection had 2");
  EXPECT_EQ(candidate_.witness(1).live, 0);
  witness.struct_size = 4;
  refused(xtk_witness(get(), 0, &witness), "witness has a struct_size of 4");
}

// A list that runs out of its buffer is reported with the buffer's name; the
// candidate goes on.
TEST_F(AbiOpen, OverflowIsReported) {
  const std::vector<int32_t> row = {0};
  candidate_.write(XTK_REQUESTS, 0, row);
  candidate_.write(XTK_POSITIONS, 0, std::vector<int32_t>{9});
  candidate_.write(XTK_SLOTS, 0, std::vector<int32_t>{73});
  candidate_.write(XTK_PAGE_TABLE, 0, std::vector<int32_t>{1});
  candidate_.write(XTK_INDPTR, 0, std::vector<int32_t>{4195});
  const xtk_launch_args launch{.struct_size = sizeof(launch),
                               .arm = "base",
                               .layer = 0,
                               .kind = XTK_KIND_INDEX,
                               .rows = 1,
                               .partials = 1};
  refused(xtk_launch(get(), &launch), "list", XTK_FAILED);
  candidate_.write(XTK_INDPTR, 0, std::vector<int32_t>{4190});
  candidate_.check(xtk_launch(get(), &launch));
}

}  // namespace
}  // namespace exact_topk::tests
