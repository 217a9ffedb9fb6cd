// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/free_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace artifex_devices {
namespace {

TEST(FreeBlocks, ReturnTheSmallestAndNewestBlockThatFits) {
  FreeBlock a{.capacity = 30, .freed_at = 0};
  FreeBlock b{.capacity = 20, .freed_at = 1};
  FreeBlock c{.capacity = 20, .freed_at = 2};
  FreeBlocks blocks;
  EXPECT_EQ(blocks.best_fit(0, 100), nullptr);
  EXPECT_EQ(blocks.oldest_freed_at(), FreeBlocks::kNone);
  for (FreeBlock* each : {&a, &b, &c}) blocks.add(*each);
  EXPECT_EQ(blocks.best_fit(10, 100), &c);
  EXPECT_EQ(blocks.best_fit(20, 20), &c);
  EXPECT_EQ(blocks.best_fit(21, 100), &a);
  EXPECT_EQ(blocks.best_fit(21, 29), nullptr);
  EXPECT_EQ(blocks.best_fit(31, 100), nullptr);
  EXPECT_EQ(blocks.oldest(), &a);
  EXPECT_EQ(blocks.bytes(), 70);
  blocks.remove(a);
  EXPECT_EQ(blocks.oldest(), &b);
  EXPECT_EQ(blocks.oldest_freed_at(), 1);
  blocks.remove(c);
  EXPECT_EQ(blocks.best_fit(0, 100), &b);
  blocks.remove(b);
  EXPECT_EQ(blocks.oldest(), nullptr);
  EXPECT_EQ(blocks.bytes(), 0);
}

TEST(FreeBlocks, AgreeWithALinearSearch) {
  std::mt19937_64 random(3);
  std::vector<FreeBlock> owned(500);
  std::vector<FreeBlock*> in;  // the oldest first
  std::vector<FreeBlock*> out;
  for (FreeBlock& each : owned) out.push_back(&each);
  FreeBlocks blocks;
  for (uint64_t step = 0; step < 20'000; ++step) {
    if (!out.empty() && (in.empty() || random() % 2 == 0)) {
      std::swap(out[random() % out.size()], out.back());
      FreeBlock* block = out.back();
      out.pop_back();
      block->capacity = static_cast<int64_t>(random() % 40);
      block->freed_at = step;
      blocks.add(*block);
      in.push_back(block);
    } else {
      const auto at = in.begin() + static_cast<std::ptrdiff_t>(random() % in.size());
      blocks.remove(**at);
      out.push_back(*at);
      in.erase(at);
    }
    const auto least = static_cast<int64_t>(random() % 40);
    const int64_t most = least + static_cast<int64_t>(random() % 8);
    FreeBlock* best = nullptr;
    for (FreeBlock* each : in) {
      if (each->capacity < least || each->capacity > most) continue;
      if (!best || each->capacity <= best->capacity) best = each;
    }
    ASSERT_EQ(blocks.best_fit(least, most), best) << step;
    ASSERT_EQ(blocks.oldest(), in.empty() ? nullptr : in.front()) << step;
  }
}

}  // namespace
}  // namespace artifex_devices
