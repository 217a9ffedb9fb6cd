// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "artifex_devices/render/machine_svg.h"
#include "artifex_devices/render/mesh_text.h"
#include "artifex_devices/render/sharding_text.h"
#include "artifex_devices/render/svg.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "shard_index.h"

namespace artifex_devices::bindings {

void bind_render(py::module_& module) {
  module.def(
      "machine_svg",
      [](const Machine& machine, int max_cells) {
        const ReleaseGil release;
        return machine_svg(machine, max_cells);
      },
      py::arg("machine"), py::arg("max_cells") = 1024,
      "A machine as a stand-alone SVG picture, coloured by CPU device; what does not fit is said.");
  module.def("mesh_text", &mesh_text, py::arg("mesh"), py::arg("max_cells") = 256,
             "A mesh as a plain-text table of device numbers; what does not fit is said.");
  module.def("mesh_svg", &mesh_svg, py::arg("mesh"), py::arg("max_cells") = 1024,
             "A mesh as a stand-alone SVG picture; what does not fit is said.");
  module.def(
      "sharding_text",
      [](const Sharding& sharding, py::handle shape, int max_columns, int min_width, double scale) {
        check_has_devices(sharding, "sharding_text");
        return sharding_text(sharding, dims_from_python(shape, "sharding_text", "shape"), max_columns, min_width,
                             scale);
      },
      py::arg("sharding"), py::arg("shape"), py::arg("max_columns") = 80, py::arg("min_width") = 9,
      py::arg("scale") = 1.0,
      "Which devices hold which part of an array of `shape`, drawn in characters. Raises as Sharding.shard_shape.");
  module.def(
      "sharding_svg",
      [](const Sharding& sharding, py::handle shape) {
        check_has_devices(sharding, "sharding_svg");
        return sharding_svg(sharding, dims_from_python(shape, "sharding_svg", "shape"));
      },
      py::arg("sharding"), py::arg("shape"),
      "Which devices hold which part of an array of `shape`, as a stand-alone SVG picture. Raises as "
      "Sharding.shard_shape.");
}

}  // namespace artifex_devices::bindings
