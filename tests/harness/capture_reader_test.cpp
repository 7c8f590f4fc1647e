// SPDX-License-Identifier: Apache-2.0
//
// What a capture says, and every way in which one may be malformed: one
// sentence that names the tensor (or the metadata) and the fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <immintrin.h>

#include <bit>
#include <functional>

#include "harness/capture.h"
#include "oracle/formats.h"
#include "tests/harness/capture_file.h"

namespace exact_topk::harness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CaptureReader, ReadsASelection) {
  CaptureFile file;
  const Capture capture(
      selection(file)
          .set<int32_t>("starts", "I32", {2}, {10, 107})
          .set<int32_t>("topk", "I32", {2, 4}, {96, 97, 98, 100, 0, 1, 2, -1})
          .path());
  EXPECT_EQ(capture.rows(), 2);
  EXPECT_EQ(capture.k(), 4);
  EXPECT_EQ(capture.contract(), oracle::Contract::kSet);
  EXPECT_FALSE(capture.has_query());
  EXPECT_EQ(capture.keys(0), 100);
  EXPECT_EQ(capture.longest(), 100);
  EXPECT_EQ(capture.scores(0).front(), 10.0f);
  EXPECT_EQ(capture.scores(0).back(), 109.0f);
  EXPECT_THAT(capture.scores(1), ElementsAre(107.0f, 108.0f, 109.0f));
  EXPECT_THAT(capture.entries(0), ElementsAre(96, 97, 98, 100));
  EXPECT_THAT(capture.positions(0), ElementsAre(96, 97, 98, Capture::kNoKey));
  EXPECT_THAT(capture.positions(1), ElementsAre(0, 1, 2, -1));
  EXPECT_THAT(capture.pages(0), ElementsAre(0, 1));
}

TEST(CaptureReader, TakesSlotsToPositions) {
  CaptureFile file;
  // The last key (page 3, token 1), the slot past it, one of a page that the
  // row does not have, and one beyond any int.
  const Capture capture(
      query_group(file)
          .set<int64_t>("topk", "I64", {1, 4},
                        {3 * 64 + 1, 3 * 64 + 2, 4 * 64, int64_t{5 * 64} << 32})
          .path());
  EXPECT_THAT(
      capture.positions(0),
      ElementsAre(129, Capture::kNoKey, Capture::kNoKey, Capture::kNoKey));
  EXPECT_EQ(capture.key_scale(0, 65), 0.25f);  // 65 % 3 is 2
}

TEST(CaptureReader, QueriesOfEveryFormatAreExact) {
  CaptureFile file;
  query_group(file);
  std::vector<float> f32(256, 0);
  f32[5] = 1 + 0x1p-23f;
  EXPECT_EQ(
      Capture(file.set("index_q", "F32", {1, 2, 128}, f32).path()).query(0)[5],
      1 + 0x1p-23);
  std::vector<uint16_t> f16(256, 0);
  f16[5] = 0x0001;  // the least subnormal
  EXPECT_EQ(
      Capture(file.set("index_q", "F16", {1, 2, 128}, f16).path()).query(0)[5],
      0x1p-24);
  std::vector<uint8_t> f8(256, 0);
  f8[5] = 0x80;    // -0 in e4m3fn, whatever the cache is
  f8[130] = 0x3C;  // 1.5, in head 1
  file.set("index_q", "F8_E4M3", {1, 2, 128}, f8)
      .set<float>("q_scale", "F32", {1, 2}, {3.0f, 0.1f})
      .meta("fp8", "e4m3fnuz");
  const Capture fp8(file.path());
  EXPECT_EQ(fp8.query(0)[5], 0.0);
  EXPECT_EQ(fp8.query(0)[130], 1.5 * double{0.1f});
  EXPECT_EQ(fp8.geometry().fp8, oracle::Fp8::kE4m3fnuz);
}

TEST(CaptureReader, F16IsThatOfTheProcessor) {
  for (uint32_t code = 0; code <= 0xFFFF; ++code) {
    const auto half = static_cast<uint16_t>(code);
    const float value = oracle::f16_to_f32(half);
    const float processors = _cvtsh_ss(half);
    if (processors != processors) {
      EXPECT_TRUE(value != value) << code;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(value),
              std::bit_cast<uint32_t>(processors))
        << code;
    // Both neighbours in f32 and the midpoints round alike.
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    for (const uint32_t near : {bits - 1, bits, bits + 1, bits + 0xFFF,
                                bits + 0x1000, bits + 0x1001}) {
      const float x = std::bit_cast<float>(near);
      if (x == x) {
        ASSERT_EQ(oracle::f32_to_f16(x), _cvtss_sh(x, 0)) << near;
      }
    }
  }
}

struct Fault {
  const char* name;                         // of the test
  std::function<void(CaptureFile&)> spoil;  // a good capture
  const char* sentence;                     // part of the message
};

class CaptureFault : public testing::TestWithParam<Fault> {};

TEST_P(CaptureFault, IsOneSentence) {
  CaptureFile file;
  query_group(file);
  EXPECT_NO_THROW(Capture{file.path()});
  GetParam().spoil(file);
  const std::string path = file.path();
  try {
    const Capture capture(path);
    FAIL() << "the capture was taken";
  } catch (const std::runtime_error& error) {
    const std::string sentence = error.what();
    EXPECT_TRUE(sentence.starts_with(path + ": ")) << sentence;
    EXPECT_THAT(sentence, HasSubstr(GetParam().sentence));
    EXPECT_EQ(sentence.find('\n'), std::string::npos);
  }
}

const std::vector<float> kScores(130);

INSTANTIATE_TEST_SUITE_P(
    Capture, CaptureFault,
    testing::Values(
        Fault{"NoScores", [](CaptureFile& f) { f.drop("scores"); },
              "\"scores\" is missing"},
        Fault{"NoLengths", [](CaptureFile& f) { f.drop("lengths"); },
              "\"lengths\" is missing"},
        Fault{"NoTopk", [](CaptureFile& f) { f.drop("topk"); },
              "\"topk\" is missing"},
        Fault{"ScoresDtype",
              [](CaptureFile& f) {
                f.set("scores", "F64", {1, 130}, std::vector<double>(130));
              },
              "\"scores\" is F64, and must be F32 or F16 or BF16"},
        Fault{"ScoresShape",
              [](CaptureFile& f) { f.set("scores", "F32", {130}, kScores); },
              "\"scores\" has the shape [130], and must have [any, any]"},
        Fault{
            "LengthsDtype",
            [](CaptureFile& f) { f.set<float>("lengths", "F32", {1}, {130}); },
            "\"lengths\" is F32"},
        Fault{"LengthsShape",
              [](CaptureFile& f) {
                f.set<int32_t>("lengths", "I32", {2}, {1, 1});
              },
              "\"lengths\" has the shape [2], and must have [1]"},
        Fault{
            "LengthNegative",
            [](CaptureFile& f) { f.set<int32_t>("lengths", "I32", {1}, {-1}); },
            "\"lengths\" has -1 in row 0"},
        Fault{"LengthBeyond",
              [](CaptureFile& f) {
                f.set<int32_t>("lengths", "I32", {1}, {131});
              },
              "\"lengths\" has 131 in row 0, and must be from 0 to the 130"},
        Fault{
            "StartNegative",
            [](CaptureFile& f) { f.set<int32_t>("starts", "I32", {1}, {-1}); },
            "\"starts\" has -1 in row 0"},
        Fault{"StartBeyond",
              [](CaptureFile& f) { f.set<int64_t>("starts", "I64", {1}, {1}); },
              "\"starts\" has 1 in row 0, whose 130 keys"},
        Fault{"TopkDtype",
              [](CaptureFile& f) {
                f.set<float>("topk", "F32", {1, 1}, {1});
              },
              "\"topk\" is F32"},
        Fault{"TopkRows",
              [](CaptureFile& f) {
                f.set<int32_t>("topk", "I32", {2, 1}, {1, 1});
              },
              "\"topk\" has the shape [2, 1]"},
        Fault{"TopkEmpty",
              [](CaptureFile& f) {
                f.set<int32_t>("topk", "I32", {1, 0}, {});
              },
              "\"topk\" has 0 entries a row"},
        Fault{"NoPageTable", [](CaptureFile& f) { f.drop("page_table"); },
              "\"page_table\" is missing"},
        Fault{"PageTableNarrow",
              [](CaptureFile& f) {
                f.set<int32_t>("page_table", "I32", {1, 2}, {5, 2});
              },
              "\"page_table\" has 2 pages a row, and a row of 130 keys has 3"},
        Fault{"PageTableI64",
              [](CaptureFile& f) {
                f.set<int64_t>("page_table", "I64", {1, 3}, {5, 2, 3});
              },
              "\"page_table\" is I64"},
        Fault{"PageBeyond",
              [](CaptureFile& f) {
                f.set<int32_t>("page_table", "I32", {1, 3}, {5, 6, 3});
              },
              "\"page_table\" has page 6 in row 0, and must be from 0 to 5"},
        Fault{"PageNegative",
              [](CaptureFile& f) {
                f.set<int32_t>("page_table", "I32", {1, 3}, {5, -1, 3});
              },
              "\"page_table\" has page -1 in row 0"},
        Fault{"PageTwice",
              [](CaptureFile& f) {
                f.set<int32_t>("page_table", "I32", {1, 3}, {5, 2, 5});
              },
              "\"page_table\" names page 5 twice in row 0"},
        Fault{"NoWeights", [](CaptureFile& f) { f.drop("head_weights"); },
              "\"head_weights\" is missing, which \"index_q\" needs"},
        Fault{"NoCache", [](CaptureFile& f) { f.drop("index_cache"); },
              "\"index_cache\" is missing"},
        Fault{"NoQuery", [](CaptureFile& f) { f.drop("index_q"); },
              "\"index_q\" is missing, which \"head_weights\" needs"},
        Fault{"NoQueryScale",
              [](CaptureFile& f) {
                f.set("index_q", "F8_E4M3", {1, 2, 128},
                      std::vector<uint8_t>(256));
              },
              "\"q_scale\" is missing"},
        Fault{"QueryScaleAlone",
              [](CaptureFile& f) {
                f.set<float>("q_scale", "F32", {1, 2}, {1, 1});
              },
              "\"q_scale\" goes with an F8_E4M3 \"index_q\", which is BF16"},
        Fault{
            "QueryDims",
            [](CaptureFile& f) {
              f.set("index_q", "BF16", {1, 2, 64}, std::vector<uint16_t>(128));
            },
            "\"index_q\" has the shape [1, 2, 64]"},
        Fault{"QueryHeadsNone",
              [](CaptureFile& f) {
                f.set<uint16_t>("index_q", "BF16", {1, 0, 128}, {});
              },
              "\"index_q\" has 0 heads"},
        Fault{"WeightsHeads",
              [](CaptureFile& f) {
                f.set<float>("head_weights", "F32", {1, 3}, {1, 1, 1});
              },
              "\"head_weights\" has the shape [1, 3], and must have [1, 2]"},
        Fault{"CacheBytes",
              [](CaptureFile& f) {
                f.set("index_cache", "U8", {6, 8447},
                      std::vector<uint8_t>(6 * 8447));
              },
              "\"index_cache\" has the shape [6, 8447]"},
        Fault{"CacheShort",
              [](CaptureFile& f) {
                f.drop("page_table").meta("entries", "position");
                f.set("index_cache", "U8", {2, 8448},
                      std::vector<uint8_t>(2 * 8448));
              },
              "\"index_cache\" has 2 pages, and a row of 130 keys"},
        Fault{"Contract",
              [](CaptureFile& f) { f.meta("contract", "repeatable"); },
              "metadata \"contract\" is 'repeatable', and must be"},
        Fault{"Entries", [](CaptureFile& f) { f.meta("entries", "index"); },
              "metadata \"entries\" is 'index'"},
        Fault{"Layout", [](CaptureFile& f) { f.meta("page_layout", "hnd"); },
              "metadata \"page_layout\" is 'hnd'"},
        Fault{"Fp8", [](CaptureFile& f) { f.meta("fp8", "e5m2"); },
              "metadata \"fp8\" is 'e5m2'"}),
    [](const auto& test) { return test.param.name; });

TEST(CaptureReader, IgnoresWhatItDoesNotKnow) {
  CaptureFile file;
  const Capture capture(query_group(file)
                            .set<float>("something", "F32", {2}, {1, 2})
                            .meta("format", "pt")
                            .path());
  EXPECT_EQ(capture.contract(), oracle::Contract::kBase);
}

TEST(CaptureReader, ReadsNoPageOfTheTableThatTheRowDoesNotHave) {
  CaptureFile file;
  const Capture capture(
      query_group(file)
          .set<int32_t>("page_table", "I32", {1, 5}, {5, 2, 3, 5, -9})
          .path());
  EXPECT_THAT(capture.pages(0), ElementsAre(5, 2, 3));
}

}  // namespace
}  // namespace exact_topk::harness
