// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "cpython_calls.h"
#include "python_modules.h"

namespace artifex_devices::bindings {
namespace {

struct Named {
  const char* name;         // in the extension
  const char* public_name;  // in artifex_devices.unpickle, which pickles name
  std::string_view result;
  std::string_view expected;
};

constexpr Named kNamed[] = {
    {"array_from_pickle", "array", "an Array",
     "(value, sharding, whether it is committed, XLA's layout as text or None)"},
    {"device_assignment", "device_assignment", "a DeviceAssignment", "(bytes,)"},
    {"device_list_from_pickle", "device_list", "a DeviceList", "(platform, ids)"},
    {"device_topology", "device_topology", "a DeviceTopology", "(bytes,)"},
    {"find_device", "device", "a Device", "(platform, id)"},
    {"find_memory", "memory", "a Memory", "(platform, id, kind)"},
    {"layout_from_text", "layout", "a Layout", "(XLA's text,)"},
    {"make_cluster", "cluster", "a Cluster", "(the dict of Cluster.parts,)"},
    {"mesh_from_pickle", "mesh", "a Mesh", "(platform, an array of device ids, axis names, axis types)"},
    {"named_sharding_from_pickle", "named_sharding", "a NamedSharding", "(class, mesh, spec, memory_kind, uneven)"},
    {"single_device_sharding_from_pickle", "single_device_sharding", "a SingleDeviceSharding",
     "(class, device, memory_kind)"},
};

// pybind11's functions, never freed; written at import only.
std::array<PyObject*, std::size(kNamed)> bound{};

// Whether the error is that of a missing part of the state, or of a part of another type.
bool is_damaged_state() {
  return PyErr_ExceptionMatches(PyExc_KeyError) != 0 || PyErr_ExceptionMatches(PyExc_TypeError) != 0;
}

template <size_t I>
PyObject* call(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  PyObject* const result = PyObject_Vectorcall(bound[I], arguments, static_cast<size_t>(count), keywords);
  if (result != nullptr || !is_damaged_state()) return result;
  return translated([&]() -> PyObject* {
    std::vector<std::string_view> types;
    for (Py_ssize_t i = 0; i < count; ++i) types.emplace_back(Py_TYPE(arguments[i])->tp_name);
    py::raise_from(
        PyExc_TypeError,
        fmt::format(
            "unpickle: the state of {} is damaged; expected {}, got parts of the types ({}); pickle the value again",
            kNamed[I].result, kNamed[I].expected, fmt::join(types, ", "))
            .c_str());
    return nullptr;
  });
}

template <size_t... I>
PyMethodDef* definitions(std::index_sequence<I...>) {
  static PyMethodDef result[] = {
      {kNamed[I].public_name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call<I>)),
       METH_FASTCALL | METH_KEYWORDS, reinterpret_cast<PyCFunctionObject*>(bound[I])->m_ml->ml_doc}...,
      {nullptr, nullptr, 0, nullptr}};
  return result;
}

}  // namespace

void install_pickle_functions(const py::module_& internal) {
  for (size_t i = 0; i < bound.size(); ++i) {
    bound[i] = py::object(internal.attr(kNamed[i].name)).release().ptr();
    if (!PyCFunction_CheckExact(bound[i])) {
      PyErr_Format(PyExc_SystemError, "%s is not a function of pybind11", kNamed[i].name);
      throw py::error_already_set();
    }
  }
  PyMethodDef* const created = definitions(std::make_index_sequence<std::size(kNamed)>{});
  const py::str path(python_modules::kUnpickle);
  py::dict functions;
  for (size_t i = 0; i < bound.size(); ++i) {
    functions[kNamed[i].public_name] = checked(PyCFunction_NewEx(&created[i], nullptr, path.ptr()));
  }
  internal.attr("unpickle_functions") = functions;
}

}  // namespace artifex_devices::bindings
