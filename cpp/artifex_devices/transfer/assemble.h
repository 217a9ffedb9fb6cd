// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/array/host_view.h"

namespace artifex_devices {

/// One array to be assembled from arrays that lie on one device each: of this process, those of others are theirs.
struct Assembly {
  struct Part {
    ArrayRef array;             // null: what was given is none
    std::string fault;          // what is wrong with it so far
    bool is_ours_only = false;  // nobody else uses it: it is deleted, so that its bytes are not charged twice
  };

  std::string_view operation;
  std::string_view name = "arrays";  // of the parts, in messages
  std::optional<Dims> shape;         // nothing: what the parts come to
  ShardingRef sharding;
  std::vector<Part> parts;     // any order: each is matched by its device
  std::optional<DType> dtype;  // nothing: that of the parts
  bool is_stack = false;       // parts lack the first dimension, along which they are stacked
};

/// The parts' own memory as one array, without a copy; ready when they are. Replicas that lie apart must hold equal
/// bits (one copy stays), for which their data is awaited and compared. Throws one InvalidArgument that lists
/// everything that is wrong with any part by its number: device, count, dtype, shape, deletion (only deletions:
/// DeletedArray), replicas that differ; and as Sharding::domains and Storage::adopt. Example: (1, 8) parts on devices 0
/// to 7 with P('x') make an array of shape (8, 8).
ArrayRef assemble(Assembly assembly);

/// Makes an array from host memory, device by device: what a callback returns.
class ShardWriter {
 public:
  /// Charges and allocates. Throws as Sharding::domains and Storage::allocate.
  ShardWriter(Dims shape, DType dtype, ShardingRef sharding, std::string_view operation);

  /// The shape of the part at `position`.
  Dims shape_of(int64_t position) const;
  /// Copies the part at `position` of that shape and of the array's dtype; `source` has been read when it returns. For
  /// a replica that shares its memory with an earlier position the bits are compared instead: false if they differ.
  bool write(int64_t position, const HostView& source);
  /// Copies the value of a fully replicated array to all devices of this process.
  void write_everywhere(const HostView& source);
  /// All positions of this process were written.
  ArrayRef finish();

 private:
  void copy_in(int64_t buffer, const HostView& source);

  Dims shape_;
  DType dtype_;
  ShardingRef sharding_;
  ShardDomains domains_;
  std::shared_ptr<Storage> storage_;
  std::vector<bool> is_written_;  // by buffer
};

}  // namespace artifex_devices
