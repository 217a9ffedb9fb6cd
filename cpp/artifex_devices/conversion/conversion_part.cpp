// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/conversion_part.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "artifex_devices/base/strided_copy.h"
#include "artifex_devices/conversion/value_change.h"

namespace artifex_devices {
namespace {

constexpr int64_t kBlock = 16 << 10;  // elements whose values are changed at a time, in the cache of a core
constexpr int64_t kBlockSide = 128;   // elements of a block along the dense loop of each side

// The dimension of a row-major array along which elements are `stride` apart: the outermost with a smaller or equal
// stride. Loops have two elements or more, so dimensions of size 1 cannot be meant.
int64_t axis_of(const Dims& strides, const Dims& shape, int64_t stride) {
  int64_t axis = 0;
  while (strides[axis] > stride || shape[axis] == 1) ++axis;
  return axis;
}

class PartList {
 public:
  PartList(const ConversionPlan& plan, const PlannedArray& target, const IndexDomain& box)
      : plan_(plan), target_(target), box_(box), target_strides_(row_major_strides(box.shape, 1)) {}

  void add(const Region& region) {
    if (region.source == Region::kConstant) return add_part(region, {});
    const Dims& shape = plan_.sources[static_cast<size_t>(region.source)].shape;
    const Dims strides = row_major_strides(shape, 1);
    IndexDomain box{Dims(shape.size(), 0), Dims(shape.size(), 1)};
    int64_t rest = region.offset;
    for (int64_t d = 0; d < shape.size(); ++d) {
      box.origin[d] = rest / strides[d];
      rest %= strides[d];
    }
    for (size_t k = 0; k < region.loops.size(); ++k) {
      const RegionLoop& loop = region.loops[k];
      const int64_t axis = axis_of(strides, shape, loop.stride);
      int64_t gap = loop.stride - strides[axis];
      for (const RegionLoop& other : region.loops) {
        if (other.stride < loop.stride && axis_of(strides, shape, other.stride) == axis) {
          gap -= (other.size - 1) * other.stride;
        }
      }
      if (gap * itemsize(region.dtype) >= kReadThroughBytes) {
        for (int64_t i = 0; i < loop.size; ++i) add(sliced(region, k, i, 1));
        return;
      }
      box.shape[axis] += (loop.size - 1) * (loop.stride / strides[axis]);
    }
    add_part(region, std::move(box));
  }

  std::vector<ConversionPart> parts;

 private:
  void add_part(const Region& region, IndexDomain source_box) {
    ConversionPart part;
    part.source = region.source;
    part.source_dtype = region.dtype;
    part.target_dtype = target_.type.dtype;
    part.changes = region.changes;
    part.constant = region.constant;
    part.target_box = box_;
    for (int64_t d = 0; d < box_.rank(); ++d) {
      part.target_offset += (region.origin[d] - box_.origin[d]) * target_strides_[d];
    }
    Dims strides;
    Dims strides_in_box;
    if (region.source != Region::kConstant) {
      const Dims& shape = plan_.sources[static_cast<size_t>(region.source)].shape;
      strides = row_major_strides(shape, 1);
      strides_in_box = row_major_strides(source_box.shape, 1);
      for (const RegionLoop& loop : region.loops) {
        const int64_t axis = axis_of(strides, shape, loop.stride);
        part.source_strides.push_back(loop.stride / strides[axis] * strides_in_box[axis]);
      }
    } else {
      part.source_strides = Dims(static_cast<int64_t>(region.loops.size()), 0);
    }
    for (const RegionLoop& loop : region.loops) {
      part.sizes.push_back(loop.size);
      part.target_strides.push_back(loop.step * target_strides_[loop.axis]);
    }
    part.source_box = std::move(source_box);
    parts.push_back(std::move(part));
  }

  const ConversionPlan& plan_;
  const PlannedArray& target_;
  const IndexDomain& box_;
  Dims target_strides_;
};

Dims bytes_of(Dims strides, DType dtype) {
  for (int64_t& stride : strides) stride *= itemsize(dtype);
  return strides;
}

// Sizes of the loops of a block: long in the loops with the shortest strides of each side.
Dims block_sizes(const ConversionPart& part) {
  Dims block(part.sizes.size(), 1);
  int64_t left = kBlock;
  const auto grow = [&](int64_t loop, int64_t most) {
    block[loop] = std::min({part.sizes[loop], most, block[loop] * left});
    left = kBlock;
    for (const int64_t size : block) left /= size;
  };
  if (block.empty()) return block;
  const int64_t source = std::ranges::min_element(part.source_strides) - part.source_strides.begin();
  const int64_t target = std::ranges::min_element(part.target_strides) - part.target_strides.begin();
  grow(source, source == target ? kBlock : kBlockSide);
  grow(target, kBlock);
  for (int64_t k = block.size() - 1; k >= 0; --k) grow(k, part.sizes[k]);
  return block;
}

void copy_changed(const ConversionPart& part, const std::byte* source, std::byte* target) {
  const Dims block = block_sizes(part);
  const auto values = std::make_unique_for_overwrite<std::byte[]>(kBlock * sizeof(float));
  const auto changed = std::make_unique_for_overwrite<std::byte[]>(kBlock * sizeof(float));
  const Dims source_strides = bytes_of(part.source_strides, part.source_dtype);
  const Dims target_strides = bytes_of(part.target_strides, part.target_dtype);
  Dims index(block.size(), 0);
  Dims sizes = block;
  for (;;) {
    int64_t from = 0;
    int64_t to = 0;
    int64_t count = 1;
    for (int64_t k = 0; k < block.size(); ++k) {
      sizes[k] = std::min(block[k], part.sizes[k] - index[k]);
      count *= sizes[k];
      from += index[k] * source_strides[k];
      to += index[k] * target_strides[k];
    }
    const Dims dense = row_major_strides(sizes, itemsize(part.source_dtype));
    const Dims dense_target = row_major_strides(sizes, itemsize(part.target_dtype));
    const bool is_gathered = !is_dense(sizes, source_strides, itemsize(part.source_dtype));
    const bool is_scattered = !is_dense(sizes, target_strides, itemsize(part.target_dtype));
    if (is_gathered) {
      StridedCopy(values.get(), dense, source + from, source_strides, sizes, itemsize(part.source_dtype)).run();
    }
    change_values(part.source_dtype, part.changes, count, is_gathered ? values.get() : source + from,
                  is_scattered ? changed.get() : target + to);
    if (is_scattered) {
      StridedCopy(target + to, target_strides, changed.get(), dense_target, sizes, itemsize(part.target_dtype)).run();
    }
    int64_t k = block.size() - 1;
    for (; k >= 0 && (index[k] += block[k]) >= part.sizes[k]; --k) index[k] = 0;
    if (k < 0) return;
  }
}

}  // namespace

std::vector<ConversionPart> parts_of(const ConversionPlan& plan, const PlannedArray& target, const IndexDomain& box) {
  PartList list(plan, target, box);
  for (const Region& region : regions_in(target.regions, box)) list.add(region);
  return std::move(list.parts);
}

bool is_identity(const ConversionPart& part) noexcept {
  return part.changes.empty() && part.source != Region::kConstant &&
         part.source_box.volume() == part.target_box.volume() && is_dense(part.sizes, part.source_strides, 1) &&
         is_dense(part.sizes, part.target_strides, 1);
}

void copy_part(const ConversionPart& part, const std::byte* source, std::byte* target) {
  target += part.target_offset * itemsize(part.target_dtype);
  if (!part.changes.empty()) return copy_changed(part, source, target);
  StridedCopy(target, bytes_of(part.target_strides, part.target_dtype), source,
              bytes_of(part.source_strides, part.source_dtype), part.sizes, itemsize(part.source_dtype))
      .run();
}

}  // namespace artifex_devices
