// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/reduction/total_loops.h"

namespace artifex_devices {

/// "sum", "prod", "abs" or "squares". Throws InvalidArgument for another name.
TotalKind total_kind_from_name(std::string_view name);

/// Writes the totals of `array` over the dimensions `axes`, ascending, to `out`: a dense array of as many elements as
/// the result. Its dtype is int64 or uint64 for integers and bool, which wrap, and float64 for floats; sums of int64
/// and uint64 may be float64 too. Float totals are added up pairwise in float64, so their rounding errors grow with the
/// logarithm of the number of elements.
///
/// Returns false, and leaves any numbers in `out`, where the loop of the caller has to do the work: where elements of
/// the last dimension are not adjacent, where nothing is reduced, and where the arithmetic raised a floating-point
/// exception, which that loop reports as usual: overflow, inf - inf, and underflow of products, whose value then
/// depends on the order of the factors.
///
/// Throws InvalidArgument for axes that the array lacks and for another `out`, TypeMismatch for other dtypes.
bool write_totals(TotalKind kind, const HostView& array, const Dims& axes, const HostView& out);

/// Writes the means over the dimensions `axes` of an array of float32 or float64, then what is missing from these
/// means, then the sums of squared differences from them: `out` is dense float64 of three times as many elements as the
/// result. Returns false and throws as write_totals.
bool write_moments(const HostView& array, const Dims& axes, const HostView& out);

}  // namespace artifex_devices
