// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/mesh.h"

#include <algorithm>
#include <unordered_map>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

/// All existing meshes. Each removes itself when it is destroyed.
class MeshTable {
 public:
  static MeshTable& instance() {
    static auto* table = new MeshTable;  // never destroyed: meshes are destroyed during process exit too
    return *table;
  }

  /// The existing mesh that equals `mesh`; otherwise adds `mesh` and returns it.
  MeshRef intern(MeshRef mesh) {
    // A mesh that was locked here may be the last reference, and its deleter takes the mutex. Both variables are
    // declared before the lock so that they release such meshes after it; `other` does so if push_back throws.
    std::vector<MeshRef> others;
    MeshRef other;
    const std::lock_guard lock(mutex_);
    auto [entry, end] = meshes_.equal_range(mesh->hash());
    for (; entry != end; ++entry) {
      other = entry->second.alive.lock();
      if (!other) continue;
      if (*other == *mesh) return other;
      others.push_back(std::move(other));
    }
    meshes_.emplace(mesh->hash(), Entry{mesh.get(), mesh});
    return mesh;
  }

  void remove(const Mesh* mesh) noexcept {
    const std::lock_guard lock(mutex_);
    auto [entry, end] = meshes_.equal_range(mesh->hash());
    for (; entry != end; ++entry) {
      if (entry->second.mesh != mesh) continue;
      meshes_.erase(entry);
      return;
    }
  }

  int64_t size() {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(meshes_.size());
  }

 private:
  struct Entry {
    const Mesh* mesh;
    std::weak_ptr<const Mesh> alive;
  };
  Mutex<"meshes"> mutex_;
  HeldOverFork<decltype(mutex_)> held_over_fork_{mutex_};
  std::unordered_multimap<size_t, Entry> meshes_;  // by hash
};

// Created at load: a fork cannot happen during their construction.
[[maybe_unused]] const MeshTable& g_mesh_table = MeshTable::instance();
[[maybe_unused]] const MeshRef g_empty_mesh = Mesh::make_empty();

}  // namespace

MeshRef Mesh::make(AbstractMesh abstract, DeviceListRef devices, std::string_view operation) {
  const int64_t count = devices ? devices->size() : 0;
  if (count != abstract.size()) {
    throw_error(
        "{}: a mesh of axes ({}) has {} positions but {} devices were given; expected one device for each position; "
        "change the axis sizes or the devices",
        operation, abstract.axes_text(), abstract.size(), count);
  }
  auto* mesh = new Mesh;
  mesh->hash_ = hash_mix(abstract.hash(), devices->hash());
  mesh->abstract_ = std::move(abstract);
  mesh->devices_ = std::move(devices);
  return MeshTable::instance().intern(MeshRef(mesh, [](const Mesh* unused) {
    MeshTable::instance().remove(unused);
    delete unused;
  }));
}

MeshRef Mesh::make_empty() {
  static const auto* empty = new MeshRef(new Mesh);
  return *empty;
}

int64_t Mesh::live_count() { return MeshTable::instance().size(); }

std::string Mesh::to_string() const {
  if (empty()) return "Mesh()";
  return fmt::format("Mesh({}, axis_types={})", abstract_.axes_text(), abstract_.types_text());
}

std::string Mesh::repr() const {
  std::string names;
  for (const AxisName name : abstract_.axis_names()) names += (names.empty() ? "" : ", ") + name.repr();
  if (abstract_.rank() == 1) names += ',';
  const std::string types = empty() ? "" : ", axis_types=" + abstract_.types_text();
  return fmt::format("Mesh(axis_sizes={}, axis_names=({}){})", artifex_devices::to_string(abstract_.axis_sizes()),
                     names, types);
}

bool operator==(const Mesh& a, const Mesh& b) noexcept {
  if (&a == &b) return true;
  if (a.hash_ != b.hash_ || a.empty() || b.empty()) return a.empty() && b.empty();
  return a.abstract_ == b.abstract_ && *a.devices_ == *b.devices_;
}

MeshRef make_mesh(const Dims& sizes, std::vector<AxisName> names, std::vector<AxisType> types,
                  const std::vector<Device*>& devices, std::string_view operation) {
  AbstractMesh abstract(std::move(names), sizes, std::move(types));
  const auto count = static_cast<int64_t>(devices.size());
  if (abstract.size() > count) {
    throw_error(
        "{}: Number of devices {} must be >= the product of mesh_shape {}; expected at least {} devices, got {}; use a "
        "smaller mesh, simulate more devices (`with ad.simulate({}):`), or set JAX_NUM_CPU_DEVICES={} "
        "before the program starts",
        operation, count, to_string(sizes), abstract.size(), count, abstract.size(), abstract.size());
  }
  std::vector<Device*> first(devices.begin(), devices.begin() + abstract.size());
  return Mesh::make(std::move(abstract), DeviceList::make(std::move(first), operation), operation);
}

MeshRef make_mesh(const Dims& sizes, std::vector<AxisName> names, std::vector<AxisType> types, const Client& client,
                  std::string_view operation) {
  int64_t needed = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || size > client.device_count() / needed) {
      needed = client.device_count();  // a wrong shape: the error states the number of all devices
      break;
    }
    needed *= size;
  }
  std::vector<Device*> devices;
  for (const DeviceId id : IdRange<DeviceId>(needed)) devices.push_back(client.device(id));
  return make_mesh(sizes, std::move(names), std::move(types), devices, operation);
}

}  // namespace artifex_devices
