// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/shard_domains.h"

#include "artifex_devices/base/error.h"

namespace artifex_devices {

TileGrid::TileGrid(const AbstractMesh& mesh, const PartitionSpec& spec) : positions_(mesh.size()) {
  const auto& entries = spec.entries();
  parts_ = Dims(spec.rank(), 1);
  Dims tile_strides(mesh.rank(), 0);
  // From the last dimension and the minor axis up, so that strides are known.
  for (int64_t d = spec.rank() - 1; d >= 0; --d) {
    const auto& axes = entries[static_cast<size_t>(d)].axes;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const int64_t at = mesh.find(*axis).value();
      tile_strides[at] = tiles_;
      tiles_ *= mesh.axis_sizes()[at];
      parts_[d] *= mesh.axis_sizes()[at];
    }
  }
  while (!parts_.empty() && parts_.back() == 1) parts_.resize(parts_.size() - 1, 1);
  for (int64_t i = 0; i < mesh.rank(); ++i) append(mesh.axis_sizes()[i], tile_strides[i]);

  int64_t position_stride = 1;
  int64_t replica_stride = 1;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    axis->position_stride = position_stride;
    position_stride *= axis->size;
    if (axis->tile_stride != 0) continue;
    axis->replica_stride = replica_stride;
    replica_stride *= axis->size;
  }
}

void TileGrid::append(int64_t size, int64_t tile_stride) {
  if (size == 1) return;
  if (!axes_.empty() && axes_.back().tile_stride == size * tile_stride) {  // both cut nothing, or count on
    axes_.back().size *= size;
    axes_.back().tile_stride = tile_stride;
    return;
  }
  Axis axis;
  axis.size = size;
  axis.tile_stride = tile_stride;
  axes_.push_back(axis);
}

int64_t TileGrid::tile(int64_t position) const noexcept {
  int64_t tile = 0;
  for (const Axis& axis : axes_) tile += position / axis.position_stride % axis.size * axis.tile_stride;
  return tile;
}

std::vector<int64_t> TileGrid::tiles_by_position() const {
  std::vector<int64_t> tiles{0};
  tiles.reserve(static_cast<size_t>(positions_));
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {  // what stands is repeated with each coordinate
    const size_t inner = tiles.size();
    for (int64_t coordinate = 1; coordinate < axis->size; ++coordinate) {
      for (size_t i = 0; i < inner; ++i) tiles.push_back(tiles[i] + coordinate * axis->tile_stride);
    }
  }
  return tiles;
}

int64_t TileGrid::tile_coordinate(int64_t tile, int64_t dimension) const noexcept {
  if (dimension >= parts_.size()) return 0;
  for (int64_t d = parts_.size() - 1; d > dimension; --d) tile /= parts_[d];
  return tile % parts_[dimension];
}

int64_t TileGrid::replica(int64_t position) const noexcept {
  int64_t replica = 0;
  for (const Axis& axis : axes_) replica += position / axis.position_stride % axis.size * axis.replica_stride;
  return replica;
}

int64_t TileGrid::replica(int64_t position, const Dims& shape) const {
  const auto is_empty = [&](int64_t d) { return d < shape.size() && shape[d] == 0 && parts_[d] > 1; };
  bool any = false;
  for (int64_t d = 0; d < parts_.size(); ++d) any = any || is_empty(d);
  if (!any) return replica(position);

  int64_t result = 0;
  int64_t stride = 1;
  for (const Digit& digit : digits()) {
    if (digit.dimension >= 0 && !is_empty(digit.dimension)) continue;
    result += position / digit.position_stride % digit.size * stride;
    stride *= digit.size;
  }
  return result;
}

std::vector<TileGrid::Digit> TileGrid::digits() const {
  std::vector<Digit> digits;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    if (axis->tile_stride == 0) {
      digits.push_back({.size = axis->size, .position_stride = axis->position_stride});
      continue;
    }
    // An axis may have been joined of ones that cut several dimensions; take it apart, minor dimension first.
    int64_t outer = 1;
    for (int64_t d = parts_.size() - 1; d >= 0; --d) {
      const int64_t inner = outer;  // the stride of the dimension in a tile's number
      outer *= parts_[d];
      const int64_t begin = std::max(inner, axis->tile_stride);
      const int64_t end = std::min(outer, axis->tile_stride * axis->size);
      if (begin >= end) continue;
      digits.push_back({.size = end / begin,
                        .position_stride = axis->position_stride * (begin / axis->tile_stride),
                        .dimension = d,
                        .cut_stride = begin / inner});
    }
  }
  return digits;
}

int64_t TileGrid::position(int64_t tile, int64_t replica) const noexcept {
  int64_t position = 0;
  for (const Axis& axis : axes_) {
    const int64_t coordinate =
        axis.tile_stride != 0 ? tile / axis.tile_stride % axis.size : replica / axis.replica_stride % axis.size;
    position += coordinate * axis.position_stride;
  }
  return position;
}

namespace {

int64_t ceil_divide(int64_t size, int64_t parts) { return size / parts + (size % parts != 0 ? 1 : 0); }

/// " by mesh axis 'x'", " by mesh axes ('x', 'y')"
std::string axes_text(const PartitionSpec* spec, int64_t dimension) {
  if (spec == nullptr || dimension >= spec->rank()) return "";
  const auto& axes = spec->entries()[static_cast<size_t>(dimension)].axes;
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
    : grid_(&grid), shape_(shape), shard_shape_(shape) {
  checked_product(shape, names.operation);
  const int64_t least_rank = names.spec ? names.spec->rank() : grid.parts().size();
  if (least_rank > shape.size()) {
    fail(
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
    wrong += fmt::format("{}dimension {} of size {} is cut into {} parts{}", wrong.empty() ? "" : ", ", d, shape[d],
                         parts, axes_text(names.spec, d));
    if (const auto padded = checked_mul(shard_shape_[d], parts)) {
      repair += fmt::format("{}dimension {} to {}", repair.empty() ? "pad " : ", ", d, *padded);
    }
  }
  fail<IndivisibleError>(
      "{}: {}, which does not divide; expected sizes that are multiples of the parts, got shape {}{}; {}{}cut by other "
      "mesh axes, or use uneven=\"last-short\"",
      names.operation, wrong, to_string(shape), where_text(names), repair, repair.empty() ? "" : ", ");
}

IndexDomain ShardDomains::domain(int64_t tile) const {
  IndexDomain box{Dims(shape_.size(), 0), shape_};
  for (int64_t d = grid_->parts().size() - 1; d >= 0; --d) {
    const int64_t coordinate = tile % grid_->parts(d);
    tile /= grid_->parts(d);
    box.origin[d] = begin(d, coordinate);
    box.shape[d] = begin(d, coordinate + 1) - box.origin[d];
  }
  return box;
}

int64_t ShardDomains::replica(int64_t position) const {
  if (even_) return grid_->replica(position, shape_);
  const IndexDomain box = domain(grid_->tile(position));
  if (std::ranges::count(box.shape, 0) == 0) return grid_->replica(position);
  int64_t earlier = 0;  // what a last-short cut left empty: boxes of several tiles may be one
  for (int64_t other = 0; other < position; ++other) {
    if (domain(grid_->tile(other)) == box) ++earlier;
  }
  return earlier;
}

}  // namespace artifex_devices
