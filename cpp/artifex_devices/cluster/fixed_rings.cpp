// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <span>

#include "artifex_devices/cluster/mesh_orders.h"

namespace artifex_devices {
namespace {

using Ring = std::span<const int64_t>;

// Source: what JAX 0.10.2 returns for such devices (compared by tests/oracle/test_mesh_utils.py).
constexpr std::array<int64_t, 8> kTray = {0, 1, 2, 3, 6, 7, 4, 5};  // eight cores on four chips
constexpr std::array<int64_t, 4> kRingOf4 = {0, 1, 3, 2};
constexpr std::array<int64_t, 8> kRingOf2x4 = {0, 1, 2, 3, 7, 6, 5, 4};
constexpr std::array<int64_t, 8> kOrderOf2x2x2 = {0, 4, 2, 6, 1, 5, 3, 7};
constexpr std::array<int64_t, 16> kRingOf4x4 = {0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4};
constexpr std::array<int64_t, 8> kRingOfCube = {0, 1, 3, 2, 6, 7, 5, 4};

/// 0, 1, ... count - 1, where each eight numbers follow the order of a tray.
std::vector<int64_t> trays(int64_t count) {
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order.push_back(i / 8 * 8 + kTray[static_cast<size_t>(i % 8)]);
  return order;
}

bool is_box(const MeshDevices& devices, std::array<int64_t, 3> sizes) {
  return devices.has_coords() && devices.extent() == sizes;
}

/// Positions sorted by z, then y, then x; without coordinates all count as equal, as in JAX.
std::vector<int64_t> positions_by_coords(const MeshDevices& devices) {
  std::vector<int64_t> order = devices.positions();
  if (!devices.has_coords()) return order;
  std::ranges::stable_sort(order, {}, [&](int64_t position) {
    const auto& coords = devices.devices[static_cast<size_t>(position)].coords;
    return std::array{coords[2], coords[1], coords[0]};
  });
  return order;
}

Ring ring_of_lite(const MeshDevices& devices, const Dims& shape) {
  const int64_t count = devices.size();
  if (count == 4 && is_box(devices, {2, 2, 1})) return kRingOf4;
  if (count == 8) return is_box(devices, {2, 2, 2}) ? Ring(kOrderOf2x2x2) : Ring(kRingOf2x4);
  if (count == 16 && is_box(devices, {4, 4, 1}) && std::ranges::find(shape, 16) != shape.end()) return kRingOf4x4;
  return {};
}

}  // namespace

std::optional<std::vector<int64_t>> fixed_ring_order(const MeshDevices& devices, const Dims& shape) {
  const std::string& kind = devices.device_kind;
  const int64_t count = devices.size();
  if (kind == "TPU v2" || kind == "TPU v3") {
    const bool has_trays = count == 8 || (!shape.empty() && shape.back() == 8);
    return has_trays ? trays(count) : devices.positions();
  }
  if ((kind == "TPU v4 lite" || kind == "TPU8i") && count == 4) return std::vector(kRingOf4.begin(), kRingOf4.end());
  if ((kind == "TPU7x" || kind == "TPU7") && count % 8 == 0 && count <= 32) {
    const std::array<int64_t, 3> extent = devices.extent();
    if (extent[0] <= 2 && extent[1] <= 2) return trays(count);
  }
  Ring ring;
  if (kind == "TPU v5 lite" || kind == "TPU v6 lite") ring = ring_of_lite(devices, shape);
  if (kind == "TPU v5p" && count == 8 && is_box(devices, {2, 2, 2})) ring = kRingOfCube;
  if (ring.empty()) return std::nullopt;
  const std::vector<int64_t> sorted = positions_by_coords(devices);
  std::vector<int64_t> order;
  for (const int64_t at : ring) order.push_back(sorted[static_cast<size_t>(at)]);
  return order;
}

}  // namespace artifex_devices
