// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Groups of processes that hold the same parts of a dimension, each ascending, in the order of their parts.
using RowHolders = std::vector<std::vector<ProcessIndex>>;

/// Returns the groups of processes for each of the first `ndim` dimensions, which hold disjoint parts of it. The entry
/// is empty if processes hold different numbers of parts of the dimension, or overlapping parts. Throws as ShardDomains
/// does; `operation` begins the message.
///
/// Example: 4 devices of 2 processes over one axis 'x', spec P('x', None): {{{0}, {1}}, {{0, 1}}}.
std::vector<std::optional<RowHolders>> process_groups(const Sharding& sharding, int64_t ndim,
                                                      std::string_view operation);

/// [begin, end) of rows of one dimension.
using Rows = std::pair<int64_t, int64_t>;

/// For each process that has devices of the sharding, the distinct parts of each dimension that it holds, ascending,
/// without empty ones. The same in all processes. Throws as ShardDomains does; `operation` begins the message.
std::map<ProcessIndex, std::vector<std::vector<Rows>>> process_parts(const Sharding& sharding, const Dims& shape,
                                                                     std::string_view operation);

/// The rows [begin, end) of a dimension of `length` rows that this process holds; the other dimensions do not count.
/// Throws InvalidArgument if they are not contiguous, or if there are no rows.
Rows batch_share(const Sharding& sharding, int64_t length, int64_t dimension);

}  // namespace artifex_devices
