// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/fork.h"

#include <gtest/gtest.h>

#include <string>

#include "forked_child.h"

namespace artifex_devices {
namespace {

std::string g_calls;

TEST(Fork, CountsTheForksOfAProcess) {
  const int64_t here = fork_generation();
  EXPECT_EQ(in_forked_child([&] {
              return std::to_string(fork_generation() - here) +
                     in_forked_child([&] { return std::to_string(fork_generation() - here); });
            }),
            "12");
  EXPECT_EQ(fork_generation(), here);
}

TEST(Fork, RunsHandlersInReverseBeforeAndInOrderAfter) {
  register_fork_handlers({[] { g_calls += "p1 "; }, [] { g_calls += "f1 "; }, [] { g_calls += "c1 "; }});
  register_fork_handlers({[] { g_calls += "p2 "; }, [] { g_calls += "f2 "; }, [] { g_calls += "c2 "; }});
  register_fork_handlers({nullptr, nullptr, nullptr});
  g_calls.clear();
  EXPECT_EQ(in_forked_child([] { return g_calls; }), "p2 p1 c1 c2 ");
  EXPECT_EQ(g_calls, "p2 p1 f1 f2 ");
}

TEST(Fork, PreparesHigherLevelsFirst) {
  register_fork_handlers({[] { g_calls += "p_high "; }, nullptr, [] { g_calls += "c_high "; }, 7});
  register_fork_handlers({[] { g_calls += "p_low "; }, nullptr, [] { g_calls += "c_low "; }, 5});
  g_calls.clear();
  const std::string calls = in_forked_child([] { return g_calls; });
  EXPECT_LT(calls.find("p_high"), calls.find("p_low"));
  EXPECT_LT(calls.find("c_low"), calls.find("c_high"));
}

TEST(Fork, SetsTheGenerationBeforeHandlersOfTheChild) {
  static int64_t seen = -1;
  register_fork_handlers({nullptr, nullptr, [] { seen = fork_generation(); }});
  const int64_t here = fork_generation();
  EXPECT_EQ(in_forked_child([&] { return std::to_string(seen - here); }), "1");
  EXPECT_EQ(seen, -1);
}

}  // namespace
}  // namespace artifex_devices
