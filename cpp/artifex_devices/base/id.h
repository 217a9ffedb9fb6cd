// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace artifex_devices {

/// The number of one thing of a kind, such as a buffer or a position of a mesh, which is not mistaken for the number of
/// another kind. `Tag` is declared in place: using TileId = Id<struct TileTag>. Compiles to a plain integer.
template <class Tag>
class Id {
 public:
  constexpr Id() noexcept = default;  // none
  constexpr explicit Id(int64_t number) noexcept : number_(number) {}

  constexpr int64_t number() const noexcept { return number_; }
  constexpr bool is_none() const noexcept { return number_ < 0; }

  constexpr Id& operator++() noexcept {
    ++number_;
    return *this;
  }
  constexpr Id operator++(int) noexcept { return Id(number_++); }
  friend constexpr Id operator+(Id id, int64_t distance) noexcept { return Id(id.number_ + distance); }
  friend constexpr auto operator<=>(Id, Id) noexcept = default;

 private:
  int64_t number_ = -1;
};

/// The ids from 0 to below a count: for (const TileId tile : IdRange<TileId>(grid.tiles())).
template <class I>
class IdRange {
 public:
  constexpr explicit IdRange(int64_t count) noexcept : end_(count) {}

  class Iterator {
   public:
    using value_type = I;
    using difference_type = std::ptrdiff_t;
    constexpr Iterator() noexcept = default;
    constexpr explicit Iterator(I id) noexcept : id_(id) {}
    constexpr I operator*() const noexcept { return id_; }
    constexpr Iterator& operator++() noexcept {
      ++id_;
      return *this;
    }
    constexpr Iterator operator++(int) noexcept { return Iterator(id_++); }
    friend constexpr bool operator==(Iterator, Iterator) noexcept = default;

   private:
    I id_;
  };
  constexpr Iterator begin() const noexcept { return Iterator(I(0)); }
  constexpr Iterator end() const noexcept { return Iterator(I(end_)); }

 private:
  int64_t end_;
};

/// A vector that is indexed by ids of one kind.
template <class I, class T>
class IdVector {
 public:
  using Values = std::vector<T>;
  using value_type = T;

  IdVector() = default;
  explicit IdVector(int64_t count, const T& value = T()) : values_(static_cast<size_t>(count), value) {}
  explicit IdVector(Values values) noexcept : values_(std::move(values)) {}

  int64_t size() const noexcept { return static_cast<int64_t>(values_.size()); }
  bool empty() const noexcept { return values_.empty(); }
  IdRange<I> ids() const noexcept { return IdRange<I>(size()); }
  typename Values::reference operator[](I id) noexcept { return values_[static_cast<size_t>(id.number())]; }
  typename Values::const_reference operator[](I id) const noexcept { return values_[static_cast<size_t>(id.number())]; }
  typename Values::const_reference front() const noexcept { return values_.front(); }

  auto begin() noexcept { return values_.begin(); }
  auto end() noexcept { return values_.end(); }
  auto begin() const noexcept { return values_.begin(); }
  auto end() const noexcept { return values_.end(); }

  void reserve(int64_t count) { values_.reserve(static_cast<size_t>(count)); }
  void assign(int64_t count, const T& value) { values_.assign(static_cast<size_t>(count), value); }
  void push_back(T value) { values_.push_back(std::move(value)); }
  void clear() noexcept { values_.clear(); }
  /// The values in the order of their ids.
  const Values& values() const noexcept { return values_; }

  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  Values values_;
};

/// The numbers of ids, for text and for Python.
template <class I>
std::vector<int64_t> numbers(const std::vector<I>& ids) {
  std::vector<int64_t> result;
  result.reserve(ids.size());
  for (const I id : ids) result.push_back(id.number());
  return result;
}

/// A device of a client, as `Device::id` numbers them.
using DeviceId = Id<struct DeviceTag>;
/// A place in the order of a sharding's devices.
using Position = Id<struct PositionTag>;
/// A part of a sharded array, counted in row-major order.
using TileId = Id<struct TileTag>;
/// A distinct buffer of a sharding in this process.
using BufferId = Id<struct BufferTag>;
/// A distinct buffer of a sharding in all processes, as numbered by the plan of a reshard: once for the source, once
/// for the destination.
using PlaceId = Id<struct PlaceTag>;
/// A memory of a client's devices, counted over all processes.
using ArenaIndex = Id<struct ArenaTag>;
/// A process of a job, as `Device::process_index` numbers them.
using ProcessIndex = Id<struct ProcessTag>;
/// A participant of a program over a mesh.
using ParticipantId = Id<struct ParticipantTag>;
/// A set of participants that run collectives together, numbered in one rendezvous.
using GroupId = Id<struct GroupTag>;
/// A member of a group, in the order of its collective.
using MemberIndex = Id<struct MemberTag>;
/// A participant that this process runs, numbered in this process.
using SlotId = Id<struct SlotTag>;
/// A fiber of a scheduler.
using FiberId = Id<struct FiberTag>;
/// A lane of the worker pool.
using LaneId = Id<struct LaneTag>;

}  // namespace artifex_devices

template <class Tag>
struct std::hash<artifex_devices::Id<Tag>> {
  size_t operator()(artifex_devices::Id<Tag> id) const noexcept { return std::hash<int64_t>()(id.number()); }
};
