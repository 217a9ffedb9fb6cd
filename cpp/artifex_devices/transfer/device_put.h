// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/array/array.h"
#include "artifex_devices/array/host_view.h"
#include "artifex_devices/transfer/joint_copies.h"

namespace artifex_devices {

/// Copies host data to devices. When it returns, the source has been read. Any alignment and strides are allowed, also
/// negative strides and 0. Throws as Sharding::domains and Storage::allocate.
/// `layout` (null: row-major) is the order in which each shard is stored; see stored_layout. `shareable_bytes` is for
/// the record of transfers; see RecordedTransfer. With `joint`, the copies are added to it instead, and the caller runs
/// them.
/// Example: (8, 4) float32 with P('x') over 4 devices makes four shards of (2, 4).
ArrayRef device_put(const HostView& source, const ShardingRef& sharding, bool committed, LayoutRef layout = nullptr,
                    int64_t shareable_bytes = 0, JointCopies* joint = nullptr);

/// Without a copy: the array shares `source`'s memory, which `source.owner` keeps alive. Only for dense row-major
/// sources and a sharding with one buffer; otherwise throws InvalidArgument with the reasons.
ArrayRef device_put_alias(const HostView& source, const ShardingRef& sharding, bool committed);

}  // namespace artifex_devices
