// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/array/layout.h"
#include "artifex_devices/array/storage.h"
#include "artifex_devices/base/caller_line.h"
#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

class Array;
using ArrayRef = std::shared_ptr<Array>;
/// Null: row-major.
using LayoutRef = std::shared_ptr<const Layout>;

/// The layout in which shards of arrays of `rank` dimensions are stored: null for row-major ones. Throws
/// InvalidArgument for another rank, and for tiles, element bits and tails, which are not stored.
LayoutRef stored_layout(const Layout& layout, int64_t rank, std::string_view operation);
/// Bytes a stride of each dimension of one buffer of `shape`.
inline Dims buffer_strides(const Layout* layout, const Dims& shape, int64_t itemsize) {
  return layout ? strides_of_order(shape, layout->minor_to_major(), itemsize) : row_major_strides(shape, itemsize);
}
inline bool equal_layouts(const LayoutRef& a, const LayoutRef& b) noexcept {
  return a == b || (a && b && a->minor_to_major() == b->minor_to_major());
}

/// An immutable array on devices: shape, dtype, sharding, memory, and the event that says the memory is written.
/// Each shard is dense: row-major, or in the order of dimensions that layout() says. Thread-safe.
class Array : public std::enable_shared_from_this<Array> {
 public:
  /// `ready` null: written already. Registers the array in its client's list of live arrays.
  static ArrayRef make(Dims shape, DType dtype, ShardingRef sharding, std::shared_ptr<Storage> storage, EventRef ready,
                       bool committed, LayoutRef layout = nullptr);
  ~Array();

  const Dims& shape() const noexcept { return shape_; }
  int64_t rank() const noexcept { return shape_.size(); }
  int64_t size() const noexcept { return size_; }
  DType dtype() const noexcept { return dtype_; }
  int64_t nbytes() const noexcept { return size_ * itemsize(dtype_); }
  const ShardingRef& sharding() const noexcept { return sharding_; }
  bool committed() const noexcept { return committed_; }
  /// Whether the host can read its memory without a transfer.
  bool is_host_readable() const noexcept {
    return sharding_->devices()->client()->is_host_readable(sharding_->memory_kind());
  }
  const LayoutRef& layout() const noexcept { return layout_; }  // null: row-major
  /// Of a buffer of that shape, in bytes.
  Dims strides(const Dims& shard_shape) const { return buffer_strides(layout_.get(), shard_shape, itemsize(dtype_)); }
  int64_t on_device_size_in_bytes() const;  // replicas counted

  /// The part at a position as an array on its device, sharing the memory. Deleting either deletes both. Throws
  /// NotAddressable for the device of another process.
  ArrayRef shard_data(Position position);

  bool is_deleted() const noexcept { return storage_->deletion() != Deletion::kNone; }
  /// A second call does nothing. Memory is freed when the last exported view or running transfer ends.
  void delete_() noexcept { storage_->delete_all(); }
  /// As delete_, but errors of check_alive then mention the donation.
  void donate() noexcept { storage_->delete_all(Deletion::kDonation); }
  /// Throws NotAddressable where parts of the value are in other processes only.
  void check_addressable(std::string_view operation) const {
    if (!sharding_->buffers().has_every_tile()) fail_not_addressable(operation);
  }
  /// Throws DeletedArray: "operation: the Array of shape (8,) and dtype float32 was deleted; ...".
  void check_alive(std::string_view operation) const;

  bool is_ready() const;
  /// Waits (interruptible) and rethrows the error of the transfer into it.
  void block_until_ready() const;
  const EventRef& ready_event() const noexcept { return ready_; }

  /// The line of the program that made it, if config().trace_allocations was 1 then; else null, as for shards of
  /// arrays.
  const CallerLine* creation_line() const noexcept { return creation_line_.get(); }

  const std::shared_ptr<Storage>& storage() const noexcept { return storage_; }
  /// The buffer of `position` in storage(), for whole arrays and shards alike; none in another process.
  BufferId buffer_at(Position position) const noexcept;
  /// Whether it is one shard of storage().
  bool is_shard() const noexcept { return !position_.is_none(); }

  /// The gathered value of a global array, cached by the first device_get so that later ones are free; dropped by
  /// delete_(). Null without one.
  std::shared_ptr<const HostView> cached_host_value() const;
  /// The same, or a value that is still being written: wait for its `ready`.
  std::shared_ptr<const HostView> coming_host_value() const;
  /// Caches `value` unless there is a cached value already; returns the cached one.
  std::shared_ptr<const HostView> cache_host_value(std::shared_ptr<const HostView> value);

 private:
  Array() = default;
  friend class LiveArrays;
  static ArrayRef make(Dims shape, DType dtype, ShardingRef sharding, std::shared_ptr<Storage> storage,
                       Position position, EventRef ready, bool committed, LayoutRef layout);
  void set_creation_line() noexcept;
  void check_position(Position position, std::string_view operation) const;
  [[noreturn]] void fail_not_addressable(std::string_view operation) const;

  Dims shape_;
  DType dtype_ = DType::kFloat32;
  int64_t size_ = 0;
  ShardingRef sharding_;
  LayoutRef layout_;
  std::shared_ptr<Storage> storage_;
  Position position_;  // in storage_, of one shard; none: the global array
  EventRef ready_;
  bool committed_ = true;
  bool retained_ = false;
  std::unique_ptr<const CallerLine> creation_line_;
  Array* live_next_ = nullptr;
  Array* live_previous_ = nullptr;
};

}  // namespace artifex_devices
