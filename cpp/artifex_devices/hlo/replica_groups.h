// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace artifex_devices::hlo {

using Group = std::vector<int64_t>;
using Groups = std::vector<Group>;

/// Most devices in the groups of one collective.
inline constexpr int64_t kMostDevices = int64_t{1} << 20;
inline constexpr size_t kMostAxes = 64;  // of a mesh

/// The groups of a `replica_groups` attribute in each of its notations:
///
///     {{0,1},{2,3}}                            lists
///     [2,4]<=[8], [4,2]<=[2,4]T(1,0)           rows of an array of 0, 1, 2, ..., reshaped and transposed
///     mesh['a'=4,'b'=2] {'a'}                  axes of a mesh, also with device_ids=(...) and parts of axes 'a':(1)2
///     dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, dense<0> : tensor<1x1xi64>     StableHLO
///
/// `{}` has no groups, which stands for one group of all. Returns nothing for text that is cut or has more devices.
std::optional<Groups> parse_groups(std::string_view text);

/// The pairs of `source_target_pairs`: {{0,1},{1,0}}, or dense<...>.
std::optional<Groups> parse_pairs(std::string_view text);

}  // namespace artifex_devices::hlo
