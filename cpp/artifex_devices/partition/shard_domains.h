// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/partition/abstract_mesh.h"
#include "artifex_devices/partition/partition_spec.h"

namespace artifex_devices {

/// What to do with a dimension that its axes do not divide.
enum class Uneven : uint8_t {
  kError,      // IndivisibleError, as JAX
  kLastShort,  // chunks of ceil(size / parts); the last ones are short or empty
};

/// How one spec cuts the dimensions over the positions of a mesh, without a shape: which mesh axes cut which dimension.
/// A *tile* is one cell of that grid; positions that hold the same tile are replicas. All of it is arithmetic a
/// position; nothing is proportional to the number of devices.
///
/// Example: mesh {x: 2, y: 4}, spec P(None, 'x'): parts of the first two dimensions {1, 2}, tiles 2, replicas 4;
/// position 5 = coordinates (1, 1) holds tile 1 as replica 1.
class TileGrid {
 public:
  TileGrid() = default;  // one position, one tile, no cut: a single device
  /// `spec` has passed spec.check(mesh).
  TileGrid(const AbstractMesh& mesh, const PartitionSpec& spec);

  int64_t positions() const noexcept { return positions_; }
  int64_t tiles() const noexcept { return tiles_; }
  int64_t replicas() const noexcept { return positions_ / std::max<int64_t>(tiles_, 1); }
  /// Cuts of each dimension that the spec names; later dimensions have 1.
  const Dims& parts() const noexcept { return parts_; }
  int64_t parts(int64_t dimension) const noexcept { return dimension < parts_.size() ? parts_[dimension] : 1; }

  /// Row-major number of the tile at `position` over parts().
  int64_t tile(int64_t position) const noexcept;
  /// tile() of every position, faster than one by one.
  std::vector<int64_t> tiles_by_position() const;
  /// Which cut of `dimension` the tile has.
  int64_t tile_coordinate(int64_t tile, int64_t dimension) const noexcept;
  /// How many earlier positions hold the same tile.
  int64_t replica(int64_t position) const noexcept;
  /// The inverse: the position that holds `tile` as its `replica`-th.
  int64_t position(int64_t tile, int64_t replica) const noexcept;

  /// A part of a position's number that counts in at most one dimension: with coordinate = position / position_stride %
  /// size, cut of `dimension` += coordinate * cut_stride. A dimension of -1: it tells replicas apart.
  struct Digit {
    int64_t size = 1;
    int64_t position_stride = 1;
    int64_t dimension = -1;
    int64_t cut_stride = 0;
  };
  /// All of them, minor first; each begins where the one before ends. None for a single position.
  std::vector<Digit> digits() const;

  /// Equal when the same boxes lie at the same positions, however the axes are named and split.
  friend bool operator==(const TileGrid&, const TileGrid&) = default;

 private:
  void append(int64_t size, int64_t tile_stride);
  // Mesh axes in mesh order, those of size 1 left out and neighbours made one where their strides allow: one form for
  // one meaning.
  struct Axis {
    int64_t size = 1;
    int64_t position_stride = 1;  // position = sum of coordinate * position_stride
    int64_t tile_stride = 0;      // tile += coordinate * tile_stride; 0 for an axis that cuts nothing
    int64_t replica_stride = 0;   // replica += coordinate * replica_stride
    friend bool operator==(const Axis&, const Axis&) = default;
  };
  std::vector<Axis> axes_;
  Dims parts_;
  int64_t positions_ = 1;
  int64_t tiles_ = 1;
};

/// A TileGrid put on a shape: which box of the array each tile holds. Cheap to make and copy.
class ShardDomains {
 public:
  /// Throws InvalidArgument when the spec has more entries than the shape dimensions (trailing Nones count), and one
  /// IndivisibleError that lists every dimension that is not divisible. `operation`, `spec_text` and `mesh_text` go
  /// into messages and are asked for only then.
  struct Names {
    std::string_view operation;
    const PartitionSpec* spec = nullptr;
    const AbstractMesh* mesh = nullptr;
  };
  ShardDomains(const TileGrid& grid, const Dims& shape, Uneven uneven, const Names& names);

  const TileGrid& grid() const noexcept { return *grid_; }  // lives in the sharding
  const Dims& shape() const noexcept { return shape_; }
  /// The shape of the first tile (with kError of every tile).
  const Dims& shard_shape() const noexcept { return shard_shape_; }
  bool is_even() const noexcept { return even_; }
  /// The box of one tile; empty in a dimension where a last-short cut has nothing left.
  IndexDomain domain(int64_t tile) const;
  /// How many earlier positions hold the same box, JAX's replica_id: as TileGrid::replica, but all empty boxes at one
  /// place are alike. Its cost depends on the mesh's axes only. Example: shape (0,) cut in two: both boxes are [0, 0),
  /// replicas 0 and 1.
  int64_t replica(int64_t position) const;
  /// First index of cut `coordinate` of a dimension, at most its size; that of the next cut is the end.
  int64_t begin(int64_t dimension, int64_t coordinate) const noexcept {
    const int64_t chunk = shard_shape_[dimension];
    const int64_t size = shape_[dimension];
    return chunk == 0 || coordinate > size / chunk ? size : coordinate * chunk;
  }

 private:
  const TileGrid* grid_;
  Dims shape_;
  Dims shard_shape_;
  bool even_ = true;
};

}  // namespace artifex_devices
