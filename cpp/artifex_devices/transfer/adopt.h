// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/array/host_view.h"

namespace artifex_devices {

/// One part of an array that is built from memory that exists already.
struct AdoptedPart {
  HostView view;
  BufferRef memory = {};  // the memory that `view` shows, where the array is to share it; without a block it is copied
};

/// Whether an array in `space` can share the memory of a part: dense, aligned for its elements, and memory that
/// can_hold accepts. `block` is the library's own memory that the view shows, or null for memory of the caller.
bool can_adopt(const HostView& view, const Block* block, const MemorySpace& space) noexcept;

/// A committed array from one part for each buffer of `sharding`, in that order. Parts without memory are copied.
/// Throws InvalidArgument for a wrong number of parts and for the first part of another shape or dtype.
/// Example: (8,) with P('x') over 4 devices takes 4 parts of shape (2,).
ArrayRef adopt(const Dims& shape, DType dtype, const ShardingRef& sharding, std::vector<AdoptedPart> parts,
               std::string_view operation);

}  // namespace artifex_devices
