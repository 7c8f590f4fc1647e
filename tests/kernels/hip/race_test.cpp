// SPDX-License-Identifier: Apache-2.0
// ThreadSanitizer as a GPU race detector: a clean kernel passes, a racing one
// ends its program with ThreadSanitizer's status.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

struct Outcome {
  int status;        // exit status of the program
  std::string said;  // its output
};

Outcome run(const std::string& mode) {
  const std::string command = std::string("TSAN_OPTIONS=exitcode=66 ") +
                              RACE_PROGRAM + " " + mode + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  Outcome outcome{-1, ""};
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr)
    outcome.said += buffer.data();
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(Race, CleanKernelsPass) {
  for (const std::string mode :
       {"barrier", "barrier-between", "counter", "own-elements"}) {
    const auto outcome = run(mode);
    EXPECT_EQ(outcome.status, 0) << mode << outcome.said;
    EXPECT_EQ(outcome.said, "") << mode;
  }
}

TEST(Race, RacesAreSeen) {
  for (const std::string mode :
       {"missing-barrier", "missing-barrier-between", "collective-for-barrier",
        "pair-for-counter", "same-element"}) {
    const auto outcome = run(mode);
    EXPECT_EQ(outcome.status, 66) << mode << outcome.said;
    EXPECT_NE(outcome.said.find("WARNING: ThreadSanitizer: data race"),
              std::string::npos)
        << mode;
  }
}

}  // namespace
