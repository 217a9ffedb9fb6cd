// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/small_heap.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <vector>

#include "../base/mebibyte.h"

namespace artifex_devices {
namespace {

TEST(SizeClass, IsTheSmallestThatFits) {
  for (int64_t bytes = 1; bytes < kMappedFrom; bytes += bytes < 4096 ? 1 : 509) {
    const int size_class = class_of(bytes);
    ASSERT_GE(class_bytes(size_class), bytes);
    ASSERT_EQ(class_bytes(size_class) % 64, 0);
    ASSERT_TRUE(size_class == 0 || class_bytes(size_class - 1) < bytes);
    ASSERT_TRUE(bytes <= 512 || class_bytes(size_class) <= bytes + bytes / 4);
  }
}

/// A heap whose chunks have memory that nobody writes.
class SmallHeapTest : public testing::Test {
 protected:
  ~SmallHeapTest() override {
    for (SmallBlock* slab : headers_) operator delete(slab);
  }
  Chunk* chunk(size_t number) {
    while (chunks_.size() <= number) {
      memory_.push_back(std::make_unique_for_overwrite<std::byte[]>(kChunkBytes));
      chunks_.push_back(std::make_unique<Chunk>());
      chunks_.back()->data = memory_.back().get();
    }
    return chunks_[number].get();
  }
  /// A block of `bytes`, cut from `fresh` where the current chunk is full.
  SmallBlock* cut(int64_t bytes, Chunk* fresh = nullptr) {
    if (heap_.needs_headers()) {
      headers_.push_back(SmallHeap::new_headers());
      heap_.add_headers(headers_.back());
    }
    return heap_.cut(class_of(bytes), bytes, fresh);
  }

  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<SmallBlock*> headers_;
  SmallHeap heap_{nullptr};
};

TEST_F(SmallHeapTest, CutsBlocksFromTheFrontOfAChunk) {
  EXPECT_TRUE(heap_.needs_headers());
  EXPECT_EQ(cut(100), nullptr);  // no chunk
  const SmallBlock* first = cut(100, chunk(0));
  const SmallBlock* second = cut(600);
  EXPECT_EQ(first->device_data(), chunk(0)->data);
  EXPECT_EQ(first->bytes(), 100);
  EXPECT_EQ(second->device_data(), chunk(0)->data + 128);
  EXPECT_EQ(chunk(0)->cut, 128 + 640);
  EXPECT_EQ(chunk(0)->in_use, 2);
  EXPECT_EQ(heap_.num_chunks(), 1);
  EXPECT_EQ(heap_.cached_bytes(), 0);
}

TEST_F(SmallHeapTest, ReusesTheBlockOfTheClassThatWasFreedLast) {
  SmallBlock* first = cut(700, chunk(0));
  SmallBlock* second = cut(700);
  SmallBlock* other = cut(1000);
  for (SmallBlock* block : {first, second, other}) EXPECT_FALSE(heap_.give(block));
  EXPECT_EQ(heap_.cached_bytes(), 768 + 768 + 1024);
  EXPECT_EQ(heap_.reuse(class_of(650), 650), second);
  EXPECT_EQ(second->bytes(), 650);
  EXPECT_EQ(heap_.reuse(class_of(768), 768), first);
  EXPECT_EQ(heap_.reuse(class_of(700), 700), nullptr);
  EXPECT_EQ(heap_.cached_bytes(), 1024);
}

TEST_F(SmallHeapTest, CachesTheRestOfAFullChunkInTheLargestClasses) {
  cut(kMiB - 1, chunk(0));
  cut(700 << 10);  // takes 768 KiB: 256 KiB are left
  const SmallBlock* next = cut(300 << 10, chunk(1));
  EXPECT_EQ(next->device_data(), chunk(1)->data);
  EXPECT_EQ(chunk(0)->cut, kChunkBytes);
  EXPECT_EQ(heap_.cached_bytes(), 256 << 10);
  EXPECT_EQ(heap_.reuse(class_of(256 << 10), 1)->device_data(), chunk(0)->data + (1792 << 10));
  EXPECT_EQ(heap_.num_chunks(), 2);
}

TEST_F(SmallHeapTest, RemovesChunksWithoutABlockInUse) {
  SmallBlock* old = cut(kMiB - 1, chunk(0));
  SmallBlock* old_too = cut(kMiB - 1);
  SmallBlock* current = cut(kMiB - 1, chunk(1));
  EXPECT_FALSE(heap_.give(current));  // one empty chunk stays
  EXPECT_FALSE(heap_.give(old));
  EXPECT_FALSE(heap_.has_removable(false));
  EXPECT_TRUE(heap_.has_removable(true));
  EXPECT_TRUE(heap_.give(old_too));
  int64_t bytes = 0;
  EXPECT_EQ(heap_.remove_empty(false, bytes), chunk(0));
  EXPECT_EQ(chunk(0)->next, nullptr);
  EXPECT_EQ(bytes, 2 * kMiB);
  EXPECT_EQ(heap_.cached_bytes(), kMiB);
  EXPECT_EQ(heap_.chunks(), chunk(1));
  EXPECT_EQ(heap_.remove_empty(true, bytes), chunk(1));
  EXPECT_EQ(bytes, 3 * kMiB);
  EXPECT_EQ(heap_.cached_bytes(), 0);
  EXPECT_EQ(heap_.num_chunks(), 0);
  EXPECT_FALSE(heap_.has_removable(true));
  EXPECT_EQ(cut(100), nullptr);  // the removed chunk is no longer cut
}

TEST_F(SmallHeapTest, LeavesChunksWhosePagesAThreadIsLocking) {
  chunk(0)->pages = std::make_unique<ChunkPages>();
  heap_.give(cut(100, chunk(0)));
  chunk(0)->pages->is_busy = true;
  EXPECT_FALSE(heap_.has_removable(true));
  chunk(0)->pages->is_busy = false;
  EXPECT_TRUE(heap_.has_removable(true));
}

TEST(ChunkPages, AreUnusedWhereLockedWithoutABlock) {
  ChunkPages pages;
  pages.locked.set(3).set(4).set(9);
  pages.users[4] = 2;
  pages.users[5] = 1;
  EXPECT_EQ(pages.unused(), ChunkPages::Set().set(3).set(9));
}

}  // namespace
}  // namespace artifex_devices
