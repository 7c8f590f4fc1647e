// SPDX-License-Identifier: Apache-2.0
#include "dumps/npy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/dumps/support.h"

namespace exact_topk::dumps {
namespace {

using Shape = std::vector<std::int64_t>;

// 10 bytes of prefix, 0x76 = 118 bytes of header: 128 in all.
std::string framed(const std::string& dictionary) {
  std::string header("\x93NUMPY\x01\x00\x76\x00", 10);
  header += dictionary;
  header.resize(127, ' ');
  return header + "\n";
}

TEST(Npy, HeaderIsWrittenByteForByte) {
  // Wholly by hand for the shape of SPEC section 8.
  const std::string vector(
      "\x93NUMPY\x01\x00\x76\x00"
      "{'descr': '<f4', 'fortran_order': False, 'shape': (8448,), }"
      "                                                         \n",
      128);
  EXPECT_EQ(npy_header(Dtype::f32, Shape{8448}), vector);
  EXPECT_EQ(npy_header(Dtype::i32, Shape{}),
            framed("{'descr': '<i4', 'fortran_order': False, 'shape': (), }"));
  EXPECT_EQ(
      npy_header(Dtype::f64, Shape{0}),
      framed("{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }"));
  EXPECT_EQ(
      npy_header(Dtype::u8, Shape{8, 8448}),
      framed("{'descr': '|u1', 'fortran_order': False, 'shape': (8, 8448), }"));
  EXPECT_EQ(
      npy_header(Dtype::bf16, Shape{1, 2, 3}),
      framed("{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2, 3), }"));
}

TEST(Npy, HeaderGrowsByWholeBlocksOf64) {
  // From what ends at the dictionary's brace up to the next multiple of 64,
  // with room for the newline: also where brace and newline fill a block
  // exactly.
  for (std::size_t dimensions = 0; dimensions < 40; ++dimensions) {
    const std::string header = npy_header(Dtype::f32, Shape(dimensions, 1000));
    const std::size_t end = header.rfind('}') + 1;
    EXPECT_EQ(header.size() % 64, 0u);
    EXPECT_EQ(header.back(), '\n');
    EXPECT_EQ(header.size(), (end + 1 + 63) / 64 * 64);
    const auto length = static_cast<unsigned char>(header[8]) +
                        256u * static_cast<unsigned char>(header[9]);
    EXPECT_EQ(length + 10u, header.size());
  }
}

TEST(Npy, HeaderEqualsNumpys) {
  if (run_program("/usr/bin/python3 -c 'import numpy'").status != 0) {
    GTEST_SKIP() << "python3 has no numpy";
  }
  const TempDir folder;
  const struct {
    Dtype dtype;
    const char* numpy;
    Shape shape;
  } cases[] = {{Dtype::f32, "<f4", {8448}},     {Dtype::i32, "<i4", {2048}},
               {Dtype::f64, "<f8", {}},         {Dtype::u8, "u1", {3, 8448}},
               {Dtype::bf16, "<u2", {2, 3, 4}}, {Dtype::f32, "<f4", {0}},
               {Dtype::f32, "<f4", {1}},        {Dtype::i32, "<i4", {8, 16384}},
               {Dtype::f32, "<f4", {1048640}},  {Dtype::u8, "u1", {0, 7}}};
  std::string script = "import numpy\n";
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    std::string shape;
    for (const std::int64_t d : cases[i].shape)
      shape += std::to_string(d) + ",";
    script += fmt::format("numpy.save('{}/{}.npy', numpy.zeros(({}), '{}'))\n",
                          folder.path().string(), i, shape, cases[i].numpy);
  }
  write_text(folder / "save.py", script);
  const ProgramResult result =
      run_program("/usr/bin/python3 " + (folder / "save.py").string());
  ASSERT_EQ(result.status, 0) << result.output;
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const std::string header = npy_header(cases[i].dtype, cases[i].shape);
    const std::string zeros(tensor_bytes(cases[i].dtype, cases[i].shape), '\0');
    EXPECT_EQ(header + zeros, read_text(folder / fmt::format("{}.npy", i)));
  }
}

TEST(Npy, SizesAreThoseOfTheDtypes) {
  EXPECT_EQ(tensor_bytes(Dtype::f32, Shape{2, 3}), 24u);
  EXPECT_EQ(tensor_bytes(Dtype::i32, Shape{5}), 20u);
  EXPECT_EQ(tensor_bytes(Dtype::f64, Shape{}), 8u);
  EXPECT_EQ(tensor_bytes(Dtype::u8, Shape{7}), 7u);
  EXPECT_EQ(tensor_bytes(Dtype::bf16, Shape{7}), 14u);
  EXPECT_EQ(tensor_bytes(Dtype::f32, Shape{0, 9}), 0u);
}

TEST(Npy, ImpossibleShapesAreRefused) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(error_of([&] {
              tensor_bytes(Dtype::u8, Shape{4, -1});
            }),
            "(4, -1) is no shape of a tensor");
  EXPECT_THAT(error_of([&] { tensor_bytes(Dtype::f32, Shape{huge}); }),
              testing::HasSubstr("is no shape"));
  EXPECT_THAT(error_of([&] {
                tensor_bytes(Dtype::u8, Shape{huge, 3});
              }),
              testing::HasSubstr("is no shape"));
  EXPECT_THAT(error_of([&] { npy_header(Dtype::u8, Shape(30000, 1)); }),
              testing::HasSubstr("30000 dimensions"));
}

TEST(Npy, NamesGoBothWays) {
  for (const Dtype dtype :
       {Dtype::f32, Dtype::i32, Dtype::f64, Dtype::u8, Dtype::bf16}) {
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_name(Dtype::bf16), "bf16");
  EXPECT_EQ(error_of([] { dtype_from_name("f16"); }),
            "\"f16\" is no dtype of a dumped tensor");
}

}  // namespace
}  // namespace exact_topk::dumps
