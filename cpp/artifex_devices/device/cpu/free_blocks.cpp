// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/free_blocks.h"

namespace artifex_devices {
namespace {

bool is_before(const FreeBlock& a, const FreeBlock& b) noexcept {
  return a.capacity != b.capacity ? a.capacity < b.capacity : a.freed_at > b.freed_at;
}

// In a treap no block has a higher priority than its parent. Mixed as in SplitMix64, which makes the tree as deep as
// after random insertions.
uint64_t priority(const FreeBlock& block) noexcept {
  uint64_t bits = block.freed_at + 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
  return bits ^ (bits >> 31);
}

void split(FreeBlock* tree, const FreeBlock& at, FreeBlock** before, FreeBlock** after) noexcept {
  while (tree) {
    if (is_before(*tree, at)) {
      *before = tree;
      before = &tree->larger;
      tree = tree->larger;
    } else {
      *after = tree;
      after = &tree->smaller;
      tree = tree->smaller;
    }
  }
  *before = *after = nullptr;
}

// All blocks of `first` are before all blocks of `second`.
FreeBlock* joined(FreeBlock* first, FreeBlock* second) noexcept {
  FreeBlock* root = nullptr;
  FreeBlock** link = &root;
  while (first && second) {
    if (priority(*first) > priority(*second)) {
      *link = first;
      link = &first->larger;
      first = first->larger;
    } else {
      *link = second;
      link = &second->smaller;
      second = second->smaller;
    }
  }
  *link = first ? first : second;
  return root;
}

}  // namespace

void FreeBlocks::add(FreeBlock& block) noexcept {
  FreeBlock** link = &root_;
  while (*link && priority(**link) > priority(block)) {
    link = is_before(**link, block) ? &(*link)->larger : &(*link)->smaller;
  }
  FreeBlock* const below = *link;
  *link = &block;
  split(below, block, &block.smaller, &block.larger);
  block.older = newest_;
  block.newer = nullptr;
  (newest_ ? newest_->newer : oldest_) = &block;
  newest_ = &block;
  note_change(block.capacity);
}

void FreeBlocks::remove(FreeBlock& block) noexcept {
  FreeBlock** link = &root_;
  while (*link != &block) link = is_before(**link, block) ? &(*link)->larger : &(*link)->smaller;
  *link = joined(block.smaller, block.larger);
  (block.older ? block.older->newer : oldest_) = block.newer;
  (block.newer ? block.newer->older : newest_) = block.older;
  note_change(-block.capacity);
}

FreeBlock* FreeBlocks::best_fit(int64_t least, int64_t most) const noexcept {
  FreeBlock* best = nullptr;
  for (FreeBlock* block = root_; block;) {
    if (block->capacity >= least) {
      best = block;
      block = block->smaller;
    } else {
      block = block->larger;
    }
  }
  return best && best->capacity <= most ? best : nullptr;
}

}  // namespace artifex_devices
