// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "artifex_devices/partition/partition_spec.h"

namespace artifex_devices {

inline const AxisName x("x");
inline const AxisName y("y");

inline SpecEntry on(std::vector<AxisName> axes) { return SpecEntry(std::move(axes)); }
inline PartitionSpec P(std::vector<SpecEntry> entries) { return PartitionSpec(std::move(entries)); }

}  // namespace artifex_devices
