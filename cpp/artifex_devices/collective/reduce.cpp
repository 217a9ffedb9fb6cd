// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/reduce.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <complex>
#include <type_traits>
#include <vector>

#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/base/worker_pool.h"

namespace artifex_devices {
namespace {

// A tile of the result stays in the first-level cache while all inputs are added to it.
constexpr int64_t kTileBytes = int64_t{8} << 10;
// What one worker takes at a time.
constexpr int64_t kPieceBytes = int64_t{256} << 10;

template <class T>
using Numbers = Eigen::Array<T, Eigen::Dynamic, 1>;
template <class T>
using In = Eigen::Map<const Numbers<T>>;
template <class T>
using Out = Eigen::Map<Numbers<T>>;

/// What sums of T are accumulated in.
template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<Eigen::half> {
  using type = float;
};
template <>
struct Wide<Eigen::bfloat16> {
  using type = float;
};
// Signed overflow wraps, as in NumPy; on unsigned numbers that is defined.
template <class T>
  requires(std::is_integral_v<T> && std::is_signed_v<T>)
struct Wide<T> {
  using type = std::make_unsigned_t<T>;
};

template <Reduction kReduction, class T, class Total>
void combine(Total& total, const T& next) {
  if constexpr (kReduction == Reduction::kSum) {
    total += next;
  } else if constexpr (kReduction == Reduction::kProduct) {
    total *= next;
  } else if constexpr (kReduction == Reduction::kMax) {
    total = (total >= next || total != total).select(total, next);  // a NaN stays, and comes in
  } else {
    total = (total <= next || total != total).select(total, next);
  }
}

template <Reduction kReduction, class T>
void reduce_range(std::span<const HostView> inputs, const HostView& out, int64_t begin, int64_t end) {
  constexpr bool kArithmetic = kReduction == Reduction::kSum || kReduction == Reduction::kProduct;
  // Comparisons need the sign, sums of integers must not have one; halves are worked on as floats either way.
  using Accumulator = std::conditional_t<kArithmetic || !std::is_integral_v<T>, typename Wide<T>::type, T>;
  using Element = std::conditional_t<std::is_integral_v<T>, Accumulator, T>;  // same size, same bits
  constexpr int64_t kTile = kTileBytes / static_cast<int64_t>(sizeof(Accumulator));
  const auto read = [](const HostView& view, int64_t from, int64_t count) {
    return In<Element>(static_cast<const Element*>(view.data) + from, count);
  };
  for (int64_t from = begin; from < end; from += kTile) {
    const int64_t count = std::min(kTile, end - from);
    Out<Element> target(static_cast<Element*>(out.data) + from, count);
    if constexpr (std::is_same_v<Element, Accumulator>) {
      target = read(inputs[0], from, count);
      for (const HostView& input : inputs.subspan(1)) {
        combine<kReduction>(target, read(input, from, count));
      }
    } else {
      std::array<Accumulator, kTile> memory;  // NOLINT: written before it is read
      Out<Accumulator> total(memory.data(), count);
      total = read(inputs[0], from, count).template cast<Accumulator>();
      for (const HostView& input : inputs.subspan(1)) {
        // Evaluated first: select() asks for its operands more than once.
        const Eigen::Array<Accumulator, Eigen::Dynamic, 1, 0, kTile, 1> next =
            read(input, from, count).template cast<Accumulator>();
        combine<kReduction>(total, next);
      }
      target = total.template cast<Element>();
    }
  }
}

template <Reduction kReduction, class T>
void reduce_all(std::span<const HostView> inputs, const HostView& out, int64_t elements) {
  const auto size = static_cast<int64_t>(sizeof(T));
  const int64_t touched = elements * size * static_cast<int64_t>(inputs.size() + 1);
  if (touched < config().parallel_copy_bytes.load(std::memory_order_relaxed)) {
    reduce_range<kReduction, T>(inputs, out, 0, elements);
    return;
  }
  const int64_t step = kPieceBytes / size;
  const int64_t pieces = (elements + step - 1) / step;
  WorkerPool::process().parallel_for(pieces, -1, [&](int64_t piece) {
    reduce_range<kReduction, T>(inputs, out, piece * step, std::min(elements, (piece + 1) * step));
  });
}

template <class T>
void reduce_type(Reduction reduction, std::span<const HostView> inputs, const HostView& out, int64_t elements) {
  switch (reduction) {
    case Reduction::kSum:
      return reduce_all<Reduction::kSum, T>(inputs, out, elements);
    case Reduction::kProduct:
      return reduce_all<Reduction::kProduct, T>(inputs, out, elements);
    case Reduction::kMax:
    case Reduction::kMin:
      if constexpr (!Eigen::NumTraits<T>::IsComplex) {
        if (reduction == Reduction::kMax) return reduce_all<Reduction::kMax, T>(inputs, out, elements);
        return reduce_all<Reduction::kMin, T>(inputs, out, elements);
      }
  }
  fail<TypeMismatch>(
      "all_reduce: complex numbers have no order; expected real numbers for max and min, got {}; reduce np.abs(x), or "
      "real and imaginary parts by themselves",
      name(out.dtype));
}

void check(std::span<const HostView> inputs, const HostView& out) {
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
  switch (out.dtype) {
    case DType::kInt8:
      return reduce_type<int8_t>(reduction, inputs, out, elements);
    case DType::kInt16:
      return reduce_type<int16_t>(reduction, inputs, out, elements);
    case DType::kInt32:
      return reduce_type<int32_t>(reduction, inputs, out, elements);
    case DType::kInt64:
      return reduce_type<int64_t>(reduction, inputs, out, elements);
    case DType::kBool:  // max and min are or and and; sums of bool are their caller's to widen
      if (reduction == Reduction::kMax || reduction == Reduction::kMin) {
        return reduce_type<uint8_t>(reduction, inputs, out, elements);
      }
      break;
    case DType::kUInt8:
      return reduce_type<uint8_t>(reduction, inputs, out, elements);
    case DType::kUInt16:
      return reduce_type<uint16_t>(reduction, inputs, out, elements);
    case DType::kUInt32:
      return reduce_type<uint32_t>(reduction, inputs, out, elements);
    case DType::kUInt64:
      return reduce_type<uint64_t>(reduction, inputs, out, elements);
    case DType::kFloat16:
      return reduce_type<Eigen::half>(reduction, inputs, out, elements);
    case DType::kBFloat16:
      return reduce_type<Eigen::bfloat16>(reduction, inputs, out, elements);
    case DType::kFloat32:
      return reduce_type<float>(reduction, inputs, out, elements);
    case DType::kFloat64:
      return reduce_type<double>(reduction, inputs, out, elements);
    case DType::kComplex64:
      return reduce_type<std::complex<float>>(reduction, inputs, out, elements);
    case DType::kComplex128:
      return reduce_type<std::complex<double>>(reduction, inputs, out, elements);
    default:
      break;
  }
  fail<TypeMismatch>(
      "all_reduce: dtype {} has no such reduction; expected integers, floats, complex numbers or bfloat16, got {}; "
      "convert it first: x.astype(np.float32)",
      name(out.dtype), name(out.dtype));
}

}  // namespace artifex_devices
