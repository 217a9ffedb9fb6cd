// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "bind_accelerators.h"
#include "bind_cluster.h"
#include "bind_memory_layout.h"
#include "bind_planner.h"
#include "bind_roofline.h"
#include "bind_shared_lanes.h"
#include "bind_step.h"
#include "bind_suggestion.h"
#include "bindings.h"
#include "checked_instances.h"
#include "device_values.h"
#include "errors.h"
#include "gil.h"
#include "guarded_casts.h"
#include "named_by_pickles.h"
#include "narrow.h"
#include "refusals.h"
#include "scopes.h"
#include "shown.h"
#include "transfer_guard.h"
#include "unmade.h"
#include "world.h"

PYBIND11_MODULE(_core, module) {
  using namespace artifex_devices::bindings;
  module.doc() = "The compiled core of artifex_devices. Use the names that the package re-exports.";
  install_gil_guards(module);
  bind_errors(module);
  bind_shown(module);
  bind_topology(module);
  bind_world(module);
  bind_device(module);
  bind_memory(module);
  bind_device_list(module);
  bind_device_assignment(module);
  bind_device_topology(module);
  bind_heap_profile(module);
  bind_partition(module);
  bind_sharding(module);
  bind_array(module);
  bind_memory_layout(module);
  bind_transfer(module);
  bind_tree(module);
  bind_client(module);
  bind_local(module);
  bind_assembly(module);
  bind_cross_reshard(module);
  bind_host_copy(module);
  bind_dlpack(module);
  bind_layout(module);
  bind_collective(module);
  bind_spmd(module);
  bind_shared_lanes(module);
  bind_accelerators(module);
  bind_advice(module);
  bind_roofline(module);
  bind_accelerator_catalogue(module);
  bind_cluster(module);
  bind_mesh_orders(module);
  bind_planner(module);
  bind_step(module);
  bind_suggestion(module);
  bind_render(module);
  bind_looks(module);
  bind_config(module);
  bind_scopes(module);
  bind_transfer_guard(module);
  bind_narrow(module);
  refuse_unmade(module);
  explain_refusals(module);
  guard_casts(module);
  check_instances(module);
  name_by_pickles(module);
}
