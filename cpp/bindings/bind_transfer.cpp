// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "array_value.h"
#include "artifex_devices/array/array.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "bind_cross_reshard.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "memory_warning.h"
#include "narrow.h"
#include "numpy_bridge.h"
#include "python_modules.h"
#include "python_owner.h"
#include "scopes.h"
#include "shard_index.h"
#include "shown.h"
#include "transfer_guard.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

/// Where a leaf goes.
struct Target {
  ShardingRef sharding;  // null: where an Array is already, else the first device
  bool committed = false;
  std::shared_ptr<const Layout> layout = nullptr;  // null: that of an Array, else row-major
  std::optional<MemoryKind> kind = std::nullopt;   // without a sharding: where it is, in this kind of memory

  /// The sharding in that kind, where one was asked for.
  ShardingRef of(const ShardingRef& own) const { return kind ? own->with_memory_kind(*kind) : own; }
};

Target target_from_python(py::handle object) {
  if (object.is_none()) return {};
  if (py::isinstance<Sharding>(object)) {
    auto sharding = object.cast<std::shared_ptr<Sharding>>();
    if (sharding->is_abstract()) {
      throw_error(
          "device_put: {} has no devices; expected a sharding on a Mesh; make one of the same axes with devices",
          sharding->to_string());
    }
    if (!sharding->is_concrete()) {
      throw_error(
          "device_put: {} leaves a dimension UNCONSTRAINED; expected each dimension cut or not, got UNCONSTRAINED; "
          "write None or a mesh axis",
          sharding->to_string());
    }
    return {std::move(sharding), true};
  }
  if (py::isinstance<Device>(object)) return {sharding_of(object.cast<Device*>()), true};
  // Rare: a PartitionSpec or a Format; anything else is refused there.
  const auto resolved = py::module_::import(python_modules::kTargets).attr("resolve_target")(object).cast<py::tuple>();
  Target target = target_from_python(resolved[0]);
  if (!resolved[1].is_none()) target.layout = std::make_shared<const Layout>(resolved[1].cast<const Layout&>());
  if (resolved.size() > 2) {
    target.kind = memory_kind_from_name(resolved[2].cast<std::string>(), "device_put");
    target.committed = true;
  }
  return target;
}

/// "float32(8, 4)".
std::string value_text(const HostView& value) { return fmt::format("{}{}", name(value.dtype), to_string(value.shape)); }

std::string shape_text(const Dims& shape) { return py::repr(tuple_from_dims(shape)).cast<std::string>(); }

void check_rank(const Target& target, const Dims& shape) {
  if (!target.layout || target.layout->rank() == shape.size()) return;
  throw_error(
      "device_put: the Layout orders {} dimensions and the value of shape {} has {}; expected a Layout of its rank; "
      "leave the layout out",
      target.layout->rank(), to_string(shape), shape.size());
}

/// How a value of that shape is to be stored.
LayoutRef layout_of(const Target& target, const Dims& shape) {
  check_rank(target, shape);
  return target.layout ? stored_layout(*target.layout, shape.size(), "device_put") : nullptr;
}

/// Whether the source ends with the call; kLater: the caller will end it, so that the result must be an Array of its
/// own.
enum class Donation : uint8_t { kNone, kNow, kLater };

// The GIL is kept only where nothing is waited for: a worker may be held up by what only the GIL ends.
std::shared_ptr<const HostView> host_value(const ArrayRef& array) {
  if (copies_with_gil(array->nbytes())) {
    if (auto value = device_get_if_ready(array)) return value;
  }
  const ReleaseGil release;
  return device_get(array);
}

ArrayRef place(const HostView& value, const ShardingRef& sharding, bool committed, const LayoutRef& layout) {
  int64_t bytes = itemsize(value.dtype);
  for (const int64_t size : value.shape) bytes *= size;
  return run_with_gil_if(copies_with_gil(bytes, *sharding),
                         [&] { return device_put(value, sharding, committed, layout); });
}

/// Whether the user asks for the transfer by name (device_put), or an operation needs it.
enum class Intent : uint8_t { kExplicit, kImplicit };

bool on_same_devices(const Sharding& a, const Sharding& b) {
  if (*a.devices() == *b.devices()) return true;
  return a.num_devices() == b.num_devices() && std::ranges::all_of(a.devices()->devices(), [&](const Device* device) {
           return b.devices()->contains(device);
         });
}

/// What is cut otherwise on the same devices is the work of an operation; by name it is a transfer.
void check_move(const Array& source, const Sharding& sharding, bool force_copy, Intent intent) {
  if (!scopes_matter()) return;
  const bool is_explicit = intent == Intent::kExplicit;
  if (!force_copy && lies_there(source, sharding)) return;
  if (!is_explicit && on_same_devices(*source.sharding(), sharding)) return;
  check_transfer(TransferDirection::kDeviceToDevice, is_explicit, [&] {
    return TransferText{is_explicit ? "device_put" : "reshard", shape_text(source.shape()),
                        std::string(name(source.dtype())), source.sharding()->to_string(), sharding.to_string()};
  });
}

/// To devices of several processes, or from there. An Array of another world, and one that no place was asked for, is a
/// value that each process has, as in JAX.
ArrayRef put_on_processes(const ArrayRef& source, const ShardingRef& sharding, const ReshardOptions& options) {
  const Sharding& from = *source->sharding();
  const bool one_world = sharding->devices()->client() == from.devices()->client();
  if (one_world && (source->committed() || !from.is_fully_addressable())) return moved(source, sharding, options);
  const auto value = host_value(source);
  check_same_everywhere(*value, *sharding, value_text(*value));
  ArrayRef copied = place(*value, sharding, options.committed, *options.layout);
  if (options.donate) source->donate();
  return copied;
}

py::object put_array(const py::object& x, const Target& target, Donation donation, std::optional<bool> may_alias,
                     Intent intent) {
  const auto source = x.cast<ArrayRef>();
  source->check_alive("device_put");
  const LayoutRef layout = target.layout ? layout_of(target, source->shape()) : source->layout();
  const bool donate = donation == Donation::kNow;
  const bool force_copy = may_alias.has_value() && !*may_alias;
  const ShardingRef sharding = target.sharding ? target.sharding : target.of(source->sharding());
  const bool committed = target.sharding || target.kind ? target.committed : source->committed();
  const bool stays =
      *sharding == *source->sharding() && committed == source->committed() && equal_layouts(layout, source->layout());
  if (stays && !force_copy && donation == Donation::kNone) return x;
  check_move(*source, *sharding, force_copy, intent);
  const bool one_world = sharding->devices()->client() == source->sharding()->devices()->client();
  if (!sharding->is_fully_addressable() || (one_world && !source->sharding()->is_fully_addressable())) {
    py::object spread = py::cast(put_on_processes(source, sharding, {committed, donate, force_copy, layout}));
    after_placing(*sharding);
    return spread;
  }
  ArrayRef placed;
  if (one_world) {
    const bool keeps_gil = copies_with_gil(source->nbytes(), *sharding) && is_ready(source->ready_event());
    placed =
        run_with_gil_if(keeps_gil, [&] { return reshard(source, sharding, {committed, donate, force_copy, layout}); });
  } else {  // by way of the host, as nothing is shared between worlds
    placed = place(*host_value(source), sharding, committed, layout);
    if (donate) source->donate();
  }
  py::object result = py::cast(std::move(placed));
  after_placing(*sharding);
  return result;
}

// Makes the ndarray read-only and hands its memory over until the Array lets go.
bool try_alias(const Leaf& leaf, const ShardingRef& sharding, bool committed, py::object* result) {
  const HostView& view = leaf.view;
  const bool dense = view.byte_strides == row_major_strides(view.shape, itemsize(view.dtype));
  const bool pinned = sharding->memory_kind() == MemoryKind::kPinnedHost;  // the memory of others is not locked
  const bool is_whole = sharding->buffers().size() == 1 && sharding->is_fully_replicated();
  if (!is_ndarray(leaf.keep) || !dense || !is_whole || pinned) return false;
  HostView shared = view;
  shared.owner = python_owner(leaf.keep);
  *result = py::cast(device_put_alias(shared, sharding, committed));
  leaf.keep.attr("flags").attr("writeable") = false;
  return true;
}

/// Where a leaf stands in its tree, in words; asked for only by messages.
struct LeafPath {
  py::handle path_of = nullptr;
  size_t index = 0;
  std::string text() const { return path_of ? path_of(index).cast<std::string>() : std::string(); }
};

py::object put_leaf(const py::object& x, const Target& target, Donation donation, std::optional<bool> may_alias,
                    const LeafPath& path = {}, Intent intent = Intent::kExplicit) {
  release_dropped_owners();
  if (donation != Donation::kNone && may_alias.value_or(false)) {
    throw_error(
        "device_put: donate and may_alias are both True; expected one of them, as a donated source is deleted; leave "
        "one out");
  }
  if (py::isinstance<Array>(x)) return put_array(x, target, donation, may_alias, intent);
  Leaf leaf = leaf_from_python(x, "device_put");
  const LayoutRef layout = layout_of(target, leaf.view.shape);
  const ShardingRef sharding = target.sharding ? target.sharding : target.of(sharding_of(default_device()));
  const bool narrows = must_narrow(leaf.view.dtype);
  if (narrows) narrow_leaf(leaf, x, "device_put", path.text());
  check_transfer(TransferDirection::kHostToDevice, intent == Intent::kExplicit, [&] {
    sharding->domains(leaf.view.shape, "device_put");  // what could not be placed anyway is that error
    return TransferText{intent == Intent::kExplicit ? "device_put" : "reshard", shape_text(leaf.view.shape),
                        std::string(name(leaf.view.dtype)), fmt::format("a {} of the host", Py_TYPE(x.ptr())->tp_name),
                        sharding->to_string()};
  });
  if (!sharding->is_fully_addressable()) check_same_everywhere(leaf.view, *sharding, value_text(leaf.view));
  py::object aliased;
  // What is narrowed is not what x itself holds.
  if (may_alias.value_or(false) && !narrows && !layout && try_alias(leaf, sharding, target.committed, &aliased))
    return aliased;
  py::object placed = py::cast(place(leaf.view, sharding, target.committed, layout));
  after_placing(*sharding);
  return placed;
}

// One entry of `values` for leaf i: the list's i-th, or the one value for all.
py::handle entry(py::handle values, size_t i) { return PyList_Check(values.ptr()) ? values[py::int_(i)] : values; }

// A flag of device_put: True or False, NumPy's too.
bool flag(py::handle value, const char* name, const char* expected) {
  py::detail::make_caster<bool> flag;
  if (!flag.load(value, false)) {
    throw_error(
        "device_put: {} is of type {}; expected {} or a tree of these that is a prefix of x, got {}; give one value",
        name, Py_TYPE(value.ptr())->tp_name, expected, shown(value));
  }
  return py::detail::cast_op<bool>(flag);
}

std::optional<bool> optional_bool(py::handle value) {
  if (value.is_none()) return std::nullopt;
  return flag(value, "may_alias", "None or bool");
}

py::list put_leaves(const py::list& leaves, py::handle targets, py::handle donate, py::handle may_alias,
                    const py::object& path_of, bool is_explicit) {
  const Intent intent = is_explicit ? Intent::kExplicit : Intent::kImplicit;
  py::list placed(leaves.size());
  std::vector<ArrayRef> donated;
  Target target;
  const bool one_target = !PyList_Check(targets.ptr());
  if (one_target) target = target_from_python(targets);
  for (size_t i = 0; i < leaves.size(); ++i) {
    try {
      if (!one_target) target = target_from_python(targets[py::int_(i)]);
      const Donation donation = entry(donate, i).cast<bool>() ? Donation::kLater : Donation::kNone;
      placed[i] = put_leaf(leaves[i], target, donation, optional_bool(entry(may_alias, i)), {path_of, i}, intent);
      if (donation != Donation::kNone && py::isinstance<Array>(leaves[i])) {
        donated.push_back(leaves[i].cast<ArrayRef>());
      }
    } catch (const Error&) {
      // What was placed before is let go of with `placed`.
      const std::string path = path_of(i).cast<std::string>();
      rethrow_with_context(path.empty() ? "" : "leaf " + path + ": ");
    }
  }
  // Only now: an error at a later leaf must not cost the caller the earlier ones.
  for (const ArrayRef& array : donated) array->donate();
  return placed;
}

}  // namespace

py::object value_of(const ArrayRef& array) {
  release_dropped_owners();
  return ndarray_from_view(host_value(array));
}

void bind_transfer(py::module_& module) {
  module.def(
      "_put_leaf",
      [](const py::object& x, py::handle device, py::handle donate, py::handle may_alias) {
        return put_leaf(x, target_from_python(device),
                        flag(donate, "donate", "bool") ? Donation::kNow : Donation::kNone, optional_bool(may_alias));
      },
      py::arg("x"), py::arg("device"), py::arg("donate"), py::arg("may_alias"));
  module.def("_put_leaves", &put_leaves, py::arg("leaves"), py::arg("targets"), py::arg("donate"), py::arg("may_alias"),
             py::arg("path_of"), py::arg("explicit") = true);
  module.def("_get_leaf", &value_of, py::arg("array"));
  module.def(
      "_cached_host_value",
      [](const ArrayRef& array) -> py::object {
        const auto value = array->cached_host_value();
        return value ? ndarray_from_view(value) : py::none();
      },
      py::arg("array"), "What np.asarray(array) has gathered and cached, or None.");
  module.def(
      "_array_from_pickle",
      [](const py::object& value, const py::object& sharding, bool committed,
         const std::optional<std::string>& layout) {
        Target target = target_from_python(sharding);
        target.committed = committed;
        if (layout) target.layout = std::make_shared<const Layout>(Layout::parse(*layout));
        return put_leaf(value, target, Donation::kNone, std::nullopt);
      },
      py::arg("value"), py::arg("sharding"), py::arg("committed"), py::arg("layout") = py::none());
  module.def("_transfer_counters", [] {
    const TransferCounters counters = transfer_counters();
    py::dict result;
    result["host_to_device_bytes"] = counters.host_to_device_bytes;
    result["device_to_host_bytes"] = counters.device_to_host_bytes;
    result["device_to_device_bytes"] = counters.device_to_device_bytes;
    result["copies_listed"] = counters.copies_listed;
    return result;
  });
  module.def(
      "_plan_of_reshard",
      [](const ArrayRef& source, const std::shared_ptr<Sharding>& sharding) {
        check_has_devices(*sharding, "plan");
        const ReshardPlan plan = plan_of_reshard(*source, *sharding);
        py::dict result;
        result["copies"] = plan.copy_count();
        result["bytes_reused"] = plan.bytes_reused();
        result["bytes_copied"] = plan.bytes_copied();
        result["bytes_between_devices"] = plan.bytes_over(LinkKind::kSameArena);
        result["bytes_between_arenas"] = plan.bytes_over(LinkKind::kOtherArena);
        result["bytes_between_processes"] = plan.bytes_over(LinkKind::kOtherProcess);
        result["bytes_between_hosts"] = plan.bytes_over(LinkKind::kOtherHost);
        return result;
      },
      py::arg("source"), py::arg("sharding"));
}

}  // namespace artifex_devices::bindings
