// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/reduce.h"

#include <Eigen/Core>
#include <algorithm>
#include <complex>
#include <optional>
#include <vector>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/collective/halves.h"
#include "artifex_devices/device/executor.h"

namespace artifex_devices {
namespace {

// The piece of one worker: bytes of all inputs together, and the limits of the bytes of the result.
constexpr int64_t kPieceInputBytes = int64_t{4} << 20;
constexpr int64_t kLeastPieceBytes = int64_t{16} << 10;
constexpr int64_t kMostPieceBytes = int64_t{256} << 10;
// A tile of the result stays in the first-level cache while all inputs are added to it.
constexpr int64_t kTileBytes = int64_t{8} << 10;

using Inputs = std::span<const void* const>;

/// Runs body(begin, end) over ranges of elements, on several cores if there are enough elements.
template <class Body>
void in_pieces(size_t inputs, int64_t elements, int64_t itemsize, const Body& body) {
  const auto count = static_cast<int64_t>(inputs);
  if (host_executor().is_inline(elements * itemsize * (count + 1))) return body(0, elements);
  const int64_t bytes = std::clamp(kPieceInputBytes / count, kLeastPieceBytes, kMostPieceBytes);
  const int64_t step = bytes / kLeastPieceBytes * kLeastPieceBytes / itemsize;
  WorkerPool::process().parallel_for((elements + step - 1) / step, kAnyLane, [&](int64_t piece) {
    body(piece * step, std::min(elements, (piece + 1) * step));
  });
}

void reduce_elements(Reduction reduction, ArithmeticType type, Inputs inputs, void* out, int64_t elements,
                     int64_t itemsize) {
  const bool stream = elements * itemsize > stream_bytes();
  in_pieces(inputs.size(), elements, itemsize, [&](int64_t begin, int64_t end) {
    combine(reduction, type, inputs, out, begin, end, stream);
    if (stream) stream_fence();
  });
}

/// The product of complex numbers, tile by tile.
template <class T>
void multiply(Inputs inputs, void* out, int64_t begin, int64_t end) {
  constexpr int64_t kTile = kTileBytes / static_cast<int64_t>(sizeof(T));
  using Numbers = Eigen::Array<T, Eigen::Dynamic, 1>;
  const auto read = [](const void* data, int64_t from, int64_t count) {
    return Eigen::Map<const Numbers>(static_cast<const T*>(data) + from, count);
  };
  for (int64_t from = begin; from < end; from += kTile) {
    const int64_t count = std::min(kTile, end - from);
    Eigen::Map<Numbers> total(static_cast<T*>(out) + from, count);
    total = read(inputs[0], from, count);
    for (const void* input : inputs.subspan(1)) total *= read(input, from, count);
  }
}

[[noreturn]] void refuse(DType dtype) {
  if (is_complex(dtype)) {
    throw_error<TypeMismatch>(
        "all_reduce: complex numbers have no order; expected real numbers for max and min, got {}; reduce np.abs(x), "
        "or real and imaginary parts by themselves",
        name(dtype));
  }
  throw_error<TypeMismatch>(
      "all_reduce: dtype {} has no such reduction; expected integers, floats, complex numbers or bfloat16, got {}; "
      "convert it first: x.astype(np.float32)",
      name(dtype), name(dtype));
}

void check(std::span<const HostView> inputs, const HostView& out) {
  checked_bytes(out.shape, out.dtype, "all_reduce");
  if (inputs.empty()) throw_error("all_reduce: there are no inputs; expected one for each member, got 0");
  for (size_t i = 0; i <= inputs.size(); ++i) {
    const HostView& view = i < inputs.size() ? inputs[i] : out;
    if (view.dtype == out.dtype && view.shape == out.shape &&
        is_dense(view.shape, view.byte_strides, itemsize(view.dtype))) {
      continue;
    }
    throw_error(
        "all_reduce: {} {} does not fit; expected dense {}{}, got {}{} with strides {}; use np.ascontiguousarray(x)",
        i < inputs.size() ? "input" : "out", i, name(out.dtype), to_string(out.shape), name(view.dtype),
        to_string(view.shape), to_string(view.byte_strides));
  }
}

/// The type of dense 16-bit floats; `out` must be dense writable float32 of `count` elements.
ArithmeticType checked_half_type(const char* operation, const HostView& array, const HostView& out, int64_t count) {
  const std::optional<ArithmeticType> type = half_type(array.dtype);
  if (!type || !is_dense(array.shape, array.byte_strides, itemsize(array.dtype))) {
    throw_error("{}: expected dense float16 or bfloat16, got {}{}", operation, name(array.dtype),
                to_string(array.shape));
  }
  if (out.dtype != DType::kFloat32 || !out.writable || checked_product(out.shape, operation) != count ||
      !is_dense(out.shape, out.byte_strides, itemsize(out.dtype))) {
    throw_error("{}: out does not fit; expected dense writable float32 of {} elements, got {}{}", operation, count,
                name(out.dtype), to_string(out.shape));
  }
  return *type;
}

}  // namespace

void divide_in_place(const HostView& data, float by) {
  check({&data, 1}, data);
  const std::optional<ArithmeticType> type = half_type(data.dtype);
  if (!type) {
    throw_error<TypeMismatch>("divide: data is {}; expected float16 or bfloat16; divide others by NumPy",
                              name(data.dtype));
  }
  in_pieces(1, checked_product(data.shape, "divide"), itemsize(data.dtype), [&](int64_t begin, int64_t end) {
    divide(*type, static_cast<std::byte*>(data.data) + begin * itemsize(data.dtype), end - begin, by);
  });
}

void all_reduce(Reduction reduction, std::span<const HostView> inputs, const HostView& out) {
  check(inputs, out);
  std::vector<const void*> data;
  data.reserve(inputs.size());
  for (const HostView& input : inputs) data.push_back(input.data);
  all_reduce(reduction, out.dtype, data, out.data, checked_product(out.shape, "all_reduce"));
}

void all_reduce(Reduction reduction, DType dtype, std::span<const void* const> inputs, void* out, int64_t elements) {
  const DTypeRow& row = row_of(dtype);
  const bool orders = reduction == Reduction::kMax || reduction == Reduction::kMin;
  // Max and min of bool are or and and; sums of bool are their caller's to widen. Complex numbers have no order.
  if (!row.arithmetic || (row.kind == NumberKind::kBool && !orders) || (is_complex(dtype) && orders)) refuse(dtype);
  if (!is_complex(dtype)) {
    return reduce_elements(reduction, *row.arithmetic, inputs, out, elements, itemsize(dtype));
  }
  if (reduction == Reduction::kSum) {
    return reduce_elements(reduction, *row.arithmetic, inputs, out, elements * 2, itemsize(dtype) / 2);
  }
  in_pieces(inputs.size(), elements, itemsize(dtype), [&](int64_t begin, int64_t end) {
    if (dtype == DType::kComplex64) return multiply<std::complex<float>>(inputs, out, begin, end);
    multiply<std::complex<double>>(inputs, out, begin, end);
  });
}

void fold_dimensions(Reduction reduction, const HostView& array, int64_t first, int64_t last, const HostView& out) {
  const Dims& shape = array.shape;
  if (first < 0 || first >= last || last > shape.size()) {
    throw_error("reduce: expected dimensions 0 <= first < last <= {}, got {} and {}", shape.size(), first, last);
  }
  checked_bytes(shape, array.dtype, "reduce");
  int64_t sizes[3] = {1, 1, 1};  // outer, reduced, inner
  for (int64_t d = 0; d < shape.size(); ++d) sizes[d < first ? 0 : d < last ? 1 : 2] *= shape[d];
  const ArithmeticType type = checked_half_type("reduce", array, out, sizes[0] * sizes[2]);
  if (sizes[1] == 0) throw_error("reduce: shape {} has no elements to reduce; expected at least 1", to_string(shape));
  fold(reduction, type, array.data, sizes[0], sizes[1], sizes[2], static_cast<float*>(out.data));
}

void widen(const HostView& array, const HostView& out) {
  const int64_t count = checked_product(array.shape, "widen");
  const ArithmeticType type = checked_half_type("widen", array, out, count);
  widen(type, array.data, count, static_cast<float*>(out.data));
}

}  // namespace artifex_devices
