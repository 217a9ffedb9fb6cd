// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/exact_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/reduction/exact_term_adder.h"

namespace artifex_devices {

const ExactKernels& exact_kernels() noexcept {
  return *ARTIFEX_VARIANT(const ExactKernels*, active_isa(), &exact_kernels);
}

RoundingFormat rounding_format(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat64:
      return {53, -1074, false};
    case DType::kFloat32:
      return {24, -149, false};
    case DType::kFloat16:
      return {11, -24, false};
    case DType::kBFloat16:
      return {8, -133, false};
    default:
      return {24, -149, true};
  }
}

namespace {

/// The loops of an array, the widest stride first, without dimensions of one element.
std::vector<ExactLoop> loops_of(const HostView& array, const HostView& others, std::span<const bool> is_reduced) {
  const int64_t bytes = itemsize(array.dtype);
  const int64_t others_bytes = itemsize(others.dtype);
  std::vector<ExactLoop> loops;
  int64_t states = 1;
  for (int64_t d = array.shape.size() - 1; d >= 0; --d) {
    const bool is_sum = is_reduced[static_cast<size_t>(d)];
    if (array.shape[d] != 1) {
      loops.push_back(
          {array.shape[d], array.byte_strides[d] / bytes, others.byte_strides[d] / others_bytes, is_sum ? 0 : states});
    }
    if (!is_sum) states *= array.shape[d];
  }
  std::ranges::sort(loops, std::ranges::greater{},
                    [](const ExactLoop& each) { return std::pair(each.stride, each.size); });
  std::vector<ExactLoop> merged;
  for (const ExactLoop& loop : loops) {
    if (!merged.empty()) {
      ExactLoop& outer = merged.back();
      if (outer.stride == loop.stride * loop.size && outer.others_stride == loop.others_stride * loop.size &&
          outer.state_stride == loop.state_stride * loop.size) {
        outer = {outer.size * loop.size, loop.stride, loop.others_stride, loop.state_stride};
        continue;
      }
    }
    merged.push_back(loop);
  }
  return merged;
}

/// A checked array with its others and loops.
struct ExactPart {
  HostView array;
  HostView others;
  std::vector<ExactLoop> loops;
};

ExactPart checked_part(const HostView& array, const HostView& others, ExactTerm term, std::span<const bool> is_reduced,
                       size_t results) {
  const bool has_others = term == ExactTerm::kProduct || term == ExactTerm::kDeviation;
  const HostView& second = has_others ? others : array;
  const DType others_dtype = term == ExactTerm::kDeviation ? DType::kFloat64 : array.dtype;
  if (array.dtype != DType::kFloat32 && array.dtype != DType::kFloat64) {
    throw_error("exact sum: expected float32 or float64, got {}", name(array.dtype));
  }
  if (second.shape != array.shape || second.dtype != others_dtype ||
      static_cast<int64_t>(is_reduced.size()) != array.shape.size()) {
    throw_error("exact sum: the operands do not fit each other; expected {}{} with {} flags, got {}{} and {}",
                name(others_dtype), to_string(array.shape), array.shape.size(), name(second.dtype),
                to_string(second.shape), is_reduced.size());
  }
  int64_t expected = 1;
  for (int64_t d = 0; d < array.shape.size(); ++d) {
    if (!is_reduced[static_cast<size_t>(d)]) expected *= array.shape[d];
  }
  if (expected != static_cast<int64_t>(results))
    throw_error("exact sum: expected {} results, got {}", expected, results);
  std::vector<ExactLoop> loops = loops_of(array, second, is_reduced);
  const bool is_empty = std::ranges::find(array.shape, 0) != array.shape.end();
  if (!is_empty && !loops.empty() &&
      (loops.back().stride != 1 || loops.back().others_stride < 0 || loops.back().others_stride > 1)) {
    throw_error(
        "exact sum: no dimension has consecutive elements; expected one, got strides {} and {}; use "
        "np.ascontiguousarray(x)",
        to_string(array.byte_strides), to_string(second.byte_strides));
  }
  return {array, second, std::move(loops)};
}

template <class T, class U>
void add_part(const ExactPart& part, ExactTerm term, std::span<ExactState> states) {
  TermAdder<T, U> adder(term, states);
  adder.add(part.loops, static_cast<const T*>(part.array.data), static_cast<const U*>(part.others.data), 0);
  adder.normalize();
}

template <class T, class U>
void write_columns(std::span<const ExactPart> parts, ExactTerm term, const RoundingFormat& format, int64_t divisor,
                   std::span<double> out) {
  TermAdder<T, U> adder(term, {});
  const auto columns = static_cast<int64_t>(out.size());
  for (int64_t first = 0; first < columns; first += kExactGroup) {
    const int64_t width = std::min(kExactGroup, columns - first);
    adder.columns().start_columns(0, 1, width);
    for (const ExactPart& part : parts) {
      adder.add_group(part.loops, static_cast<const T*>(part.array.data), static_cast<const U*>(part.others.data),
                      first, width);
    }
    adder.columns().finish(format, divisor, out.data() + first);
  }
}

template <class T, class U>
void write_sums(std::span<const ExactPart> parts, ExactTerm term, const RoundingFormat& format, int64_t divisor,
                std::span<double> out) {
  const bool has_columns = std::ranges::all_of(parts, [&](const ExactPart& part) {
    return !part.loops.empty() && part.loops.back().state_stride == 1 &&
           part.loops.back().size == static_cast<int64_t>(out.size());
  });
  if (has_columns) return write_columns<T, U>(parts, term, format, divisor, out);
  std::vector<ExactState> states(out.size());
  for (const ExactPart& part : parts) add_part<T, U>(part, term, states);
  std::ranges::transform(states, out.begin(), [&](const ExactState& state) { return state.round(format, divisor); });
}

/// Calls a template with the types of numbers and others.
template <class Call>
void with_types(const HostView& array, ExactTerm term, const Call& call) {
  if (array.dtype == DType::kFloat64) {
    call(double{}, double{});
  } else if (term == ExactTerm::kDeviation) {
    call(float{}, double{});
  } else {
    call(float{}, float{});
  }
}

}  // namespace

void add_exactly(const HostView& array, const HostView& others, ExactTerm term, std::span<const bool> is_reduced,
                 std::span<ExactState> states) {
  const ExactPart part = checked_part(array, others, term, is_reduced, states.size());
  if (std::ranges::find(array.shape, 0) != array.shape.end()) return;
  with_types(array, term, [&]<class T, class U>(T, U) { add_part<T, U>(part, term, states); });
}

void reduce_exactly(std::span<const HostView> arrays, std::span<const HostView> others, ExactTerm term,
                    std::span<const bool> is_reduced, const RoundingFormat& format, int64_t divisor,
                    std::span<double> out) {
  std::vector<ExactPart> parts;
  for (size_t i = 0; i < arrays.size() && i < others.size(); ++i) {
    parts.push_back(checked_part(arrays[i], others[i], term, is_reduced, out.size()));
  }
  const bool fits = !parts.empty() && arrays.size() == others.size() && divisor > 0 &&
                    std::ranges::all_of(arrays, [&](const HostView& array) {
                      return array.dtype == arrays[0].dtype && std::ranges::find(array.shape, 0) == array.shape.end();
                    });
  if (!fits)
    throw_error(
        "exact sum: expected arrays of one dtype with elements, one of the others for each, and a positive divisor");
  with_types(arrays[0], term, [&]<class T, class U>(T, U) { write_sums<T, U>(parts, term, format, divisor, out); });
}

}  // namespace artifex_devices
