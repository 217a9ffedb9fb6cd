// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

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

// Marks a slot as being written, before its other members change.
void begin_writing(std::atomic<uint64_t>& number) noexcept {
#if defined(__SANITIZE_THREAD__)  // which knows no fences
  number.exchange(0, std::memory_order_acq_rel);
#else
  number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
#endif
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

FlightRecorder::FlightRecorder(const std::string& path, int process, int process_count, std::string_view host,
                               FlightWriters writers)
    : writers_(writers) {
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
  head->realtime_ns = system_clock_ns(CLOCK_REALTIME);
  head->monotonic_ns = system_clock_ns(CLOCK_MONOTONIC);
  write_start(head->host, host);
  std::memcpy(head->magic, kFlightMagic, sizeof(kFlightMagic));
}

FlightRecorder::~FlightRecorder() { ::munmap(memory_, kFileBytes); }

FlightHeader& FlightRecorder::header() const noexcept { return *reinterpret_cast<FlightHeader*>(memory_); }

FlightSlot& FlightRecorder::slot(uint64_t number) const noexcept {
  return reinterpret_cast<FlightSlot*>(memory_ + kFlightHeaderBytes)[(number - 1) % kFlightEventsKept];
}

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
  std::atomic<uint64_t>& events = header().events;
  uint64_t number = 0;
  if (writers_ == FlightWriters::kAny) {
    number = events.fetch_add(1, std::memory_order_relaxed) + 1;
  } else {  // without a locked instruction
    number = events.load(std::memory_order_relaxed) + 1;
    events.store(number, std::memory_order_relaxed);
  }
  const uint32_t turn = group == nullptr ? 0 : ++group->meetings;
  FlightSlot& event = slot(number);
  begin_writing(event.number);
  event.begin_ns = clock_.now_ns();
  event.end_ns.store(0, std::memory_order_relaxed);
  event.digest = description.digest;
  event.bytes = 0;
  event.turn = turn;
  event.line = description.line;
  event.group = description.group;
  event.kind = static_cast<uint8_t>(description.kind);
  event.route = static_cast<uint8_t>(description.route);
  event.outcome.store(static_cast<uint8_t>(FlightOutcome::kLasts), std::memory_order_relaxed);
  event.texts = description.texts;
  event.number.store(number, std::memory_order_release);
  return number;
}

void FlightRecorder::end(uint64_t number, FlightOutcome outcome, uint64_t bytes) noexcept {
  FlightSlot& event = slot(number);
  if (event.number.load(std::memory_order_relaxed) != number) return;  // later events have taken its slot
  event.bytes = bytes;
  event.outcome.store(static_cast<uint8_t>(outcome), std::memory_order_relaxed);
  event.end_ns.store(std::max(clock_.now_ns(), event.begin_ns), std::memory_order_release);
}

void FlightRecorder::leave() noexcept { header().has_left.store(1, std::memory_order_release); }

}  // namespace artifex_devices
