// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Into how many parts the processes divide each of the first `ndim` dimensions; nothing for a dimension where
/// processes hold different numbers of parts or overlapping ones. Processes that hold the same part count once, as do
/// parts that a process divides further among its devices. Throws as ShardDomains does.
///
/// Example: 4 devices of 2 processes over one axis 'x', spec P('x', None): {2, 1}.
std::vector<std::optional<int64_t>> process_counts(const Sharding& sharding, int64_t ndim);

/// Where the parts of each dimension that this process holds begin, ascending. Throws as ShardDomains does.
std::vector<std::vector<int64_t>> process_starts(const Sharding& sharding, const Dims& shape);

/// The rows [begin, end) of a dimension of `length` rows that this process holds; the other dimensions do not count.
/// Throws InvalidArgument when they are not contiguous, or there are none.
std::pair<int64_t, int64_t> batch_share(const Sharding& sharding, int64_t length, int64_t dimension);

}  // namespace artifex_devices
