// SPDX-License-Identifier: Apache-2.0
// What the functions that change shapes stand on: the same memory under another shape, and copies of strided views.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/copy_kernels.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/copy_views.h"
#include "artifex_devices/transfer/reinterpret.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"

namespace artifex_devices::bindings {
namespace {

ArrayRef reinterpreted(const ArrayRef& array, py::handle shape, const ShardingRef& sharding,
                       const std::string& operation) {
  const Dims dims = dims_from_python(shape, operation, "shape");
  return run_with_gil_if(!array->layout(), [&] { return reinterpret(array, dims, sharding, operation); });
}

void copy_ndarrays(const py::list& destinations, const py::list& sources) {
  if (destinations.size() != sources.size()) {
    throw_error("copy_views: {} destinations for {} sources; expected one for each", destinations.size(),
                sources.size());
  }
  std::vector<py::object> kept;
  std::vector<ViewCopy> copies;
  int64_t bytes = 0;
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (!is_ndarray(destinations[i])) throw_error<TypeMismatch>("copy_views: destination {} is not an ndarray", i);
    Leaf to = leaf_from_python(destinations[i], "copy_views");
    Leaf from = leaf_from_python(sources[i], "copy_views");
    bytes += to.view.nbytes();
    copies.push_back({std::move(to.view), std::move(from.view)});
    kept.push_back(std::move(from.keep));
  }
  run_with_gil_if(copies_with_gil(bytes), [&] { copy_views(copies); });
}

}  // namespace

void bind_layout(py::module_& module) {
  module.def("_reinterpreted", &reinterpreted, py::arg("array"), py::arg("shape"), py::arg("sharding"),
             py::arg("operation"),
             "An Array of another shape on the same memory: each device's elements stay as they are, in their order.");
  module.def("_copy_views", &copy_ndarrays, py::arg("destinations"), py::arg("sources"),
             "Copies each ndarray of a list to its like in another, on several threads; they must not overlap.");
  module.def(
      "_copy_isas",
      [] {
        py::list names;
        for (const CopyIsa isa : copy_isas()) names.append(py::str(std::string(to_string(isa))));
        return names;
      },
      "Instruction sets that copies are compiled for and this processor runs, least first.");
  module.def("_copy_isa", [] { return std::string(to_string(copy_isa())); }, "The one that copies use.");
  module.def(
      "_use_copy_isa", [](const std::string& name) { use_copy_isa(name, "_use_copy_isa"); }, py::arg("name"),
      "Lets all later copies use one of them.");
  // For counts of instructions that are the same on every processor, and to look for faults of one set.
  constexpr const char* kVariable = "ARTIFEX_DEVICES_COPY_ISA";
  if (const char* name = std::getenv(kVariable)) use_copy_isa(name, kVariable);
}

}  // namespace artifex_devices::bindings
