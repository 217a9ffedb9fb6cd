// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/layout_copy.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/transfer/copy_batch.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kLayoutOperation = "Layout";

enum class Way : uint8_t { kToLayout, kFromLayout };

/// Elements at byte strides; written only as the destination of a Way.
struct Strided {
  std::byte* data;
  Dims shape;
  Dims strides;
};

Strided dense(std::byte* data, const Dims& shape, int64_t itemsize) {
  return {data, shape, row_major_strides(shape, itemsize)};
}

StridedCopy box_copy(Way way, std::byte* laid_out, const Dims& laid_out_strides, std::byte* plain,
                     const Dims& plain_strides, const Dims& shape, int64_t itemsize, int64_t all_bytes) {
  if (way == Way::kToLayout) {
    return {laid_out, laid_out_strides, plain, plain_strides, shape, itemsize, all_bytes};
  }
  return {plain, plain_strides, laid_out, laid_out_strides, shape, itemsize, all_bytes};
}

int64_t elements_of(const Dims& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

/// Between memory in one order and the same elements in the other, without tiles.
void copy_plain(Way way, const Strided& laid_out, const Strided& plain, int64_t itemsize) {
  CopyBatch batch;
  batch.add(box_copy(way, laid_out.data, laid_out.strides, plain.data, plain.strides, plain.shape, itemsize, 0), -1);
  batch.run();
}

/// A box of the elements of one stage: where it begins and how far it goes in each dimension of the stage, and where
/// its elements lie in plain memory.
struct Box {
  Dims begins;
  Dims shape;
  std::byte* plain;
  Dims plain_strides;
};

/// Cuts the boxes of a stage of shape step.combined into boxes of step.result: in each tiled dimension the full tiles
/// are one, the cut off last tile another, so that there are few. False where a box begins inside a tile.
bool cut_into_tiles(std::vector<Box>& boxes, const TileStep& step) {
  const int64_t count = step.tile.size();
  const int64_t whole = step.combined.size() - count;
  std::vector<Box> cut;
  for (const Box& box : boxes) {
    for (int64_t i = 0; i < count; ++i) {
      if (box.begins[whole + i] % step.tile[i] != 0) return false;
    }
    std::vector<bool> is_rest(static_cast<size_t>(count), false);  // by tiled dimension: the cut off tile of it
    for (int64_t next = 0; next >= 0;) {
      Box part{Dims(step.result.size(), 0), Dims(step.result.size(), 1), box.plain, Dims(step.result.size(), 0)};
      bool is_empty = false;
      for (int64_t d = 0; d < whole; ++d) {
        part.begins[d] = box.begins[d];
        part.shape[d] = box.shape[d];
        part.plain_strides[d] = box.plain_strides[d];
      }
      for (int64_t i = 0; i < count; ++i) {
        const int64_t size = step.tile[i];
        const int64_t full = box.shape[whole + i] / size;
        const int64_t stride = box.plain_strides[whole + i];
        const bool rest = is_rest[static_cast<size_t>(i)];
        const int64_t tiles = rest ? 1 : full;
        const int64_t inside = rest ? box.shape[whole + i] % size : size;
        part.begins[whole + i] = box.begins[whole + i] / size + (rest ? full : 0);
        part.shape[whole + i] = tiles;
        part.shape[whole + count + i] = inside;
        is_empty = is_empty || tiles == 0 || inside == 0;
        // Of one element no stride is taken, and that of a huge tile might not fit.
        part.plain_strides[whole + i] = tiles > 1 ? stride * size : 0;
        part.plain_strides[whole + count + i] = inside > 1 ? stride : 0;
        if (rest) part.plain += full * size * stride;
      }
      if (!is_empty) cut.push_back(std::move(part));
      for (next = count - 1; next >= 0; --next) {
        const auto n = static_cast<size_t>(next);
        is_rest[n] = !is_rest[n] && box.shape[whole + next] % step.tile[next] != 0;
        if (is_rest[n]) break;
      }
    }
  }
  boxes = std::move(cut);
  return true;
}

/// What a few strided copies do together: between elements, and a dense array that is the result of some steps.
struct Leg {
  std::vector<Box> boxes;
  Dims tiled_shape;
  std::byte* tiled = nullptr;
};

/// The leg over as many of `steps` as it can take; they lose those. `plain` is of shape steps[0].combined.
Leg first_leg(const Strided& plain, std::span<const TileStep>& steps) {
  Leg leg{{{Dims(plain.shape.size(), 0), plain.shape, plain.data, plain.strides}}, plain.shape};
  while (!steps.empty() && steps[0].combined == leg.tiled_shape && cut_into_tiles(leg.boxes, steps[0])) {
    leg.tiled_shape = steps[0].result;
    steps = steps.subspan(1);
  }
  return leg;
}

void run(Way way, const Leg& leg, int64_t itemsize) {
  const Dims strides = row_major_strides(leg.tiled_shape, itemsize);
  int64_t all_bytes = 0;
  for (const Box& box : leg.boxes) all_bytes += elements_of(box.shape) * itemsize;
  CopyBatch batch;
  for (const Box& box : leg.boxes) {
    std::byte* to = leg.tiled;
    for (int64_t d = 0; d < box.shape.size(); ++d) to += box.begins[d] * strides[d];
    batch.add(box_copy(way, to, strides, box.plain, box.plain_strides, box.shape, itemsize, all_bytes), -1);
  }
  batch.run();
}

/// Strides of `combined`, whose dimensions are `plain`'s in order, some merged or leading ones put before; false where
/// merged dimensions do not follow each other in memory.
bool merge(const Strided& plain, const TileStep& step, Strided* merged) {
  merged->data = plain.data;
  merged->shape = step.combined;
  merged->strides = Dims(step.combined.size(), 0);
  int64_t from = plain.shape.size() - 1;
  for (int64_t d = step.combined.size() - 1; d >= 0; --d) {
    int64_t count = 1;
    int64_t stride = 0;
    while (from >= 0 && (count < step.combined[d] || plain.shape[from] == 1)) {
      const int64_t size = plain.shape[from];
      if (size != 1) {
        if (count == 1) {
          stride = plain.strides[from];
        } else if (plain.strides[from] != stride * count) {
          return false;
        }
        count *= size;
      }
      if (count > step.combined[d]) return false;
      --from;
    }
    merged->strides[d] = stride;
  }
  return true;
}

struct Scratch {
  std::unique_ptr<std::byte[]> memory;
  std::byte* make(int64_t bytes, bool zeros) {
    const auto size = static_cast<size_t>(bytes);
    memory = zeros ? std::make_unique<std::byte[]>(size) : std::make_unique_for_overwrite<std::byte[]>(size);
    return memory.get();
  }
};

/// Elements of whole bytes between `memory` and `plain`, which is in physical order already.
void copy_elements(Way way, std::byte* memory, const Layout& layout, Strided plain, int64_t itemsize) {
  std::vector<TileStep> steps;
  Dims shape = plain.shape;
  for (const Dims& tile : layout.tiles()) {
    if (tile.empty()) continue;
    steps.push_back(tile_step(shape, tile, kLayoutOperation));
    shape = steps.back().result;
  }
  if (steps.empty()) return copy_plain(way, dense(memory, shape, itemsize), plain, itemsize);

  Scratch merged;
  Strided stage;
  const bool is_merged = merge(plain, steps[0], &stage);
  if (!is_merged) {
    Strided copy = dense(merged.make(elements_of(plain.shape) * itemsize, false), plain.shape, itemsize);
    if (way == Way::kToLayout) copy_plain(way, copy, plain, itemsize);
    stage = dense(copy.data, steps[0].combined, itemsize);
  }
  // Between legs there is scratch, which begins as the zeros that pad.
  std::vector<Scratch> scratch(steps.size());
  std::vector<Leg> legs;
  for (std::span<const TileStep> left(steps); !left.empty();) {
    Leg& leg = legs.emplace_back(first_leg(stage, left));
    if (left.empty()) {
      leg.tiled = memory;
    } else {
      leg.tiled = scratch[legs.size() - 1].make(elements_of(leg.tiled_shape) * itemsize, true);
      stage = dense(leg.tiled, left[0].combined, itemsize);
    }
  }
  if (way == Way::kFromLayout) std::ranges::reverse(legs);
  for (const Leg& leg : legs) run(way, leg, itemsize);
  if (way == Way::kFromLayout && !is_merged) {
    copy_plain(way, dense(merged.memory.get(), plain.shape, itemsize), plain, itemsize);
  }
}

template <class Each>
void for_pieces(int64_t count, Each each) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  const auto piece = [&](int64_t i) { each(i * kPiece, std::min(count, (i + 1) * kPiece)); };
  if (pieces <= 1) {
    if (pieces == 1) piece(0);
  } else {
    WorkerPool::process().parallel_for(pieces, -1, piece);
  }
}

void squeeze(std::byte* packed, const std::byte* bytes, int64_t elements, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  const auto mask = static_cast<unsigned>((1 << bits) - 1);
  for_pieces((elements + per_byte - 1) / per_byte, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      unsigned value = 0;
      for (int64_t i = b * per_byte; i < std::min(elements, (b + 1) * per_byte); ++i) {
        value |= (std::to_integer<unsigned>(bytes[i]) & mask) << ((i % per_byte) * bits);
      }
      packed[b] = static_cast<std::byte>(value);
    }
  });
}

void stretch(std::byte* bytes, const std::byte* packed, int64_t elements, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  const auto mask = static_cast<unsigned>((1 << bits) - 1);
  for_pieces(elements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      bytes[i] =
          static_cast<std::byte>((std::to_integer<unsigned>(packed[i / per_byte]) >> ((i % per_byte) * bits)) & mask);
    }
  });
}

void copy(Way way, std::byte* memory, const Layout& layout, const HostView& view) {
  const int64_t bytes = layout.byte_size(view.shape, view.dtype, kLayoutOperation);
  const Dims physical = layout.physical_shape(view.shape, kLayoutOperation);
  const int64_t size = itemsize(view.dtype);
  const int64_t elements = elements_of(physical);
  Strided plain{static_cast<std::byte*>(view.data), {}, {}};
  for (const int64_t d : layout.major_to_minor()) {
    plain.shape.push_back(view.shape[d]);
    plain.strides.push_back(view.byte_strides[d]);
  }
  const bool is_packed = layout.element_bits() != 0 && layout.element_bits() != size * 8;
  const bool has_padding = elements != elements_of(view.shape) || layout.tail_alignment() != 1 || is_packed;
  if (way == Way::kToLayout && has_padding) std::memset(memory, 0, static_cast<size_t>(bytes));
  if (elements == 0) return;
  if (!is_packed) return copy_elements(way, memory, layout, std::move(plain), size);
  Scratch scratch;
  std::byte* unpacked = scratch.make(elements * size, true);
  if (way == Way::kToLayout) {
    copy_elements(way, unpacked, layout, std::move(plain), size);
    squeeze(memory, unpacked, elements, layout.element_bits());
  } else {
    stretch(unpacked, memory, elements, layout.element_bits());
    copy_elements(way, unpacked, layout, std::move(plain), size);
  }
}

}  // namespace

void copy_to_layout(const HostView& source, const Layout& layout, std::byte* memory) {
  copy(Way::kToLayout, memory, layout, source);
}

void copy_from_layout(const std::byte* memory, const Layout& layout, const HostView& destination) {
  copy(Way::kFromLayout, const_cast<std::byte*>(memory), layout, destination);  // only read on this way
}

}  // namespace artifex_devices
