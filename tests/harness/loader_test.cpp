// SPDX-License-Identifier: Apache-2.0
//
// Every fault of a library is one sentence that names it.
#include "harness/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/open_candidate.h"

namespace exact_topk::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string bad(const std::string& fault) {
  return EXACT_TOPK_BINARY_DIR "/tests/bad_candidate_" + fault + ".so";
}

std::string refusal(const std::string& path) {
  try {
    Library::open(path, 60);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Library, DescribesOurOwn) {
  const Library library = Library::open("cpu", 60);
  EXPECT_FALSE(library.foreign());
  EXPECT_EQ(library.describe().device, "cpu");
  EXPECT_EQ(library.describe().arms.front(), "base");
  EXPECT_EQ(library.describe().stages,
            uint32_t{XTK_STAGE_LAUNCH | XTK_STAGE_SCORE | XTK_STAGE_SELECT});
}

TEST(Library, RefusesInOneSentence) {
  const auto refused_for = [](const std::string& path, const std::string& why) {
    EXPECT_THAT(refusal(path),
                AllOf(HasSubstr(path), HasSubstr(why), Not(HasSubstr("\n"))));
  };
  refused_for("/nowhere/kernel.so", "there is no such file");
  refused_for(bad("WRONG_VERSION"),
              "its ABI version is 7, this program's is 1");
  refused_for(bad("NO_VERSION"), "does not export xtk_abi_version");
  refused_for(bad("NO_OPEN"), "does not export xtk_open");
  refused_for(bad("NO_SELECT"),
              "does not export xtk_select, which the select stage needs");
  refused_for(bad("NO_STAGE"), "offers no stage");
  refused_for(bad("NO_ARM"), "names no arm");
  refused_for(bad("UNKNOWN_CONTRACT"), "contract 'mostly right' is unknown");
}

TEST(Library, RefusesAFileThatIsNoLibrary) {
  const std::string path = ::testing::TempDir() + "no_library.so";
  std::ofstream(path) << "text";
  EXPECT_THAT(refusal(path),
              AllOf(HasSubstr(path), HasSubstr("cannot be loaded"),
                    Not(HasSubstr("\n"))));
}

xtk_status open_status(const std::string& fault, std::string& sentence) {
  const Library library = Library::open(bad(fault), 60);
  try {
    const xtk_open_options options{};
    Candidate(library, options);
  } catch (const CandidateError& error) {
    sentence = error.what();
    return error.status;
  }
  return XTK_OK;
}

TEST(Candidate, ThatDoesNotOpenSaysWhy) {
  std::string sentence;
  EXPECT_EQ(open_status("NO_DEVICE", sentence), XTK_NO_DEVICE);
  EXPECT_THAT(sentence,
              AllOf(HasSubstr("xtk_open"), HasSubstr("there is a reason")));
  EXPECT_EQ(open_status("OPEN_FAILS", sentence), XTK_FAILED);
  EXPECT_EQ(open_status("OPEN_THROWS", sentence), XTK_FAILED);
  EXPECT_THAT(sentence, AllOf(HasSubstr("threw from xtk_open"),
                              HasSubstr("thrown on purpose")));
}

}  // namespace
}  // namespace exact_topk::harness
