// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "artifex_devices/device/cpu/pages.h"

namespace artifex_devices {

inline constexpr int64_t kChunkBytes = int64_t{2} << 20;

/// The pages of a chunk of pinned memory: which are locked in RAM, and the number of blocks in use on each.
struct ChunkPages {
  static constexpr size_t kMostPages = kChunkBytes / kSmallestPage;
  using Set = std::bitset<kMostPages>;
  Set locked;  // written by the thread that is locking or unlocking
  std::array<uint16_t, kMostPages> users{};
  bool is_busy = false;  // a thread is locking or unlocking pages

  /// Locked pages without a block in use.
  Set unused() const noexcept {
    Set pages = locked;
    for (size_t page = 0; page < kMostPages; ++page) {
      if (users[page] > 0) pages[page] = false;
    }
    return pages;
  }
};

/// 2 MiB from which small blocks of any class are cut, front to back.
struct Chunk {
  std::byte* data = nullptr;
  int64_t cut = 0;                    // bytes at the beginning that are divided into blocks
  int64_t in_use = 0;                 // blocks with users
  std::unique_ptr<ChunkPages> pages;  // of pinned memory
  Chunk* next = nullptr;
};

}  // namespace artifex_devices
