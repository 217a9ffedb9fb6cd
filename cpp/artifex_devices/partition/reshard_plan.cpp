// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/reshard_plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "artifex_devices/base/error.h"
#include "artifex_devices/partition/reshard_check.h"

namespace artifex_devices {
namespace {

/// The source buffers by tile, and within a tile by arena and device: the nearest one is found by binary search.
class Replicas {
 public:
  Replicas(const ShardDomains& source, const std::vector<BufferPlace>& places) : places_(places) {
    const int64_t tiles = source.grid().tiles();
    order_.resize(places.size());
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::ranges::sort(order_, {}, [&](int64_t i) {
      const BufferPlace& place = at(i);
      return std::tuple(place.tile, place.host, place.process, place.arena, place.device, i);
    });
    for (const BufferPlace& place : places) {
      many_processes_ = many_processes_ || place.process != places.front().process;
    }
    first_.assign(static_cast<size_t>(tiles) + 1, 0);
    turn_.assign(static_cast<size_t>(tiles), 0);
    for (const BufferPlace& place : places) {
      if (place.tile < 0 || place.tile >= tiles) {
        fail(
            "reshard: a source buffer holds tile {}; expected one of 0 to {}; number tiles as the sharding's grid does",
            place.tile, tiles - 1);
      }
      ++first_[static_cast<size_t>(place.tile) + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
  }

  struct Choice {
    int64_t source;
    Link link;
  };

  Choice nearest(int64_t tile, const BufferPlace& wanted) {
    auto begin = order_.cbegin() + first_[static_cast<size_t>(tile)];
    auto end = order_.cbegin() + first_[static_cast<size_t>(tile) + 1];
    if (begin == end) {
      fail(
          "reshard: no source buffer holds tile {}; expected at least one of each tile; give all buffers of the source",
          tile);
    }
    Link link = Link::kOtherArena;
    if (many_processes_ || at(*begin).process != wanted.process) {
      const auto here = std::ranges::equal_range(begin, end, wanted.host, {}, [&](int64_t i) { return at(i).host; });
      if (here.empty()) return in_turn(tile, begin, end, Link::kOtherHost);
      const auto own = std::ranges::equal_range(here, wanted.process, {}, [&](int64_t i) { return at(i).process; });
      if (own.empty()) return in_turn(tile, here.begin(), here.end(), Link::kOtherProcess);
      begin = own.begin();
      end = own.end();
    }
    const auto near = std::ranges::equal_range(begin, end, wanted.arena, {}, [&](int64_t i) { return at(i).arena; });
    if (!near.empty()) {
      const auto own = std::ranges::lower_bound(near, wanted.device, {}, [&](int64_t i) { return at(i).device; });
      if (own != near.end() && at(*own).device == wanted.device) return {*own, Link::kSameDevice};
      begin = near.begin();
      end = near.end();
      link = Link::kSameArena;
    }
    return in_turn(tile, begin, end, link);
  }

 private:
  Choice in_turn(int64_t tile, std::vector<int64_t>::const_iterator begin, std::vector<int64_t>::const_iterator end,
                 Link link) {
    if (end - begin == 1) return {*begin, link};
    return {begin[turn_[static_cast<size_t>(tile)]++ % (end - begin)], link};
  }
  const BufferPlace& at(int64_t i) const { return places_[static_cast<size_t>(i)]; }

  const std::vector<BufferPlace>& places_;
  std::vector<int64_t> order_;
  std::vector<int64_t> first_;  // of each tile in order_
  std::vector<int64_t> turn_;   // copies taken from each tile's replicas so far
  bool many_processes_ = false;
};

/// The source tiles that overlap one destination box: in each dimension the cuts from `first` to `last`.
class Overlap {
 public:
  Overlap(const ShardDomains& source, const IndexDomain& box)
      : source_(source), box_(box), first_(box.rank(), 0), last_(box.rank(), 0) {
    for (int64_t d = 0; d < box.rank(); ++d) {
      const int64_t chunk = source.shard_shape()[d];
      first_[d] = box.origin[d] / chunk;
      last_[d] = (box.origin[d] + box.shape[d] - 1) / chunk;
    }
    cut_ = first_;
  }

  int64_t tile() const {
    int64_t tile = 0;
    for (int64_t d = 0; d < source_.grid().parts().size(); ++d) tile = tile * source_.grid().parts(d) + cut_[d];
    return tile;
  }

  /// The common part of the box and the tile that it stands at.
  IndexDomain part() const {
    IndexDomain part = box_;
    for (int64_t d = 0; d < box_.rank(); ++d) {
      const int64_t begin = std::max(box_.origin[d], source_.begin(d, cut_[d]));
      const int64_t end = std::min(box_.origin[d] + box_.shape[d], source_.begin(d, cut_[d] + 1));
      part.origin[d] = begin;
      part.shape[d] = end - begin;
    }
    return part;
  }

  /// Whether one source tile is the whole box and nothing else.
  bool is_same_box() const {
    for (int64_t d = 0; d < box_.rank(); ++d) {
      if (source_.begin(d, first_[d]) != box_.origin[d]) return false;
      if (source_.begin(d, first_[d] + 1) != box_.origin[d] + box_.shape[d]) return false;
    }
    return true;
  }

  bool next() {
    for (int64_t d = box_.rank() - 1; d >= 0; --d) {
      if (cut_[d]++ < last_[d]) return true;
      cut_[d] = first_[d];
    }
    return false;
  }

 private:
  const ShardDomains& source_;
  const IndexDomain& box_;
  Dims first_;
  Dims last_;
  Dims cut_;
};

/// Where the cuts of each dimension begin, so that no position divides to find out.
class Cuts {
 public:
  explicit Cuts(const ShardDomains& domains) : parts_(domains.grid().parts()), shape_(domains.shape()) {
    for (int64_t d = 0; d < parts_.size(); ++d) {
      auto& begins = begins_.emplace_back();
      for (int64_t cut = 0; cut <= parts_[d]; ++cut) begins.push_back(domains.begin(d, cut));
    }
  }

  /// The range in dimension d of what is left of the tile's number, which loses that dimension.
  std::pair<int64_t, int64_t> next(int64_t d, int64_t* tile) const noexcept {
    if (d >= parts_.size()) return {0, shape_[d]};
    const auto cut = static_cast<size_t>(*tile % parts_[d]);
    *tile /= parts_[d];
    const auto& begins = begins_[static_cast<size_t>(d)];
    return {begins[cut], begins[cut + 1]};
  }

 private:
  const Dims& parts_;
  const Dims& shape_;
  std::vector<std::vector<int64_t>> begins_;
};

/// A table where ids are small, as those of a client's devices are; a hash map otherwise.
class PositionOfDevice {
 public:
  explicit PositionOfDevice(const std::vector<int64_t>& devices) {
    const auto [least, greatest] = std::ranges::minmax_element(devices);
    const auto count = static_cast<int64_t>(devices.size());
    if (*least >= 0 && *greatest < 4 * count) table_.assign(static_cast<size_t>(*greatest) + 1, -1);
    for (int64_t position = count - 1; position >= 0; --position) {  // the first position of a device stays
      const int64_t device = devices[static_cast<size_t>(position)];
      (table_.empty() ? map_[device] : table_[static_cast<size_t>(device)]) = position;
    }
  }

  /// -1 for a device that is not there.
  int64_t find(int64_t device) const noexcept {
    if (!table_.empty()) {
      return device >= 0 && device < static_cast<int64_t>(table_.size()) ? table_[static_cast<size_t>(device)] : -1;
    }
    const auto found = map_.find(device);
    return found == map_.end() ? -1 : found->second;
  }

 private:
  std::vector<int64_t> table_;
  std::unordered_map<int64_t, int64_t> map_;
};

}  // namespace

ReshardPlan make_reshard_plan(const ShardDomains& source, const std::vector<BufferPlace>& source_places,
                              const ShardDomains& destination, const std::vector<BufferPlace>& destination_places,
                              int64_t itemsize) {
  ReshardPlan plan;
  if (!check_reshard(source, destination, itemsize, "reshard")) return plan;
  Replicas replicas(source, source_places);
  for (size_t i = 0; i < destination_places.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    const BufferPlace& place = destination_places[i];
    if (place.tile < 0 || place.tile >= destination.grid().tiles()) {
      fail(
          "reshard: destination buffer {} holds tile {}; expected one of 0 to {}; number tiles as the sharding's grid "
          "does",
          number, place.tile, destination.grid().tiles() - 1);
    }
    const IndexDomain box = destination.domain(place.tile);
    const int64_t box_bytes = box.volume() * itemsize;
    if (box_bytes == 0) continue;
    Overlap overlap(source, box);
    const bool same_box = overlap.is_same_box();
    do {
      const auto [from, link] = replicas.nearest(overlap.tile(), place);
      if (same_box && (link == Link::kSameDevice || link == Link::kSameArena)) {
        plan.reused.emplace_back(number, from);
        add_bytes(&plan.bytes_reused, box_bytes, 1, "reshard");
        break;
      }
      ReshardCopy& copy = plan.copies.emplace_back();
      copy.source = from;
      copy.destination = number;
      copy.box = overlap.part();
      copy.bytes = copy.box.volume() * itemsize;
      copy.link = link;
      add_bytes(&plan.bytes_copied, copy.bytes, 1, "reshard");
      if (link != Link::kSameDevice) plan.bytes_between_devices += copy.bytes;
      if (link >= Link::kOtherArena) plan.bytes_between_arenas += copy.bytes;
      if (link >= Link::kOtherProcess) plan.bytes_between_processes += copy.bytes;
      if (link == Link::kOtherHost) plan.bytes_between_hosts += copy.bytes;
    } while (overlap.next());
  }
  return plan;
}

void copy_reused(ReshardPlan* plan, const ShardDomains& destination, const std::vector<BufferPlace>& source_places,
                 const std::vector<BufferPlace>& destination_places, int64_t itemsize) {
  for (const auto& [to, from] : plan->reused) {
    const BufferPlace& wanted = destination_places[static_cast<size_t>(to)];
    const BufferPlace& held = source_places[static_cast<size_t>(from)];
    ReshardCopy copy;
    copy.source = from;
    copy.destination = to;
    copy.box = destination.domain(wanted.tile);
    copy.bytes = copy.box.volume() * itemsize;
    copy.link = held.device == wanted.device ? Link::kSameDevice
                : held.arena == wanted.arena ? Link::kSameArena
                                             : Link::kOtherArena;
    add_bytes(&plan->bytes_copied, copy.bytes, 1, "reshard");
    if (copy.link != Link::kSameDevice) plan->bytes_between_devices += copy.bytes;
    if (copy.bytes > 0) plan->copies.push_back(std::move(copy));
  }
  plan->reused.clear();
  plan->bytes_reused = 0;
}

std::vector<int64_t> ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_device_of_position,
                                   const ShardDomains& destination,
                                   const std::vector<int64_t>& destination_device_of_position, int64_t itemsize) {
  const bool any = check_reshard(source, destination, itemsize, "ingress_bytes");
  const auto check_positions = [](const ShardDomains& domains, const std::vector<int64_t>& devices, const char* which) {
    if (static_cast<int64_t>(devices.size()) == domains.grid().positions()) return;
    fail("ingress_bytes: the {} has {} devices; expected one for each of its {} positions; give all of them", which,
         devices.size(), domains.grid().positions());
  };
  check_positions(source, source_device_of_position, "source");
  check_positions(destination, destination_device_of_position, "destination");

  std::vector<int64_t> bytes(destination_device_of_position.size(), 0);
  if (!any) return bytes;
  const std::vector<int64_t> from_tiles = source.grid().tiles_by_position();
  const std::vector<int64_t> to_tiles = destination.grid().tiles_by_position();
  const Cuts from_cuts(source);
  const Cuts to_cuts(destination);
  const PositionOfDevice source_position(source_device_of_position);
  const int64_t cut_dimensions = std::max(source.grid().parts().size(), destination.grid().parts().size());
  int64_t uncut = itemsize;  // bytes of the dimensions that neither cuts
  for (int64_t d = cut_dimensions; d < source.shape().size(); ++d) uncut *= source.shape()[d];
  for (size_t i = 0; i < bytes.size(); ++i) {
    // Without boxes in between: this runs for a million positions.
    const int64_t at = source_position.find(destination_device_of_position[i]);
    int64_t to = to_tiles[i];
    int64_t from = at < 0 ? 0 : from_tiles[static_cast<size_t>(at)];
    int64_t wanted = uncut;
    int64_t held = at < 0 ? 0 : uncut;
    for (int64_t d = cut_dimensions - 1; d >= 0; --d) {
      const auto [to_begin, to_end] = to_cuts.next(d, &to);
      const auto [from_begin, from_end] = from_cuts.next(d, &from);
      wanted *= to_end - to_begin;
      held *= std::max<int64_t>(0, std::min(to_end, from_end) - std::max(to_begin, from_begin));
    }
    bytes[i] = wanted - held;
  }
  return bytes;
}

}  // namespace artifex_devices
