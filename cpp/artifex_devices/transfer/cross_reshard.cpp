// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/cross_reshard.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/copy_batch.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kOperation = "device_put";

const BufferPlace& at(const WorldPlaces& places, int64_t number) { return places.places[static_cast<size_t>(number)]; }

int64_t local(const WorldPlaces& places, int64_t number) { return places.local_numbers[static_cast<size_t>(number)]; }

/// Cuts a box into boxes of at most `most` bytes that follow each other in row-major order: along its first dimensions,
/// never within a row of the last one that must be cut.
void cut(const IndexDomain& box, int64_t itemsize, int64_t most, std::vector<IndexDomain>* pieces) {
  int64_t dimension = box.rank();  // the first that stays whole
  int64_t bytes = itemsize;
  while (dimension > 0 && bytes * box.shape[dimension - 1] <= most) bytes *= box.shape[--dimension];
  if (dimension == 0) return pieces->push_back(box);
  const int64_t along = dimension - 1;  // cut into chunks; those before it into single indices
  const int64_t chunk = std::max<int64_t>(most / bytes, 1);
  IndexDomain piece = box;
  for (int64_t d = 0; d < along; ++d) piece.shape[d] = 1;
  for (;;) {
    for (int64_t begin = 0; begin < box.shape[along]; begin += chunk) {
      piece.origin[along] = box.origin[along] + begin;
      piece.shape[along] = std::min(chunk, box.shape[along] - begin);
      pieces->push_back(piece);
    }
    int64_t d = along - 1;
    for (; d >= 0; --d) {
      if (++piece.origin[d] < box.origin[d] + box.shape[d]) break;
      piece.origin[d] = box.origin[d];
    }
    if (d < 0) return;
  }
}

std::string ids_of(const DeviceList& devices) {
  std::vector<int64_t> ids;
  for (const Device* device : devices.devices()) ids.push_back(device->id());
  return fmt::format("{}", fmt::join(ids, ","));
}

}  // namespace

CrossReshard::CrossReshard(ArrayRef source, ShardingRef sharding, const ReshardOptions& options)
    : source_(std::move(source)),
      sharding_(std::move(sharding)),
      options_(options),
      layout_(options.layout.value_or(source_->layout())),
      itemsize_(artifex_devices::itemsize(source_->dtype())),
      from_domains_(source_->sharding()->domains(source_->shape(), kOperation)),
      to_domains_(sharding_->domains(source_->shape(), kOperation)),
      from_(*source_->sharding()),
      to_(*sharding_) {
  source_->check_alive(kOperation);
  plan_ = make_reshard_plan(from_domains_, from_.places, to_domains_, to_.places, itemsize_);
  for (const ReshardCopy& copy : plan_.copies) {
    if (copy.link < Link::kOtherProcess) continue;
    processes_.push_back(at(from_, copy.source).process);
    processes_.push_back(at(to_, copy.destination).process);
  }
  std::ranges::sort(processes_);
  processes_.erase(std::ranges::unique(processes_).begin(), processes_.end());
  split();
}

/// The messages of this process.
void CrossReshard::split() {
  const int own = client()->process_index();
  const int count = client()->process_count();
  struct Open {
    std::vector<Parts> messages;
    int64_t bytes = 0;  // of the last one
  };
  // By (distance, direction): all messages of one pair of processes, in the order of the plan.
  std::map<std::tuple<int, Side>, Open> pairs;
  std::vector<IndexDomain> pieces;
  for (const ReshardCopy& copy : plan_.copies) {
    const int sender = at(from_, copy.source).process;
    const int receiver = at(to_, copy.destination).process;
    if (sender == receiver || (sender != own && receiver != own)) continue;
    Open& open = pairs[{(receiver - sender + count) % count, sender == own ? kFrom : kTo}];
    pieces.clear();
    cut(copy.box, itemsize_, kMessageBytes, &pieces);
    for (IndexDomain& piece : pieces) {
      const int64_t bytes = piece.volume() * itemsize_;
      if (open.messages.empty() || open.bytes + bytes > kMessageBytes) {
        open.messages.emplace_back();
        open.bytes = 0;
      }
      open.messages.back().push_back({copy.source, copy.destination, std::move(piece), bytes});
      open.bytes += bytes;
    }
  }
  for (auto& [key, open] : pairs) {
    const auto [distance, side] = key;
    const int peer = side == kFrom ? (own + distance) % count : (own - distance + count) % count;
    for (Parts& parts : open.messages) {
      Message message{peer, 0};
      for (const Part& part : parts) message.bytes += part.bytes;
      (side == kFrom ? sends_ : receives_).push_back(message);
      (side == kFrom ? send_parts_ : receive_parts_).push_back(std::move(parts));
    }
  }
}

std::string CrossReshard::text() const {
  return fmt::format("{} of {}{} from {} to {}", kOperation, name(source_->dtype()), to_string(source_->shape()),
                     source_->sharding()->to_string(), sharding_->to_string());
}

std::string CrossReshard::identity() const {
  return fmt::format("{}|{}|{}|{}|{}|{}", text(), ids_of(*source_->sharding()->devices()),
                     ids_of(*sharding_->devices()), source_->layout() ? source_->layout()->to_string() : "",
                     layout_ ? layout_->to_string() : "", kMessageBytes);
}

/// The plan's copies within this process, by the numbers that buffers have here.
ReshardPlan CrossReshard::local_plan() const {
  ReshardPlan mine;
  const int own = client()->process_index();
  for (const auto& [to, from] : plan_.reused) {
    if (at(to_, to).process != own) continue;
    mine.reused.emplace_back(local(to_, to), local(from_, from));
    mine.bytes_reused += to_domains_.domain(at(to_, to).tile).volume() * itemsize_;
  }
  for (const ReshardCopy& copy : plan_.copies) {
    if (copy.link >= Link::kOtherProcess || at(to_, copy.destination).process != own) continue;
    mine.copies.push_back(copy);
    mine.copies.back().source = local(from_, copy.source);
    mine.copies.back().destination = local(to_, copy.destination);
    mine.bytes_copied += copy.bytes;
  }
  return mine;
}

void CrossReshard::begin() {
  source_->block_until_ready();
  for (int64_t b = 0; b < source_->sharding()->buffers().size(); ++b) {
    const bool is_whole = source_->position_in_storage() < 0;
    held_.push_back(source_->storage()->buffer(is_whole ? b : source_->buffer_number(0)));
  }
  moved_ = execute_plan(*source_, sharding_, options_, local_plan());
}

CrossReshard::Place CrossReshard::place(const Part& part, Side side) const {
  const bool is_from = side == kFrom;
  const WorldPlaces& places = is_from ? from_ : to_;
  const int64_t number = is_from ? part.source : part.destination;
  const IndexDomain tile = (is_from ? from_domains_ : to_domains_).domain(at(places, number).tile);
  const Layout* layout = is_from ? source_->layout().get() : layout_.get();
  const int64_t mine = local(places, number);
  Place found{is_from ? held_[static_cast<size_t>(mine)] : moved_.storage->buffer(mine),
              buffer_strides(layout, tile.shape, itemsize_), client()->device(at(places, number).device)->lane()};
  for (int64_t d = 0; d < part.box.rank(); ++d) {
    found.memory.offset += (part.box.origin[d] - tile.origin[d]) * found.strides[d];
  }
  return found;
}

BufferRef CrossReshard::in_place(const Parts& parts, Side side) const {
  if (parts.size() != 1) return {};
  Place found = place(parts[0], side);
  return is_dense(parts[0].box.shape, found.strides, itemsize_) ? std::move(found.memory) : BufferRef();
}

void CrossReshard::pack(int64_t i, std::byte* packed) const {
  CopyBatch batch;
  for (const Part& part : send_parts_[static_cast<size_t>(i)]) {
    const Place from = place(part, kFrom);
    batch.add(StridedCopy(packed, row_major_strides(part.box.shape, itemsize_), from.memory.data(), from.strides,
                          part.box.shape, itemsize_),
              from.lane);
    packed += part.bytes;
  }
  batch.run();
}

void CrossReshard::unpack(int64_t i, const std::byte* packed) const {
  CopyBatch batch;
  for (const Part& part : receive_parts_[static_cast<size_t>(i)]) {
    const Place to = place(part, kTo);
    batch.add(StridedCopy(to.memory.data(), to.strides, packed, row_major_strides(part.box.shape, itemsize_),
                          part.box.shape, itemsize_),
              to.lane);
    packed += part.bytes;
  }
  batch.run();
}

ArrayRef CrossReshard::finish() {
  ArrayRef result = Array::make(source_->shape(), source_->dtype(), sharding_, std::move(moved_.storage),
                                std::move(moved_.ready), options_.committed, layout_);
  held_.clear();
  if (!client()->is_asynchronous()) result->block_until_ready();
  if (options_.donate) source_->donate();
  return result;
}

}  // namespace artifex_devices
