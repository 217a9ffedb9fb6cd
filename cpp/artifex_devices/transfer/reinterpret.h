// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "artifex_devices/array/array.h"

namespace artifex_devices {

/// An array of another shape and sharding on the same memory: each device's elements stay where they are, in row-major
/// order. The caller knows that each shard has the same elements in the same order in both shapes; only their number is
/// checked. A source in another layout is copied into row-major order first.
/// Throws InvalidArgument for other devices and for a shard with another number of elements, NotAddressable where a
/// shard is in another process, DeletedArray.
/// Example: (8, 4) with P('x') as (8, 2, 2) with P('x').
ArrayRef reinterpret(const ArrayRef& source, const Dims& shape, const ShardingRef& sharding,
                     std::string_view operation);

}  // namespace artifex_devices
