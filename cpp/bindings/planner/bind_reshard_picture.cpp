// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/render/reshard_svg.h"
#include "bind_planner.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

/// The shardings before and after, and with `is_copies` the bytes between devices.
std::string reshard_picture(const std::string& title, const std::vector<std::string>& steps,
                            const std::vector<int64_t>& global_shape, int64_t itemsize,
                            const std::shared_ptr<Sharding>& source, const std::shared_ptr<Sharding>& destination,
                            const ClusterOrNone& requested, bool is_copies,
                            const std::vector<std::pair<std::string, int64_t>>& bytes_by_link) {
  check_has_devices(*source, "reshard_svg");
  check_has_devices(*destination, "reshard_svg");
  const Dims shape = dims(global_shape);
  const ClusterRef handle = cluster_for(requested.value_or(nullptr), *source, *destination);
  ReshardPicture picture{title, steps, {}, "", bytes_by_link, handle.get()};
  return run_blocking([&] {
    if (is_copies) {
      DrawnCopies drawn = drawn_copies(*source, *destination, shape, itemsize, handle.get(), bytes_by_link);
      picture.why_no_traffic = std::move(drawn.why_none);
      for (const DeviceMessage& each : drawn.messages) picture.traffic.push_back({each.from, each.to, each.bytes});
    } else {
      picture.why_no_traffic =
          "collectives: their algorithms decide which device sends to which, so no arrows are drawn";
    }
    return reshard_svg(*source, *destination, shape, picture);
  });
}

}  // namespace

void bind_reshard_picture(py::module_& module) {
  module.def("reshard_svg", &reshard_picture, py::arg("title"), py::arg("steps"), py::arg("shape"), py::arg("itemsize"),
             py::arg("source").none(false), py::arg("destination").none(false), py::arg("cluster"),
             py::arg("is_copies"), py::arg("bytes_by_link"), "Returns a reshard as a stand-alone SVG picture.");
}

}  // namespace artifex_devices::planner::bindings
