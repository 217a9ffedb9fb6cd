// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/stored_parts.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr size_t kMaxBoxes = 1 << 14;

/// The dimension with the most distinct begins of boxes: few boxes share a range of it.
int64_t most_divided_dimension(std::span<const IndexDomain> boxes) {
  int64_t dimension = 0;
  size_t most = 0;
  for (int64_t d = 0; d < boxes[0].rank(); ++d) {
    std::set<int64_t> begins;
    for (const IndexDomain& box : boxes) begins.insert(box.origin[d]);
    if (begins.size() > most) {
      most = begins.size();
      dimension = d;
    }
  }
  return dimension;
}

}  // namespace

IndexDomain box_of(const StoredTensor& tensor, int64_t rank) {
  IndexDomain box{Dims(rank, 0), Dims(rank, 0)};
  for (int64_t d = 0; d < rank; ++d) {
    box.origin[d] = tensor.origin ? (*tensor.origin)[d] : 0;
    box.shape[d] = tensor.shape[d];
  }
  return box;
}

void check_part(std::string_view operation, const std::string& name, DType dtype, const Dims& shape,
                const StoredTensor& tensor) {
  const StoredType type = stored_type(dtype);
  const bool is_natural = dtype_of_stored(tensor.type) == dtype;
  const int64_t rank = shape.size() + (type.is_pair && !is_natural ? 1 : 0);
  bool fits = tensor.shape.size() == rank && (is_natural || tensor.type == type.name);
  if (fits && rank > shape.size()) fits = tensor.shape.back() == 2;
  for (int64_t d = 0; fits && d < shape.size(); ++d) {
    const int64_t origin = tensor.origin ? (*tensor.origin)[d] : 0;
    fits = origin + tensor.shape[d] <= shape[d];
  }
  if (fits) return;
  throw_error("{}: {} is stored as {} of shape {}; expected a part of {} of shape {}; the checkpoint is damaged",
              operation, printable(name), printable(tensor.type), to_string(tensor.shape), artifex_devices::name(dtype),
              to_string(shape));
}

void check_disjoint(std::string_view operation, const std::string& name, std::span<const IndexDomain> boxes) {
  if (boxes.size() < 2) return;
  if (boxes.size() > kMaxBoxes) {
    throw_error("{}: {} is stored in {} parts; expected at most {}", operation, printable(name), boxes.size(),
                kMaxBoxes);
  }
  const int64_t dimension = most_divided_dimension(boxes);
  const auto begin = [&](size_t i) { return boxes[i].rank() == 0 ? 0 : boxes[i].origin[dimension]; };
  const auto end = [&](size_t i) { return boxes[i].rank() == 0 ? 1 : begin(i) + boxes[i].shape[dimension]; };
  std::vector<size_t> order(boxes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, begin);
  for (size_t i = 0; i < order.size(); ++i) {
    check_interrupt();
    for (size_t k = i + 1; k < order.size() && begin(order[k]) < end(order[i]); ++k) {
      const IndexDomain& a = boxes[order[i]];
      const IndexDomain& b = boxes[order[k]];
      if (!intersect(a, b)) continue;
      throw_error(
          "{}: two stored parts of {} overlap, at {} and {}; expected each element once; the checkpoint is damaged or "
          "mixed from several",
          operation, printable(name), to_string(a.origin), to_string(b.origin));
    }
  }
}

}  // namespace artifex_devices
