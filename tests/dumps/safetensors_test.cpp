// SPDX-License-Identifier: Apache-2.0
#include "dumps/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "tests/dumps/support.h"

namespace exact_topk::dumps {
namespace {

using testing::HasSubstr;

// A file of this header and data, header length first.
std::string file_of(const std::string& header, const std::string& data,
                    std::uint64_t length) {
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) {
    file[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i));
  }
  return file + header + data;
}
std::string file_of(const std::string& header, const std::string& data = "") {
  return file_of(header, data, header.size());
}

std::string fault_of(const std::string& contents) {
  const TempDir folder;
  const std::filesystem::path path = folder / "f.safetensors";
  write_text(path, contents);
  const std::string error = error_of([&] { Safetensors file(path); });
  EXPECT_TRUE(error.starts_with(path.string() + ": ")) << error;
  return error.substr(std::min(error.size(), path.string().size() + 2));
}

TEST(Safetensors, ReadsUnalignedDataOfEveryType) {
  const TempDir folder;
  // One odd byte first, so that every other tensor lies at an odd address
  // whatever the header's length is (both parities are tried).
  for (const std::string pad : {"", " "}) {
    const std::string header =
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
        R"("f":{"dtype":"F32","shape":[2],"data_offsets":[1,9]},)"
        R"("i":{"dtype":"I32","shape":[1,1],"data_offsets":[9,13]},)"
        R"("d":{"dtype":"F64","shape":[],"data_offsets":[13,21]},)"
        R"("l":{"dtype":"I64","shape":[1],"data_offsets":[21,29]},)"
        R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[29,31]},)"
        R"("e":{"dtype":"F32","shape":[0,5],"data_offsets":[4,4]},)"
        R"("__metadata__":{"contract":"base"}})" +
        pad;
    const std::string data(
        "\x07"
        "\x00\x00\x80\x3F\x00\x00\x00\xC0"
        "\xFE\xFF\xFF\xFF"
        "\x00\x00\x00\x00\x00\x00\xE0\x3F"
        "\x00\x00\x00\x00\x01\x00\x00\x00"
        "\x80\x3F",
        31);
    write_text(folder / "f", file_of(header, data));
    const Safetensors file(folder / "f");
    EXPECT_EQ(file.read<std::uint8_t>("a"), std::vector<std::uint8_t>{7});
    EXPECT_EQ(file.read<float>("f"), (std::vector<float>{1.0f, -2.0f}));
    EXPECT_EQ(file.read<std::int32_t>("i"), std::vector<std::int32_t>{-2});
    EXPECT_EQ(file.read<double>("d"), std::vector<double>{0.5});
    EXPECT_EQ(file.read<std::int64_t>("l"),
              std::vector<std::int64_t>{std::int64_t{1} << 32});
    EXPECT_EQ(file.read<std::uint16_t>("b"),
              std::vector<std::uint16_t>{0x3F80});
    EXPECT_TRUE(file.read<float>("e").empty());
    EXPECT_EQ(file.shape("i"), (std::vector<std::uint64_t>{1, 1}));
    EXPECT_TRUE(file.shape("d").empty());
    EXPECT_EQ(file.bytes("f").size(), 8u);
    EXPECT_EQ(file.at("b").dtype, "BF16");
    EXPECT_EQ(file.metadata().at("contract"), "base");
    EXPECT_EQ(file.tensors().size(), 7u);
    EXPECT_TRUE(file.has("a"));
    EXPECT_FALSE(file.has("z"));
    EXPECT_THAT(error_of([&] { file.at("z"); }), HasSubstr("no tensor \"z\""));
    EXPECT_THAT(error_of([&] { file.read<float>("b"); }),
                HasSubstr("tensor \"b\" is BF16, not F32"));
    EXPECT_THAT(error_of([&] { file.read<std::uint16_t>("f"); }),
                HasSubstr("tensor \"f\" is F32, not U16 or BF16 or F16"));
  }
}

TEST(Safetensors, MovesKeepTheirBytes) {
  const TempDir folder;
  write_text(folder / "f",
             file_of(R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                     "xy"));
  Safetensors file(folder / "f");
  const Safetensors moved(std::move(file));
  EXPECT_EQ(moved.read<std::uint8_t>("t"),
            (std::vector<std::uint8_t>{'x', 'y'}));
}

// One tensor "t" of these fields over 8 bytes of data.
std::string fault_of_tensor(const std::string& fields) {
  return fault_of(file_of("{\"t\":{" + fields + "}}", "01234567"));
}

TEST(Safetensors, HeaderFaults) {
  EXPECT_EQ(fault_of(""), "0 bytes hold no header length");
  EXPECT_EQ(fault_of("1234567"), "7 bytes hold no header length");
  EXPECT_EQ(fault_of(file_of("{}", "", 3)),
            "the header length 3 is beyond the file, which has 2 bytes after "
            "it");
  EXPECT_THAT(fault_of(file_of("{}", "", ~std::uint64_t{0})),
              HasSubstr("18446744073709551615 is beyond the file"));
  EXPECT_EQ(fault_of(file_of("[]")), "the header is no JSON object");
  EXPECT_EQ(fault_of(file_of("7")), "the header is no JSON object");
  EXPECT_THAT(fault_of(file_of("")), HasSubstr("the header is no JSON"));
  EXPECT_THAT(fault_of(file_of("{")), HasSubstr("the header is no JSON"));
  EXPECT_THAT(fault_of(file_of("{} x")), HasSubstr("the header is no JSON"));
  EXPECT_THAT(fault_of(file_of("{\"\xFF\":1}")),
              HasSubstr("the header is no JSON"));
  EXPECT_EQ(fault_of(file_of("{\"t\":1e999}")),
            "the header holds a number that is out of range");
  EXPECT_EQ(fault_of(file_of(R"({"__metadata__":[]})")),
            "the header's __metadata__ is no JSON object");
  EXPECT_EQ(fault_of(file_of(R"({"__metadata__":{"contract":1}})")),
            "metadata \"contract\" is no string");
}

TEST(Safetensors, AHeaderOver100MegabytesIsRefused) {
  const TempDir folder;
  const std::filesystem::path path = folder / "f";
  // A sparse file: the length alone must refuse it, before any parsing.
  write_text(path, file_of("", "", 100'000'001));
  std::filesystem::resize_file(path, 100'000'100);
  EXPECT_THAT(error_of([&] { Safetensors file(path); }),
              HasSubstr("the header of 100000001 bytes is over 100 MB"));
}

TEST(Safetensors, DuplicateNames) {
  const std::string t =
      R"("t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(fault_of(file_of("{" + t + "," + t + "}")),
            "the header holds \"t\" twice");
  EXPECT_EQ(
      fault_of_tensor(
          R"("dtype":"U8","dtype":"I8","shape":[8],"data_offsets":[0,8])"),
      "the header holds \"dtype\" twice");
  EXPECT_EQ(fault_of(file_of(R"({"__metadata__":{"a":"1","a":"2"}})")),
            "the header holds \"a\" twice");
}

TEST(Safetensors, TensorFaults) {
  EXPECT_EQ(fault_of(file_of("{\"t\":1}")), "tensor \"t\" is no JSON object");
  EXPECT_EQ(fault_of_tensor(R"("shape":[8],"data_offsets":[0,8])"),
            "tensor \"t\" has no dtype");
  EXPECT_EQ(fault_of_tensor(R"("dtype":8,"shape":[8],"data_offsets":[0,8])"),
            "tensor \"t\" has no dtype");
  EXPECT_EQ(
      fault_of_tensor(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])"),
      "tensor \"t\" has the unknown dtype \"F31\"");
  const std::string bad_shape =
      "tensor \"t\" has a shape that is no array of non-negative integers";
  for (const char* shape :
       {"", R"("shape":8,)", R"("shape":[-8],)", R"("shape":[8.0],)",
        R"("shape":["8"],)", R"("shape":[true],)", R"("shape":{"0":8},)",
        R"("shape":[18446744073709551616],)"}) {
    EXPECT_EQ(fault_of_tensor(
                  fmt::format(R"("dtype":"U8",{}"data_offsets":[0,8])", shape)),
              bad_shape)
        << shape;
  }
  const std::string bad_offsets =
      "tensor \"t\" has data_offsets that are no [begin, end]";
  for (const char* offsets :
       {"", R"(,"data_offsets":[8])", R"(,"data_offsets":[0,4,8])",
        R"(,"data_offsets":[-1,7])", R"(,"data_offsets":"0,8")",
        R"(,"data_offsets":[0,8.5])", R"(,"data_offsets":null)"}) {
    EXPECT_EQ(
        fault_of_tensor(R"("dtype":"U8","shape":[8])" + std::string(offsets)),
        bad_offsets)
        << offsets;
  }
}

TEST(Safetensors, OffsetFaults) {
  EXPECT_EQ(fault_of_tensor(R"("dtype":"U8","shape":[8],"data_offsets":[8,0])"),
            "tensor \"t\" begins at byte 8 and ends before it, at 0");
  EXPECT_EQ(fault_of_tensor(R"("dtype":"U8","shape":[9],"data_offsets":[0,9])"),
            "tensor \"t\" lies at bytes 0 to 9 of the data, but the file ends "
            "at byte 8 of it");
  EXPECT_EQ(
      fault_of_tensor(R"("dtype":"U8","shape":[0],"data_offsets":[9,9])"),
      "tensor \"t\" lies at bytes 9 to 9 of the data, but the file ends at "
      "byte 8 of it");
  EXPECT_THAT(
      fault_of_tensor(
          R"("dtype":"U8","shape":[8],"data_offsets":[18446744073709551608,18446744073709551615])"),
      HasSubstr("the file ends at byte 8"));
}

TEST(Safetensors, SizeFaults) {
  EXPECT_EQ(
      fault_of_tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"),
      "tensor \"t\" F32 [3] takes 12 bytes, but its offsets span 8");
  EXPECT_EQ(
      fault_of_tensor(R"("dtype":"F32","shape":[2,1],"data_offsets":[0,7])"),
      "tensor \"t\" F32 [2, 1] takes 8 bytes, but its offsets span 7");
  // 2^61 * 2^61 and 2^59 * 32 bits wrap to 0 in 64 bits: not equal to 0 bytes.
  EXPECT_THAT(
      fault_of_tensor(
          R"("dtype":"F32","shape":[2305843009213693952,2305843009213693952],"data_offsets":[0,0])"),
      HasSubstr("beyond any file's size"));
  EXPECT_THAT(
      fault_of_tensor(
          R"("dtype":"F32","shape":[576460752303423488],"data_offsets":[0,0])"),
      HasSubstr("beyond any file's size"));
  EXPECT_EQ(fault_of_tensor(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"),
            "tensor \"t\" F4 [3] takes 12 bits, no whole number of bytes");
}

TEST(Safetensors, LayoutFaults) {
  const auto two = [](int a0, int a1, int b0, int b1) {
    const auto tensor = [](const char* name, int begin, int end) {
      return fmt::format(
          R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name,
          end - begin, begin, end);
    };
    return file_of("{" + tensor("a", a0, a1) + "," + tensor("b", b0, b1) + "}",
                   "01234567");
  };
  EXPECT_EQ(fault_of(two(0, 5, 4, 8)),
            "tensor \"b\" overlaps tensor \"a\" by 1 bytes");
  EXPECT_EQ(fault_of(two(4, 8, 0, 5)),
            "tensor \"a\" overlaps tensor \"b\" by 1 bytes");
  EXPECT_EQ(fault_of(two(0, 8, 0, 8)),
            "tensor \"b\" overlaps tensor \"a\" by 8 bytes");
  EXPECT_EQ(fault_of(two(0, 8, 2, 4)),
            "tensor \"b\" overlaps tensor \"a\" by 2 bytes");
  EXPECT_EQ(fault_of(two(0, 3, 5, 8)),
            "tensor \"b\" begins 2 bytes after the end of tensor \"a\"");
  EXPECT_EQ(fault_of(two(1, 4, 4, 8)),
            "tensor \"a\" begins 1 bytes after the end of the header");
  EXPECT_EQ(fault_of(two(0, 3, 3, 6)),
            "the last 2 bytes of the file belong to no tensor");
}

TEST(Safetensors, ANameIsQuotedOnOneLine) {
  EXPECT_EQ(fault_of(file_of(R"({"a\nb":1})")),
            "tensor \"a\\nb\" is no JSON object");
}

TEST(Safetensors, EveryVectorAndCaptureOpens) {
  const std::filesystem::path data = EXACT_TOPK_TEST_DATA;
  const std::set<std::string> malformed = {"bad-truncated",
                                           "bad-header-length"};
  std::size_t opened = 0;
  for (const char* folder : {"vectors", "captures"}) {
    for (const std::string& name : names_in(data / folder)) {
      const std::filesystem::path path = data / folder / name;
      if (path.extension() != ".safetensors") continue;
      if (malformed.contains(path.stem().string())) {
        error_of([&] { Safetensors file(path); });
        continue;
      }
      const Safetensors file(path);
      EXPECT_FALSE(file.tensors().empty()) << name;
      EXPECT_FALSE(file.metadata().empty()) << name;
      ++opened;
    }
  }
  EXPECT_EQ(opened, 9u + 20u);
  const auto fault = [&](const std::string& name) {
    return error_of([&] { Safetensors file(data / "captures" / name); });
  };
  EXPECT_THAT(fault("bad-header-length.safetensors"),
              HasSubstr("header length"));
  // Its header names 49,152 bytes of data and the file holds 100 fewer.
  EXPECT_THAT(fault("bad-truncated.safetensors"),
              HasSubstr("the file ends at byte 49052"));
}

// The value of e4m3fn code 0x7E is the largest, 448: a whole file through the
// reader, against the definition of the format.
TEST(Safetensors, AVectorIsReadAsItIs) {
  const Safetensors file(std::filesystem::path(EXACT_TOPK_TEST_DATA) /
                         "vectors/e4m3.safetensors");
  ASSERT_EQ(file.tensors().size(), 1u);
  const std::vector<float> values =
      file.read<float>(file.tensors().begin()->first);
  ASSERT_EQ(values.size(), 256u);
  EXPECT_EQ(values[0x7E], 448.0f);
  EXPECT_EQ(values[0xFE], -448.0f);
  EXPECT_EQ(values[0x38], 1.0f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(values[0x80]), 0x80000000u);
}

}  // namespace
}  // namespace exact_topk::dumps
