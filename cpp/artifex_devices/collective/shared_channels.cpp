// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/shared_channels.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

// The memory that a process writes for one peer: counters, then the slots of both channels.
constexpr int64_t kLine = 64;  // counters are a cache line apart: each is written by one process and polled by another
constexpr int64_t kHeadBytes = int64_t{64} << 10;  // the biggest page: sections are mapped one by one
constexpr int64_t kMessageSlotBytes = 8192;
constexpr int64_t kMessageSlots = 8;
constexpr int64_t kPieces = 16;
constexpr int64_t kSectionBytes =
    kHeadBytes + kMessageSlotBytes * kMessageSlots + SharedChannels::kPieceBytes * kPieces;
enum Counter : int64_t { kMessagesWritten, kStreamWritten, kMessagesRead, kStreamRead };

static_assert(SharedChannels::kMaxMessageBytes + static_cast<int64_t>(sizeof(uint32_t)) <= kMessageSlotBytes);

// A process polls for about 10 us before it yields its core: the other processes usually arrive at about the same time.
constexpr int64_t kEagerLooks = 512;

uint64_t* counter(std::byte* section, Counter which) { return reinterpret_cast<uint64_t*>(section + kLine * which); }

const uint64_t* counter(const std::byte* section, Counter which) {
  return reinterpret_cast<const uint64_t*>(section + kLine * which);
}

// std::atomic_ref takes no memory that may only be read.
uint64_t load(const uint64_t* counter) noexcept { return __atomic_load_n(counter, __ATOMIC_ACQUIRE); }

void store(uint64_t* counter, uint64_t value) noexcept { __atomic_store_n(counter, value, __ATOMIC_RELEASE); }

}  // namespace

void pause_polling(int64_t look) noexcept {
  if (look >= kEagerLooks && look % 16 == 15) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool ChannelWriter::has_room() const noexcept { return count_ - load(read_) < slot_count_; }

std::byte* ChannelWriter::slot() const noexcept {
  return slots_ + static_cast<int64_t>(count_ % slot_count_) * slot_bytes_;
}

void ChannelWriter::publish() noexcept { store(written_, ++count_); }

bool ChannelReader::has_next() const noexcept { return load(written_) > count_; }

const std::byte* ChannelReader::slot() const noexcept {
  return slots_ + static_cast<int64_t>(count_ % slot_count_) * slot_bytes_;
}

void ChannelReader::release() noexcept { store(read_, ++count_); }

int SharedChannels::create(int64_t count) {
  const int file = memfd_create("artifex_devices", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Sealed: no process can truncate it later, which would kill its readers.
  if (file >= 0 && ftruncate(file, kSectionBytes * count) == 0 &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    return file;
  }
  const int error = errno;
  if (file >= 0) close(file);
  throw_error<OutOfMemory>(
      "shared_channels: the system gives no memory to share ({}); expected {} bytes of it; raise the limits",
      std::strerror(error), kSectionBytes * count);
}

SharedChannels::SharedChannels(int64_t me, std::span<const int> files) : me_(me), pairs_(files.size()) {
  if (me < 0 || me >= count()) throw_error("shared_channels: there is no peer {}; expected 0 to {}", me, count() - 1);
  try {
    for (int64_t i = 0; i < count(); ++i) {
      if (i == me) continue;
      std::byte* mine = map(files[me], i * kSectionBytes, kSectionBytes, true).data;
      const std::byte* theirs = map(files[i], me * kSectionBytes, kSectionBytes, false).data;
      Pair& pair = pairs_[i];
      const auto join = [&](ChannelWriter& to, ChannelReader& from, int64_t start, Counter written, Counter read,
                            int64_t slot_bytes, int64_t slots) {
        to.slots_ = mine + start;
        to.written_ = counter(mine, written);
        to.read_ = counter(theirs, read);
        from.slots_ = theirs + start;
        from.written_ = counter(theirs, written);
        from.read_ = counter(mine, read);
        to.slot_bytes_ = from.slot_bytes_ = slot_bytes;
        to.slot_count_ = from.slot_count_ = static_cast<uint64_t>(slots);
      };
      join(pair.messages_to, pair.messages_from, kHeadBytes, kMessagesWritten, kMessagesRead, kMessageSlotBytes,
           kMessageSlots);
      join(pair.stream_to, pair.stream_from, kHeadBytes + kMessageSlotBytes * kMessageSlots, kStreamWritten,
           kStreamRead, kPieceBytes, kPieces);
    }
  } catch (...) {
    unmap();
    throw;
  }
}

SharedChannels::~SharedChannels() { unmap(); }

void SharedChannels::post(std::span<const int64_t> to, std::string_view message) {
  if (static_cast<int64_t>(message.size()) > kMaxMessageBytes) {
    throw_error("shared_channels: a message of {} bytes is too long; expected at most {}", message.size(),
                kMaxMessageBytes);
  }
  for (const int64_t peer : to) pair(peer);
  size_t kept = 0;  // all receivers get it, or none
  try {
    for (; kept < to.size(); ++kept) pair(to[kept]).unsent.emplace_back(message);
  } catch (...) {
    while (kept > 0) pair(to[--kept]).unsent.pop_back();
    throw;
  }
  for (const int64_t peer : to) flush(pair(peer));
}

void SharedChannels::skip(std::span<const int64_t> from) {
  for (const int64_t peer : from) ++pair(peer).skipped;
}

bool SharedChannels::wait(std::span<const int64_t> from, std::chrono::nanoseconds timeout) {
  for (Pair& other : pairs_) flush(other);
  size_t here = 0;  // of the first ones messages are here
  return poll_until(timeout, [&] {
    while (here < from.size() && has_message(pair(from[here]))) ++here;
    if (here == from.size()) return true;
    for (Pair& other : pairs_) flush(other);
    return false;
  });
}

std::string_view SharedChannels::next(int64_t from) {
  Pair& other = pair(from);
  if (!has_message(other)) throw_error("shared_channels: no message of peer {} has arrived; wait for it first", from);
  const std::byte* slot = other.messages_from.slot();
  uint32_t bytes = 0;
  std::memcpy(&bytes, slot, sizeof bytes);
  return {reinterpret_cast<const char*>(slot) + sizeof bytes,
          std::min<size_t>(bytes, static_cast<size_t>(kMaxMessageBytes))};
}

void SharedChannels::release(int64_t from) { pair(from).messages_from.release(); }

std::string SharedChannels::take(int64_t from) {
  std::string message(next(from));
  release(from);
  return message;
}

ChannelWriter& SharedChannels::stream_to(int64_t peer) { return pair(peer).stream_to; }

ChannelReader& SharedChannels::stream_from(int64_t peer) { return pair(peer).stream_from; }

SharedChannels::Pair& SharedChannels::pair(int64_t peer) {
  if (peer < 0 || peer >= count() || peer == me_) {
    throw_error<IndexOutOfRange>("shared_channels: there is no peer {} of {}; expected another process of 0 to {}",
                                 peer, me_, count() - 1);
  }
  return pairs_[peer];
}

void SharedChannels::flush(Pair& pair) noexcept {
  while (!pair.unsent.empty() && pair.messages_to.has_room()) {
    const std::string& message = pair.unsent.front();
    std::byte* slot = pair.messages_to.slot();
    const auto bytes = static_cast<uint32_t>(message.size());
    std::memcpy(slot, &bytes, sizeof bytes);
    std::memcpy(slot + sizeof bytes, message.data(), message.size());
    pair.messages_to.publish();
    pair.unsent.pop_front();
  }
}

bool SharedChannels::has_message(Pair& pair) noexcept {
  for (; pair.skipped > 0 && pair.messages_from.has_next(); --pair.skipped) pair.messages_from.release();
  return pair.skipped == 0 && pair.messages_from.has_next();
}

SharedChannels::Mapping SharedChannels::map(int file, int64_t offset, int64_t bytes, bool writable) {
  struct stat status{};
  if (fstat(file, &status) != 0 || status.st_size != kSectionBytes * count()) {
    throw_error("shared_channels: file {} is not of {} processes; expected a file of create()", file, count());
  }
  mappings_.reserve(mappings_.size() + 1);  // before mapping: recording it must not fail
  void* data = mmap(nullptr, static_cast<size_t>(bytes), writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                    file, offset);
  if (data == MAP_FAILED) {
    throw_error<OutOfMemory>(
        "shared_channels: {} bytes cannot be mapped ({}); expected addresses for them; raise the limits", bytes,
        std::strerror(errno));
  }
  mappings_.push_back({static_cast<std::byte*>(data), bytes});
  return mappings_.back();
}

void SharedChannels::unmap() noexcept {
  for (const Mapping& mapping : mappings_) munmap(mapping.data, static_cast<size_t>(mapping.bytes));
  mappings_.clear();
}

}  // namespace artifex_devices
