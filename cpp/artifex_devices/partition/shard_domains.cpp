// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/shard_domains.h"

#include <functional>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

TileGrid::TileGrid(const AbstractMesh& mesh, const PartitionSpec& spec) : positions_(mesh.size()) {
  const auto& entries = spec.entries();
  parts_ = Dims(spec.rank(), 1);
  Dims tile_strides(mesh.rank(), 0);
  // From the last dimension and its minor axis to the first, because strides depend on later axes.
  for (int64_t d = spec.rank() - 1; d >= 0; --d) {
    const auto& axes = entries[d].axes;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const int64_t at = mesh.find(*axis).value();
      tile_strides[at] = tiles_;
      tiles_ *= mesh.axis_sizes()[at];
      parts_[d] *= mesh.axis_sizes()[at];
    }
  }
  while (!parts_.empty() && parts_.back() == 1) parts_.resize(parts_.size() - 1, 1);
  for (int64_t i = 0; i < mesh.rank(); ++i) append(mesh.axis_sizes()[i], tile_strides[i]);
}

void TileGrid::append(int64_t size, int64_t tile_stride) {
  if (size == 1) return;
  const int64_t last = axis_sizes_.size() - 1;
  if (last >= 0 && tile_strides_[last] == size * tile_stride) {  // neither shards, or one continues the other
    axis_sizes_[last] *= size;
    tile_strides_[last] = tile_stride;
    return;
  }
  axis_sizes_.push_back(size);
  tile_strides_.push_back(tile_stride);
}

TileId TileGrid::tile(Position position) const noexcept {
  int64_t tile = 0;
  int64_t rest = position.number();
  for (int64_t a = axis_sizes_.size() - 1; a >= 0; --a) {
    tile += rest % axis_sizes_[a] * tile_strides_[a];
    rest /= axis_sizes_[a];
  }
  return TileId(tile);
}

IdVector<Position, TileId> TileGrid::tiles_by_position() const {
  std::vector<TileId> tiles{TileId(0)};
  tiles.reserve(positions_);
  for (int64_t a = axis_sizes_.size() - 1; a >= 0; --a) {  // repeat the tiles so far for each coordinate
    const size_t inner = tiles.size();
    for (int64_t coordinate = 1; coordinate < axis_sizes_[a]; ++coordinate) {
      for (size_t i = 0; i < inner; ++i) tiles.push_back(tiles[i] + coordinate * tile_strides_[a]);
    }
  }
  return IdVector<Position, TileId>(std::move(tiles));
}

int64_t TileGrid::tile_coordinate(TileId tile, int64_t dimension) const noexcept {
  if (dimension >= parts_.size()) return 0;
  int64_t rest = tile.number();
  for (int64_t d = parts_.size() - 1; d > dimension; --d) rest /= parts_[d];
  return rest % parts_[dimension];
}

int64_t TileGrid::replica(Position position) const noexcept {
  int64_t replica = 0;
  int64_t rest = position.number();
  int64_t stride = 1;
  for (int64_t a = axis_sizes_.size() - 1; a >= 0; --a) {
    const int64_t size = axis_sizes_[a];
    if (tile_strides_[a] == 0) {
      replica += rest % size * stride;
      stride *= size;
    }
    rest /= size;
  }
  return replica;
}

std::vector<TileGrid::Digit> TileGrid::digits() const {
  std::vector<Digit> digits;
  int64_t position_stride = 1;
  for (int64_t a = axis_sizes_.size() - 1; a >= 0; --a) {
    const int64_t size = axis_sizes_[a];
    const int64_t tile_stride = tile_strides_[a];
    if (tile_stride == 0) digits.push_back({.size = size, .position_stride = position_stride});
    // A joined axis can span several dimensions: split it again, minor dimension first.
    int64_t outer = 1;
    for (int64_t d = parts_.size() - 1; d >= 0 && tile_stride != 0; --d) {
      const int64_t inner = outer;  // stride of the dimension in a tile's number
      outer *= parts_[d];
      const int64_t begin = std::max(inner, tile_stride);
      const int64_t end = std::min(outer, tile_stride * size);
      if (begin >= end) continue;
      digits.push_back({.size = end / begin,
                        .position_stride = position_stride * (begin / tile_stride),
                        .dimension = d,
                        .part_stride = begin / inner});
    }
    position_stride *= size;
  }
  return digits;
}

Position TileGrid::position(TileId tile, int64_t replica) const noexcept {
  int64_t position = 0;
  int64_t stride = 1;
  for (int64_t a = axis_sizes_.size() - 1; a >= 0; --a) {
    const int64_t size = axis_sizes_[a];
    if (tile_strides_[a] != 0) {
      position += tile.number() / tile_strides_[a] % size * stride;
    } else {
      position += replica % size * stride;
      replica /= size;
    }
    stride *= size;
  }
  return Position(position);
}

namespace {

int64_t ceil_divide(int64_t size, int64_t parts) { return size / parts + (size % parts != 0 ? 1 : 0); }

/// " by mesh axis 'x'", " by mesh axes ('x', 'y')"
std::string axes_text(const PartitionSpec* spec, int64_t dimension) {
  if (spec == nullptr || dimension >= spec->rank()) return "";
  const auto& axes = spec->entries()[dimension].axes;
  if (axes.size() == 1) return " by mesh axis " + axes[0].repr();
  std::string text;
  for (const AxisName axis : axes) text += (text.empty() ? "" : ", ") + axis.repr();
  return fmt::format(" by mesh axes ({})", text);
}

/// " with P('x',) on Mesh('x': 2)"
std::string where_text(const ShardDomains::Names& names) {
  std::string text;
  if (names.spec) text += " with " + names.spec->to_string();
  if (names.mesh) text += fmt::format(" on Mesh({})", names.mesh->axes_text());
  return text;
}

}  // namespace

ShardDomains::ShardDomains(const TileGrid& grid, const Dims& shape, Uneven uneven, const Names& names)
    : grid_(grid), shape_(shape), shard_shape_(shape) {
  checked_product(shape, names.operation);
  const int64_t least_rank = names.spec ? names.spec->rank() : grid.parts().size();
  if (least_rank > shape.size()) {
    throw_error(
        "{}: the sharding{} is only valid for values of rank at least {}, but was applied to a value of rank {} (shape "
        "{}); drop entries of the spec, trailing None included, or add dimensions to the value",
        names.operation, where_text(names), least_rank, shape.size(), to_string(shape));
  }
  for (int64_t d = 0; d < grid.parts().size(); ++d) {
    shard_shape_[d] = ceil_divide(shape[d], grid.parts(d));
    even_ = even_ && shape[d] % grid.parts(d) == 0;
  }
  if (even_ || uneven == Uneven::kLastShort) return;

  std::string wrong;
  std::string repair;
  for (int64_t d = 0; d < grid.parts().size(); ++d) {
    const int64_t parts = grid.parts(d);
    if (shape[d] % parts == 0) continue;
    wrong += fmt::format("{}dimension {} of size {} is split into {} parts{}", wrong.empty() ? "" : ", ", d, shape[d],
                         parts, axes_text(names.spec, d));
    if (const auto padded = checked_mul(shard_shape_[d], parts)) {
      repair += fmt::format("{}dimension {} to {}", repair.empty() ? "pad " : ", ", d, *padded);
    }
  }
  throw_error<IndivisibleError>(
      "{}: {}, which does not divide; expected sizes that are multiples of the parts, got shape {}{}; {}{}shard over "
      "other mesh axes, or use uneven=\"last-short\"",
      names.operation, wrong, to_string(shape), where_text(names), repair, repair.empty() ? "" : ", ");
}

IndexDomain ShardDomains::domain(TileId tile) const {
  IndexDomain box{Dims(shape_.size(), 0), shape_};
  const Dims& parts = grid_.parts();
  int64_t rest = tile.number();
  for (int64_t d = parts.size() - 1; d >= 0; --d) {
    const int64_t coordinate = rest % parts[d];
    rest /= parts[d];
    box.origin[d] = begin(d, coordinate);
    box.shape[d] = begin(d, coordinate + 1) - box.origin[d];
  }
  return box;
}

namespace {

/// Number of combinations of digit values of one dimension that select a part of at least `least`. Each digit's part
/// stride is greater than the largest sum of all digits with smaller strides.
int64_t count_reaching(std::vector<TileGrid::Digit> digits, int64_t least) {
  std::ranges::sort(digits, std::greater<>(), &TileGrid::Digit::part_stride);
  int64_t rest = 1;  // combinations of the remaining digits
  for (const TileGrid::Digit& digit : digits) rest *= digit.size;
  int64_t count = 0;
  for (const TileGrid::Digit& digit : digits) {
    if (least <= 0) break;
    rest /= digit.size;
    const int64_t value = least / digit.part_stride;  // smaller values never reach `least`, greater ones always do
    if (value >= digit.size) return count;
    count += (digit.size - 1 - value) * rest;
    least -= value * digit.part_stride;
  }
  return least <= 0 ? count + rest : count;
}

}  // namespace

int64_t ShardDomains::replica(Position position) const {
  // All empty parts of a dimension are the same box; other parts differ from each other.
  const Dims& parts = grid_.parts();
  const TileId tile = grid_.tile(position);
  Dims first_empty(parts.size(), -1);  // of each dimension whose part at this position is empty
  bool has_empty = false;
  for (int64_t d = 0; d < parts.size(); ++d) {
    const int64_t filled = shard_shape_[d] == 0 ? 0 : ceil_divide(shape_[d], shard_shape_[d]);
    if (grid_.tile_coordinate(tile, d) < filled) continue;
    first_empty[d] = filled;
    has_empty = true;
  }
  if (!has_empty) return grid_.replica(position);

  // An earlier position has equal major digits, one smaller digit, and any minor digits. For each choice of the smaller
  // digit, count the combinations of the free digits that give the same box.
  const std::vector<TileGrid::Digit> digits = grid_.digits();  // minor first
  int64_t earlier = 0;
  for (size_t k = 0; k < digits.size(); ++k) {
    const int64_t value = position.number() / digits[k].position_stride % digits[k].size;
    if (value == 0 || (digits[k].dimension >= 0 && first_empty[digits[k].dimension] < 0)) continue;
    int64_t combinations = 1;
    for (int64_t d = -1; d < parts.size(); ++d) {
      if (d >= 0 && first_empty[d] < 0) continue;
      std::vector<TileGrid::Digit> free;
      int64_t least = d < 0 ? 0 : first_empty[d];
      for (size_t i = 0; i < digits.size(); ++i) {
        if (digits[i].dimension != d) continue;
        if (i > k) {
          least -= position.number() / digits[i].position_stride % digits[i].size * digits[i].part_stride;
          continue;
        }
        free.push_back(digits[i]);
        if (i == k) free.back().size = value;
      }
      combinations *= count_reaching(std::move(free), least);
    }
    earlier += combinations;
  }
  return earlier;
}

}  // namespace artifex_devices
