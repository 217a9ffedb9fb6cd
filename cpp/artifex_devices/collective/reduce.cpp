// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/reduce.h"

#include <Eigen/Core>
#include <algorithm>
#include <complex>
#include <optional>
#include <vector>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/worker_pool.h"

namespace artifex_devices {
namespace {

// What one worker takes at a time: so many bytes of all inputs, of the result no less and no more than this.
constexpr int64_t kPieceInputBytes = int64_t{4} << 20;
constexpr int64_t kLeastPieceBytes = int64_t{16} << 10;
constexpr int64_t kMostPieceBytes = int64_t{256} << 10;
// From here on the result bypasses the cache.
constexpr int64_t kStreamBlockBytes = int64_t{4} << 20;
// A tile of the result stays in the first-level cache while all inputs are added to it.
constexpr int64_t kTileBytes = int64_t{8} << 10;

using Inputs = std::span<const void* const>;

/// Runs body(begin, end) over ranges of elements, on the cores where there is enough to do.
template <class Body>
void in_pieces(size_t inputs, int64_t elements, int64_t itemsize, const Body& body) {
  const auto count = static_cast<int64_t>(inputs);
  if (elements * itemsize * (count + 1) < config().parallel_copy_bytes.load(std::memory_order_relaxed)) {
    return body(0, elements);
  }
  const int64_t bytes = std::clamp(kPieceInputBytes / count, kLeastPieceBytes, kMostPieceBytes);
  const int64_t step = bytes / kLeastPieceBytes * kLeastPieceBytes / itemsize;
  WorkerPool::process().parallel_for((elements + step - 1) / step, -1, [&](int64_t piece) {
    body(piece * step, std::min(elements, (piece + 1) * step));
  });
}

void reduce_lanes(Reduction reduction, Lane lane, Inputs inputs, void* out, int64_t elements, int64_t itemsize) {
  const bool stream = elements * itemsize >= kStreamBlockBytes;
  in_pieces(inputs.size(), elements, itemsize, [&](int64_t begin, int64_t end) {
    combine(reduction, lane, inputs, out, begin, end, stream);
    if (stream) stream_fence();
  });
}

/// One range of numbers that no register adds as they are, in the type that they are added up in.
template <class T, class Accumulator, class Combine>
void reduce_range(Inputs inputs, void* out, int64_t begin, int64_t end, const Combine& combine_with) {
  constexpr int64_t kTile = kTileBytes / static_cast<int64_t>(sizeof(Accumulator));
  using Totals = Eigen::Array<Accumulator, Eigen::Dynamic, 1, 0, kTile, 1>;
  const auto read = [](const void* data, int64_t from, int64_t count) {
    return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(static_cast<const T*>(data) + from, count)
        .template cast<Accumulator>();
  };
  for (int64_t from = begin; from < end; from += kTile) {
    const int64_t count = std::min(kTile, end - from);
    Totals total = read(inputs[0], from, count);
    for (const void* input : inputs.subspan(1)) {
      const Totals next = read(input, from, count);  // evaluated first: select() asks for its operands more than once
      combine_with(total, next);
    }
    Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(static_cast<T*>(out) + from, count) = total.template cast<T>();
  }
}

template <class T, class Accumulator, class Combine>
void reduce_wide(Inputs inputs, void* out, int64_t elements, const Combine& combine_with) {
  in_pieces(inputs.size(), elements, sizeof(T),
            [&](int64_t begin, int64_t end) { reduce_range<T, Accumulator>(inputs, out, begin, end, combine_with); });
}

template <class T>
void reduce_halves(Reduction reduction, Inputs inputs, void* out, int64_t elements) {
  switch (reduction) {
    case Reduction::kSum:
      return reduce_wide<T, float>(inputs, out, elements, [](auto& total, const auto& next) { total += next; });
    case Reduction::kProduct:
      return reduce_wide<T, float>(inputs, out, elements, [](auto& total, const auto& next) { total *= next; });
    case Reduction::kMax:  // a NaN stays, and comes in
      return reduce_wide<T, float>(inputs, out, elements, [](auto& total, const auto& next) {
        total = (total >= next || total != total).select(total, next);
      });
    case Reduction::kMin:
      return reduce_wide<T, float>(inputs, out, elements, [](auto& total, const auto& next) {
        total = (total <= next || total != total).select(total, next);
      });
  }
}

template <class T>
void reduce_complex(Reduction reduction, Lane lane, Inputs inputs, const HostView& out, int64_t elements) {
  if (reduction == Reduction::kSum) return reduce_lanes(reduction, lane, inputs, out.data, elements * 2, sizeof(T) / 2);
  if (reduction == Reduction::kProduct) {
    return reduce_wide<T, T>(inputs, out.data, elements, [](auto& total, const auto& next) { total *= next; });
  }
  fail<TypeMismatch>(
      "all_reduce: complex numbers have no order; expected real numbers for max and min, got {}; reduce np.abs(x), or "
      "real and imaginary parts by themselves",
      name(out.dtype));
}

std::optional<Lane> lane_of(DType dtype, Reduction reduction) {
  switch (dtype) {
    case DType::kInt8:
      return Lane::kInt8;
    case DType::kInt16:
      return Lane::kInt16;
    case DType::kInt32:
      return Lane::kInt32;
    case DType::kInt64:
      return Lane::kInt64;
    case DType::kBool:  // max and min are or and and; sums of bool are their caller's to widen
      if (reduction == Reduction::kMax || reduction == Reduction::kMin) return Lane::kUInt8;
      return std::nullopt;
    case DType::kUInt8:
      return Lane::kUInt8;
    case DType::kUInt16:
      return Lane::kUInt16;
    case DType::kUInt32:
      return Lane::kUInt32;
    case DType::kUInt64:
      return Lane::kUInt64;
    case DType::kFloat32:
      return Lane::kFloat32;
    case DType::kFloat64:
      return Lane::kFloat64;
    default:
      return std::nullopt;
  }
}

void check(std::span<const HostView> inputs, const HostView& out) {
  checked_bytes(out.shape, out.dtype, "all_reduce");
  if (inputs.empty()) fail("all_reduce: there are no inputs; expected 1 or more, got 0; give each member's");
  for (size_t i = 0; i <= inputs.size(); ++i) {
    const HostView& view = i < inputs.size() ? inputs[i] : out;
    if (view.dtype == out.dtype && view.shape == out.shape &&
        is_dense(view.shape, view.byte_strides, itemsize(view.dtype))) {
      continue;
    }
    fail("all_reduce: {} {} does not fit; expected dense {}{}, got {}{} with strides {}; make it contiguous first",
         i < inputs.size() ? "input" : "out", i, name(out.dtype), to_string(out.shape), name(view.dtype),
         to_string(view.shape), to_string(view.byte_strides));
  }
}

}  // namespace

void all_reduce(Reduction reduction, std::span<const HostView> inputs, const HostView& out) {
  check(inputs, out);
  const int64_t elements = checked_product(out.shape, "all_reduce");
  std::vector<const void*> data;
  data.reserve(inputs.size());
  for (const HostView& input : inputs) data.push_back(input.data);
  if (const std::optional<Lane> lane = lane_of(out.dtype, reduction)) {
    return reduce_lanes(reduction, *lane, data, out.data, elements, itemsize(out.dtype));
  }
  switch (out.dtype) {
    case DType::kFloat16:
      return reduce_halves<Eigen::half>(reduction, data, out.data, elements);
    case DType::kBFloat16:
      return reduce_halves<Eigen::bfloat16>(reduction, data, out.data, elements);
    case DType::kComplex64:
      return reduce_complex<std::complex<float>>(reduction, Lane::kFloat32, data, out, elements);
    case DType::kComplex128:
      return reduce_complex<std::complex<double>>(reduction, Lane::kFloat64, data, out, elements);
    default:
      break;
  }
  fail<TypeMismatch>(
      "all_reduce: dtype {} has no such reduction; expected integers, floats, complex numbers or bfloat16, got {}; "
      "convert it first: x.astype(np.float32)",
      name(out.dtype), name(out.dtype));
}

}  // namespace artifex_devices
