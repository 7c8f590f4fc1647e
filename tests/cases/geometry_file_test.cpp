// SPDX-License-Identifier: Apache-2.0
#include "cases/geometry_file.h"

#include <gtest/gtest.h>

#include "tests/cases/support.h"

namespace exact_topk::cases {
namespace {

constexpr const char* kSmall =
    R"("hidden": 128, "q_lora": 64, "heads": 8, "theta": 1e4)";

TEST(GeometryFile, PresetsGoByName) {
  EXPECT_EQ(find_geometry("glm53"), oracle::glm53());
  EXPECT_EQ(find_geometry("glm51").theta, 1e6);
  EXPECT_EQ(find_geometry("dsv32").heads, 64);
}

TEST(GeometryFile, FieldsArrive) {
  const Folder folder;
  const std::string path =
      folder.write("my-model_1.2.json",
                   R"({"hidden": 192, "q_lora": 320, "heads": 128, "theta": 5,
      "k": 512, "rope": "half-split", "hadamard": false, "scale": "f32", "fp8": "e4m3fnuz", "page_layout": "preshuffled16",
      "layer_norm_eps": 1e-3, "rms_eps": 2e-6, "head_dim": 128, "rope_dims": 64, "page_tokens": 64})");
  oracle::Geometry expected;
  expected.name = "my-model_1.2";
  expected.hidden = 192;
  expected.q_lora = 320;
  expected.heads = 128;
  expected.theta = 5;
  expected.k = 512;
  expected.rope = oracle::Rope::kHalfSplit;
  expected.hadamard = false;
  expected.scale = oracle::Scale::kF32;
  expected.fp8 = oracle::Fp8::kE4m3fnuz;
  expected.page_layout = oracle::PageLayout::kPreshuffled16;
  expected.layer_norm_eps = 1e-3f;
  expected.rms_eps = 2e-6f;
  EXPECT_EQ(find_geometry(path), expected);
}

TEST(GeometryFile, IsNamedAfterItsStemInCasesAndReproducesByPath) {
  const Folder folder;
  const std::string path =
      folder.write("tiny.json", std::string("{") + kSmall + "}");
  const Case c = case_of(
      "--rows 2 --cache ties --rowset chain --scale f32 --geometry " + path);
  EXPECT_EQ(name(c),
            "kind=index/tp=8/rows=2/cache=ties/rowset=chain/pos=8447/"
            "geometry=tiny/scale=f32");
  EXPECT_EQ(expand(parse_case_options(repro_arguments(c)), 1),
            std::vector<Case>{c});
}

TEST(GeometryFile, EveryFaultIsASentenceWithFileAndField) {
  const Folder folder;
  const auto refusal = [&](const std::string& text,
                           const std::string& file = "g.json") {
    const std::string path = folder.write(file, text);
    std::string message = sentence([&] { find_geometry(path); });
    EXPECT_TRUE(message.starts_with("--geometry " + path + " ")) << message;
    return message.substr(std::min(message.size(), path.size() + 12));
  };
  const auto with = [&](const std::string& field) {
    return refusal(std::string("{") + kSmall + ", " + field + "}");
  };
  EXPECT_EQ(refusal("{"), "is not JSON: byte 2 cannot be parsed");
  EXPECT_EQ(refusal("[]"), "does not hold a JSON object");
  EXPECT_EQ(refusal("{}"), "lacks the field hidden");
  EXPECT_EQ(refusal(R"({"hidden": 64, "q_lora": 64, "heads": 8})"),
            "lacks the field theta");
  EXPECT_EQ(with(R"("hiden": 3)"), "has the unknown field 'hiden'");
  EXPECT_EQ(with(R"("hidden": 100)"),
            "has hidden = 100; it takes a multiple of 64 from 64 to 65536");
  EXPECT_EQ(
      with(R"("hidden": "6144")"),
      "has hidden = \"6144\"; it takes a multiple of 64 from 64 to 65536");
  EXPECT_EQ(with(R"("q_lora": 0)"),
            "has q_lora = 0; it takes a multiple of 64 from 64 to 65536");
  EXPECT_EQ(with(R"("q_lora": 64.0)"),
            "has q_lora = 64.0; it takes a multiple of 64 from 64 to 65536");
  EXPECT_EQ(with(R"("heads": 4)"),
            "has heads = 4; it takes a multiple of 8 from 8 to 128");
  EXPECT_EQ(with(R"("heads": 136)"),
            "has heads = 136; it takes a multiple of 8 from 8 to 128");
  EXPECT_EQ(with(R"("k": 2049)"),
            "has k = 2049; it takes an integer from 1 to 2048");
  EXPECT_EQ(with(R"("k": 0)"), "has k = 0; it takes an integer from 1 to 2048");
  EXPECT_EQ(with(R"("theta": -1)"),
            "has theta = -1; it takes a number above 0");
  EXPECT_EQ(with(R"("rope": "neox")"),
            "has rope = \"neox\"; it takes interleaved or half-split");
  EXPECT_EQ(with(R"("hadamard": "on")"),
            "has hadamard = \"on\"; it takes true or false");
  EXPECT_EQ(with(R"("scale": 1)"), "has scale = 1; it takes ue8m0 or f32");
  EXPECT_EQ(with(R"("fp8": "e5m2")"),
            "has fp8 = \"e5m2\"; it takes e4m3fn or e4m3fnuz");
  EXPECT_EQ(with(R"("page_layout": "x")"),
            "has page_layout = \"x\"; it takes plain or preshuffled16");
  EXPECT_EQ(with(R"("layer_norm_eps": 1)"),
            "has layer_norm_eps = 1; it takes a number between 0 and 1");
  EXPECT_EQ(with(R"("rms_eps": 0)"),
            "has rms_eps = 0; it takes a number above 0");
  EXPECT_EQ(with(R"("head_dim": 64)"), "has head_dim = 64; it takes 128 only");
  EXPECT_EQ(with(R"("rope_dims": 32)"), "has rope_dims = 32; it takes 64 only");
  EXPECT_EQ(with(R"("page_tokens": 1)"),
            "has page_tokens = 1; it takes 64 only");
  EXPECT_EQ(refusal("{}", "glm53.json"), "is named like the preset glm53");
  EXPECT_EQ(refusal("{}", "a b.json"),
            "has a name with other characters than letters, digits, dots, "
            "dashes and underscores");
  EXPECT_EQ(sentence([] { find_geometry("glm54"); }),
            "--geometry glm54 is neither a preset (glm53, glm51, dsv32) nor a "
            "file that can be read");
}

}  // namespace
}  // namespace exact_topk::cases
