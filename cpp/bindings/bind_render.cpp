// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "artifex_devices/render/machine_svg.h"
#include "artifex_devices/render/mesh_text.h"
#include "artifex_devices/render/placed_mesh.h"
#include "artifex_devices/render/sharding_text.h"
#include "artifex_devices/render/svg.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_arguments.h"

namespace artifex_devices::bindings {
namespace {

constexpr int64_t kMostCharacters = 1 << 20;  // of a line

using Axes = std::vector<std::tuple<std::string, int64_t, std::string>>;  // name, size, placement text
using Places = std::vector<std::tuple<int64_t, int64_t, std::array<int64_t, 3>, int64_t>>;  // id, slice, at, core

std::string picture_of_places(const std::string& title, const Axes& axes, const std::string& network,
                              std::array<bool, 3> wraps, const std::string& platform, const Places& places,
                              int max_cells) {
  PlacedMesh mesh;
  mesh.title = title;
  for (const auto& [name, size, placement] : axes) mesh.axes.push_back({name, size, placement});
  for (const NetworkKind kind : {NetworkKind::kTorus, NetworkKind::kSwitch, NetworkKind::kFullMesh}) {
    if (network == to_string(kind)) mesh.network = kind;
  }
  mesh.wraps = wraps;
  mesh.platform = platform;
  for (const auto& [id, slice, at, core] : places) mesh.devices.push_back({id, slice, at, core});
  const ReleaseGil release;
  return placed_mesh_svg(mesh, max_cells);
}

}  // namespace

void bind_render(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  module.def("machine_svg", &machine_svg, py::call_guard<ReleaseGil>(), py::arg("machine"), py::arg("max_cells") = 1024,
             "Returns a machine as a stand-alone SVG picture, coloured by CPU device. Omitted parts are mentioned.");
  module.def("mesh_text", &mesh_text, py::arg("mesh"), py::arg("max_cells") = 256,
             "Returns a mesh as a plain-text table of device numbers. Omitted parts are mentioned.");
  module.def("mesh_svg", &mesh_svg, py::arg("mesh"), py::arg("max_cells") = 1024,
             "Returns a mesh as a stand-alone SVG picture. Omitted parts are mentioned.");
  module.def(
      "placed_mesh_svg",
      [](const Mesh& mesh, int max_cells) {
        const ReleaseGil release;
        return placed_mesh_svg(placed_mesh(mesh), max_cells);
      },
      py::arg("mesh"), py::arg("max_cells") = 2048,
      R"(Returns a mesh of a cluster's devices on its torus or nodes as a stand-alone SVG picture. Omitted parts are mentioned.

For each axis it shows the devices in their places, with one colour for each group along the axis and the position in the
group. Raises ValueError for a mesh whose devices do not belong to a cluster.
)");
  internal.def("placed_mesh_svg", &picture_of_places, py::arg("title"), py::arg("axes"), py::arg("network"),
               py::arg("wraps"), py::arg("platform"), py::arg("places"), py::arg("max_cells") = 2048);
  module.def(
      "sharding_text",
      [](const py::typing::Union<Sharding>& sharding, py::handle shape, const IntArgument& max_columns,
         const IntArgument& min_width, const NumberArgument& scale) {
        constexpr std::string_view kOperation = "sharding_text";
        const auto& checked = value_from_python<Sharding>(sharding, kOperation, "sharding", "a Sharding", "x.sharding");
        check_has_devices(checked, "sharding_text");
        const auto characters = [&](py::handle number, std::string_view what) {
          return static_cast<int>(std::clamp<int64_t>(index_from_python(number, kOperation, what), 0, kMostCharacters));
        };
        return sharding_text(checked, dims_from_python(shape, kOperation, "shape"),
                             characters(max_columns, "max_columns"), characters(min_width, "min_width"),
                             number_from_python(scale, kOperation, "scale"));
      },
      py::arg("sharding"), py::arg("shape"), py::arg("max_columns") = 80, py::arg("min_width") = 9,
      py::arg("scale") = 1.0,
      "Returns a drawing in characters of the part of an array of `shape` on each device. Raises as "
      "Sharding.shard_shape.");
  module.def(
      "sharding_svg",
      [](const Sharding& sharding, py::handle shape) {
        check_has_devices(sharding, "sharding_svg");
        return sharding_svg(sharding, dims_from_python(shape, "sharding_svg", "shape"));
      },
      py::arg("sharding"), py::arg("shape"),
      "Returns the part of an array of `shape` on each device as a stand-alone SVG picture. Raises as "
      "Sharding.shard_shape.");
}

}  // namespace artifex_devices::bindings
