// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "artifex_devices/base/mutex.h"
#include "artifex_devices/checkpoint/boxes.h"

namespace artifex_devices {

/// Buffers of one piece for the workers of one save or restore. Their number is the maximum of threads that
/// used a buffer at the same time.
class PieceBuffers {
 public:
  class Buffer {
   public:
    explicit Buffer(PieceBuffers& all) : all_(all), memory_(all.take()) {}
    ~Buffer() { all_.give(std::move(memory_)); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    std::byte* data() const noexcept { return memory_.get(); }

   private:
    PieceBuffers& all_;
    std::unique_ptr<std::byte[]> memory_;
  };

  /// `threads`: the number of buffers that are cached.
  explicit PieceBuffers(int threads) { free_.reserve(static_cast<size_t>(threads) + 1); }

 private:
  std::unique_ptr<std::byte[]> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto memory = std::move(free_.back());
        free_.pop_back();
        return memory;
      }
    }
    return std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(kCheckpointPieceBytes));
  }
  void give(std::unique_ptr<std::byte[]> memory) noexcept {
    const std::lock_guard lock(mutex_);
    if (free_.size() < free_.capacity()) free_.push_back(std::move(memory));
  }

  Mutex<"checkpoint buffers"> mutex_;
  std::vector<std::unique_ptr<std::byte[]>> free_;
};

}  // namespace artifex_devices
