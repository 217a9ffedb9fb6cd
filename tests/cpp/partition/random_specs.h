// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

inline ShardDomains domains(const TileGrid& grid, const Dims& shape, Uneven uneven = Uneven::kLastShort) {
  return ShardDomains(grid, shape, uneven, {.operation = "test"});
}

/// A random mesh and a spec on it, the same for a seed, with their definition in plain code.
struct RandomSpec {
  AbstractMesh mesh;
  PartitionSpec spec;
};

inline int64_t draw(std::mt19937& random, int64_t first, int64_t last) {
  return std::uniform_int_distribution<int64_t>(first, last)(random);
}

inline AbstractMesh random_mesh(std::mt19937& random, int64_t max_size) {
  std::vector<AxisName> names;
  Dims sizes;
  int64_t size = 1;
  const int64_t rank = draw(random, 0, 4);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t axis = std::min(draw(random, 1, 4), max_size / size);
    size *= axis;
    names.emplace_back("axis" + std::to_string(i));
    sizes.push_back(axis);
  }
  return AbstractMesh(std::move(names), std::move(sizes));
}

inline PartitionSpec random_spec(std::mt19937& random, const AbstractMesh& mesh, int64_t max_rank) {
  std::vector<AxisName> axes = mesh.axis_names();
  std::shuffle(axes.begin(), axes.end(), random);
  std::vector<SpecEntry> entries;
  const int64_t rank = draw(random, 0, max_rank);
  for (int64_t d = 0; d < rank; ++d) {
    std::vector<AxisName> names;
    while (!axes.empty() && draw(random, 0, 1) == 1) {
      names.push_back(axes.back());
      axes.pop_back();
    }
    const bool open = names.empty() && draw(random, 0, 3) == 0;
    entries.push_back(open ? SpecEntry::unconstrained() : SpecEntry(std::move(names)));
  }
  return PartitionSpec(std::move(entries));
}

inline RandomSpec random_case(std::mt19937& random, int64_t max_size, int64_t max_rank) {
  RandomSpec made;
  made.mesh = random_mesh(random, max_size);
  made.spec = random_spec(random, made.mesh, max_rank);
  return made;
}

/// Number of parts of dimension d, by the definition: the product of its axes.
inline int64_t plain_parts(const RandomSpec& made, int64_t d) {
  int64_t parts = 1;
  if (d >= made.spec.rank()) return parts;
  for (const AxisName axis : made.spec.entries()[static_cast<size_t>(d)].axes) {
    parts *= made.mesh.axis_sizes()[made.mesh.find(axis).value()];
  }
  return parts;
}

/// Part of dimension d at the position, by the definition: its coordinates on the axes, the first axis major.
inline int64_t plain_cut(const RandomSpec& made, int64_t position, int64_t d) {
  if (d >= made.spec.rank()) return 0;
  Dims coordinates(made.mesh.rank(), 0);
  for (int64_t i = made.mesh.rank() - 1; i >= 0; --i) {
    coordinates[i] = position % made.mesh.axis_sizes()[i];
    position /= made.mesh.axis_sizes()[i];
  }
  int64_t cut = 0;
  for (const AxisName axis : made.spec.entries()[static_cast<size_t>(d)].axes) {
    const int64_t at = made.mesh.find(axis).value();
    cut = cut * made.mesh.axis_sizes()[at] + coordinates[at];
  }
  return cut;
}

inline std::string describe(const RandomSpec& made) { return made.mesh.to_string() + " " + made.spec.to_string(); }

}  // namespace artifex_devices
