// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/region.h"

#include <algorithm>
#include <utility>

namespace artifex_devices {
namespace {

int64_t ceil_div(int64_t a, int64_t b) noexcept { return a <= 0 ? -(-a / b) : (a - 1) / b + 1; }

// Number of the first loop along `axis`, or of the loop that would follow it.
size_t first_loop(const Region& region, int64_t axis) {
  size_t k = 0;
  while (k < region.loops.size() && region.loops[k].axis < axis) ++k;
  return k;
}

// Distance from the first to the last index along `axis`, of the loops from number `k` on.
int64_t span_of(const Region& region, int64_t axis, size_t k) noexcept {
  int64_t span = 0;
  for (; k < region.loops.size() && region.loops[k].axis == axis; ++k) {
    span += (region.loops[k].size - 1) * region.loops[k].step;
  }
  return span;
}

void renumber(Region* region, int64_t from, int64_t by) {
  for (RegionLoop& loop : region->loops) {
    if (loop.axis >= from) loop.axis += by;
  }
}

}  // namespace

int64_t Region::volume() const noexcept {
  int64_t product = 1;
  for (const RegionLoop& loop : loops) product *= loop.size;
  return product;
}

void insert_value(Dims* dims, int64_t at, int64_t value) {
  dims->push_back(value);
  std::rotate(dims->begin() + at, dims->end() - 1, dims->end());
}

void erase_value(Dims* dims, int64_t at) {
  std::copy(dims->begin() + at + 1, dims->end(), dims->begin() + at);
  dims->resize(dims->size() - 1, 0);
}

Region whole_region(int64_t source, const Dims& shape, DType dtype) {
  Region region{Dims(shape.size(), 0), {}, source, 0, {}, {}, dtype};
  int64_t stride = 1;
  for (int64_t d = shape.size() - 1; d >= 0; --d) {
    if (shape[d] > 1) region.loops.insert(region.loops.begin(), {d, 1, shape[d], stride});
    stride *= shape[d];
  }
  return region;
}

Region sliced(const Region& region, size_t k, int64_t begin, int64_t count) {
  Region slice = region;
  RegionLoop& loop = slice.loops[k];
  slice.origin[loop.axis] += begin * loop.step;
  slice.offset += begin * loop.stride;
  loop.size = count;
  if (count == 1) slice.loops.erase(slice.loops.begin() + static_cast<std::ptrdiff_t>(k));
  return slice;
}

void append_restricted(const Region& region, int64_t axis, int64_t begin, int64_t end, std::vector<Region>* into) {
  const int64_t first = region.origin[axis];
  const size_t k = first_loop(region, axis);
  const int64_t span = span_of(region, axis, k);
  if (first >= end || first + span < begin) return;
  if (begin <= first && first + span < end) {
    into->push_back(region);
    return;
  }
  // Of this loop, indices [touched.first, touched.second) have elements in the range, and [whole, whole_end) have no
  // others. The span is not 0, so there is a loop.
  const RegionLoop loop = region.loops[k];
  const int64_t inner = span - (loop.size - 1) * loop.step;
  const auto clamped = [&](int64_t index) { return std::clamp<int64_t>(index, 0, loop.size); };
  const int64_t from = clamped(ceil_div(begin - inner - first, loop.step));
  const int64_t to = clamped(ceil_div(end - first, loop.step));
  const int64_t whole = std::clamp(ceil_div(begin - first, loop.step), from, to);
  const int64_t whole_end = std::clamp(ceil_div(end - inner - first, loop.step), whole, to);
  for (int64_t i = from; i < whole; ++i) append_restricted(sliced(region, k, i, 1), axis, begin, end, into);
  if (whole < whole_end) into->push_back(sliced(region, k, whole, whole_end - whole));
  for (int64_t i = whole_end; i < to; ++i) append_restricted(sliced(region, k, i, 1), axis, begin, end, into);
}

std::vector<Region> regions_in(const std::vector<Region>& regions, const IndexDomain& box) {
  if (box.rank() == 0) return regions;
  std::vector<Region> inside;
  for (int64_t d = 0; d < box.rank(); ++d) {
    std::vector<Region> restricted;
    for (const Region& each : d == 0 ? regions : inside) {
      append_restricted(each, d, box.origin[d], box.origin[d] + box.shape[d], &restricted);
    }
    inside = std::move(restricted);
  }
  return inside;
}

void append_unflattened(Region region, int64_t axis, int64_t inner, std::vector<Region>* into) {
  if (into->size() > kMaxRegions) return;
  const size_t first = first_loop(region, axis);
  size_t k = first;
  while (k < region.loops.size() && region.loops[k].axis == axis && region.loops[k].step % inner == 0) ++k;
  const int64_t inside = region.origin[axis] % inner;
  if (inside + span_of(region, axis, k) < inner) {
    renumber(&region, axis + 1, 1);
    for (size_t i = first; i < region.loops.size() && region.loops[i].axis == axis; ++i) {
      i < k ? region.loops[i].step /= inner : region.loops[i].axis = axis + 1;
    }
    region.origin[axis] /= inner;
    insert_value(&region.origin, axis + 1, inside);
    into->push_back(std::move(region));
    return;
  }
  const RegionLoop loop = region.loops[k];
  const int64_t rest = inside % loop.step + span_of(region, axis, k + 1);  // within one step
  if (loop.step < inner && inner % loop.step == 0 && rest < loop.step) {
    const int64_t block = inner / loop.step;
    const int64_t before = inside / loop.step;  // indices of the first block that precede the region
    const int64_t head = before == 0 ? 0 : std::min(loop.size, block - before);
    const int64_t blocks = (loop.size - head) / block;
    const int64_t tail = loop.size - head - blocks * block;
    if (head > 0) append_unflattened(sliced(region, k, 0, head), axis, inner, into);
    if (blocks > 0) {
      Region middle = sliced(region, k, head, blocks * block);
      middle.loops[k] = {axis, loop.step, block, loop.stride};
      if (blocks > 1) {
        middle.loops.insert(middle.loops.begin() + static_cast<std::ptrdiff_t>(k),
                            {axis, inner, blocks, loop.stride * block});
      }
      append_unflattened(std::move(middle), axis, inner, into);
    }
    if (tail > 0) append_unflattened(sliced(region, k, loop.size - tail, tail), axis, inner, into);
    return;
  }
  for (int64_t i = 0; i < loop.size && into->size() <= kMaxRegions; ++i) {
    append_unflattened(sliced(region, k, i, 1), axis, inner, into);
  }
}

void flatten(Region* region, int64_t axis, int64_t inner) {
  for (RegionLoop& loop : region->loops) {
    if (loop.axis == axis) loop.step *= inner;
  }
  region->origin[axis] = region->origin[axis] * inner + region->origin[axis + 1];
  erase_value(&region->origin, axis + 1);
  renumber(region, axis + 1, -1);
}

void transpose(Region* region, const Dims& axes) {
  const Region old = *region;
  region->loops.clear();
  for (int64_t d = 0; d < axes.size(); ++d) {
    region->origin[d] = old.origin[axes[d]];
    for (const RegionLoop& loop : old.loops) {
      if (loop.axis == axes[d]) region->loops.push_back({d, loop.step, loop.size, loop.stride});
    }
  }
}

void insert_axis(Region* region, int64_t axis, int64_t index) {
  renumber(region, axis, 1);
  insert_value(&region->origin, axis, index);
}

void remove_axis(Region* region, int64_t axis) {
  erase_value(&region->origin, axis);
  renumber(region, axis + 1, -1);
}

}  // namespace artifex_devices
