// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// The bytes of the shards of one array, by buffer of its sharding.
class ShardBytes {
 public:
  /// Throws InvalidArgument if the bytes of all positions, with `padding` for each, do not fit 63 bits.
  ShardBytes(const Sharding& sharding, const ShardDomains& domains, DType dtype, int64_t padding,
             std::string_view operation);

  int64_t of_buffer(BufferId buffer) const noexcept { return uneven_.empty() ? tile_ : uneven_[buffer]; }
  int64_t tile() const noexcept { return tile_; }    // of a full tile
  int64_t total() const noexcept { return total_; }  // of all positions, replicas and other processes included
  bool is_even() const noexcept { return uneven_.empty(); }

 private:
  int64_t tile_ = 0;                    // of every buffer, unless
  IdVector<BufferId, int64_t> uneven_;  // has sizes
  int64_t total_ = 0;
};

/// Charges each device of this process the bytes of its shard until the last handle on its position is gone. Until the
/// array is split into shards, one handle stands for all positions. The destructor discharges the rest. Thread-safe
/// without locks, so it is consistent in a forked child.
class Charge {
 public:
  /// `sharding` outlives it. Throws OutOfMemory (text begins with "RESOURCE_EXHAUSTED"; names the requested bytes, the
  /// bytes in use and the limit of the device, and the largest live arrays), with nothing charged.
  Charge(const Sharding& sharding, ShardBytes bytes, std::string_view operation);
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge();

  const ShardBytes& bytes() const noexcept { return bytes_; }

  /// Discharges all devices at once. Returns false, and does nothing, if positions have separate handles.
  bool end_unsplit() noexcept;
  /// Replaces the handle for all positions by one for each. Does nothing the second time, or after end_unsplit.
  void split();

  // Of a position, after a split; they do nothing once its last handle is gone.
  void retain(Position position) noexcept;
  /// Drops a handle, or all of them; returns whether none is left, and the device was discharged.
  bool release(Position position) noexcept;
  bool end(Position position) noexcept;

  /// f(position) for each device of this process.
  template <class F>
  void for_positions(F&& f) const {
    const DeviceList& devices = *sharding_.devices();
    const int64_t count = devices.addressable_count();
    if (devices.is_fully_addressable()) {
      for (const Position p : IdRange<Position>(count)) f(p);
    } else {
      for (int64_t i = 0; i < count; ++i) f(devices.addressable_position(i));
    }
  }

 private:
  using Count = std::atomic<int64_t>;

  int64_t bytes_of(Position position) const noexcept {
    return bytes_.is_even() ? bytes_.tile() : bytes_.of_buffer(sharding_.buffer_at(position));
  }
  void discharge(Position position) const noexcept {
    sharding_.device(position).discharge(bytes_of(position), sharding_.memory_kind());
  }
  Count* handles() const noexcept;  // by position; null unless split
  static Count* ended() noexcept;

  const Sharding& sharding_;
  ShardBytes bytes_;
  std::atomic<Count*> handles_{nullptr};  // null: one for all positions; ended(): none
};

}  // namespace artifex_devices
