// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/checkpoint/box_memory.h"

namespace artifex_devices {

/// Part of a checkpoint that one process writes. It holds the memory of the arrays, so the caller may delete them
/// meanwhile.
///
/// File k has box k of each array with more than k boxes. Files are named as in torch.distributed.checkpoint. Add
/// everything, then call write() once. `bytes_written` may be read on any thread.
class SavePart {
 public:
  explicit SavePart(std::string operation) : operation_(std::move(operation)) {}
  /// Allocates memory for `count` arrays.
  void reserve(size_t count) { arrays_.reserve(count); }

  /// Adds the boxes of the array that this process owns (owned_boxes). `leaf` is the array's number in the tree. Throws
  /// DeletedArray. It must be fast, because a save in the background also waits for it.
  void add(size_t leaf, ArrayRef array);
  /// Adds a complete host array. The caller keeps its memory alive and does not change it.
  void add(size_t leaf, const HostView& view);

  int64_t bytes() const noexcept { return bytes_; }
  int64_t bytes_written() const noexcept { return bytes_written_.load(std::memory_order_relaxed); }

  /// Waits for the arrays, then writes the files of process `process` into `folder`, where they must not exist, and
  /// waits for the storage. `names` has the name of each leaf. Uses the workers; interruptible. Throws FileError,
  /// Interrupted, and the errors of the arrays.
  void write(const std::string& folder, const std::vector<std::string>& names, ProcessIndex process);

 private:
  struct HeldArray {
    size_t leaf = 0;
    ArrayRef array;
    HeldBuffers buffers;
  };
  struct Entry {
    size_t leaf = 0;
    DType dtype = DType::kFloat32;
    Dims shape;
    std::vector<IndexDomain> boxes;
    std::vector<BoxMemory> sources;
  };
  class Writer;

  std::string operation_;
  std::vector<HeldArray> arrays_;
  std::vector<Entry> entries_;  // without the Arrays; write() adds their entries
  int64_t bytes_ = 0;
  std::atomic<int64_t> bytes_written_{0};
};

}  // namespace artifex_devices
