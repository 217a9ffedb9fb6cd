// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/id.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/partition/abstract_mesh.h"
#include "artifex_devices/partition/partition_spec.h"

namespace artifex_devices {

/// Treatment of a dimension that its axes do not divide.
enum class Uneven : uint8_t {
  kError,      // IndivisibleError, as in JAX
  kLastShort,  // chunks of ceil(size / parts); the last ones are short or empty
};

/// Sharding of dimensions over the positions of a mesh by one spec, before the shape of the array is known. The axes of
/// a dimension divide it into *parts*, and a *tile* is one combination of parts. Positions that hold the same tile are
/// replicas. Everything is computed for one position at a time, so no cost grows with the number of devices.
///
/// Example: mesh {x: 2, y: 4}, spec P(None, 'x'): parts of the first two dimensions {1, 2}, tiles 2, replicas 4;
/// position 5 = coordinates (1, 1) holds tile 1 as replica 1.
class TileGrid {
 public:
  TileGrid() = default;  // one position and one tile: a single device
  /// `spec` has passed spec.check(mesh).
  TileGrid(const AbstractMesh& mesh, const PartitionSpec& spec);

  int64_t positions() const noexcept { return positions_; }
  int64_t tiles() const noexcept { return tiles_; }
  int64_t replicas() const noexcept { return positions_ / std::max<int64_t>(tiles_, 1); }
  /// Number of parts of each dimension that the spec names. Later dimensions have 1.
  const Dims& parts() const noexcept { return parts_; }
  int64_t parts(int64_t dimension) const noexcept { return dimension < parts_.size() ? parts_[dimension] : 1; }

  /// Row-major number of the tile at `position` over parts().
  TileId tile(Position position) const noexcept;
  /// tile() of every position, faster than a call for each.
  IdVector<Position, TileId> tiles_by_position() const;
  /// Index of the tile's part of `dimension`.
  int64_t tile_coordinate(TileId tile, int64_t dimension) const noexcept;
  /// Number of earlier positions that hold the same tile.
  int64_t replica(Position position) const noexcept;
  /// The inverse of tile() and replica(): the position that holds replica number `replica` of `tile`.
  Position position(TileId tile, int64_t replica) const noexcept;

  /// One digit of a position's number in a mixed radix, chosen so that it selects parts of at most one dimension: with
  /// coordinate = position / position_stride % size, the part of `dimension` is the sum of coordinate * part_stride. A
  /// digit of dimension -1 distinguishes replicas.
  struct Digit {
    int64_t size = 1;
    int64_t position_stride = 1;
    int64_t dimension = -1;
    int64_t part_stride = 0;
  };
  /// All digits, minor first. Each begins where the previous one ends. Empty for a single position.
  std::vector<Digit> digits() const;

  /// Equal when the same positions hold the same boxes, regardless of how axes are named and split.
  friend bool operator==(const TileGrid&, const TileGrid&) = default;

 private:
  void append(int64_t size, int64_t tile_stride);
  // Mesh axes in mesh order, without axes of size 1, adjacent axes joined where their strides allow it. This canonical
  // form is what == compares. A position counts them in row-major order.
  Dims axis_sizes_;
  Dims tile_strides_;  // tile += coordinate * tile_stride; 0 for an axis that shards no dimension
  Dims parts_;
  int64_t positions_ = 1;
  int64_t tiles_ = 1;
};

/// A TileGrid applied to a shape: which box of the array each tile holds. A value: cheap to create and copy, and needs
/// nothing else to live.
class ShardDomains {
 public:
  /// Throws InvalidArgument when the spec has more entries than the shape has dimensions (trailing Nones count), and
  /// one IndivisibleError that lists every dimension that is not divisible. `names` is used in messages only.
  struct Names {
    std::string_view operation;
    const PartitionSpec* spec = nullptr;
    const AbstractMesh* mesh = nullptr;
  };
  ShardDomains(const TileGrid& grid, const Dims& shape, Uneven uneven, const Names& names);

  const TileGrid& grid() const noexcept { return grid_; }
  const Dims& shape() const noexcept { return shape_; }
  /// Shape of the first tile; with kError, of every tile.
  const Dims& shard_shape() const noexcept { return shard_shape_; }
  bool is_even() const noexcept { return even_; }
  /// Box of one tile. With kLastShort the last parts of a dimension can be empty.
  IndexDomain domain(TileId tile) const;
  /// Box of the tile that a position holds.
  IndexDomain domain(Position position) const { return domain(grid_.tile(position)); }
  /// Number of earlier positions that hold the same box, which is JAX's replica_id. Differs from TileGrid::replica in
  /// that all empty boxes with the same origin are equal. The cost depends on the mesh's axes only. Example: shape (0,)
  /// in two parts: both boxes are [0, 0), replicas 0 and 1.
  int64_t replica(Position position) const;
  /// First index of part `coordinate` of a dimension, at most the dimension's size. The part ends where the next one
  /// begins.
  int64_t begin(int64_t dimension, int64_t coordinate) const noexcept {
    const int64_t chunk = shard_shape_[dimension];
    const int64_t size = shape_[dimension];
    return chunk == 0 || coordinate > size / chunk ? size : coordinate * chunk;
  }

 private:
  TileGrid grid_;
  Dims shape_;
  Dims shard_shape_;
  bool even_ = true;
};

}  // namespace artifex_devices
