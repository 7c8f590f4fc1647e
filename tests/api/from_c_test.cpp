// SPDX-License-Identifier: Apache-2.0
#include "tests/api/from_c.h"

#include <gtest/gtest.h>

TEST(FromC, EveryCallDoesWhatItMust) {
  EXPECT_EQ(from_c_first_wrong_line(), 0) << "in from_c.c";
}
