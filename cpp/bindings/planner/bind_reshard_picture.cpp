// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/render/reshard_svg.h"
#include "bind_planner.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

constexpr double kMaxDrawnCopies = 1 << 17;  // about 0.1 s; a picture has few arrows anyway

/// The shardings before and after, and with `is_copies` the bytes between devices.
std::string reshard_picture(const std::string& title, const std::vector<std::string>& steps,
                            const std::vector<int64_t>& global_shape, int64_t itemsize,
                            const std::shared_ptr<Sharding>& source, const std::shared_ptr<Sharding>& destination,
                            const ClusterOrNone& requested, bool is_copies,
                            const std::vector<std::pair<std::string, int64_t>>& bytes_by_link) {
  check_has_devices(*source, "reshard_svg");
  check_has_devices(*destination, "reshard_svg");
  const Dims shape = dims(global_shape);
  const std::shared_ptr<Cluster> handle = cluster_handle_for(requested, *source, *destination);
  ReshardPicture picture{title, steps, {}, "", bytes_by_link, handle.get()};
  if (!is_copies) {
    picture.why_no_traffic = "collectives: their algorithms decide which device sends to which, so no arrows are drawn";
    return run_blocking([&] { return reshard_svg(*source, *destination, shape, picture); });
  }
  const auto drawn = [&] { return reshard_svg(*source, *destination, shape, picture); };
  const double copies = copies_between(*source, *destination, shape, handle.get());
  if (copies > kMaxDrawnCopies) {
    picture.why_no_traffic = fmt::format("about {:.3g} direct copies: too many to draw as arrows", copies);
    for (const auto& [link, bytes] : bytes_by_link) {
      if (bytes > 0) picture.why_no_traffic += fmt::format("; {} {}", bytes_text(bytes), link);
    }
    return run_blocking(drawn);
  }
  const PlacedCopies placed = run_blocking(
      [&] { return placed_copies(*source, *destination, shape, itemsize, handle.get(), kMaxDrawnCopies); });
  placed.direct.plan.for_each_copy([&](const ReshardCopy& copy) {
    picture.traffic.push_back({placed.source.places[static_cast<size_t>(copy.source)].device,
                               placed.destination.places[static_cast<size_t>(copy.destination)].device, copy.bytes});
  });
  return run_blocking(drawn);
}

}  // namespace

void bind_reshard_picture(py::module_& module) {
  module.def("reshard_svg", &reshard_picture, py::arg("title"), py::arg("steps"), py::arg("shape"), py::arg("itemsize"),
             py::arg("source"), py::arg("destination"), py::arg("cluster"), py::arg("is_copies"),
             py::arg("bytes_by_link"), "Returns a reshard as a stand-alone SVG picture.");
}

}  // namespace artifex_devices::planner::bindings
