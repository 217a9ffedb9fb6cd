// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/fork.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

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

class Noted final : AtFork {
 public:
  explicit Noted(std::string name, int level = 0) : AtFork(level), name_(std::move(name)) {}

 private:
  void before() override { g_calls += "b" + name_ + " "; }
  void in_parent() override { g_calls += "p" + name_ + " "; }
  void in_child() override { g_calls += "c" + name_ + " "; }

  std::string name_;
};

TEST(Fork, RunsPartsInReverseBeforeAndInOrderAfter) {
  new Noted("1");
  new Noted("2");
  g_calls.clear();
  EXPECT_EQ(in_forked_child([] { return g_calls; }), "b2 b1 c1 c2 ");
  EXPECT_EQ(g_calls, "b2 b1 p1 p2 ");
}

TEST(Fork, BeginsWithHigherLevels) {
  new Noted("_high", 7);
  new Noted("_low", 5);
  g_calls.clear();
  const std::string calls = in_forked_child([] { return g_calls; });
  EXPECT_LT(calls.find("b_high"), calls.find("b_low"));
  EXPECT_LT(calls.find("c_low"), calls.find("c_high"));
}

TEST(Fork, HoldsALock) {
  static std::mutex mutex;
  static const auto is_free = [] {
    const bool got = mutex.try_lock();
    if (got) mutex.unlock();
    return got;
  };
  static bool was_free = true;
  class Look final : AtFork {  // made first, so that it runs when the lock is held
    void before() override { was_free = is_free(); }
  };
  new Look;
  new HeldOverFork(mutex);
  EXPECT_EQ(in_forked_child([] { return std::to_string(was_free) + std::to_string(is_free()); }), "01");
  EXPECT_TRUE(is_free());
}

TEST(Fork, GivesAChildAFreshObject) {
  static auto& number = *new FreshInChild<std::atomic<int>>;
  number.get() = 5;
  EXPECT_EQ(in_forked_child([] { return std::to_string(number.get()); }), "0");
  EXPECT_EQ(number.get(), 5);
}

TEST(Fork, TellsWhatIsOfTheParent) {
  const Generation here;
  EXPECT_FALSE(here.is_of_parent());
  EXPECT_EQ(in_forked_child(
                [&] { return std::to_string(here.is_of_parent()) + std::to_string(Generation().is_of_parent()); }),
            "10");
}

}  // namespace
}  // namespace artifex_devices
