// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/collective/combine.h"

namespace artifex_devices {

/// out = inputs[0] op inputs[1] op ... element by element, always in this order: the result has the same bits on any
/// number of cores. All views are dense row-major, of one shape and dtype; `out` overlaps no input. float16 and
/// bfloat16 accumulate in float32 and are rounded once. Max and min give NaN where any input has one. Integers wrap.
/// Cut into pieces that stay in the cache, over cores where the executor would split a copy of as many bytes;
/// interruptible. Throws InvalidArgument for views that do not fit each other or no inputs, TypeMismatch for dtypes
/// that have no such operation: max and min of complex numbers, and types of ml_dtypes other than bfloat16.
void all_reduce(Reduction reduction, std::span<const HostView> inputs, const HostView& out);

/// The same of dense arrays of `elements` each, which the caller has checked.
void all_reduce(Reduction reduction, DType dtype, std::span<const void* const> inputs, void* out, int64_t elements);

/// Divides dense float16 or bfloat16 in place, as `divide` does, over cores as all_reduce. Throws TypeMismatch for
/// another dtype.
void divide_in_place(const HostView& data, float by);

/// Reduces dense float16 or bfloat16 over its dimensions [first, last) in float32, as `fold` does. `out` is dense
/// writable float32 with as many elements as the result. Throws InvalidArgument for anything else, and where those
/// dimensions have no elements.
void fold_dimensions(Reduction reduction, const HostView& array, int64_t first, int64_t last, const HostView& out);

/// Converts dense float16 or bfloat16 to dense float32 of as many elements. Throws InvalidArgument for anything else.
void widen(const HostView& array, const HostView& out);

}  // namespace artifex_devices
