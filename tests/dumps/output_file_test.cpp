// SPDX-License-Identifier: Apache-2.0
#include "dumps/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dumps/mapped_file.h"
#include "tests/dumps/support.h"

namespace exact_topk::dumps {
namespace {

constexpr auto kYes = OutputFile::Sync::yes;
constexpr auto kNo = OutputFile::Sync::no;

TEST(OutputFile, WritesSmallAndLargePiecesInOrder) {
  const TempDir folder;
  std::string expected;
  OutputFile file(folder / "f");
  for (const std::size_t size : {1, 65535, 65536, 65537, 0, 200000, 3}) {
    const std::string piece(size, static_cast<char>('a' + size % 26));
    file.write(piece);
    expected += piece;
  }
  file.close(kYes);
  EXPECT_EQ(read_text(folder / "f"), expected);
}

TEST(OutputFile, TruncatesWhatWasThere) {
  const TempDir folder;
  write_text(folder / "f", "longer than the new contents");
  OutputFile file(folder / "f");
  file.write("short");
  file.close(kNo);
  EXPECT_EQ(read_text(folder / "f"), "short");
}

TEST(OutputFile, AFullDiskIsHeardAtCloseOfASmallFile) {
  OutputFile file("/dev/full");
  file.write("x");
  EXPECT_EQ(error_of([&] { file.close(kNo); }),
            "cannot write /dev/full: No space left on device");
}

TEST(OutputFile, AFullDiskIsHeardAtTheWriteOfALargePiece) {
  OutputFile file("/dev/full");
  EXPECT_EQ(error_of([&] { file.write(std::string(100000, 'x')); }),
            "cannot write /dev/full: No space left on device");
}

TEST(OutputFile, AnUnwritablePathIsNamed) {
  EXPECT_EQ(error_of([] { OutputFile file("/no/such/folder/f"); }),
            "cannot write /no/such/folder/f: No such file or directory");
  const TempDir folder;
  EXPECT_THAT(error_of([&] { OutputFile file(folder.path()); }),
              testing::HasSubstr("Is a directory"));
}

TEST(MappedFile, HoldsTheBytesThroughMoves) {
  const TempDir folder;
  write_text(folder / "f", "abc");
  write_text(folder / "empty", "");
  MappedFile file(folder / "f");
  const std::byte* address = file.bytes().data();
  MappedFile moved(std::move(file));
  EXPECT_EQ(moved.text(), "abc");
  EXPECT_EQ(moved.bytes().data(), address);
  moved = MappedFile(folder / "empty");
  EXPECT_TRUE(moved.bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  const TempDir folder;
  EXPECT_THAT(error_of([&] { MappedFile file(folder / "none"); }),
              testing::HasSubstr("none: No such file or directory"));
  EXPECT_THAT(error_of([&] { MappedFile file(folder.path()); }),
              testing::HasSubstr("it is no regular file"));
  ASSERT_EQ(run_program("mkfifo " + (folder / "fifo").string()).status, 0);
  EXPECT_THAT(error_of([&] { MappedFile file(folder / "fifo"); }),
              testing::HasSubstr("it is no regular file"));
}

}  // namespace
}  // namespace exact_topk::dumps
