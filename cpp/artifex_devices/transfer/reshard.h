// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "artifex_devices/array/array.h"
#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_devices/sharding/world_places.h"
#include "artifex_devices/transfer/transport.h"

namespace artifex_devices {

struct ReshardOptions {
  bool committed = true;
  bool donate = false;                             // deletes the source and reuses its buffers where they fit
  bool force_copy = false;                         // never share a buffer with the source (may_alias=False)
  std::optional<LayoutRef> layout = std::nullopt;  // nothing: the source's
  Transport* transport = nullptr;                  // for parts from other processes
};

/// Whether the result shares no buffer with the source: for force_copy, and between memory kinds and layouts.
bool copies_all(const Array& source, const Sharding& sharding, const ReshardOptions& options);

/// `source` with another sharding on the same client. Buffers that are already right are shared (arrays are immutable).
/// Checks and allocation happen in the call; copies of config().async_copy_bytes and more continue after it returns,
/// and the result's ready event is set at their end. An error of the source becomes the error of the result. Throws
/// DeletedArray, InvalidArgument for devices of another client (use device_get and device_put), NotAddressable where
/// parts must come from other processes (see CrossReshard) and there is no transport, and as Transport and
/// Storage::allocate.
ArrayRef reshard(const ArrayRef& source, const ShardingRef& sharding, const ReshardOptions& options);

/// The array itself where it is row-major, else a row-major copy on the same devices.
ArrayRef row_major(const ArrayRef& array);

/// The memory of a result, and the event of its completion (null: complete).
struct PendingStorage {
  std::shared_ptr<Storage> storage;
  EventRef ready;
  int64_t bytes = 0;  // of the copies within this process
};

/// The plan of a reshard over the buffers of all processes.
std::shared_ptr<const ReshardPlan> make_plan(const Array& source, const Sharding& sharding, const WorldPlaces& from,
                                             const WorldPlaces& to, bool copies_all);

/// The part of a reshard that happens within this process: allocates, and runs the copies of `plan` between buffers of
/// this process. The caller writes the parts from other processes.
PendingStorage execute_plan(const Array& source, const ShardingRef& sharding, const ReshardOptions& options,
                            std::shared_ptr<const ReshardPlan> plan, const WorldPlaces& from, const WorldPlaces& to);

/// The plan that reshard() would execute; of all processes.
ReshardPlan plan_of_reshard(const Array& source, const Sharding& sharding);

}  // namespace artifex_devices
