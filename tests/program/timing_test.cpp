// SPDX-License-Identifier: Apache-2.0
//
// time_topk as a user runs it here, on the simulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/program/run_program.h"

namespace exact_topk::tests {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Ran time_topk(const std::string& arguments) {
  return run_shell(program("time_topk") + ' ' + small() +
                   "--tp 1 --rows 2 --cache random --rowset chain --launches 1 "
                   "--steps 1 --trials 1 --replays 2 " +
                   arguments);
}

TEST(Timing, RefusesToCallSimulatorTimesKernelTimes) {
  const Ran ran = time_topk("");
  EXPECT_EQ(ran.status, 2) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("time_topk: "));
  EXPECT_THAT(ran.err, HasSubstr("a replay is no kernel time"));
}

TEST(Timing, ACaptureIsNotTimed) {
  EXPECT_EQ(time_topk("--capture x").status, 2);
}

TEST(Timing, ReportsHoldEveryPartOfEveryArm) {
  const Scratch scratch;
  const Ran ran =
      time_topk("--simulator --arm base,head --csv " + scratch.path("t.csv") +
                " --json " + scratch.path("t.json"));
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("simulator time, not a kernel time"));
  EXPECT_THAT(ran.out, HasSubstr("4573 GB/s and 790 TFLOP/s"));
  EXPECT_THAT(ran.out, HasSubstr("\nchange     head           whole"));
  const std::string csv = read_text(scratch.path("t.csv"));
  EXPECT_THAT(csv, StartsWith("case,arm,part,mean_us,first_us,second_us,"
                              "floor_us,flagged,clock\n"));
  // Two arms of a whole, four parts and an empty launch each.
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * 6);
  const auto json = nlohmann::json::parse(read_text(scratch.path("t.json")));
  const auto& times = json.at("cases").at(0).at("times");
  ASSERT_EQ(times.size(), 12);
  EXPECT_EQ(times.at(0).at("part"), "whole");
  EXPECT_EQ(times.at(0).at("clock"), "simulator");
  EXPECT_GT(times.at(0).at("wall").get<double>(), 0);
}

TEST(Timing, TheModelsOrderIsOneCase) {
  const Ran ran = run_shell(program("time_topk") + ' ' + small() +
                            "--tp 2 --rows 2 --cache random --rowset chain "
                            "--order model --launches 4 --steps 1 --trials 1 "
                            "--replays 1 --simulator");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\ncases      1\n"));
  EXPECT_THAT(ran.out, HasSubstr("/launches=4/steps=1/order=model "));
  EXPECT_THAT(ran.out, HasSubstr("\ntime       base           whole"));
}

TEST(Timing, PeersAreLookedAtBeforeTheFirstCase) {
  const Ran missing = time_topk("--simulator --peer /no/such.so");
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("/no/such.so"));
  EXPECT_EQ(missing.out.find("PASSED"), std::string::npos);
  const std::string cpu = program("../lib/exact_topk_cpu.so");
  for (const auto& [arguments, sentence] : std::map<std::string, std::string>{
           {"--peer a.so,,b.so",
            "--peer is 'a.so,,b.so', and one of its names is empty"},
           {"--peer a.so,a.so", "names a.so twice"},
           {"--peer " + cpu + ",cpu", "would be listed as exact_topk_cpu"},
           {"--peer " + cpu + " --order model",
            "--peer times the selection of one launch"}}) {
    const Ran ran = time_topk("--simulator " + arguments);
    EXPECT_EQ(ran.status, 2) << arguments;
    EXPECT_THAT(ran.err, HasSubstr(sentence));
    EXPECT_EQ(ran.out.find("PASSED"), std::string::npos);
  }
  const Ran alone =
      run_shell(program("time_topk") +
                " --stage select --rows 2 --rows-from rising --simulator "
                "--peer " +
                cpu);
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("--peer needs --stage launch"));
}

}  // namespace
}  // namespace exact_topk::tests
