// SPDX-License-Identifier: Apache-2.0
// Totals of ndarrays over dimensions.

#include "artifex_devices/reduction/totals.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

bool totals_into(const std::string& kind, const py::object& array, py::handle axes, const py::object& out) {
  const TotalKind total = total_kind_from_name(kind);
  const HostView view = leaf_from_python(array, "totals").view;
  const HostView target = leaf_from_python(out, "totals").view;
  const Dims reduced = dims_from_python(axes, "totals", "axes");
  return run_copy(is_brief_copy(view.nbytes()), [&] { return write_totals(total, view, reduced, target); });
}

bool moments_into(const py::object& array, py::handle axes, const py::object& out) {
  const HostView view = leaf_from_python(array, "moments").view;
  const HostView target = leaf_from_python(out, "moments").view;
  const Dims reduced = dims_from_python(axes, "moments", "axes");
  return run_copy(is_brief_copy(view.nbytes()), [&] { return write_moments(view, reduced, target); });
}

}  // namespace

void bind_reduction(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("totals", &totals_into, py::arg("kind"), py::arg("array"), py::arg("axes"), py::arg("out"),
               R"(Writes totals over ascending axes to `out`: int64 or uint64 of integers, float64 of floats.

`kind` is "sum", "prod", "abs" or "squares". Returns False where NumPy's loop has to do the work: for other layouts than
row-major, and where that loop has a floating-point error to report.
)");
  internal.def(
      "moments", &moments_into, py::arg("array"), py::arg("axes"), py::arg("out"),
      "Writes means over ascending axes, what is missing from them, and sums of squared differences from them, "
      "to float64. Returns False as totals does.");
}

}  // namespace artifex_devices::bindings
