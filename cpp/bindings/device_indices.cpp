// SPDX-License-Identifier: Apache-2.0
#include "device_indices.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "fast_path.h"
#include "numpy_bridge.h"
#include "python_text.h"
#include "recent_cache.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

constexpr int64_t kMaxCachedDevices = 4096;  // of a cached map or set

/// The first call stores an entry without a map: copying a map of 4,096 devices touches new pages, a third of the
/// call's time.
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

auto& g_maps = make_recent_cache<KnownMap, 32>();
auto& g_sets = make_recent_cache<KnownSet, 32>();

bool is_worth_caching(const DeviceList& devices) {
  return devices.size() <= kMaxCachedDevices && is_open_world(*devices.client());
}

size_t hash_of_map(const Sharding& sharding, std::span<const int64_t> shape) {
  size_t hash = hash_pointer(&sharding);
  for (const int64_t size : shape) hash = hash_mix(hash, static_cast<size_t>(size));
  return hash;
}

size_t hash_of_set(const DeviceList& devices) { return hash_mix(0, hash_pointer(&devices)); }

/// The boxes of all tiles as tuples of slices. Tiles in one row of the grid share its slice, so a map of n devices
/// creates far fewer than n slices for each dimension.
class TileIndices {
 public:
  explicit TileIndices(const ShardDomains& domains) : rank_(domains.shape().size()) {
    const TileGrid& grid = domains.grid();
    slices_.resize(static_cast<size_t>(rank_));
    for (int64_t d = 0; d < rank_; ++d) {
      for (int64_t cut = 0; cut < grid.parts(d); ++cut) of(d).push_back(slice_of_cut(domains, d, cut));
    }
    Dims cuts(rank_, 0);
    index_of_tile_.reserve(grid.tiles());
    for (int64_t tile = 0; tile < grid.tiles(); ++tile) {
      index_of_tile_.push_back(make(cuts));
      for (int64_t d = rank_ - 1; d >= 0 && ++cuts[d] == grid.parts(d); --d) cuts[d] = 0;
    }
  }

  /// Borrowed. Replicas share one tuple.
  PyObject* operator[](TileId tile) const { return index_of_tile_[tile].ptr(); }

 private:
  py::object make(const Dims& cuts) {
    PyObject* index = PyTuple_New(rank_);
    if (index == nullptr) throw py::error_already_set();
    for (int64_t d = 0; d < rank_; ++d) {
      PyTuple_SET_ITEM(index, d, Py_NewRef(of(d)[static_cast<size_t>(cuts[d])].ptr()));
    }
    // Slices of numbers are in no cycle. CPython untracks such tuples only in a collection, and thousands of new ones
    // start many collections: half the time of a map of 4,096 devices.
    PyObject_GC_UnTrack(index);
    return py::reinterpret_steal<py::object>(index);
  }
  std::vector<py::object>& of(int64_t d) { return slices_[static_cast<size_t>(d)]; }

  int64_t rank_;
  std::vector<std::vector<py::object>> slices_;
  IdVector<TileId, py::object> index_of_tile_;
};

/// The sizes of a shape that is exactly a tuple of at most kMaxRank exact ints. Any other shape has rank -1.
struct ExactShape {
  static constexpr Py_ssize_t kMaxRank = 8;
  Py_ssize_t rank = -1;
  int64_t sizes[kMaxRank];

  explicit ExactShape(PyObject* shape) {
    if (!PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) > kMaxRank) return;
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

/// As in ShardDomains, trailing Nones of a spec are dimensions. Larger than any ExactShape for an unknown class.
int64_t least_rank(PyObject* self, const Sharding& sharding) {
  if (Py_TYPE(self) == named_class) return static_cast<const NamedSharding&>(sharding).spec().rank();
  return ExactShape::kMaxRank + 1;
}

/// For sizes that their axes divide, of a shape with every dimension of the spec and a product of 64 bits. The slow
/// path checks the rest.
PyObject* fast_shard_shape(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
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

PyObject* fast_indices_map(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  const Sharding* sharding = value_in<Sharding>(self);
  if (count != 1 || sharding == nullptr) return nullptr;
  const ExactShape shape(arguments[0]);
  if (shape.rank < 0) return nullptr;
  const auto map = g_maps.at(hash_of_map(*sharding, shape.span()), [&](const KnownMap& entry) {
    const bool same = entry.sharding.get() == sharding && std::ranges::equal(entry.shape.span(), shape.span());
    return same ? entry.map : py::object();
  });
  return map ? PyDict_Copy(map.ptr()) : nullptr;
}

PyObject* fast_device_set(PyObject* self) {
  const Sharding* sharding = value_in<Sharding>(self);
  if (sharding == nullptr || sharding->is_abstract()) return nullptr;
  return device_set(sharding->devices()).release().ptr();
}

}  // namespace

py::object slice_of_cut(const ShardDomains& domains, int64_t dimension, int64_t cut) {
  PyObject* slice = nullptr;
  if (domains.grid().parts(dimension) == 1) {
    slice = PySlice_New(nullptr, nullptr, nullptr);
  } else {
    slice = PySlice_New(py::int_(domains.begin(dimension, cut)).ptr(),
                        py::int_(domains.begin(dimension, cut + 1)).ptr(), nullptr);
  }
  if (slice == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(slice);
}

py::tuple index_of_tile(const ShardDomains& domains, TileId tile) {
  const int64_t rank = domains.shape().size();
  py::tuple index(static_cast<size_t>(rank));
  int64_t rest = tile.number();
  for (int64_t d = rank - 1; d >= 0; --d) {
    const int64_t parts = domains.grid().parts(d);
    PyTuple_SET_ITEM(index.ptr(), d, slice_of_cut(domains, d, rest % parts).release().ptr());
    rest /= parts;
  }
  return index;
}

py::dict devices_indices_map(const std::shared_ptr<Sharding>& self, py::handle global_shape) {
  const Dims shape = dims_from_python(global_shape, "devices_indices_map", "global_shape");
  check_has_devices(*self, "devices_indices_map");
  const ShardDomains domains = self->domains(shape, "devices_indices_map");
  const IdVector<Position, TileId> tiles = self->grid().tiles_by_position();
  const DeviceObjects object_of(*self->devices());
  const TileIndices index_of(domains);
  py::dict map;
  for (const Position position : self->positions()) {
    const py::object device = object_of(&self->device(position));
    if (PyDict_SetItem(map.ptr(), device.ptr(), index_of[tiles[position]]) < 0) {
      throw py::error_already_set();
    }
  }
  if (is_worth_caching(*self->devices())) {
    const size_t hash = hash_of_map(*self, shape.span());
    const bool is_repeated =
        g_maps.at(hash, [&](const KnownMap& entry) { return entry.sharding == self && entry.shape == shape; });
    py::object copy;
    if (is_repeated) copy = py::reinterpret_steal<py::object>(PyDict_Copy(map.ptr()));
    g_maps.store(hash, KnownMap{.sharding = self, .shape = shape, .map = copy});
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
                              Py_TYPE(device.ptr())->tp_name, safe_repr(device));
  }
  const auto* requested = device.cast<const Device*>();
  const Position position = self.devices()->position_of(requested);
  if (position.is_none()) {
    throw_error("device_index: {} does not include {}; expected one of its {} devices; take one from its device_set",
                self.to_string(), requested->to_string(), self.num_devices());
  }
  return index_of_tile(self.domains(shape, "device_index"), self.grid().tile(position));
}

py::set device_set(const DeviceListRef& devices) {
  const size_t hash = hash_of_set(*devices);
  const auto known =
      g_sets.at(hash, [&](const KnownSet& entry) { return entry.devices == devices ? entry.set : py::object(); });
  if (known) {
    const auto copy = py::reinterpret_steal<py::set>(PySet_New(known.ptr()));
    if (!copy) throw py::error_already_set();
    return copy;
  }
  py::set result;
  const DeviceObjects object_of(*devices);
  for (Device* const device : devices->devices()) result.add(object_of(device));
  if (is_worth_caching(*devices)) {
    const auto copy = py::reinterpret_steal<py::object>(PySet_New(result.ptr()));
    g_sets.store(hash, KnownSet{devices, copy});
  }
  return result;
}

void set_named_sharding_class(py::object cls) { named_class = reinterpret_cast<PyTypeObject*>(cls.ptr()); }

void add_sharding_fast_paths(py::object cls) {
  add_fast_method<&fast_shard_shape>(cls, "shard_shape");
  add_fast_method<&fast_indices_map>(cls, "devices_indices_map");
  add_fast_property<&fast_device_set>(cls, "device_set");
}

}  // namespace artifex_devices::bindings
