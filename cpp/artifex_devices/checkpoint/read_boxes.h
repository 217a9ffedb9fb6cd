// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/checkpoint/box_memory.h"
#include "artifex_devices/checkpoint/safetensors.h"
#include "artifex_devices/checkpoint/stored_files.h"

namespace artifex_devices {

/// One array to read: the memory to fill, and the stored boxes of the array.
struct ReadRequest {
  struct Stored {
    size_t file = 0;  // number of its file
    const StoredTensor* tensor = nullptr;
  };
  std::string name;
  DType dtype = DType::kFloat32;
  Dims shape;
  std::vector<BoxMemory> destinations;
  std::vector<Stored> stored;
};

struct ReadOptions {
  /// Which checksums to compare, where a file has them.
  enum class Verify {
    kNone,
    kContained,  // of the pieces that a contiguous part of a stored box contains: no other bytes are read
    kPieces,     // of the pieces of which something is read; they are then read completely
  };
  std::string_view operation;
  Verify verify = Verify::kNone;
};

/// Fills the destinations with exactly the bytes that they need, by positional reads of large pieces on the workers,
/// where possible directly into their memory. The stored boxes must not overlap. Returns the number of bytes read.
/// Interruptible. Throws InvalidArgument for stored boxes of another type, missing parts, truncated files and wrong
/// checksums, and FileError.
int64_t read_boxes(const StoredFiles& files, std::vector<ReadRequest> requests, const ReadOptions& options);

}  // namespace artifex_devices
