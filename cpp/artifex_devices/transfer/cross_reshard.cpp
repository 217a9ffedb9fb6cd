// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/cross_reshard.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/transfer/copy_chain.h"
#include "artifex_devices/transfer/planned_copies.h"
#include "artifex_devices/transfer/recorded_transfer.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kCrossOperation = "device_put";

/// Cuts a box into boxes of at most `most` bytes that follow each other in row-major order: along its first dimensions,
/// never within a row of the last dimension that must be cut.
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
  for (const Device* device : devices.devices()) ids.push_back(device->id().number());
  return fmt::format("{}", fmt::join(ids, ","));
}

}  // namespace

CrossReshard::CrossReshard(ArrayRef source, ShardingRef sharding, const ReshardOptions& options)
    : source_(std::move(source)),
      sharding_(std::move(sharding)),
      options_(options),
      layout_(options.layout.value_or(source_->layout())),
      itemsize_(artifex_devices::itemsize(source_->dtype())),
      from_domains_(source_->sharding()->domains(source_->shape(), kCrossOperation)),
      to_domains_(sharding_->domains(source_->shape(), kCrossOperation)),
      from_(*source_->sharding()),
      to_(*sharding_) {
  source_->check_alive(kCrossOperation);
  const int64_t count = client()->process_count();
  plan_ = make_plan(*source_, *sharding_, from_, to_, copies_all(*source_, *sharding_, options_));
  buffers_of_ = IdVector<ProcessIndex, std::vector<PlaceId>>(count);
  for (const PlaceId i : to_.places.ids()) buffers_of_[to_.places[i].process].push_back(i);
  find_processes();
  cuts_of_ = IdVector<ProcessIndex, CutRange>(count);
  for (const ProcessIndex process : processes_) cuts_of_[process] = plan_->cuts_of_process(process);
  find_owners();
  const ProcessIndex own = client()->process_index();
  const auto takes_part = [&](ProcessIndex process) { return std::ranges::binary_search(processes_, process); };
  for (int64_t distance = 1; distance < count; ++distance) {
    const ProcessIndex receiver((own.number() + distance) % count);
    const ProcessIndex sender((own.number() - distance + count) % count);
    if (takes_part(receiver)) split(own, receiver);
    if (takes_part(sender)) split(sender, own);
  }
}

void CrossReshard::find_processes() {
  // Ends when every process that has any buffer is known to take part, as it mostly is after a few buffers.
  IdVector<ProcessIndex, bool> is_open(client()->process_count());
  for (const WorldPlaces* places : {&from_, &to_}) {
    for (const BufferPlace& place : places->places) is_open[place.process] = true;
  }
  int64_t open = std::ranges::count(is_open, true);
  const auto add = [&](ProcessIndex process) {
    if (!is_open[process]) return;
    is_open[process] = false;
    processes_.push_back(process);
    --open;
  };
  for (const PlaceId i : to_.places.ids()) {
    if (open == 0) break;
    for (ReshardRuns runs(*plan_, i); open > 0 && runs.next();) {
      const ReshardRun& run = runs.run();
      for (int64_t k = 0; k < run.count; ++k) {
        const ProcessIndex sender = from_.places[plan_->source_of(run.tile + k * run.tile_step, i)].process;
        if (sender == to_.places[i].process) continue;
        add(sender);
        add(to_.places[i].process);
      }
    }
  }
  std::ranges::sort(processes_);
}

void CrossReshard::find_owners() {
  constexpr ProcessIndex kNone;
  constexpr ProcessIndex kSeveral(-2);
  IdVector<TileId, ProcessIndex> owners(from_domains_.grid().tiles(), kNone);
  for (const BufferPlace& place : from_.places) {
    ProcessIndex& owner = owners[place.tile];
    owner = owner == kNone || owner == place.process ? place.process : kSeveral;
  }
  IdVector<ProcessIndex, int64_t> owned(cuts_of_.size());
  for (const ProcessIndex owner : owners) {
    if (!owner.is_none()) ++owned[owner];
  }
  holds_its_cuts_ = IdVector<ProcessIndex, bool>(cuts_of_.size());
  for (const ProcessIndex process : processes_) {
    const CutRange& cuts = cuts_of_[process];
    int64_t tiles = 1;
    for (int64_t d = 0; d < cuts.first.size(); ++d) tiles *= std::max<int64_t>(0, cuts.last[d] - cuts.first[d] + 1);
    holds_its_cuts_[process] = owned[process] == tiles;
  }
}

template <class F>
void CrossReshard::for_boxes(const MessageBoxes& message, F&& f) const {
  int64_t skipped = message.skipped;
  int64_t left = message.count < 0 ? INT64_MAX : message.count;
  const std::vector<PlaceId>& buffers = buffers_of_[message.receiver];
  const bool all_are_sent = holds_its_cuts_[message.sender];
  std::vector<IndexDomain> pieces;
  for (size_t b = message.first; b < buffers.size() && left > 0; ++b) {
    const auto is_sent = [&](TileId tile) {
      return from_.places[plan_->source_of(tile, buffers[b])].process == message.sender;
    };
    // Calls f for consecutive entries, without those to be left out.
    const auto emit = [&](BoxSequence boxes, int64_t count) {
      const int64_t out = std::min(skipped, count);
      skipped -= out;
      boxes.count = std::min(count - out, left);
      left -= boxes.count;
      boxes.tile = boxes.tile + out * boxes.tile_step;
      if (out > 0) boxes.box.origin[boxes.dimension] += out * boxes.box.shape[boxes.dimension];
      if (boxes.count > 0) f(std::as_const(boxes), b);
    };
    for (ReshardRuns runs(*plan_, buffers[b], &cuts_of_[message.sender]); left > 0 && runs.next();) {
      const ReshardRun& run = runs.run();
      for (int64_t i = 0, end = 0; i < run.count; i = end + 1) {
        end = all_are_sent ? run.count : i;
        while (end < run.count && is_sent(run.tile + end * run.tile_step)) ++end;
        if (end == i) continue;
        BoxSequence boxes{
            run.tile + i * run.tile_step, run.tile_step, buffers[b], run.dimension, run.box, run.bytes, 1};
        if (i > 0) boxes.box.origin[run.dimension] += i * run.box.shape[run.dimension];
        if (run.bytes <= kMessageBytes) {
          emit(std::move(boxes), end - i);
          continue;
        }
        for (int64_t k = i; k < end; ++k) {
          pieces.clear();
          cut(boxes.box, itemsize_, kMessageBytes, &pieces);
          for (IndexDomain& piece : pieces) {
            BoxSequence one = boxes;
            one.bytes = piece.volume() * itemsize_;
            one.box = std::move(piece);
            emit(std::move(one), 1);
          }
          boxes.tile = boxes.tile + run.tile_step;
          if (k + 1 < end) boxes.box.origin[run.dimension] += run.box.shape[run.dimension];
        }
      }
    }
  }
}

/// Plans the messages from one process to another; one of the two is this process.
void CrossReshard::split(ProcessIndex sender, ProcessIndex receiver) {
  const bool is_send = sender == client()->process_index();
  std::vector<Message>& messages = is_send ? sends_ : receives_;
  std::vector<MessageBoxes>& all = is_send ? send_boxes_ : receive_boxes_;
  bool is_open = false;
  size_t buffer = 0;
  int64_t number = 0;  // of the next box among those into its buffer
  for_boxes({sender, receiver, 0, 0, -1}, [&](const BoxSequence& boxes, size_t b) {
    number = b == buffer ? number : 0;
    buffer = b;
    for (int64_t left = boxes.count; left > 0;) {
      int64_t taken = is_open ? std::min(left, (kMessageBytes - messages.back().bytes) / boxes.bytes) : 0;
      if (taken == 0) {
        messages.push_back({is_send ? receiver : sender, 0});
        all.push_back({sender, receiver, b, number, 0});
        is_open = true;
        taken = std::clamp<int64_t>(kMessageBytes / boxes.bytes, 1, left);
      }
      messages.back().bytes += taken * boxes.bytes;
      all.back().count += taken;
      number += taken;
      left -= taken;
    }
  });
}

std::string CrossReshard::text() const {
  return fmt::format("{} of {}{} from {} to {}", kCrossOperation, name(source_->dtype()), to_string(source_->shape()),
                     source_->sharding()->to_string(), sharding_->to_string());
}

std::string CrossReshard::identity() const {
  return fmt::format("{}|{}|{}|{}|{}|{}", text(), ids_of(*source_->sharding()->devices()),
                     ids_of(*sharding_->devices()), source_->layout() ? source_->layout()->to_string() : "",
                     layout_ ? layout_->to_string() : "", kMessageBytes);
}

void CrossReshard::begin() {
  begin_ns_ = recorded_begin_ns(Recorded::kTransfers);
  source_->block_until_ready();
  for (const BufferId b : source_->sharding()->buffers().ids()) {
    held_.push_back(source_->storage()->buffer(source_->is_shard() ? source_->buffer_at(Position(0)) : b));
  }
  only_buffer_ = IdVector<TileId, std::byte*>(from_domains_.grid().tiles());
  IdVector<TileId, bool> is_known(only_buffer_.size());
  for (const PlaceId i : from_.places.ids()) {
    const TileId tile = from_.places[i].tile;
    const BufferId mine = from_.local_buffers[i];
    only_buffer_[tile] = !mine.is_none() && !is_known[tile] ? held_[mine].device_data() : nullptr;
    is_known[tile] = true;
  }
  moved_ = execute_plan(*source_, sharding_, options_, plan_, from_, to_);
}

CrossReshard::Place CrossReshard::place(const BoxSequence& boxes, Side side) const {
  const bool is_from = side == kFrom;
  const WorldPlaces& places = is_from ? from_ : to_;
  const PlaceId number = is_from ? plan_->source_of(boxes.tile, boxes.destination) : boxes.destination;
  const IndexDomain tile = (is_from ? from_domains_ : to_domains_).domain(places.places[number].tile);
  const Layout* layout = is_from ? source_->layout().get() : layout_.get();
  const BufferId mine = places.local_buffers[number];
  Place found{is_from ? held_[mine] : moved_.storage->buffer(mine), buffer_strides(layout, tile.shape, itemsize_),
              client()->device(places.places[number].device)->lane()};
  for (int64_t d = 0; d < boxes.box.rank(); ++d) {
    found.memory.offset += (boxes.box.origin[d] - tile.origin[d]) * found.strides[d];
  }
  return found;
}

BufferRef CrossReshard::in_place(const MessageBoxes& message, Side side) const {
  if (message.count != 1) return {};
  BufferRef found;
  for_boxes(message, [&](const BoxSequence& boxes, size_t) {
    Place at_side = place(boxes, side);
    const bool is_readable = at_side.memory.block->is_host_readable();
    if (is_readable && is_dense(boxes.box.shape, at_side.strides, itemsize_)) found = std::move(at_side.memory);
  });
  return found;
}

template <class Sink>
void CrossReshard::copy(const MessageBoxes& message, Side side, std::byte* packed, Sink&& sink) const {
  for_boxes(message, [&](const BoxSequence& boxes, size_t) {
    const Place first = place(boxes, side);
    const Dims dense = row_major_strides(boxes.box.shape, itemsize_);
    if (side == kTo) {  // in one tile of the destination
      sink.begin({boxes.box.shape, first.strides, dense, itemsize_, 0, first.lane});
      const int64_t step = boxes.count > 1 ? boxes.box.shape[boxes.dimension] * first.strides[boxes.dimension] : 0;
      sink.add(BoxRun{first.memory.device_data(), packed, boxes.count, step, boxes.bytes});
      packed += boxes.count * boxes.bytes;
      return;
    }
    sink.begin({boxes.box.shape, dense, first.strides, itemsize_, 0, first.lane});
    const auto start = [&](int64_t i) {
      const TileId tile = boxes.tile + i * boxes.tile_step;
      if (std::byte* const only = only_buffer_[tile]) return only;
      return held_[from_.local_buffers[plan_->source_of(tile, boxes.destination)]].device_data();
    };
    const int64_t offset = first.memory.device_data() - start(0);  // the same in each tile
    for (int64_t i = 0; i < boxes.count; ++i, packed += boxes.bytes) sink.add(packed, start(i) + offset);
  });
}

void CrossReshard::copy(const MessageBoxes& message, Side side, std::byte* packed) const {
  // A message of many boxes has small ones: to list them would take longer than to copy them.
  if (client()->copy_engine() == nullptr &&
      message.count > PlannedCopies::most_listed.load(std::memory_order_relaxed) / 32) {
    CopyChain chain;
    copy(message, side, packed, chain);
    return chain.flush();
  }
  CopyBatch batch;
  copy(message, side, packed, CopyLister(&batch));
  client()->executor().run(batch);
}

void CrossReshard::pack(int64_t i, std::byte* packed) const { copy(send_boxes_[i], kFrom, packed); }

void CrossReshard::unpack(int64_t i, const std::byte* packed) const {
  copy(receive_boxes_[i], kTo, const_cast<std::byte*>(packed));  // only read on this way
}

ArrayRef CrossReshard::finish() {
  if (is_recorded(Recorded::kTransfers)) {
    TransferRun run{begin_ns_, moved_.bytes, moved_.ready};
    for (const Message& message : receives_) run.bytes += message.bytes;
    record_reshard(*plan_, *source_->sharding(), *sharding_, run);
  }
  ArrayRef result = Array::make(source_->shape(), source_->dtype(), sharding_, std::move(moved_.storage),
                                std::move(moved_.ready), options_.committed, layout_);
  held_.clear();
  only_buffer_.clear();
  if (options_.donate) source_->donate();
  return result;
}

}  // namespace artifex_devices
