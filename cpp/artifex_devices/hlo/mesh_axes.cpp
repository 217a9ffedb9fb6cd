// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/mesh_axes.h"

#include <algorithm>
#include <set>

#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

/// Stride and size of each dimension of a group, minor to major: {0,1,4,5} is (1, 2), (4, 2).
using Digits = std::vector<std::pair<int64_t, int64_t>>;

std::vector<int64_t> strides_of(const MeshAxes& mesh) {
  std::vector<int64_t> strides(mesh.size(), 1);
  for (size_t i = mesh.size(); i-- > 1;) strides[i - 1] = strides[i] * mesh[i].second;
  return strides;
}

/// The distances of the sorted members from the first one, or nothing where one is there twice.
std::optional<std::vector<int64_t>> offsets_of(Group group) {
  std::sort(group.begin(), group.end());
  const int64_t first = group.empty() ? 0 : group.front();
  for (int64_t& member : group) member -= first;
  if (std::adjacent_find(group.begin(), group.end()) != group.end()) return std::nullopt;
  return group;
}

/// The dimensions of offsets, or nothing where they are not an array with strides.
std::optional<Digits> digits_of(const std::vector<int64_t>& offsets) {
  Digits digits;
  size_t done = 1;  // offsets[0, done) are explained
  while (done < offsets.size()) {
    const int64_t stride = offsets[done];
    size_t times = 1;
    while ((times + 1) * done <= offsets.size() && offsets[times * done] == static_cast<int64_t>(times) * stride)
      ++times;
    for (size_t i = 0; i < times * done; ++i) {
      if (offsets[i] != offsets[i % done] + static_cast<int64_t>(i / done) * stride) return std::nullopt;
    }
    if (times < 2) return std::nullopt;
    digits.emplace_back(stride, static_cast<int64_t>(times));
    done *= times;
    if (done < offsets.size() && offsets.size() % done != 0) return std::nullopt;
  }
  return digits;
}

}  // namespace

int64_t device_count(const MeshAxes& mesh) {
  int64_t size = 1;
  for (const auto& [name, count] : mesh) {
    if (count < 1 || size > kMostDevices / count) return 0;
    size *= count;
  }
  return size;
}

std::optional<std::vector<size_t>> axes_of_groups(const Groups& groups, const MeshAxes& mesh) {
  const int64_t devices = device_count(mesh);
  if (groups.empty() || mesh.empty()) return std::nullopt;
  const std::vector<int64_t> strides = strides_of(mesh);
  std::vector<bool> varies(mesh.size(), false);
  const auto coordinate = [&](int64_t device, size_t axis) { return device / strides[axis] % mesh[axis].second; };
  for (const Group& group : groups) {
    for (const int64_t member : group) {
      if (member >= devices) return std::nullopt;
      for (size_t axis = 0; axis < mesh.size(); ++axis) {
        if (coordinate(member, axis) != coordinate(group.front(), axis)) varies[axis] = true;
      }
    }
  }
  int64_t expected = 1;
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < mesh.size(); ++axis) {
    if (!varies[axis]) continue;
    axes.push_back(axis);
    expected *= mesh[axis].second;
  }
  for (const Group& group : groups) {
    if (static_cast<int64_t>(group.size()) != expected || !offsets_of(group)) return std::nullopt;
    for (const int64_t member : group) {
      for (size_t axis = 0; axis < mesh.size(); ++axis) {
        if (!varies[axis] && coordinate(member, axis) != coordinate(group.front(), axis)) return std::nullopt;
      }
    }
  }
  return axes;
}

std::optional<std::vector<size_t>> axes_of_pairs(const Groups& pairs, const MeshAxes& mesh) {
  const int64_t devices = device_count(mesh);
  if (mesh.empty()) return std::nullopt;
  const std::vector<int64_t> strides = strides_of(mesh);
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < mesh.size(); ++axis) {
    bool differs = false;
    for (const Group& pair : pairs) {
      if (pair[0] >= devices || pair[1] >= devices) return std::nullopt;
      differs |= pair[0] / strides[axis] % mesh[axis].second != pair[1] / strides[axis] % mesh[axis].second;
    }
    if (differs) axes.push_back(axis);
  }
  return axes;
}

MeshAxes find_mesh(const std::vector<const Groups*>& all_groups, int64_t devices) {
  if (devices < 2 || devices > kMostDevices) return {};
  std::set<int64_t> bounds = {1, devices};
  bool has_groups = false;
  for (const Groups* groups : all_groups) {
    if (groups->empty() || groups->front().size() < 2) continue;
    const std::optional<std::vector<int64_t>> offsets = offsets_of(groups->front());
    const std::optional<Digits> digits = offsets ? digits_of(*offsets) : std::nullopt;
    if (!digits) continue;  // along no axes of any mesh
    has_groups = true;
    for (const auto& [stride, size] : *digits) {
      bounds.insert(stride);
      bounds.insert(stride * size);
    }
  }
  if (!has_groups || bounds.size() > kMostAxes || *bounds.rbegin() != devices) return {};
  MeshAxes mesh;
  for (auto bound = bounds.begin(); std::next(bound) != bounds.end(); ++bound) {
    if (*std::next(bound) % *bound != 0) return {};
    mesh.emplace_back("", *std::next(bound) / *bound);
  }
  std::reverse(mesh.begin(), mesh.end());
  for (size_t i = 0; i < mesh.size(); ++i) mesh[i].first = "axis_" + std::to_string(i);
  return mesh;
}

MeshAxes declared_mesh(std::string_view text) {
  for (size_t at = text.find("sdy.mesh"); at != kNone; at = text.find("sdy.mesh", at + 1)) {
    const size_t end = text.find('\n', at);
    const std::string_view line = text.substr(at, end == kNone ? kNone : end - at);
    const size_t open = line.find("<[");
    if (open == kNone || open > 256) continue;
    const size_t close = line.find("]>", open);
    const size_t bracket = line.find(']', open);
    if (close == kNone || bracket != close) continue;
    std::string axes(line.substr(open + 2, close - open - 2));
    std::erase(axes, '\\');  // of a text in quotes
    MeshAxes mesh;
    for (const std::string_view axis : split_list(axes)) {
      const size_t equals = axis.rfind('=');
      const std::optional<int64_t> size = equals == kNone ? std::nullopt : leading_number(axis.substr(equals + 1));
      if (!size || mesh.size() == kMostAxes) return {};
      mesh.emplace_back(unquoted(axis.substr(0, equals)), *size);
    }
    if (!mesh.empty() && device_count(mesh) > 0) return mesh;
  }
  return {};
}

}  // namespace artifex_devices::hlo
