// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/array/layout.h"

namespace artifex_devices {

/// Writes the elements of `source` (any strides) to `memory` in the order of `layout`; padding becomes zeros. Where the
/// layout gives an element fewer bits than a byte, the first element takes the low-order bits, as in XLA. `memory` has
/// layout.byte_size(shape, dtype) bytes and does not overlap the source. Large copies are divided among the workers;
/// interruptible. Throws as Layout::byte_size. Example: {{1, 2, 3}, {4, 5, 6}} in {1,0:T(2,2)} becomes 1 2 4 5 3 0 6 0.
void copy_to_layout(const HostView& source, const Layout& layout, std::byte* memory);

/// The inverse: the exact bits of each element (values under a byte lie in the low-order bits of a byte, as ml_dtypes
/// has them); padding is not read.
void copy_from_layout(const std::byte* memory, const Layout& layout, const HostView& destination);

}  // namespace artifex_devices
