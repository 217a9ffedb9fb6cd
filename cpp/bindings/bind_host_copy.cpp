// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>

#include "artifex_devices/array/array.h"
#include "artifex_devices/transfer/device_get.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "python_modules.h"
#include "python_owner.h"

namespace artifex_devices::bindings {
namespace {

/// The value of one Array on its way to the host.
struct HostLeaf {
  std::shared_ptr<const HostView> view;

  bool wait(std::optional<double> seconds) const {
    if (is_ready(view->ready)) return true;
    const ReleaseGil release;
    return view->ready->wait_for(seconds.value_or(std::numeric_limits<double>::infinity()));
  }
};

HostLeaf copy_to_host(const ArrayRef& array) {
  release_dropped_owners();
  return run_with_gil_if(copies_with_gil(array->nbytes()), [&] { return HostLeaf{device_get_async(array)}; });
}

}  // namespace

void bind_host_copy(py::module_& module) {
  py::class_<HostLeaf>(module, "_HostLeaf", "The value of one Array on its way to the host.")
      .def("done", [](const HostLeaf& self) { return is_ready(self.view->ready); })
      .def("wait", &HostLeaf::wait, py::arg("seconds").none(true))
      .def("value", [](const HostLeaf& self) {
        self.wait(std::nullopt);
        wait_for(self.view->ready);  // rethrows what went wrong
        return ndarray_from_view(self.view);
      });
  const py::object array = module.attr("Array");
  array.attr("copy_to_host_async") = py::cpp_function(
      [](const py::object& self) -> py::object {
        return py::module_::import(python_modules::kHostCopy).attr("copy_to_host_async")(self);
      },
      py::name("copy_to_host_async"), py::is_method(array),
      "Begins to bring the value to the host and returns a HostCopy at once; np.asarray(x) then finds it.");
  module.def("_copy_to_host", &copy_to_host, py::arg("array"));
}

}  // namespace artifex_devices::bindings
