// SPDX-License-Identifier: Apache-2.0
#include "mesh_fast_paths.h"

#include <array>
#include <memory>

#include "cpython_calls.h"
#include "fast_path.h"
#include "numpy_bridge.h"
#include "recent_cache.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

struct KnownMesh {
  py::object names;
  Dims shape;
  py::object mesh;

  bool is_empty() const { return !mesh; }
  bool is_of(const Client& client) const;
};

struct KnownSpec {
  static constexpr Py_ssize_t kMaxEntries = 6;
  Py_ssize_t count = 0;
  std::array<py::object, kMaxEntries> entries;
  py::object spec;

  bool is_empty() const { return !spec; }
  static bool is_of(const Client&) { return false; }
};

/// Found by mesh and spec.
struct KnownNamed {
  py::object mesh;
  py::object spec;
  py::object sharding;

  bool is_empty() const { return !sharding; }
  bool is_of(const Client& client) const;
};

/// Found by the sharding.
struct KnownParts {
  std::shared_ptr<const NamedSharding> sharding;
  py::object mesh;
  py::object spec;

  bool is_empty() const { return sharding == nullptr; }
  bool is_of(const Client& client) const { return sharding->devices()->client().get() == &client; }
};

struct KnownObject {
  ShardingRef sharding;
  py::object object;

  bool is_empty() const { return sharding == nullptr; }
  bool is_of(const Client& client) const { return sharding->devices()->client().get() == &client; }
};

auto& g_meshes = make_recent_cache<KnownMesh, 32>();
auto& g_specs = make_recent_cache<KnownSpec, 256>();
auto& g_named = make_recent_cache<KnownNamed, 128>();
auto& g_parts = make_recent_cache<KnownParts, 128>();
auto& g_objects = make_recent_cache<KnownObject, 128>();

PyTypeObject* device_class = nullptr;
PyTypeObject* mesh_class = nullptr;
PyTypeObject* spec_class = nullptr;
PyObject* unconstrained_entry = nullptr;

bool KnownMesh::is_of(const Client& client) const {
  return value_in<Mesh>(mesh.ptr())->devices()->client().get() == &client;
}

bool KnownNamed::is_of(const Client& client) const {
  return value_in<Sharding>(sharding.ptr())->devices()->client().get() == &client;
}

py::object borrowed(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }

// --- Mesh(ndarray of devices, names)
// --------------------------------------------------------------------------------------

/// Whether it is an exact str or tuple of strs, which cannot change.
bool is_fixed(PyObject* names) {
  if (PyUnicode_CheckExact(names)) return true;
  if (!PyTuple_CheckExact(names)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(names, i))) return false;
  }
  return true;
}

bool are_devices_of(PyObject* const* objects, const DeviceList& devices) {
  for (int64_t i = 0; i < devices.size(); ++i) {
    if (objects[i] == nullptr || Py_TYPE(objects[i]) != device_class) return false;
    if (value_in<Device>(objects[i]) != devices[Position(i)]) return false;
  }
  return true;
}

PyObject* fast_mesh(PyObject* cls, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || !is_fixed(arguments[1])) return nullptr;
  Dims shape;
  PyObject* const* objects = dense_objects(arguments[0], &shape);
  if (objects == nullptr) return nullptr;
  int64_t size = 1;
  for (const int64_t each : shape) size *= each;
  if (size == 0) return nullptr;
  size_t hash = hash_mix(hash_value(shape), hash_pointer(arguments[1]));
  hash = hash_mix(hash_mix(hash, hash_pointer(objects[0])), hash_pointer(objects[size - 1]));
  PyObject* const known = g_meshes.at(hash, [&](const KnownMesh& entry) -> PyObject* {
    if (!entry.mesh || entry.names.ptr() != arguments[1] || entry.shape != shape) return nullptr;
    if (!are_devices_of(objects, *value_in<Mesh>(entry.mesh.ptr())->devices())) return nullptr;
    return Py_NewRef(entry.mesh.ptr());
  });
  if (known != nullptr) return known;
  const auto result = py::reinterpret_steal<py::object>(construct_slowly(cls, arguments, count, nullptr));
  if (!result || Py_TYPE(result.ptr()) != mesh_class) return nullptr;
  const Mesh* mesh = value_in<Mesh>(result.ptr());
  if (mesh->devices() != nullptr && is_open_world(*mesh->devices()->client())) {
    g_meshes.store(hash, KnownMesh{borrowed(arguments[1]), shape, result});
  }
  return Py_NewRef(result.ptr());
}

/// The attribute cached in the object's __dict__; null if it is not cached yet.
PyObject* cached_in(PyObject* self, PyObject* name) {
  const auto attributes = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(self, nullptr));
  return attributes ? dict_item(attributes.ptr(), name) : nullptr;
}

PyObject* devices_name = nullptr;

PyObject* fast_mesh_devices(PyObject* self) { return cached_in(self, devices_name); }

// --- PartitionSpec(*entries)
// ----------------------------------------------------------------------------------------------

PyObject* fast_spec(PyObject* cls, PyObject* const* arguments, Py_ssize_t count) {
  if (count > KnownSpec::kMaxEntries) return nullptr;
  size_t hash = static_cast<size_t>(count);
  for (Py_ssize_t i = 0; i < count; ++i) hash = hash_mix(hash, hash_pointer(arguments[i]));
  PyObject* const known = g_specs.at(hash, [&](const KnownSpec& entry) -> PyObject* {
    if (!entry.spec || entry.count != count) return nullptr;
    bool same = true;
    for (Py_ssize_t i = 0; i < count; ++i) same = same && entry.entries[static_cast<size_t>(i)].ptr() == arguments[i];
    return same ? Py_NewRef(entry.spec.ptr()) : nullptr;
  });
  if (known != nullptr) return known;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (arguments[i] != Py_None && arguments[i] != unconstrained_entry && !is_fixed(arguments[i])) return nullptr;
  }
  const auto result = py::reinterpret_steal<py::object>(construct_slowly(cls, arguments, count, nullptr));
  if (!result) return nullptr;
  KnownSpec new_entry;
  new_entry.count = count;
  for (Py_ssize_t i = 0; i < count; ++i) new_entry.entries[static_cast<size_t>(i)] = borrowed(arguments[i]);
  new_entry.spec = result;
  g_specs.store(hash, std::move(new_entry));
  return Py_NewRef(result.ptr());
}

// --- NamedSharding(mesh, spec)
// --------------------------------------------------------------------------------------------

size_t hash_of_parts(const Sharding* sharding) { return hash_mix(0, hash_pointer(sharding)); }

PyObject* fast_named(PyObject* cls, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || Py_TYPE(arguments[0]) != mesh_class || Py_TYPE(arguments[1]) != spec_class) return nullptr;
  const size_t hash = hash_mix(hash_mix(0, hash_pointer(arguments[0])), hash_pointer(arguments[1]));
  PyObject* const known = g_named.at(hash, [&](const KnownNamed& entry) -> PyObject* {
    const bool same = entry.sharding && entry.mesh.ptr() == arguments[0] && entry.spec.ptr() == arguments[1];
    return same ? Py_NewRef(entry.sharding.ptr()) : nullptr;
  });
  if (known != nullptr) return known;
  const auto result = py::reinterpret_steal<py::object>(construct_slowly(cls, arguments, count, nullptr));
  if (!result) return nullptr;
  const auto sharding = result.cast<std::shared_ptr<NamedSharding>>();
  if (is_open_world(*sharding->devices()->client())) {
    const py::object mesh = borrowed(arguments[0]);
    const py::object spec = borrowed(arguments[1]);
    g_named.store(hash, KnownNamed{mesh, spec, result});
    g_parts.store(hash_of_parts(sharding.get()), KnownParts{sharding, mesh, spec});
  }
  return Py_NewRef(result.ptr());
}

/// A new reference to the mesh or spec. Null for an abstract sharding, and if __init__ has not run.
PyObject* part_of(PyObject* self, py::object KnownParts::* part) {
  const auto* named = value_in<NamedSharding>(self);
  if (named == nullptr || named->is_abstract()) return nullptr;
  PyObject* const known = g_parts.at(hash_of_parts(named), [&](const KnownParts& entry) -> PyObject* {
    return entry.sharding.get() == named ? Py_NewRef((entry.*part).ptr()) : nullptr;
  });
  if (known != nullptr) return known;
  if (!is_open_world(*named->devices()->client())) return nullptr;
  const auto shared = borrowed(self).cast<std::shared_ptr<NamedSharding>>();
  const KnownParts new_entry{shared, py::cast(std::const_pointer_cast<Mesh>(named->mesh())), py::cast(named->spec())};
  g_parts.store(hash_of_parts(named), new_entry);
  return Py_NewRef((new_entry.*part).ptr());
}

PyObject* fast_mesh_of(PyObject* self) { return part_of(self, &KnownParts::mesh); }

PyObject* fast_spec_of(PyObject* self) { return part_of(self, &KnownParts::spec); }

}  // namespace

void add_mesh_fast_paths(py::object cls) {
  mesh_class = reinterpret_cast<PyTypeObject*>(cls.ptr());
  device_class = reinterpret_cast<PyTypeObject*>(py::type::of<Device>().ptr());
  devices_name = PyUnicode_InternFromString("_devices");
  add_fast_class<&fast_mesh>(cls);
  add_fast_property<&fast_mesh_devices>(cls, "devices");
}

void add_spec_fast_paths(py::object cls, PyObject* unconstrained) {
  spec_class = reinterpret_cast<PyTypeObject*>(cls.ptr());
  unconstrained_entry = unconstrained;
  add_fast_class<&fast_spec>(cls);
}

void add_named_sharding_fast_paths(py::object cls) {
  add_fast_class<&fast_named>(cls);
  add_fast_property<&fast_mesh_of>(cls, "mesh");
  add_fast_property<&fast_spec_of>(cls, "spec");
}

py::object sharding_object(const ShardingRef& sharding) {
  const size_t hash = hash_mix(0, hash_pointer(sharding.get()));
  py::object result = g_objects.at(
      hash, [&](const KnownObject& entry) { return entry.sharding == sharding ? entry.object : py::object(); });
  if (result) return result;
  result = py::cast(std::const_pointer_cast<Sharding>(sharding));
  if (is_open_world(*sharding->devices()->client())) g_objects.store(hash, KnownObject{sharding, result});
  return result;
}

}  // namespace artifex_devices::bindings
