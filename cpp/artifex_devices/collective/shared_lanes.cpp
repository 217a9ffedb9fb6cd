// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/shared_lanes.h"

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

// What a process writes for one other: counters, then the slots of both lanes.
constexpr int64_t kLine = 64;  // counters lie a line apart: each is written by one process and watched by another
constexpr int64_t kHeadBytes = int64_t{64} << 10;  // the biggest page: sections are mapped one by one
constexpr int64_t kLetterSlotBytes = 8192;
constexpr int64_t kLetterSlots = 8;
constexpr int64_t kPieces = 16;
constexpr int64_t kSectionBytes = kHeadBytes + kLetterSlotBytes * kLetterSlots + SharedLanes::kPieceBytes * kPieces;
enum Counter : int64_t { kLettersWritten, kStreamWritten, kLettersRead, kStreamRead };

static_assert(SharedLanes::kMostLetterBytes + static_cast<int64_t>(sizeof(uint32_t)) <= kLetterSlotBytes);

// So long a process does not give its core away, some 10 us: mostly the others are as far as it is.
constexpr int64_t kEagerLooks = 512;

uint64_t* counter(std::byte* section, Counter which) { return reinterpret_cast<uint64_t*>(section + kLine * which); }

const uint64_t* counter(const std::byte* section, Counter which) {
  return reinterpret_cast<const uint64_t*>(section + kLine * which);
}

// std::atomic_ref takes no memory that may only be read.
uint64_t load(const uint64_t* counter) noexcept { return __atomic_load_n(counter, __ATOMIC_ACQUIRE); }

void store(uint64_t* counter, uint64_t value) noexcept { __atomic_store_n(counter, value, __ATOMIC_RELEASE); }

}  // namespace

void give_way(int64_t look) noexcept {
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

bool LaneWriter::has_room() const noexcept { return count_ - load(read_) < slot_count_; }

std::byte* LaneWriter::slot() const noexcept {
  return slots_ + static_cast<int64_t>(count_ % slot_count_) * slot_bytes_;
}

void LaneWriter::publish() noexcept { store(written_, ++count_); }

bool LaneReader::has_next() const noexcept { return load(written_) > count_; }

const std::byte* LaneReader::slot() const noexcept {
  return slots_ + static_cast<int64_t>(count_ % slot_count_) * slot_bytes_;
}

void LaneReader::release() noexcept { store(read_, ++count_); }

int SharedLanes::create(int64_t count) {
  const int file = memfd_create("artifex_devices", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Nobody can cut it off under a reader afterwards, who would die of it.
  if (file >= 0 && ftruncate(file, kSectionBytes * count) == 0 &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    return file;
  }
  const int error = errno;
  if (file >= 0) close(file);
  throw_error<OutOfMemory>(
      "shared_lanes: the system gives no memory to share ({}); expected {} bytes of it; raise the limits",
      std::strerror(error), kSectionBytes * count);
}

SharedLanes::SharedLanes(int64_t me, std::span<const int> files) : me_(me), pairs_(files.size()) {
  if (me < 0 || me >= count()) throw_error("shared_lanes: there is no neighbour {}; expected 0 to {}", me, count() - 1);
  try {
    for (int64_t i = 0; i < count(); ++i) {
      if (i == me) continue;
      std::byte* mine = map(files[static_cast<size_t>(me)], i * kSectionBytes, kSectionBytes, true).data;
      const std::byte* theirs = map(files[static_cast<size_t>(i)], me * kSectionBytes, kSectionBytes, false).data;
      Pair& pair = pairs_[static_cast<size_t>(i)];
      const auto join = [&](LaneWriter& to, LaneReader& from, int64_t start, Counter written, Counter read,
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
      join(pair.letters_to, pair.letters_from, kHeadBytes, kLettersWritten, kLettersRead, kLetterSlotBytes,
           kLetterSlots);
      join(pair.stream_to, pair.stream_from, kHeadBytes + kLetterSlotBytes * kLetterSlots, kStreamWritten, kStreamRead,
           kPieceBytes, kPieces);
    }
  } catch (...) {
    unmap();
    throw;
  }
}

SharedLanes::~SharedLanes() { unmap(); }

void SharedLanes::post(std::span<const int64_t> to, std::string_view letter) {
  if (static_cast<int64_t>(letter.size()) > kMostLetterBytes) {
    throw_error("shared_lanes: a letter of {} bytes is too long; expected at most {}", letter.size(), kMostLetterBytes);
  }
  for (const int64_t neighbour : to) pair(neighbour);
  size_t kept = 0;  // all of them get it, or none
  try {
    for (; kept < to.size(); ++kept) pair(to[kept]).unsent.emplace_back(letter);
  } catch (...) {
    while (kept > 0) pair(to[--kept]).unsent.pop_back();
    throw;
  }
  for (const int64_t neighbour : to) flush(pair(neighbour));
}

void SharedLanes::skip(std::span<const int64_t> from) {
  for (const int64_t neighbour : from) ++pair(neighbour).skipped;
}

bool SharedLanes::wait(std::span<const int64_t> from, std::chrono::nanoseconds patience) {
  for (Pair& other : pairs_) flush(other);
  size_t here = 0;  // of the first ones letters are here
  return wait_awake(patience, [&] {
    while (here < from.size() && has_letter(pair(from[here]))) ++here;
    if (here == from.size()) return true;
    for (Pair& other : pairs_) flush(other);
    return false;
  });
}

std::string SharedLanes::take(int64_t from) {
  Pair& other = pair(from);
  if (!has_letter(other)) throw_error("shared_lanes: there is no letter of neighbour {}; wait for one first", from);
  const std::byte* slot = other.letters_from.slot();
  uint32_t bytes = 0;
  std::memcpy(&bytes, slot, sizeof bytes);
  std::string letter(reinterpret_cast<const char*>(slot) + sizeof bytes,
                     std::min<size_t>(bytes, static_cast<size_t>(kMostLetterBytes)));
  other.letters_from.release();
  return letter;
}

LaneWriter& SharedLanes::stream_to(int64_t neighbour) { return pair(neighbour).stream_to; }

LaneReader& SharedLanes::stream_from(int64_t neighbour) { return pair(neighbour).stream_from; }

SharedLanes::Pair& SharedLanes::pair(int64_t neighbour) {
  if (neighbour < 0 || neighbour >= count() || neighbour == me_) {
    throw_error<IndexOutOfRange>("shared_lanes: there is no neighbour {} of {}; expected another one of 0 to {}",
                                 neighbour, me_, count() - 1);
  }
  return pairs_[static_cast<size_t>(neighbour)];
}

void SharedLanes::flush(Pair& pair) noexcept {
  while (!pair.unsent.empty() && pair.letters_to.has_room()) {
    const std::string& letter = pair.unsent.front();
    std::byte* slot = pair.letters_to.slot();
    const auto bytes = static_cast<uint32_t>(letter.size());
    std::memcpy(slot, &bytes, sizeof bytes);
    std::memcpy(slot + sizeof bytes, letter.data(), letter.size());
    pair.letters_to.publish();
    pair.unsent.pop_front();
  }
}

bool SharedLanes::has_letter(Pair& pair) noexcept {
  for (; pair.skipped > 0 && pair.letters_from.has_next(); --pair.skipped) pair.letters_from.release();
  return pair.skipped == 0 && pair.letters_from.has_next();
}

SharedLanes::Mapping SharedLanes::map(int file, int64_t offset, int64_t bytes, bool writable) {
  struct stat told{};
  if (fstat(file, &told) != 0 || told.st_size != kSectionBytes * count()) {
    throw_error("shared_lanes: file {} is not of {} neighbours; expected one that create() has made", file, count());
  }
  mappings_.reserve(mappings_.size() + 1);  // so that what is mapped is kept
  void* data = mmap(nullptr, static_cast<size_t>(bytes), writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                    file, offset);
  if (data == MAP_FAILED) {
    throw_error<OutOfMemory>(
        "shared_lanes: {} bytes cannot be mapped ({}); expected addresses for them; raise the limits", bytes,
        std::strerror(errno));
  }
  mappings_.push_back({static_cast<std::byte*>(data), bytes});
  return mappings_.back();
}

void SharedLanes::unmap() noexcept {
  for (const Mapping& mapping : mappings_) munmap(mapping.data, static_cast<size_t>(mapping.bytes));
  mappings_.clear();
}

}  // namespace artifex_devices
