// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace artifex_devices {

/// One end of a lane: a queue of equal slots from one process to another, in memory that both map. One writes, the
/// other reads, nobody locks; each end counts what it has done where the other may only look.
class LaneWriter {
 public:
  bool has_room() const noexcept;
  std::byte* slot() const noexcept;  // the next one to write
  void publish() noexcept;           // what was written there is the reader's

 private:
  friend class SharedLanes;
  std::byte* slots_ = nullptr;
  uint64_t* written_ = nullptr;
  const uint64_t* read_ = nullptr;
  uint64_t count_ = 0;
  uint64_t slot_count_ = 1;
  int64_t slot_bytes_ = 0;
};

class LaneReader {
 public:
  bool has_next() const noexcept;
  const std::byte* slot() const noexcept;  // the next one to read
  void release() noexcept;                 // it is the writer's again

 private:
  friend class SharedLanes;
  const std::byte* slots_ = nullptr;
  const uint64_t* written_ = nullptr;
  uint64_t* read_ = nullptr;
  uint64_t count_ = 0;
  uint64_t slot_count_ = 1;
  int64_t slot_bytes_ = 0;
};

/// A moment between two looks at what another process does; after the first ones every 16th gives the core away.
void give_way(int64_t look) noexcept;

/// Looks again and again until `done()` or the patience is over; whether it was done.
template <class Done>
bool wait_awake(std::chrono::nanoseconds patience, const Done& done) {
  if (done()) return true;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (int64_t look = 0;; ++look) {
    give_way(look);
    if (done()) return true;
    if (look % 16 == 15 && std::chrono::steady_clock::now() >= until) return false;
  }
}

/// Memory between the processes of one host ("neighbours", numbered from 0): each writes its own and reads what the
/// others have for it. From each to each go letters, in order and of at most `kMostLetterBytes`, and a stream of big
/// pieces. Memory is used from the first letter or piece on, about 4 MiB for a pair in each direction at most.
/// For one thread at a time.
class SharedLanes {
 public:
  static constexpr int64_t kMostLetterBytes = 8000;
  static constexpr int64_t kPieceBytes = int64_t{256} << 10;

  /// A file in memory for what one of `count` processes writes; the caller closes it. Throws OutOfMemory.
  static int create(int64_t count);

  /// Maps the files of all neighbours, which may be closed afterwards. Throws InvalidArgument for a number or a file
  /// that does not fit, OutOfMemory where nothing can be mapped.
  SharedLanes(int64_t me, std::span<const int> files);
  ~SharedLanes();
  SharedLanes(const SharedLanes&) = delete;
  SharedLanes& operator=(const SharedLanes&) = delete;

  int64_t count() const noexcept { return static_cast<int64_t>(pairs_.size()); }

  /// Sends a letter to each; never waits: what finds no room goes with a later call. Throws InvalidArgument for
  /// letters that are too long and neighbours that there are not.
  void post(std::span<const int64_t> to, std::string_view letter);
  /// The next letter of each of them is for nobody.
  void skip(std::span<const int64_t> from);
  /// Whether a letter of each of them is here, at once or within the time given.
  bool wait(std::span<const int64_t> from, std::chrono::nanoseconds patience);
  /// The oldest letter of a neighbour, which must be here.
  std::string take(int64_t from);

  LaneWriter& stream_to(int64_t neighbour);
  LaneReader& stream_from(int64_t neighbour);

 private:
  struct Mapping {
    std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  struct Pair {
    LaneWriter letters_to, stream_to;
    LaneReader letters_from, stream_from;
    std::deque<std::string> unsent;
    int64_t skipped = 0;  // letters yet to come that are for nobody
  };

  Pair& pair(int64_t neighbour);
  void flush(Pair& pair) noexcept;
  bool has_letter(Pair& pair) noexcept;
  Mapping map(int file, int64_t offset, int64_t bytes, bool writable);
  void unmap() noexcept;

  int64_t me_;
  std::vector<Pair> pairs_;
  std::vector<Mapping> mappings_;
};

}  // namespace artifex_devices
