// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/ingress_totals.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/partition/reshard_check.h"
#include "artifex_devices/partition/reshard_plan.h"

namespace artifex_devices {
namespace {

/// A digit of positions that both grids have, with its meaning in each.
struct SharedDigit {
  int64_t size = 1;
  TileGrid::Digit source;
  TileGrid::Digit destination;
};

/// The common refinement of both grids' digits. Empty optional where a digit of one grid ends inside a digit of the
/// other and does not divide it.
std::optional<std::vector<SharedDigit>> shared_digits(const TileGrid& source, const TileGrid& destination) {
  const std::vector<TileGrid::Digit> from = source.digits();
  const std::vector<TileGrid::Digit> to = destination.digits();
  std::vector<SharedDigit> shared;
  int64_t begin = 1;
  for (size_t i = 0, j = 0; i < from.size() && j < to.size();) {
    const int64_t from_end = from[i].position_stride * from[i].size;
    const int64_t to_end = to[j].position_stride * to[j].size;
    const int64_t end = std::min(from_end, to_end);
    if (from_end % end != 0 || to_end % end != 0) return std::nullopt;
    SharedDigit& digit = shared.emplace_back(SharedDigit{end / begin, from[i], to[j]});
    digit.source.part_stride *= begin / from[i].position_stride;
    digit.destination.part_stride *= begin / to[j].position_stride;
    if (from_end == end) ++i;
    if (to_end == end) ++j;
    begin = end;
  }
  return shared;
}

/// Splits the positions into ranges of digits until all devices of a range receive the same amount.
///
/// In one dimension a device wants an interval of the destination and holds one of the source. While both have their
/// full length, the length that they share depends only on the offset between them. The offset is a sum over the
/// digits, so in a range it lies between a least and a greatest value. A dimension needs no further split when the
/// shared length is the same for all of these offsets: there is a single offset, or one interval stays inside the
/// other, or the two are always disjoint.
class PositionRanges {
 public:
  PositionRanges(const ShardDomains& source, const ShardDomains& destination, std::vector<SharedDigit> digits,
                 int64_t itemsize, std::string_view operation)
      : source_(source), destination_(destination), digits_(std::move(digits)), operation_(operation) {
    dimensions_ = std::max(source.grid().parts().size(), destination.grid().parts().size());
    unsharded_ = itemsize;
    for (int64_t d = dimensions_; d < source.shape().size(); ++d) unsharded_ *= source.shape()[d];
  }

  /// Empty optional when more than `most` ranges are needed.
  std::optional<IngressTotals> count(int64_t most) {
    const auto rank = static_cast<int64_t>(digits_.size());
    DigitRange all{Dims(rank, 0), Dims(rank, 0)};
    for (int64_t k = 0; k < rank; ++k) all.last[k] = digits_[k].size - 1;
    std::vector<DigitRange> open{all};
    for (int64_t seen = 0; !open.empty(); ++seen) {
      if (seen == most) return std::nullopt;
      DigitRange range = std::move(open.back());
      open.pop_back();
      const std::optional<int64_t> split = settle(range);
      if (!split) continue;
      DigitRange upper = range;
      const int64_t middle = range.first[*split] + (range.last[*split] - range.first[*split]) / 2;
      range.last[*split] = middle;
      upper.first[*split] = middle + 1;
      open.push_back(std::move(range));
      open.push_back(std::move(upper));
    }
    return totals_;
  }

 private:
  struct DigitRange {
    Dims first;  // of each digit
    Dims last;
  };

  /// The intervals of a range in one dimension.
  struct Span {
    int64_t wanted = 0;  // elements of the first part; later parts have as many or fewer
    int64_t held = 0;
    bool one_wanted = true;  // all wanted parts of the range have that length
    bool one_held = true;
    bool meet = true;                    // false: disjoint everywhere in the range
    std::optional<int64_t> shared = {};  // shared length, if it is the same everywhere in the range
  };

  /// Adds the bytes that the range receives to the totals, or returns the digit at which to split the range.
  std::optional<int64_t> settle(const DigitRange& range) {
    int64_t wanted = unsharded_;
    int64_t shared = unsharded_;
    bool one_wanted = true;
    bool one_shared = true;
    bool meet = true;
    for (int64_t d = 0; d < dimensions_; ++d) {
      const Span span = span_of(range, d);
      if (span.wanted == 0) return std::nullopt;  // nothing is wanted
      wanted *= span.wanted;
      shared *= span.shared.value_or(0);
      one_wanted = one_wanted && span.one_wanted;
      one_shared = one_shared && span.shared.has_value();
      meet = meet && span.meet;
    }
    if (!one_wanted || (meet && !one_shared)) return widest_digit(range, meet);
    const int64_t lacking = wanted - (meet ? shared : 0);
    if (lacking == 0) return std::nullopt;
    int64_t positions = 1;
    for (int64_t k = 0; k < range.first.size(); ++k) positions *= range.last[k] - range.first[k] + 1;
    add_bytes(&totals_.bytes, lacking, positions, operation_);
    totals_.most_bytes = std::max(totals_.most_bytes, lacking);
    totals_.devices += positions;
    return std::nullopt;
  }

  Span span_of(const DigitRange& range, int64_t d) const {
    int64_t held_first = 0;
    int64_t held_last = 0;
    int64_t wanted_first = 0;
    int64_t wanted_last = 0;
    int64_t least = 0;  // offset of the held interval from the wanted one
    int64_t most = 0;
    for (size_t k = 0; k < digits_.size(); ++k) {
      const SharedDigit& digit = digits_[k];
      const auto first = range.first[static_cast<int64_t>(k)];
      const auto last = range.last[static_cast<int64_t>(k)];
      if (digit.source.dimension == d) {
        held_first += first * digit.source.part_stride;
        held_last += last * digit.source.part_stride;
      }
      if (digit.destination.dimension == d) {
        wanted_first += first * digit.destination.part_stride;
        wanted_last += last * digit.destination.part_stride;
      }
      const int64_t step = step_between(digit, d);
      least += step * (step < 0 ? last : first);
      most += step * (step < 0 ? first : last);
    }
    Span span;
    span.wanted = length(destination_, d, wanted_first);
    span.held = length(source_, d, held_first);
    span.one_wanted = span.wanted == length(destination_, d, wanted_last);
    span.one_held = span.held == length(source_, d, held_last);
    span.meet = span.held > 0 && least < span.wanted && most > -span.held;
    if (!span.meet) {
      span.shared = 0;
    } else if (span.one_wanted && span.one_held) {
      const int64_t longer = span.wanted - span.held;
      const bool is_inside = least >= std::min<int64_t>(0, longer) && most <= std::max<int64_t>(0, longer);
      if (is_inside) {
        span.shared = std::min(span.wanted, span.held);
      } else if (least == most) {
        span.shared = std::min(span.wanted, least + span.held) - std::max<int64_t>(0, least);
      }
    }
    return span;
  }

  /// Change of the offset, in elements, when the digit grows by one.
  int64_t step_between(const SharedDigit& digit, int64_t d) const {
    int64_t step = 0;
    if (digit.source.dimension == d) step += digit.source.part_stride * source_.shard_shape()[d];
    if (digit.destination.dimension == d) step -= digit.destination.part_stride * destination_.shard_shape()[d];
    return step;
  }

  /// The digit with the largest effect in a dimension that still needs a split.
  int64_t widest_digit(const DigitRange& range, bool meet) const {
    int64_t widest = 0;
    int64_t most = 0;
    for (int64_t d = 0; d < dimensions_; ++d) {
      const Span span = span_of(range, d);
      const bool is_open = meet && !span.shared;
      for (int64_t k = 0; k < range.first.size(); ++k) {
        const SharedDigit& digit = digits_[k];
        int64_t step = 0;
        if (!span.one_wanted && digit.destination.dimension == d) {
          step = digit.destination.part_stride * destination_.shard_shape()[d];
        }
        if (is_open && !span.one_held && digit.source.dimension == d) {
          step = std::max(step, digit.source.part_stride * source_.shard_shape()[d]);
        }
        if (is_open) step = std::max(step, std::abs(step_between(digit, d)));
        const int64_t width = step * (range.last[k] - range.first[k]);
        if (width > most) {
          most = width;
          widest = k;
        }
      }
    }
    return widest;
  }

  static int64_t length(const ShardDomains& domains, int64_t d, int64_t part) {
    return domains.begin(d, part + 1) - domains.begin(d, part);
  }

  const ShardDomains& source_;
  const ShardDomains& destination_;
  std::vector<SharedDigit> digits_;
  int64_t dimensions_ = 0;
  int64_t unsharded_ = 0;  // bytes in the dimensions that neither side shards
  std::string_view operation_;
  IngressTotals totals_;
};

}  // namespace

IngressTotals ingress_totals(const ShardDomains& source, const std::vector<int64_t>& source_device_of_position,
                             const ShardDomains& destination,
                             const std::vector<int64_t>& destination_device_of_position, int64_t itemsize,
                             std::string_view operation) {
  IngressTotals totals;
  for (const int64_t bytes :
       ingress_bytes(source, source_device_of_position, destination, destination_device_of_position, itemsize)) {
    add_bytes(&totals.bytes, bytes, 1, operation);
    totals.most_bytes = std::max(totals.most_bytes, bytes);
    totals.devices += bytes > 0 ? 1 : 0;
  }
  return totals;
}

IngressTotals ingress_totals(const ShardDomains& source, const ShardDomains& destination, int64_t itemsize,
                             std::string_view operation) {
  const int64_t positions = source.grid().positions();
  if (positions != destination.grid().positions()) {
    throw_error("{}: the source has {} positions and the destination {}; expected the same devices; name them",
                operation, positions, destination.grid().positions());
  }
  if (!check_reshard(source, destination, itemsize, operation)) return {};
  if (auto digits = shared_digits(source.grid(), destination.grid())) {
    // A range takes about as long as two positions, so stop early enough to gain from it.
    const int64_t most = std::max<int64_t>(1024, positions / 16);
    if (const auto totals = PositionRanges(source, destination, std::move(*digits), itemsize, operation).count(most))
      return *totals;
  }
  std::vector<int64_t> devices(positions);
  std::iota(devices.begin(), devices.end(), int64_t{0});
  return ingress_totals(source, devices, destination, devices, itemsize, operation);
}

}  // namespace artifex_devices
