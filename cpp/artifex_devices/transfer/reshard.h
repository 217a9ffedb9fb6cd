// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "artifex_devices/array/array.h"
#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_devices/sharding/world_places.h"

namespace artifex_devices {

struct ReshardOptions {
  bool committed = true;
  bool donate = false;                             // the source is deleted, its buffers are reused where they fit
  bool force_copy = false;                         // never share a buffer with the source (may_alias=False)
  std::optional<LayoutRef> layout = std::nullopt;  // nothing: the source's
};

/// Whether no buffer of the source is shared: where a copy is asked for, and between kinds of memory, and layouts.
bool copies_all(const Array& source, const Sharding& sharding, const ReshardOptions& options);

/// `source` with another sharding on the same client. Buffers that are already right are shared (arrays are immutable).
/// Checks and allocation happen in the call; copies of config().async_copy_bytes and more go on after it returned, and
/// the result's ready event says when they end. An error in the source poisons the result.
/// Throws DeletedArray, InvalidArgument for devices of another client (use device_get and device_put), NotAddressable
/// where parts must come from other processes (see CrossReshard), and as Storage::allocate.
ArrayRef reshard(const ArrayRef& source, const ShardingRef& sharding, const ReshardOptions& options);

/// The array itself where it is row-major, else a row-major copy on the same devices.
ArrayRef row_major(const ArrayRef& array);

/// What came of copies: the memory, and when it is written (null: now).
struct PendingStorage {
  std::shared_ptr<Storage> storage;
  EventRef ready;
};

/// The plan of a reshard over the buffers of all processes. It has grids of its own: copies that go on after the call
/// may outlive both shardings.
std::shared_ptr<const ReshardPlan> make_plan(const Array& source, const Sharding& sharding, const WorldPlaces& from,
                                             const WorldPlaces& to, bool copies_all);

/// The part of a reshard that happens within this process: allocates, and runs the copies of `plan` between buffers of
/// this process. What comes from other processes is for the caller to write.
PendingStorage execute_plan(const Array& source, const ShardingRef& sharding, const ReshardOptions& options,
                            std::shared_ptr<const ReshardPlan> plan, const WorldPlaces& from, const WorldPlaces& to);

/// The plan that reshard() would execute; of all processes. Both shardings must outlive it.
ReshardPlan plan_of_reshard(const Array& source, const Sharding& sharding);

/// Bytes that transfers have copied so far in this process, by kind, and the copies that were listed for workers; tests
/// compare them with plans.
struct TransferCounters {
  int64_t host_to_device_bytes = 0;
  int64_t device_to_host_bytes = 0;
  int64_t device_to_device_bytes = 0;
  int64_t copies_listed = 0;
};
TransferCounters transfer_counters() noexcept;

}  // namespace artifex_devices
