// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/totals.h"

#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/reduction/moment_join.h"

namespace artifex_devices {
namespace {

/// Adjacent dimensions that are all reduced or all kept, as one dimension. Strides are numbers of elements.
struct Group {
  int64_t size;
  int64_t stride;
  bool is_reduced;
  int64_t result_stride = 0;
};

void append(std::vector<Group>& groups, const Group& next) {
  if (next.size == 1) return;
  if (!groups.empty()) {
    Group& last = groups.back();
    if (last.is_reduced == next.is_reduced && last.stride == next.size * next.stride) {
      last.size *= next.size;
      last.stride = next.stride;
      return;
    }
  }
  groups.push_back(next);
}

const TotalLoops& total_loops() noexcept { return *ARTIFEX_VARIANT(const TotalLoops*, active_isa(), &total_loops); }

/// Null where there is none.
TotalLoop loop_of(TotalKind kind, ArithmeticType type, bool to_float64) noexcept {
  using enum ArithmeticType;
  const bool is_float = type == kFloat32 || type == kFloat64;
  if (is_float == to_float64) return total_loops().of[static_cast<int>(kind)][static_cast<int>(type)];
  if (is_float || kind != TotalKind::kSum || (type != kInt64 && type != kUInt64)) return nullptr;
  return total_loops().as_float64[type == kInt64 ? 0 : 1];
}

/// One pass over memory: the last group to be reduced, and the groups before it and behind it.
struct Pass {
  TotalBox box;
  std::vector<Group> others;   // groups that are not in the box
  std::vector<Group> results;  // what the pass writes: dense groups, of which some may still be reduced
  int64_t count = 1;           // of results
  bool is_last = true;

  /// Calls body(index of the first element, index of the first result) for each box.
  template <class Body>
  void for_each_box(const Body& body) const {
    visit(others, 0, 0, body);
  }

 private:
  template <class Body>
  static void visit(std::span<const Group> left, int64_t element, int64_t result, const Body& body) {
    if (left.empty()) return body(element, result);
    const Group& first = left.front();
    for (int64_t i = 0; i < first.size; ++i) {
      visit(left.subspan(1), element + i * first.stride, result + i * first.result_stride, body);
    }
  }
};

/// Nothing where no group is reduced, or elements of the last group are not adjacent.
std::optional<Pass> pass_over(std::vector<Group> groups) {
  size_t reduced = groups.size();
  while (reduced > 0 && !groups[reduced - 1].is_reduced) --reduced;
  if (reduced == 0 || groups.back().stride != 1) return std::nullopt;
  Pass pass;
  pass.box.reduced = groups[reduced - 1].size;
  pass.box.reduced_stride = groups[reduced - 1].stride;
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(reduced - 1));
  for (size_t g = groups.size(); g-- > 0;) {
    groups[g].result_stride = pass.count;
    pass.count *= groups[g].size;
    pass.is_last = pass.is_last && !groups[g].is_reduced;
  }
  for (const Group& group : groups) append(pass.results, {group.size, group.result_stride, group.is_reduced});
  if (reduced <= groups.size()) {
    pass.box.inner = groups.back().size;
    groups.pop_back();
  }
  if (!groups.empty() && groups.back().result_stride == pass.box.inner) {
    pass.box.outer = groups.back().size;
    pass.box.outer_stride = groups.back().stride;
    groups.pop_back();
  }
  pass.others = std::move(groups);
  return pass;
}

/// Further passes reduce the totals of the first. Returns false as write_totals.
bool reduce_groups(TotalKind kind, TotalLoop loop, ArithmeticType totals, const std::byte* from, int64_t size,
                   std::vector<Group> groups, uint64_t* out) {
  const std::optional<Pass> pass = pass_over(std::move(groups));
  if (!pass) return false;
  std::vector<uint64_t> partial(pass->is_last ? 0 : static_cast<size_t>(pass->count));
  uint64_t* const target = pass->is_last ? out : partial.data();
  pass->for_each_box([&](int64_t element, int64_t result) { loop(from + element * size, pass->box, target + result); });
  if (pass->is_last) return true;
  const TotalKind next = kind == TotalKind::kProduct ? kind : TotalKind::kSum;
  return reduce_groups(next, loop_of(next, totals, totals == ArithmeticType::kFloat64), totals,
                       reinterpret_cast<const std::byte*>(partial.data()), sizeof(uint64_t), pass->results, out);
}

/// Joins the moments of the last group of results to be reduced in place, then of those before it, and writes them.
void join_results(const Moments& partial, std::vector<Group> groups, int64_t count, const Moments& out) {
  const std::optional<Pass> pass = pass_over(std::move(groups));
  std::vector<int64_t> counts;
  std::vector<double> next(pass->is_last ? 0 : static_cast<size_t>(3 * pass->count));
  const Moments target = pass->is_last ? out : Moments{next.data(), pass->count};
  pass->for_each_box([&](int64_t element, int64_t result) {
    for (int64_t i = 0; i < pass->box.outer; ++i) {
      counts.assign(static_cast<size_t>(pass->box.reduced), count);
      const Moments rows = partial.at(element + i * pass->box.outer_stride);
      join_groups_of_moments(rows, counts.data(), pass->box.reduced, pass->box.reduced_stride, pass->box.inner);
      const Moments to = target.at(result + i * pass->box.inner);
      for (int64_t j = 0; j < pass->box.inner; ++j) {
        to.means[j] = rows.means[j];
        to.rests()[j] = rows.rests()[j];
        to.squares()[j] = rows.squares()[j];
      }
    }
  });
  if (!pass->is_last) join_results(target, pass->results, count * pass->box.reduced, out);
}

/// Returns false as write_totals.
bool reduce_moments(MomentLoop loop, const std::byte* from, int64_t size, std::vector<Group> groups,
                    const Moments& out) {
  const std::optional<Pass> pass = pass_over(std::move(groups));
  if (!pass) return false;
  std::vector<double> partial(pass->is_last ? 0 : static_cast<size_t>(3 * pass->count));
  const Moments target = pass->is_last ? out : Moments{partial.data(), pass->count};
  pass->for_each_box([&](int64_t element, int64_t result) {
    loop(from + element * size, pass->box, target.means + result, target.apart);
  });
  if (!pass->is_last) join_results(target, pass->results, pass->box.reduced, out);
  return true;
}

}  // namespace

TotalKind total_kind_from_name(std::string_view name) {
  if (name == "sum") return TotalKind::kSum;
  if (name == "prod") return TotalKind::kProduct;
  if (name == "abs") return TotalKind::kAbsolute;
  if (name == "squares") return TotalKind::kSquares;
  throw_error("totals: {:?} is not a kind of totals; expected sum, prod, abs or squares", name);
}

namespace {

/// The groups of an array. Nothing for an array without elements, unaligned memory, or strides that are not numbers of
/// elements. Throws InvalidArgument for axes that the array lacks, or unless `out` has `each` numbers for each result.
std::optional<std::vector<Group>> checked_groups(const HostView& array, const Dims& axes, const HostView& out,
                                                 int64_t each) {
  const int64_t size = itemsize(array.dtype);
  checked_bytes(array.shape, array.dtype, "totals");
  std::vector<Group> groups;
  int64_t results = each;
  int64_t next = 0;                                                                             // index in `axes`
  bool has_loop = reinterpret_cast<uintptr_t>(array.data) % static_cast<uintptr_t>(size) == 0;  // aligned
  for (int64_t d = 0; d < array.shape.size(); ++d) {
    const bool is_reduced = next < axes.size() && axes[next] == d;
    if (is_reduced) ++next;
    if (!is_reduced) results *= array.shape[d];
    has_loop = has_loop && array.byte_strides[d] % size == 0 && array.shape[d] > 0;
    append(groups, {array.shape[d], array.byte_strides[d] / size, is_reduced});
  }
  if (next != axes.size()) {
    throw_error("totals: expected ascending axes of {} dimensions, got {}", array.shape.size(), to_string(axes));
  }
  if (!out.writable || checked_product(out.shape, "totals") != results ||
      !is_dense(out.shape, out.byte_strides, itemsize(out.dtype))) {
    throw_error("totals: out does not fit; expected a dense writable array of {} elements, got {}{}", results,
                name(out.dtype), to_string(out.shape));
  }
  if (!has_loop) return std::nullopt;
  return groups;
}

[[noreturn]] void refuse(const HostView& array, const HostView& out) {
  throw_error<TypeMismatch>(
      "totals: there is no loop from {} to {}; expected integers to int64 or uint64, float32 or float64 to float64, or "
      "sums of int64 or uint64 to float64; use NumPy's",
      name(array.dtype), name(out.dtype));
}

/// The type of the numbers, without complex numbers and floats of 16 bits.
std::optional<ArithmeticType> type_of(const HostView& array) {
  const std::optional<ArithmeticType> type = row_of(array.dtype).arithmetic;
  return type && *type <= ArithmeticType::kFloat64 && !is_complex(array.dtype) ? type : std::nullopt;
}

bool has_raised(int exceptions) { return std::fetestexcept(exceptions) != 0; }

}  // namespace

bool write_totals(TotalKind kind, const HostView& array, const Dims& axes, const HostView& out) {
  const std::optional<ArithmeticType> type = type_of(array);
  const bool is_float64 = out.dtype == DType::kFloat64;
  if (!type || (!is_float64 && out.dtype != DType::kInt64 && out.dtype != DType::kUInt64)) refuse(array, out);
  const TotalLoop loop = loop_of(kind, *type, is_float64);
  if (loop == nullptr) refuse(array, out);
  std::optional<std::vector<Group>> groups = checked_groups(array, axes, out, 1);
  if (!groups) return false;
  if (is_float64) std::feclearexcept(FE_ALL_EXCEPT);
  const ArithmeticType totals = is_float64 ? ArithmeticType::kFloat64 : ArithmeticType::kUInt64;
  if (!reduce_groups(kind, loop, totals, static_cast<const std::byte*>(array.data), itemsize(array.dtype),
                     *std::move(groups), static_cast<uint64_t*>(out.data))) {
    return false;
  }
  return !is_float64 || !has_raised(FE_OVERFLOW | FE_INVALID | (kind == TotalKind::kProduct ? FE_UNDERFLOW : 0));
}

bool write_moments(const HostView& array, const Dims& axes, const HostView& out) {
  const std::optional<ArithmeticType> type = type_of(array);
  if (!type || *type < ArithmeticType::kFloat32 || out.dtype != DType::kFloat64) refuse(array, out);
  std::optional<std::vector<Group>> groups = checked_groups(array, axes, out, 3);
  if (!groups) return false;
  std::feclearexcept(FE_ALL_EXCEPT);
  const int64_t results = checked_product(out.shape, "totals") / 3;
  return reduce_moments(total_loops().moments[*type == ArithmeticType::kFloat32 ? 0 : 1],
                        static_cast<const std::byte*>(array.data), itemsize(array.dtype), *std::move(groups),
                        {static_cast<double*>(out.data), results}) &&
         !has_raised(FE_OVERFLOW | FE_INVALID);
}

}  // namespace artifex_devices
