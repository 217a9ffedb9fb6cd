// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/array/host_view.h"
#include "artifex_devices/transfer/recorded_transfer.h"

namespace artifex_devices {

/// Arguments of assemble(): arrays on one device each, of the devices of this process.
struct Assembly {
  struct Part {
    ArrayRef array;             // null for another object
    std::string fault;          // an error found by the caller, or empty
    bool is_ours_only = false;  // without other users: it is deleted, because its bytes must not be charged twice
  };

  std::string_view operation;
  std::string_view name = "arrays";  // of the parts, in messages
  std::optional<Dims> shape;         // nothing: computed from the parts
  ShardingRef sharding;
  std::vector<Part> parts;     // any order: each is matched by its device
  std::optional<DType> dtype;  // nothing: the dtype of the parts
  bool is_stack = false;       // parts lack the first dimension, along which they are stacked
};

/// Joins the parts' memory to one array without a copy; ready when they are. Replicas in different memory must have
/// equal bits, which waits for their data; one of them stays. Throws one InvalidArgument that lists everything that is
/// wrong with any part by its number: device, count, dtype, shape, deletion (only deletions: DeletedArray), replicas
/// that differ; and as Sharding::domains and Storage::adopt. Example: (1, 8) parts on devices 0 to 7 with P('x') make
/// an array of shape (8, 8).
ArrayRef assemble(Assembly assembly);

/// Creates an array from host memory, device by device, such as the results of a callback.
class ShardWriter {
 public:
  /// Charges and allocates. Throws as Sharding::domains and Storage::allocate.
  ShardWriter(Dims shape, DType dtype, ShardingRef sharding, std::string_view operation);

  /// Copies the part at `position`, of the array's dtype; `source` has been read when it returns. For
  /// a replica that shares its memory with an earlier position the bits are compared instead: false if they differ.
  bool write(Position position, const HostView& source);
  /// Copies the value of a fully replicated array to all devices of this process.
  void write_everywhere(const HostView& source);
  /// All positions of this process were written.
  ArrayRef finish();

 private:
  void copy_in(BufferId buffer, const HostView& source);

  Dims shape_;
  DType dtype_;
  ShardingRef sharding_;
  std::shared_ptr<Storage> storage_;
  IdVector<BufferId, bool> is_written_;
  TransferRun run_{recorded_begin_ns(Recorded::kTransfers)};
};

}  // namespace artifex_devices
