// SPDX-License-Identifier: Apache-2.0

#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "narrow.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_text.h"
#include "scopes.h"
#include "world.h"

namespace {

constexpr const char* kSubInterpreter =
    "artifex_devices: the import is in a sub-interpreter; expected the main interpreter, as a process has one set of "
    "devices and workers; import it there, or start a process by multiprocessing's \"spawn\"";

bool is_in_main_interpreter() { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

}  // namespace

// PyInit__core, below, calls pybind11's function for this name. The GIL stays off: docs/decisions/0044.
PYBIND11_MODULE(_core_of_main_interpreter, module, pybind11::mod_gil_not_used()) {
  using namespace artifex_devices::bindings;
  if (!is_in_main_interpreter()) throw pybind11::import_error(kSubInterpreter);  // Python 3.13: PyInit__core was not
  module.doc() = "The compiled core of artifex_devices. Use the names that the package re-exports.";
  pybind11::module_ internal =
      module.def_submodule("internal", "Classes and functions of the core for the Python files of the package.");
  install_gil_guards(module);
  load_numpy();
  bind_errors(module);
  bind_safe_repr(module);
  bind_topology(module);
  bind_world(module);
  bind_device(module);
  bind_memory(module);
  bind_device_list(module);
  bind_device_assignment(module);
  bind_device_topology(module);
  bind_partition(module);
  bind_sharding(module);
  bind_array(module);
  bind_memory_layout(module);
  bind_transfer(module);
  bind_transfer_recording(module);
  bind_tree(module);
  bind_client(module);
  bind_shards(module);
  bind_spec_algebra(module);
  bind_assembly(module);
  bind_checkpoint(module);
  bind_conversion(module);
  bind_data(module);
  bind_hlo(module);
  bind_transport(module);
  bind_processes(module);
  bind_dlpack(module);
  bind_collective(module);
  bind_exact_sum(module);
  bind_reduction(module);
  bind_spmd(module);
  bind_shared_channels(module);
  bind_flight(module);
  bind_meeting(module);
  bind_object_identity(module);
  bind_trace(module);
  bind_accelerators(module);
  bind_roofline(module);
  bind_accelerator_catalogue(module);
  bind_cluster(module);
  bind_mesh_orders(module);
  bind_charts(module);
  bind_render(module);
  bind_repr(module);
  bind_caller_line(module);
  bind_scopes(module);
  bind_narrow(module);
  finish_classes(module);
}

// pybind11 creates objects in the first interpreter that initializes a module of it, so this check comes before.
extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
  if (is_in_main_interpreter()) return PyInit__core_of_main_interpreter();
  PyErr_SetString(PyExc_ImportError, kSubInterpreter);
  return nullptr;
}
