// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <map>
#include <string_view>
#include <vector>

#include "artifex_devices/hlo/program_text.h"
#include "bindings.h"
#include "gil.h"
#include "pybind.h"
#include "python_text.h"

namespace artifex_devices::bindings {
namespace {

namespace py = pybind11;

template <class Values, class Convert>
py::tuple tuple_of(const Values& values, const Convert& convert) {
  py::tuple result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = convert(values[i]);
  return result;
}

py::tuple tuple_of_ints(const std::vector<int64_t>& values) {
  return tuple_of(values, [](int64_t value) { return py::int_(value); });
}

/// Equal texts and groups become one Python object: programs repeat them thousands of times.
class ProgramDicts {
 public:
  explicit ProgramDicts(const hlo::ProgramText& program) : program_(program), groups_(program.groups.size()) {}

  py::dict program() {
    py::dict result;
    result["source"] = text(program_.source);
    result["name"] = text(program_.name);
    result["devices"] = program_.devices;
    result["backend"] = text_or_none(program_.backend);
    result["is_partitioned"] = program_.is_partitioned;
    result["mesh"] =
        tuple_of(program_.mesh, [&](const auto& axis) { return py::make_tuple(text(axis.first), axis.second); });
    result["collectives"] = tuple_of(program_.collectives, [&](const auto& each) { return collective(each); });
    result["findings"] = tuple_of(program_.findings, [&](const auto& each) { return finding(each); });
    result["notes"] = tuple_of(program_.notes, [&](const std::string& note) { return text(note); });
    return result;
  }

 private:
  py::str text(std::string_view text) {
    const auto [known, is_new] = texts_.try_emplace(text);
    if (is_new) known->second = text_of_bytes(text);
    return known->second;
  }

  py::object axes(const hlo::Collective& each) {
    if (!each.axes) return py::none();
    return tuple_of(*each.axes, [&](size_t axis) { return text(program_.mesh[axis].first); });
  }

  py::tuple groups(size_t number) {
    py::object& known = groups_[number];
    if (!known) known = tuple_of(program_.groups.at(number), tuple_of_ints);
    return py::reinterpret_borrow<py::tuple>(known);
  }

  py::dict collective(const hlo::Collective& each) {
    py::dict result;
    result["name"] = text(each.name);
    result["kind"] = text(each.kind);
    result["dtypes"] = tuple_of(each.dtypes, [&](std::string_view dtype) { return text(dtype); });
    result["shapes"] = tuple_of(each.shapes, tuple_of_ints);
    result["bytes"] = each.bytes;
    result["groups"] = groups(each.groups);
    result["axes"] = axes(each);
    result["runs"] = each.runs;
    result["is_async"] = each.is_async;
    result["overlaps"] = each.overlaps;
    result["in_loop"] = each.in_loop;
    result["op_name"] = text(each.op_name);
    result["file"] = text(each.file);
    result["line"] = each.line;
    return result;
  }

  py::dict finding(const hlo::Finding& each) {
    py::dict result;
    result["kind"] = text(each.kind);
    result["collective"] = each.collective;
    result["bytes"] = each.bytes;
    result["other"] = text(each.other);
    result["is_of_compiler"] = each.is_of_compiler;
    return result;
  }

  const hlo::ProgramText& program_;
  std::map<std::string_view, py::str> texts_;
  std::vector<py::object> groups_;
};

}  // namespace

void bind_hlo(py::module_& module) {
  py::module_ hlo_module = module.def_submodule("hlo", "Programs as texts of HLO and StableHLO.");
  hlo_module.def(
      "read_program",
      [](std::string_view text, const hlo::MeshAxes& mesh) {
        const hlo::ProgramText program = without_gil([&] { return hlo::read_program(text, mesh); });
        return ProgramDicts(program).program();
      },
      py::arg("text"), py::arg("mesh"),
      "Returns what a text tells about a program, as the fields of Program, Collective and Finding. `mesh` has the "
      "names and sizes of axes; without any they are taken from the text.");
  hlo_module.def("ring_bytes", &hlo::ring_bytes, py::arg("kind"), py::arg("bytes"), py::arg("size"),
                 "Returns the least bytes that one device sends on a ring of `size`; None if `bytes` is None.");
}

}  // namespace artifex_devices::bindings
