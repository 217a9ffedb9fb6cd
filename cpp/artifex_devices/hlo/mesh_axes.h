// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifex_devices/hlo/replica_groups.h"

namespace artifex_devices::hlo {

/// Names and sizes of the axes of a mesh, major to minor. Device i has position i.
using MeshAxes = std::vector<std::pair<std::string, int64_t>>;

/// The product of the sizes; 0 above kMostDevices.
int64_t device_count(const MeshAxes& mesh);

/// The positions of the axes that groups are along: groups {0,2},{1,3} of a mesh a=2, b=2 are along a, which is {0}.
/// Groups of one device are along no axis. Nothing where the groups are not all lines or planes of the same axes.
std::optional<std::vector<size_t>> axes_of_groups(const Groups& groups, const MeshAxes& mesh);

/// The axes in which source and target of a permutation's pairs differ.
std::optional<std::vector<size_t>> axes_of_pairs(const Groups& pairs, const MeshAxes& mesh);

/// The coarsest mesh of `devices` devices along whose axes all groups are, with the names axis_0, axis_1, ...; empty
/// where there is none. Groups {0,1},{2,3} and {0,2},{1,3} give axis_0=2, axis_1=2.
MeshAxes find_mesh(const std::vector<const Groups*>& all_groups, int64_t devices);

/// The first mesh that a text declares as <["data"=4, "model"=2]> behind "sdy.mesh"; empty where it has none, or one
/// with other device ids.
MeshAxes declared_mesh(std::string_view text);

}  // namespace artifex_devices::hlo
