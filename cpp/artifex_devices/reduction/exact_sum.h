// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/base/dtype.h"
#include "artifex_devices/reduction/exact_kernels.h"
#include "artifex_devices/reduction/exact_state.h"

namespace artifex_devices {

/// Returns the format of float64, float32, float16 or bfloat16. For other dtypes it is float32 rounded to odd, from
/// which a conversion to fewer bits is correct.
RoundingFormat rounding_format(DType dtype) noexcept;

/// Adds the terms of an array of float32 or float64 to states, one for each element of the result without the
/// dimensions where `is_reduced`, row-major: exactly, in any order, on the calling thread. Squares and products of
/// float32 are exact too; squares and products of float64 are rounded first, as are deviations and their squares.
/// `others` has the shape of `array`, and its dtype for products or float64 for deviations; it is ignored otherwise.
/// The states are normalized. One dimension of more than one element at least has consecutive elements in `array`, and
/// consecutive or equal elements in `others`. Throws InvalidArgument for anything else.
void add_exactly(const HostView& array, const HostView& others, ExactTerm term, std::span<const bool> is_reduced,
                 std::span<ExactState> states);

/// out[i] = the sum of the terms of all arrays that belong to result i, divided and rounded once to `format`. The
/// arrays have elements and one dtype; each fits `out` as it has to fit the states of `add_exactly`. States are used
/// where a sum and a rest do not take a result.
void reduce_exactly(std::span<const HostView> arrays, std::span<const HostView> others, ExactTerm term,
                    std::span<const bool> is_reduced, const RoundingFormat& format, int64_t divisor,
                    std::span<double> out);

}  // namespace artifex_devices
