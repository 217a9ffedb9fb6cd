// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/exact_all_reduce.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/reduction/exact_kernels.h"
#include "artifex_devices/reduction/exact_quotient.h"

namespace artifex_devices {
namespace {

constexpr int64_t kPieceColumns = 16 * kExactColumns;
template <class T>
void reduce_columns(std::span<const T* const> rows, int64_t width, const RoundingFormat& format, int64_t divisor,
                    T* out) noexcept {
  ExactColumns totals;  // NOLINT: written before it is read
  std::fill_n(totals.sum, width, -0.0);
  std::fill_n(totals.rest, width, 0.0);
  std::fill_n(totals.is_inexact, width, 0);
  const ExactKernels& kernels = exact_kernels();
  if constexpr (sizeof(T) == sizeof(float)) {
    kernels.cascade32(rows.data(), static_cast<int64_t>(rows.size()), width, &totals);
  } else {
    kernels.cascade64(rows.data(), static_cast<int64_t>(rows.size()), width, &totals);
  }
  for (int64_t i = 0; i < width; ++i) {
    std::optional<double> result;
    if (totals.is_inexact[i] == 0) result = quotient(totals.sum[i], totals.rest[i], format, divisor);
    if (!result) {
      ExactState state;
      for (const T* row : rows) state.add(static_cast<double>(row[i]));
      result = state.round(format, divisor);
    }
    out[i] = static_cast<T>(*result);
  }
}

template <class T>
void reduce(std::span<const HostView> inputs, const RoundingFormat& format, int64_t divisor, const HostView& out,
            int64_t elements) {
  const auto piece = [&](int64_t number) {
    const int64_t end = std::min(elements, (number + 1) * kPieceColumns);
    std::vector<const T*> rows(inputs.size());
    for (int64_t from = number * kPieceColumns; from < end; from += kExactColumns) {
      std::ranges::transform(inputs, rows.begin(),
                             [from](const HostView& each) { return static_cast<const T*>(each.data) + from; });
      reduce_columns<T>(rows, std::min(kExactColumns, end - from), format, divisor, static_cast<T*>(out.data) + from);
    }
  };
  const int64_t pieces = (elements + kPieceColumns - 1) / kPieceColumns;
  const int64_t bytes = out.nbytes() * static_cast<int64_t>(inputs.size() + 1);
  if (host_executor().is_inline(bytes)) {
    for (int64_t number = 0; number < pieces; ++number) piece(number);
  } else {
    WorkerPool::process().parallel_for(pieces, kAnyLane, piece);
  }
}

}  // namespace

void exact_all_reduce(std::span<const HostView> inputs, const RoundingFormat& format, int64_t divisor,
                      const HostView& out) {
  const auto fits = [&](const HostView& view) {
    return view.dtype == out.dtype && view.shape == out.shape &&
           is_dense(view.shape, view.byte_strides, itemsize(view.dtype));
  };
  const bool is_float = out.dtype == DType::kFloat32 || out.dtype == DType::kFloat64;
  if (!is_float || inputs.empty() || divisor < 1 || !fits(out) || !std::ranges::all_of(inputs, fits)) {
    throw_error(
        "exact_all_reduce: expected dense float32 or float64 of one shape and a positive divisor, got {} "
        "inputs, out {}{} and divisor {}; use np.ascontiguousarray(x)",
        inputs.size(), name(out.dtype), to_string(out.shape), divisor);
  }
  const int64_t elements = checked_product(out.shape, "exact_all_reduce");
  if (out.dtype == DType::kFloat32) {
    reduce<float>(inputs, format, divisor, out, elements);
  } else {
    reduce<double>(inputs, format, divisor, out, elements);
  }
}

}  // namespace artifex_devices
