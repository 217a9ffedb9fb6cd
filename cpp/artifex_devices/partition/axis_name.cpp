// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <unordered_map>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/partition/abstract_mesh.h"

namespace artifex_devices {
namespace {

struct Entry {
  std::string text;
  bool foreign = false;
};

/// All axis names, in chunks of doubling size. Chunks are never moved or freed, so reading an entry takes no lock. The
/// rest needs a plain mutex: a forked child can unlock it, whereas glibc's shared locks record their owner.
class NameTable {
 public:
  static NameTable& instance() {
    static auto* table = new NameTable;  // never destroyed: names are read during process exit too
    return *table;
  }

  int32_t intern(std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
    const int32_t id = add_locked({std::string(text), false});
    ids_.emplace(entry(id).text, id);
    return id;
  }

  int32_t add_foreign(std::string_view repr) {
    const std::lock_guard lock(mutex_);
    return add_locked({std::string(repr), true});
  }

  const Entry& entry(int32_t id) const {
    const auto [chunk, offset] = place(id);
    return chunks_[chunk].load(std::memory_order_acquire)[offset];
  }

 private:
  static constexpr uint32_t kFirstChunk = 64;

  static std::pair<size_t, size_t> place(int32_t id) {
    const uint32_t shifted = static_cast<uint32_t>(id) + kFirstChunk;
    const auto chunk = static_cast<size_t>(std::bit_width(shifted) - std::bit_width(kFirstChunk));
    return {chunk, shifted - (size_t{kFirstChunk} << chunk)};
  }

  int32_t add_locked(Entry entry) {
    if (size_ > INT32_MAX - static_cast<int32_t>(kFirstChunk)) {
      throw_error("AxisName: the table of mesh axis names is full; expected at most {} names; use fewer", size_);
    }
    const auto [chunk, offset] = place(size_);
    Entry* entries = chunks_[chunk].load(std::memory_order_relaxed);
    if (entries == nullptr) {
      entries = new Entry[size_t{kFirstChunk} << chunk];
      chunks_[chunk].store(entries, std::memory_order_release);
    }
    entries[offset] = std::move(entry);
    return size_++;
  }

  Mutex<"axis names"> mutex_;
  HeldOverFork<decltype(mutex_)> held_over_fork_{mutex_};
  std::unordered_map<std::string_view, int32_t> ids_;  // views into the chunks
  std::array<std::atomic<Entry*>, 32> chunks_{};
  int32_t size_ = 0;
};

const std::string& no_text() {
  static const auto* none = new std::string;
  return *none;
}

// Created at load: a fork cannot happen during their construction.
[[maybe_unused]] const NameTable& g_name_table = NameTable::instance();
[[maybe_unused]] const std::string& g_no_text_at_load = no_text();

}  // namespace

AxisName::AxisName(std::string_view text) : id_(NameTable::instance().intern(text)) {}

AxisName AxisName::foreign(std::string_view repr) {
  AxisName name;
  name.id_ = NameTable::instance().add_foreign(repr);
  return name;
}

bool AxisName::is_foreign() const { return id_ >= 0 && NameTable::instance().entry(id_).foreign; }

const std::string& AxisName::text() const { return id_ < 0 ? no_text() : NameTable::instance().entry(id_).text; }

std::string AxisName::repr() const { return is_foreign() ? text() : python_repr(text()); }

}  // namespace artifex_devices
