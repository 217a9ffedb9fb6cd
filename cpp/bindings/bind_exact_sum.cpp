// SPDX-License-Identifier: Apache-2.0
// Exact sums, for results that have the same bits on any mesh.
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/reduction/exact_all_reduce.h"
#include "artifex_devices/reduction/exact_sum.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace {

static_assert(sizeof(ExactState) == kExactWords * sizeof(int64_t));

std::span<ExactState> states_of(const HostView& view) {
  if (view.dtype != DType::kInt64 || view.shape.empty() || view.shape.back() != kExactWords ||
      !is_dense(view.shape, view.byte_strides, itemsize(view.dtype))) {
    throw_error("exact sum: the states do not fit; expected dense int64 of {} columns, got {}{}", kExactWords,
                name(view.dtype), to_string(view.shape));
  }
  return {static_cast<ExactState*>(view.data), static_cast<size_t>(view.nbytes()) / sizeof(ExactState)};
}

ExactTerm term_from_name(const std::string& name) {
  if (name == "value") return ExactTerm::kValue;
  if (name == "absolute") return ExactTerm::kAbsolute;
  if (name == "square") return ExactTerm::kSquare;
  if (name == "product") return ExactTerm::kProduct;
  if (name == "deviation") return ExactTerm::kDeviation;
  throw_error("exact sum: {:?} is not a term; expected value, absolute, square, product or deviation", name);
}

/// Which dimensions are reduced.
class Flags {
 public:
  Flags(const std::vector<int64_t>& axes, int64_t count)
      : flags_(std::make_unique<bool[]>(static_cast<size_t>(count))), count_(static_cast<size_t>(count)) {
    for (const int64_t axis : axes) {
      if (axis < 0 || axis >= count) throw_error("exact sum: there is no dimension {}", axis);
      flags_[static_cast<size_t>(axis)] = true;
    }
  }
  std::span<const bool> all() const noexcept { return {flags_.get(), count_}; }

 private:
  std::unique_ptr<bool[]> flags_;
  size_t count_;
};

void add(const std::string& kind, const py::object& array, const py::object& others, const std::vector<int64_t>& axes,
         const py::object& states) {
  const ExactTerm term = term_from_name(kind);
  const HostView view = leaf_from_python(array, "exact sum").view;
  const HostView second = leaf_from_python(others, "exact sum").view;
  const HostView totals = leaf_from_python(states, "exact sum").view;
  if (!totals.writable) throw_error("exact sum: the states are read-only; expected writable memory");
  const Flags flags(axes, view.shape.size());
  run_copy(is_brief_copy(view.nbytes()), [&] { add_exactly(view, second, term, flags.all(), states_of(totals)); });
}

void reduce(const std::string& kind, const py::list& arrays, const py::list& others, const std::vector<int64_t>& axes,
            const py::object& dtype, int64_t divisor, const py::object& out) {
  const ExactTerm term = term_from_name(kind);
  const RoundingFormat format = rounding_format(dtype_from_python(dtype, "exact sum"));
  const auto views_of = [](const py::list& list) {
    std::vector<HostView> views;
    for (const py::handle each : list) views.push_back(leaf_from_python(each, "exact sum").view);
    return views;
  };
  const std::vector<HostView> views = views_of(arrays);
  const std::vector<HostView> seconds = views_of(others);
  const HostView target = leaf_from_python(out, "exact sum").view;
  if (target.dtype != DType::kFloat64 || !target.writable ||
      !is_dense(target.shape, target.byte_strides, itemsize(target.dtype))) {
    throw_error("exact sum: out does not fit; expected dense float64, got {}{}", name(target.dtype),
                to_string(target.shape));
  }
  const std::span<double> results{static_cast<double*>(target.data),
                                  static_cast<size_t>(checked_product(target.shape, "exact sum"))};
  const Flags flags(axes, views.empty() ? 0 : views[0].shape.size());
  run_copy(false, [&] { reduce_exactly(views, seconds, term, flags.all(), format, divisor, results); });
}

void round_into(const py::object& states, const py::object& dtype, const py::object& divisors, const py::object& out) {
  const RoundingFormat format = rounding_format(dtype_from_python(dtype, "exact sum"));
  const HostView totals = leaf_from_python(states, "exact sum").view;
  const HostView counts = leaf_from_python(divisors, "exact sum").view;
  const HostView target = leaf_from_python(out, "exact sum").view;
  const std::span<const ExactState> sums = states_of(totals);
  const auto fits = [&](const HostView& each, DType kind) {
    return each.dtype == kind && is_dense(each.shape, each.byte_strides, itemsize(kind)) &&
           checked_product(each.shape, "exact sum") == static_cast<int64_t>(sums.size());
  };
  if (!fits(target, DType::kFloat64) || !target.writable || !fits(counts, DType::kInt64))
    throw_error("exact sum: out does not fit; expected dense float64 of {} elements", sums.size());
  const auto* const count = static_cast<const int64_t*>(counts.data);
  auto* const to = static_cast<double*>(target.data);
  run_copy(is_brief_copy(totals.nbytes()), [&] {
    for (size_t i = 0; i < sums.size(); ++i) to[i] = sums[i].round(format, count[i]);
  });
}

void reduce_all(const py::list& inputs, const py::object& dtype, int64_t divisor, const py::object& out) {
  const RoundingFormat format = rounding_format(dtype_from_python(dtype, "exact_all_reduce"));
  std::vector<HostView> views;
  views.reserve(inputs.size());
  for (const py::handle input : inputs) views.push_back(leaf_from_python(input, "exact_all_reduce").view);
  const HostView target = leaf_from_python(out, "exact_all_reduce").view;
  if (!target.writable) throw_error("exact_all_reduce: out is read-only; expected writable memory");
  const int64_t bytes = checked_bytes(target.shape, target.dtype, "exact_all_reduce");
  run_copy(is_brief_copy(bytes * static_cast<int64_t>(views.size() + 1)),
           [&] { exact_all_reduce(views, format, divisor, target); });
}

}  // namespace

void bind_exact_sum(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.attr("EXACT_WORDS") = kExactWords;
  internal.def("exact_add", &add, py::arg("term"), py::arg("array"), py::arg("others"), py::arg("axes"),
               py::arg("states"),
               R"(Adds the terms of float32 or float64 over `axes` to states, exactly.

`term` is "value", "absolute", "square", "product" by `others`, or "deviation": the square of the difference from
`others`, which are float64. `states` are int64, with EXACT_WORDS in the last dimension and
one row for each element of the result. States of parts add up to the state of the whole.
)");
  internal.def(
      "exact_reduce", &reduce, py::arg("term"), py::arg("arrays"), py::arg("others"), py::arg("axes"), py::arg("dtype"),
      py::arg("divisor"), py::arg("out"),
      "Writes the exact sums of the terms of all arrays over `axes`, divided and rounded once to a dtype, as float64.");
  internal.def("exact_round", &round_into, py::arg("states"), py::arg("dtype"), py::arg("divisors"), py::arg("out"),
               "Writes sums divided by int64, rounded once to a dtype, as float64.");
  internal.def("exact_all_reduce", &reduce_all, py::arg("inputs"), py::arg("dtype"), py::arg("divisor"), py::arg("out"),
               "Writes the exact sums of float32 or float64, element by element, divided and rounded once to a dtype.");
}

}  // namespace artifex_devices::bindings
