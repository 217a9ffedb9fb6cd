// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <span>
#include <system_error>

#include "artifex_devices/base/file.h"
#include "artifex_devices/flight/flight_format.h"

namespace artifex_devices {
namespace {

constexpr size_t kFileBytes = kFlightHeaderBytes + sizeof(FlightSlot) * kFlightEventsKept;

int64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Copies the beginning of a text, with zeros after it.
void write_start(std::span<char> place, std::string_view text) noexcept {
  const size_t size = std::min(text.size(), place.size());
  if (size > 0) std::memcpy(place.data(), text.data(), size);  // a loop over the span is not turned into it
  std::memset(place.data() + size, 0, place.size() - size);
}

// Copies the text, or "..." and its end where it is longer than its place.
void write_end(std::span<char> place, std::string_view text) noexcept {
  constexpr std::string_view kDots = "...";
  if (text.size() <= place.size()) return write_start(place, text);
  write_start(place, kDots);
  const std::span<char> rest = place.subspan(kDots.size());
  write_start(rest, text.substr(text.size() - rest.size()));
}

// Creates a file of kFileBytes bytes, whose storage is there: a write to mapped memory without it would be a SIGBUS.
int create_file(const std::string& path) {
  constexpr mode_t kOwnerOnly = 0600;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  int code = file < 0 ? errno : ::posix_fallocate(file, 0, kFileBytes);
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

FlightRecorder::FlightRecorder(const std::string& path, int process, int process_count, std::string_view host) {
  const int file = create_file(path);
  void* mapped = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  const int code = errno;
  ::close(file);
  if (mapped == MAP_FAILED) {
    ::unlink(path.c_str());
    throw FileError(
        fmt::format("flight record: {}: cannot map the file: {}", path, std::generic_category().message(code)), code);
  }
  memory_ = static_cast<std::byte*>(mapped);
  auto* head = new (memory_) FlightHeader{};
  head->version = kFlightVersion;
  head->capacity = kFlightEventsKept;
  head->process = static_cast<uint32_t>(process);
  head->process_count = static_cast<uint32_t>(process_count);
  head->pid = ::getpid();
  head->realtime_ns = now_ns(CLOCK_REALTIME);
  head->monotonic_ns = now_ns(CLOCK_MONOTONIC);
  write_start(head->host, host);
  std::memcpy(head->magic, kFlightMagic, sizeof(kFlightMagic));
}

FlightRecorder::~FlightRecorder() { ::munmap(memory_, kFileBytes); }

FlightHeader& FlightRecorder::header() const noexcept { return *reinterpret_cast<FlightHeader*>(memory_); }

FlightSlot& FlightRecorder::slot(uint64_t number) const noexcept {
  return reinterpret_cast<FlightSlot*>(memory_ + kFlightHeaderBytes)[(number - 1) % kFlightEventsKept];
}

uint64_t FlightRecorder::begin_meeting(FlightGroup& group, const FlightOperation& operation) noexcept {
  return begin(&group, operation);
}

uint64_t FlightRecorder::begin_exchange(const FlightOperation& operation) noexcept { return begin(nullptr, operation); }

uint64_t FlightRecorder::begin(FlightGroup* group, const FlightOperation& operation) noexcept {
  const uint64_t number = header().events.fetch_add(1, std::memory_order_relaxed) + 1;
  FlightSlot& event = slot(number);
  event.number.exchange(0, std::memory_order_acq_rel);  // before what follows (the thread sanitizer knows no fences)
  event.begin_ns = now_ns(CLOCK_MONOTONIC);
  event.end_ns.store(0, std::memory_order_relaxed);
  event.digest = operation.digest;
  event.bytes = 0;
  event.turn = group == nullptr ? 0 : group->meetings.fetch_add(1, std::memory_order_relaxed) + 1;
  event.line = static_cast<uint32_t>(operation.line);
  event.group = group == nullptr ? 0 : group->hash;
  event.kind = static_cast<uint8_t>(group == nullptr ? FlightKind::kExchange : FlightKind::kMeeting);
  event.route = static_cast<uint8_t>(operation.route);
  event.outcome.store(static_cast<uint8_t>(FlightOutcome::kLasts), std::memory_order_relaxed);
  write_start(event.processes, group == nullptr ? std::string_view() : group->processes);
  write_end(event.file, operation.file);
  write_start(event.operation, operation.text);
  event.number.store(number, std::memory_order_release);
  return number;
}

void FlightRecorder::end(uint64_t number, FlightOutcome outcome, uint64_t bytes) noexcept {
  FlightSlot& event = slot(number);
  if (event.number.load(std::memory_order_relaxed) != number) return;  // later events have taken its slot
  event.bytes = bytes;
  event.outcome.store(static_cast<uint8_t>(outcome), std::memory_order_relaxed);
  event.end_ns.store(now_ns(CLOCK_MONOTONIC), std::memory_order_release);
}

void FlightRecorder::leave() noexcept { header().has_left.store(1, std::memory_order_release); }

}  // namespace artifex_devices
