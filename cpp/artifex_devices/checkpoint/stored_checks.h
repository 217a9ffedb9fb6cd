// SPDX-License-Identifier: Apache-2.0
// What StoredCheckpoint::open checks after all headers are read. Faults throw InvalidArgument.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/checkpoint/stored_checkpoint.h"
#include "artifex_devices/checkpoint/weight_index.h"

namespace artifex_devices {

/// Files whose names do not say that they are one checkpoint must state the boxes of arrays that they have.
void check_are_parts(const StoredCheckpoint& found, std::string_view operation);

/// The files have exactly the tensors of the index, each where it says, and not fewer bytes than it states.
void check_index(const StoredCheckpoint& found, const WeightIndex& index, const std::string& path,
                 std::string_view operation);

/// A process whose file is missing may have had parts of arrays whose shape no file states.
void check_shards(const StoredCheckpoint& found, const std::vector<int64_t>& missing, std::string_view operation);

/// Checks that the parts of an array have its type, do not overlap, and contain every element.
void check_parts(const StoredCheckpoint& found, const StoredArray& array, std::string_view operation);

}  // namespace artifex_devices
