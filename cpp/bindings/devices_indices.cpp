// SPDX-License-Identifier: Apache-2.0
#include "devices_indices.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/partition/ingress_totals.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "numpy_bridge.h"
#include "recent.h"
#include "shard_index.h"
#include "short_cut.h"
#include "shown.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

constexpr int64_t kMostKept = 4096;  // devices of a map or set that is kept

/// Asked for once: without a map yet. A copy of one of 4,096 devices touches fresh pages, a third of the whole time.
struct KnownMap {
  ShardingRef sharding;
  Dims shape;
  py::object map;

  bool is_empty() const { return sharding == nullptr; }
  bool is_of(const Client& client) const { return sharding->devices()->client().get() == &client; }
};

struct KnownSet {
  DeviceListRef devices;
  py::object set;

  bool is_empty() const { return devices == nullptr; }
  bool is_of(const Client& client) const { return devices->client().get() == &client; }
};

auto& g_maps = make_recent<KnownMap, 32>("devices_indices_map");
auto& g_sets = make_recent<KnownSet, 32>("device_set");

bool is_worth_keeping(const DeviceList& devices) {
  return devices.size() <= kMostKept && is_open_world(*devices.client());
}

KnownMap& place_of_map(const Sharding& sharding, std::span<const int64_t> shape) {
  size_t hash = hash_pointer(&sharding);
  for (const int64_t size : shape) hash = hash_mix(hash, static_cast<size_t>(size));
  return g_maps.place(hash);
}

KnownSet& place_of_set(const DeviceList& devices) { return g_sets.place(hash_mix(0, hash_pointer(&devices))); }

/// The boxes of all tiles as tuples of slices. Tiles in one row of the grid share its slice, so that a map of n devices
/// makes far fewer than n slices a dimension.
class TileIndices {
 public:
  explicit TileIndices(const ShardDomains& domains) : rank_(domains.shape().size()) {
    const TileGrid& grid = domains.grid();
    slices_.resize(static_cast<size_t>(rank_));
    for (int64_t d = 0; d < rank_; ++d) {
      for (int64_t cut = 0; cut < grid.parts(d); ++cut) of(d).push_back(slice_of_cut(domains, d, cut));
    }
    Dims cuts(rank_, 0);
    index_of_tile_.reserve(static_cast<size_t>(grid.tiles()));
    for (int64_t tile = 0; tile < grid.tiles(); ++tile) {
      index_of_tile_.push_back(make(cuts));
      for (int64_t d = rank_ - 1; d >= 0 && ++cuts[d] == grid.parts(d); --d) cuts[d] = 0;
    }
  }

  /// Borrowed; replicas share one.
  PyObject* operator[](int64_t tile) const { return index_of_tile_[static_cast<size_t>(tile)].ptr(); }

 private:
  py::object make(const Dims& cuts) {
    PyObject* index = PyTuple_New(rank_);
    if (index == nullptr) throw py::error_already_set();
    for (int64_t d = 0; d < rank_; ++d) {
      PyTuple_SET_ITEM(index, d, Py_NewRef(of(d)[static_cast<size_t>(cuts[d])].ptr()));
    }
    // Slices of numbers lead nowhere. CPython untracks such tuples itself, but only while it collects, and thousands of
    // new ones make it collect again and again: half the time of a map of 4,096 devices.
    PyObject_GC_UnTrack(index);
    return py::reinterpret_steal<py::object>(index);
  }
  std::vector<py::object>& of(int64_t d) { return slices_[static_cast<size_t>(d)]; }

  int64_t rank_;
  std::vector<std::vector<py::object>> slices_;
  std::vector<py::object> index_of_tile_;
};

/// The sizes of a shape that is an exact tuple of few exact ints; its rank is -1 otherwise.
struct ExactShape {
  static constexpr Py_ssize_t kMost = 8;
  Py_ssize_t rank = -1;
  int64_t sizes[kMost];

  explicit ExactShape(PyObject* shape) {
    if (!PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) > kMost) return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i) {
      PyObject* size = PyTuple_GET_ITEM(shape, i);
      int overflow = 0;
      if (!PyLong_CheckExact(size)) return;
      sizes[i] = PyLong_AsLongLongAndOverflow(size, &overflow);
      if (overflow != 0) return;
    }
    rank = PyTuple_GET_SIZE(shape);
  }
  std::span<const int64_t> span() const { return {sizes, static_cast<size_t>(rank)}; }
};

PyTypeObject* named_class = nullptr;

/// As ShardDomains counts: trailing Nones of a spec are dimensions. Out of reach for a class that is not known.
int64_t least_rank(PyObject* self, const Sharding& sharding) {
  if (Py_TYPE(self) == named_class) return static_cast<const NamedSharding&>(sharding).spec().rank();
  return ExactShape::kMost + 1;
}

/// Sizes that divide, of a shape that has every dimension of the spec and can be multiplied; the general way judges the
/// rest.
PyObject* short_shard_shape(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  const Sharding* sharding = value_in<Sharding>(self);
  if (count != 1 || sharding == nullptr) return nullptr;
  const ExactShape shape(arguments[0]);
  if (shape.rank < least_rank(self, *sharding)) return nullptr;
  int64_t size = 1;
  for (const int64_t each : shape.span()) {
    if (each < 0 || __builtin_mul_overflow(size, each, &size)) return nullptr;
  }
  const TileGrid& grid = sharding->grid();
  for (Py_ssize_t d = 0; d < grid.parts().size(); ++d) {
    if (shape.sizes[d] % grid.parts(d) != 0) return nullptr;
  }
  PyObject* result = PyTuple_New(shape.rank);
  if (result == nullptr) return nullptr;
  for (Py_ssize_t d = 0; d < shape.rank; ++d) {
    PyObject* part = grid.parts(d) == 1 ? Py_NewRef(PyTuple_GET_ITEM(arguments[0], d))
                                        : PyLong_FromLongLong(shape.sizes[d] / grid.parts(d));
    if (part == nullptr) {
      Py_DECREF(result);
      return nullptr;
    }
    PyTuple_SET_ITEM(result, d, part);
  }
  return result;
}

PyObject* short_indices_map(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  const Sharding* sharding = value_in<Sharding>(self);
  if (count != 1 || sharding == nullptr) return nullptr;
  const ExactShape shape(arguments[0]);
  if (shape.rank < 0) return nullptr;
  const KnownMap& known = place_of_map(*sharding, shape.span());
  if (known.sharding.get() != sharding || !std::ranges::equal(known.shape.span(), shape.span())) return nullptr;
  const py::object map = known.map;  // making a dict may run the collector, and that what takes its place
  return map ? PyDict_Copy(map.ptr()) : nullptr;
}

PyObject* short_addressable_map(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  const Sharding* sharding = value_in<Sharding>(self);
  if (sharding == nullptr || sharding->is_abstract() || !sharding->is_fully_addressable()) return nullptr;
  return short_indices_map(self, arguments, count);
}

PyObject* short_device_set(PyObject* self) {
  const Sharding* sharding = value_in<Sharding>(self);
  if (sharding == nullptr || sharding->is_abstract()) return nullptr;
  return device_set(sharding->devices()).release().ptr();
}

}  // namespace

py::dict devices_indices_map(const std::shared_ptr<Sharding>& self, py::handle global_shape) {
  const Dims shape = dims_from_python(global_shape, "devices_indices_map", "global_shape");
  check_has_devices(*self, "devices_indices_map");
  const ShardDomains domains = self->domains(shape, "devices_indices_map");
  const std::vector<int64_t> tiles = self->grid().tiles_by_position();
  const DeviceObjects object_of(*self->devices());
  const TileIndices index_of(domains);
  py::dict map;
  for (int64_t position = 0; position < self->num_devices(); ++position) {
    const py::object device = object_of((*self->devices())[position]);
    if (PyDict_SetItem(map.ptr(), device.ptr(), index_of[tiles[static_cast<size_t>(position)]]) < 0) {
      throw py::error_already_set();
    }
  }
  if (is_worth_keeping(*self->devices())) {
    const KnownMap& known = place_of_map(*self, shape.span());
    const bool is_asked_again = known.sharding == self && known.shape == shape;
    py::object copy;
    if (is_asked_again) copy = py::reinterpret_steal<py::object>(PyDict_Copy(map.ptr()));
    const KnownMap gone =
        std::exchange(place_of_map(*self, shape.span()), KnownMap{.sharding = self, .shape = shape, .map = copy});
  }
  return map;
}

py::dict addressable_indices_map(const std::shared_ptr<Sharding>& self, py::handle global_shape) {
  py::dict map = devices_indices_map(self, global_shape);
  if (self->is_fully_addressable()) return map;
  py::dict own;
  for (const auto& [device, index] : map) {
    if (device.cast<const Device&>().is_addressable()) own[device] = index;
  }
  return own;
}

py::tuple device_index(const Sharding& self, py::handle device, py::handle global_shape) {
  const Dims shape = dims_from_python(global_shape, "device_index", "global_shape");
  check_has_devices(self, "device_index");
  if (!py::isinstance<Device>(device)) {
    throw_error<TypeMismatch>("device_index: device is of type {}; expected a Device, got {}; take one from devices()",
                              Py_TYPE(device.ptr())->tp_name, shown(device));
  }
  const auto* wanted = device.cast<const Device*>();
  const int64_t position = self.devices()->position_of(wanted);
  if (position < 0) {
    throw_error("device_index: {} does not lie on {}; expected one of its {} devices; take one from its device_set",
                self.to_string(), wanted->to_string(), self.num_devices());
  }
  return index_of_tile(self.domains(shape, "device_index"), self.grid().tile(position));
}

py::dict reshard_bytes(const Sharding& source, const Sharding& destination, py::handle global_shape, int64_t itemsize) {
  const Dims shape = dims_from_python(global_shape, "reshard_bytes", "global_shape");
  check_has_devices(source, "reshard_bytes");
  check_has_devices(destination, "reshard_bytes");
  if (source.devices()->client() != destination.devices()->client()) {
    throw_error(
        "reshard_bytes: source and destination are of different worlds; expected devices of one, got {} and {}; make "
        "both meshes in one simulate block",
        source.to_string(), destination.to_string());
  }
  const ShardDomains from = source.domains(shape, "reshard_bytes");
  const ShardDomains to = destination.domains(shape, "reshard_bytes");
  const auto ids = [](const DeviceList& devices) {
    std::vector<int64_t> made;
    made.reserve(static_cast<size_t>(devices.size()));
    for (const Device* device : devices.devices()) made.push_back(device->id());
    return made;
  };
  const DeviceList& from_devices = *source.devices();
  const DeviceList& to_devices = *destination.devices();
  const IngressTotals sums = from_devices == to_devices ? ingress_totals(from, to, itemsize, "reshard_bytes")
                                                        : ingress_totals(from, ids(from_devices), to, ids(to_devices),
                                                                         itemsize, "reshard_bytes");
  py::dict totals;
  totals["bytes_in"] = sums.bytes;
  totals["most_bytes_in"] = sums.most_bytes;
  totals["devices_that_receive"] = sums.devices;
  return totals;
}

py::set device_set(const DeviceListRef& devices) {
  const KnownSet& known = place_of_set(*devices);
  if (known.devices == devices) {
    const py::object set = known.set;  // making a set may run the collector, and that what takes its place
    const auto copy = py::reinterpret_steal<py::set>(PySet_New(set.ptr()));
    if (!copy) throw py::error_already_set();
    return copy;
  }
  py::set result;
  const DeviceObjects object_of(*devices);
  for (int64_t position = 0; position < devices->size(); ++position) result.add(object_of((*devices)[position]));
  if (is_worth_keeping(*devices)) {
    const auto copy = py::reinterpret_steal<py::object>(PySet_New(result.ptr()));
    const KnownSet gone = std::exchange(place_of_set(*devices), KnownSet{devices, copy});
  }
  return result;
}

void shorten_shard_shape_of(py::object cls) { named_class = reinterpret_cast<PyTypeObject*>(cls.ptr()); }

void shorten_sharding(py::object cls) {
  shorten_method<&short_shard_shape>(cls, "shard_shape");
  shorten_method<&short_indices_map>(cls, "devices_indices_map");
  shorten_method<&short_addressable_map>(cls, "addressable_devices_indices_map");
  shorten_property<&short_device_set>(cls, "device_set");
}

}  // namespace artifex_devices::bindings
