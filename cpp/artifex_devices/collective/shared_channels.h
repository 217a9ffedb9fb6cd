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

/// One end of a channel: a queue of equal slots from one process to another, in memory that both map, or in memory of
/// one process that sends or receives them as messages. One end writes, the other reads, without locks; each end counts
/// its slots in memory that the other only reads.
class ChannelWriter {
 public:
  bool has_room() const noexcept;
  std::byte* slot() const noexcept;  // the next slot to write
  void publish() noexcept;           // passes the written slot to the reader

 private:
  friend class SharedChannels;
  friend class MessageChannel;
  std::byte* slots_ = nullptr;
  uint64_t* written_ = nullptr;
  const uint64_t* read_ = nullptr;
  uint64_t count_ = 0;
  uint64_t slot_count_ = 1;
  int64_t slot_bytes_ = 0;
};

class ChannelReader {
 public:
  bool has_next() const noexcept;
  const std::byte* slot() const noexcept;  // the next slot to read
  void release() noexcept;                 // returns the slot to the writer

 private:
  friend class SharedChannels;
  friend class MessageChannel;
  const std::byte* slots_ = nullptr;
  const uint64_t* written_ = nullptr;
  uint64_t* read_ = nullptr;
  uint64_t count_ = 0;
  uint64_t slot_count_ = 1;
  int64_t slot_bytes_ = 0;
};

/// Pauses between two polls of another process; after the first ones every 16th pause yields the core.
void pause_polling(int64_t poll) noexcept;

/// Polls `done()` until it returns true or the timeout expires. Returns whether it returned true.
template <class Done>
bool poll_until(std::chrono::nanoseconds timeout, const Done& done) {
  if (done()) return true;
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (int64_t poll = 0;; ++poll) {
    pause_polling(poll);
    if (done()) return true;
    if (poll % 16 == 15 && std::chrono::steady_clock::now() >= until) return false;
  }
}

/// Memory between the processes of one host (peers, numbered from 0). Each process writes its own file and reads the
/// files of its peers. Each pair exchanges messages, in order and of at most `kMaxMessageBytes`, and a stream of large
/// pieces. Memory is used from the first message or piece on, at most about 4 MiB for a pair in each direction. For one
/// thread at a time.
class SharedChannels {
 public:
  static constexpr int64_t kMaxMessageBytes = 8000;
  static constexpr int64_t kPieceBytes = int64_t{256} << 10;

  /// Creates the memory file that one of `count` processes writes; the caller closes it. Throws OutOfMemory.
  static int create(int64_t count);

  /// Maps the files of all peers. The caller may close them afterwards. Throws InvalidArgument for a wrong number or
  /// file, OutOfMemory where mapping fails.
  SharedChannels(int64_t me, std::span<const int> files);
  ~SharedChannels();
  SharedChannels(const SharedChannels&) = delete;
  SharedChannels& operator=(const SharedChannels&) = delete;

  int64_t count() const noexcept { return static_cast<int64_t>(pairs_.size()); }

  /// Sends a message to each peer without waiting: messages that do not fit are sent by a later call. Throws
  /// InvalidArgument for messages that are too long and for unknown peers.
  void post(std::span<const int64_t> to, std::string_view message);
  /// Discards the next message of each peer.
  void skip(std::span<const int64_t> from);
  /// Waits until a message of each peer has arrived or the timeout expires. Returns whether they have arrived.
  bool wait(std::span<const int64_t> from, std::chrono::nanoseconds timeout);
  /// Returns the oldest message of a peer, which must have arrived, in shared memory: it is valid until `release`.
  std::string_view next(int64_t from);
  /// Returns the memory of the oldest message, which `next` has returned, to the peer.
  void release(int64_t from);
  /// Returns the oldest message of a peer, which must have arrived, and releases its memory.
  std::string take(int64_t from);

  ChannelWriter& stream_to(int64_t peer);
  ChannelReader& stream_from(int64_t peer);

 private:
  struct Mapping {
    std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  struct Pair {
    ChannelWriter messages_to, stream_to;
    ChannelReader messages_from, stream_from;
    std::deque<std::string> unsent;
    int64_t skipped = 0;  // messages still to be discarded
  };

  Pair& pair(int64_t peer);
  void flush(Pair& pair) noexcept;
  bool has_message(Pair& pair) noexcept;
  Mapping map(int file, int64_t offset, int64_t bytes, bool writable);
  void unmap() noexcept;

  int64_t me_;
  std::vector<Pair> pairs_;
  std::vector<Mapping> mappings_;
};

}  // namespace artifex_devices
