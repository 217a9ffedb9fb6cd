// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <tuple>

#include "artifex_devices/render/bar_charts.h"
#include "bindings.h"
#include "gil.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

namespace py = pybind11;

using Texts = std::vector<std::string>;
using BarRow = std::tuple<std::string, std::vector<double>, Texts, std::string, bool>;
using TileRow = std::tuple<int64_t, int64_t, double, double, std::string>;

std::string bar_chart(const std::string& title, const Texts& kinds, const std::vector<BarRow>& bars, double limit,
                      const std::string& limit_text, bool is_waterfall, const Texts& notes) {
  BarChart chart{title, kinds, {}, limit, limit_text, is_waterfall, notes};
  for (const auto& [label, parts, texts, total, is_aside] : bars) {
    chart.bars.push_back({label, parts, texts, total, is_aside});
  }
  return without_gil([&] { return bar_chart_svg(chart); });
}

std::string schedule_picture(const std::string& title, const Texts& rows, const Texts& kinds,
                             const std::vector<TileRow>& tiles, const Texts& notes) {
  std::vector<ScheduleTile> drawn;
  for (const auto& [row, kind, start, end, label] : tiles) drawn.push_back({row, kind, start, end, label});
  return without_gil([&] { return schedule_svg(title, rows, kinds, drawn, notes); });
}

}  // namespace

void bind_charts(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("bar_chart_svg", &bar_chart, py::arg("title"), py::arg("kinds"), py::arg("bars"), py::arg("limit"),
               py::arg("limit_text"), py::arg("is_waterfall"), py::arg("notes"),
               R"(Returns a chart of stacked bars, or a waterfall, as a stand-alone SVG picture.

`bars` has (label, parts, texts, total, is_aside) of each bar.
)");
  internal.def("schedule_svg", &schedule_picture, py::arg("title"), py::arg("rows"), py::arg("kinds"), py::arg("tiles"),
               py::arg("notes"), R"(Returns a chart of tiles over time as a stand-alone SVG picture.

`tiles` has (row, kind, start, end, label) of each tile.
)");
}

}  // namespace artifex_devices::bindings
