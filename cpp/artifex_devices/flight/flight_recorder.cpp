// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <system_error>

#include "artifex_devices/base/clock.h"
#include "artifex_devices/base/file.h"
#include "artifex_devices/flight/flight_format.h"

namespace artifex_devices {
namespace {

constexpr size_t kFileBytes = kFlightHeaderBytes + sizeof(FlightSlot) * kFlightEventsKept;

// Copies the beginning of a text, with zeros after it. Compilers inline a memset of constant size.
template <size_t N>
void write_start(char (&place)[N], std::string_view text) noexcept {
  std::memset(place, 0, N);
  if (!text.empty()) std::memcpy(place, text.data(), std::min(text.size(), N));
}

// Copies the text, or "..." and its end where it is longer than its place.
template <size_t N>
void write_end(char (&place)[N], std::string_view text) noexcept {
  constexpr std::string_view kDots = "...";
  if (text.size() <= N) return write_start(place, text);
  std::memcpy(place, kDots.data(), kDots.size());
  std::memcpy(place + kDots.size(), text.data() + text.size() - (N - kDots.size()), N - kDots.size());
}

// The offset of an event in the file.
size_t place_of(uint64_t number) noexcept {
  return static_cast<size_t>(kFlightHeaderBytes) + (number - 1) % kFlightEventsKept * sizeof(FlightSlot);
}

// A failed write is not reported: the program must not fail because of its record.
void write_part(int file, const void* data, size_t size, size_t offset) noexcept {
  const ssize_t written = ::pwrite(file, data, size, static_cast<off_t>(offset));
  static_cast<void>(written);
}

// Locks the new file for this process and allocates its storage: a full disk then loses no later event. Returns an
// errno, or 0. On a file system without locks, records work too: other jobs cannot lock the file either, and keep it.
int prepare(int file) noexcept {
  if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return EWOULDBLOCK;
  return ::posix_fallocate(file, 0, kFileBytes);
}

int create_file(const std::string& path) {
  constexpr mode_t kOwnerOnly = 0600;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  const int code = file < 0 ? errno : prepare(file);
  if (code == 0) return file;
  if (file >= 0) {
    ::close(file);
    ::unlink(path.c_str());
  }
  throw FileError(
      fmt::format("flight record: {}: cannot create the file: {}", path, std::generic_category().message(code)), code);
}

}  // namespace

FlightGroup::FlightGroup(const std::vector<int>& members) {
  constexpr uint32_t kBasis = 2166136261U;
  constexpr uint32_t kPrime = 16777619U;  // FNV-1a
  hash = kBasis;
  for (size_t i = 0; i < members.size();) {
    size_t last = i;
    while (last + 1 < members.size() && members[last + 1] == members[last] + 1) ++last;
    processes += processes.empty() ? "" : ",";
    processes += last == i ? fmt::format("{}", members[i]) : fmt::format("{}-{}", members[i], members[last]);
    for (; i <= last; ++i) hash = (hash ^ static_cast<uint32_t>(members[i])) * kPrime;
  }
}

FlightRecorder::FlightRecorder(const std::string& path, int process, int process_count, std::string_view host)
    : slots_(kFlightEventsKept) {
  FlightHeader head{};
  std::memcpy(head.magic, kFlightMagic, sizeof(kFlightMagic));
  head.version = kFlightVersion;
  head.capacity = kFlightEventsKept;
  head.process = static_cast<uint32_t>(process);
  head.process_count = static_cast<uint32_t>(process_count);
  head.pid = ::getpid();
  head.realtime_ns = clock_ns(CLOCK_REALTIME);
  head.monotonic_ns = clock_ns();
  write_start(head.host, host);
  file_ = create_file(path);
  write_part(file_, &head, sizeof(head), 0);
}

FlightRecorder::~FlightRecorder() { ::close(file_); }

FlightSlot& FlightRecorder::slot(uint64_t number) noexcept { return slots_[(number - 1) % kFlightEventsKept]; }

FlightDescription::FlightDescription(const FlightGroup* of, const FlightOperation& operation) noexcept
    : digest(operation.digest),
      line(static_cast<uint32_t>(operation.line)),
      group(of == nullptr ? 0 : of->hash),
      kind(of == nullptr ? FlightKind::kExchange : FlightKind::kMeeting),
      route(operation.route) {
  write_start(texts.processes, of == nullptr ? std::string_view() : of->processes);
  write_end(texts.file, operation.file);
  write_start(texts.operation, operation.text);
}

uint64_t FlightRecorder::begin(FlightGroup* group, const FlightDescription& description) noexcept {
  const std::lock_guard lock(mutex_);
  const uint64_t number = ++events_;
  FlightSlot& event = slot(number);
  event = {.number = number,
           .begin_ns = clock_.now_ns(),
           .end_ns = 0,
           .digest = description.digest,
           .bytes = 0,
           .turn = group == nullptr ? 0 : ++group->meetings,
           .line = description.line,
           .group = description.group,
           .kind = static_cast<uint8_t>(description.kind),
           .route = static_cast<uint8_t>(description.route),
           .outcome = static_cast<uint8_t>(FlightOutcome::kLasts),
           .unused = 0,
           .texts = description.texts};
  write_part(file_, &event, sizeof(event), place_of(number));
  return number;
}

void FlightRecorder::end(uint64_t number, FlightOutcome outcome, uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);  // between the check and the write, no event may take the slot
  FlightSlot& event = slot(number);
  if (number == 0 || event.number != number) return;
  event.bytes = bytes;
  event.outcome = static_cast<uint8_t>(outcome);
  event.end_ns = std::max(clock_.now_ns(), event.begin_ns);
  constexpr size_t kFirst = offsetof(FlightSlot, end_ns);
  constexpr size_t kLast = offsetof(FlightSlot, outcome) + sizeof(event.outcome);
  write_part(file_, reinterpret_cast<const std::byte*>(&event) + kFirst, kLast - kFirst, place_of(number) + kFirst);
}

void FlightRecorder::leave() noexcept {
  constexpr uint32_t kYes = 1;
  write_part(file_, &kYes, sizeof(kYes), offsetof(FlightHeader, has_left));
}

}  // namespace artifex_devices
