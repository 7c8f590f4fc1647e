// SPDX-License-Identifier: Apache-2.0
#include "cases/geometry_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

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
  // A geometry whose one fault is this field, in place of its own.
  const auto with = [&](const std::string& field) {
    const std::string name = field.substr(1, field.find('"', 1) - 1);
    auto rest = nlohmann::json::parse(std::string("{") + kSmall + "}");
    rest.erase(name);
    return refusal("{" + field + ", " + rest.dump().substr(1));
  };
  EXPECT_EQ(refusal("{"), "is not JSON: byte 2 cannot be parsed");
  EXPECT_EQ(refusal("[]"), "does not hold a JSON object");
  EXPECT_EQ(refusal("{}"), "lacks the field hidden");
  EXPECT_EQ(refusal(R"({"hidden": 64, "q_lora": 64, "heads": 8})"),
            "lacks the field theta");
  EXPECT_EQ(with(R"("hiden": 3)"), R"(has the unknown field "hiden")");
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
  // A number that no f64 holds, a field of two lines, a field that comes twice:
  // the library's own words, or its silence, are not for the user.
  EXPECT_EQ(with(R"("rms_eps": 1e999)"),
            "holds a number that is too large for f64");
  EXPECT_EQ(with(R"("a\nb": 1)"), R"(has the unknown field "a\nb")");
  EXPECT_EQ(refusal(std::string("{") + kSmall + R"(, "hidden": 128})"),
            R"(repeats the field "hidden")");
  EXPECT_EQ(with(R"("k": 5, "k": 5)"), R"(repeats the field "k")");
  for (const char* value : {"null", "true", "\"64\"", "[64]", "{\"k\": 64}",
                            "64.5", "-64", "18446744073709551615"})
    EXPECT_EQ(with(std::string("\"k\": ") + value),
              std::string("has k = ") + nlohmann::json::parse(value).dump() +
                  "; it takes an integer from 1 to 2048");
  for (const char* value : {"null", "[]", "\"1e-5\"", "{\"k\": 1}"})
    EXPECT_EQ(with(std::string("\"rms_eps\": ") + value),
              std::string("has rms_eps = ") +
                  nlohmann::json::parse(value).dump() +
                  "; it takes a number above 0");
}

TEST(GeometryFile, ANameWithASlashOrJsonIsAFileAndAnyOtherAPreset) {
  const Folder folder;
  const std::string geometry = std::string("{") + kSmall + "}";
  EXPECT_EQ(find_geometry(folder.write("tiny", geometry)).name, "tiny");
  EXPECT_EQ(sentence([] { find_geometry("glm54"); }),
            "--geometry glm54 is no preset (glm53, glm51, dsv32); the name of "
            "a file holds a slash or ends in .json");
  EXPECT_EQ(sentence([] { find_geometry("absent.json"); }),
            "--geometry absent.json cannot be read: No such file or directory");
  EXPECT_EQ(sentence([] { find_geometry("./glm53"); }),
            "--geometry ./glm53 is named like the preset glm53");
  // Whatever follows the stem, its cases would be named like the preset's.
  for (const char* file : {"glm53", "glm53.json", "glm53.txt"}) {
    const std::string path = folder.write(file, geometry);
    EXPECT_EQ(sentence([&] { find_geometry(path); }),
              "--geometry " + path + " is named like the preset glm53");
  }
}

TEST(GeometryFile, OnlyARegularFileIsRead) {
  const Folder folder;
  const std::string fifo = folder.write("a", "") + ".fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path :
       {fifo, std::string("/tmp"), std::string("/dev/zero")})
    EXPECT_EQ(sentence([&] { find_geometry(path); }),
              "--geometry " + path + " cannot be read: it is no regular file");
  const std::string large = folder.write("large.json", "");
  std::filesystem::resize_file(large, uint64_t{1} << 40);  // sparse
  EXPECT_EQ(sentence([&] { find_geometry(large); }),
            "--geometry " + large +
                " cannot be read: it has 1099511627776 bytes, and at most "
                "16777216 are taken");
}

}  // namespace
}  // namespace exact_topk::cases
