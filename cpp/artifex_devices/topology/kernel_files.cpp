// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/kernel_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <new>
#include <system_error>
#include <vector>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// A file descriptor, or the errno of the call that opens it.
class Descriptor {
 public:
  Descriptor(const char* path, int flags) {
    do {
      file_ = ::open(path, flags | O_CLOEXEC);
    } while (file_ < 0 && errno == EINTR);
    error_ = file_ < 0 ? errno : 0;
  }
  Descriptor(Descriptor&& other) noexcept : file_(std::exchange(other.file_, -1)), error_(other.error_) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  int error() const noexcept { return error_; }

  /// Returns the number of bytes, or -1 with errno.
  ssize_t read(char* to, size_t bytes) const {
    ssize_t got = -1;
    do {
      got = ::read(file_, to, bytes);
    } while (got < 0 && errno == EINTR);
    return got;
  }

 private:
  int file_ = -1;
  int error_ = 0;
};

}  // namespace

std::string KernelFile::problem(std::string_view path) const {
  if (error != 0) return fmt::format("{} cannot be read ({})", path, reason(error));
  return text.empty() ? fmt::format("{} is empty", path) : "";
}

void refuse_shortage(int error, const std::string& path) {
  if (error == ENOMEM) throw std::bad_alloc();
  if (error != EMFILE && error != ENFILE) return;
  throw FileError(
      fmt::format("devices: {} cannot be opened: {}; expected a free file descriptor; close files, or raise "
                  "the limit (ulimit -n)",
                  path, reason(error)),
      error);
}

KernelFile read_kernel_file(const std::string& path, size_t most_bytes) {
  constexpr size_t kPage = 4096;  // CPU masks cannot be read by single bytes
  KernelFile result;
  const Descriptor file(path.c_str(), O_RDONLY);
  result.error = file.error();
  while (result.error == 0 && result.text.size() < most_bytes) {
    const size_t before = result.text.size();
    result.text.resize(before + kPage);
    const ssize_t got = file.read(result.text.data() + before, kPage);
    result.error = got < 0 ? errno : 0;
    result.text.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got <= 0) break;
  }
  refuse_shortage(result.error, path);
  if (result.error != 0) result.text.clear();
  if (result.text.size() > most_bytes) result.text.resize(most_bytes);
  return result;
}

void require_descriptors(int count) {
  std::vector<Descriptor> open;
  open.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    open.emplace_back("/", O_PATH);
    refuse_shortage(open.back().error(), "/sys");
  }
}

int64_t bytes_in_table(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != '\n' && text[at - 1] != ' ') continue;  // the end of another key
    const size_t first = text.find_first_not_of(" \t", at + key.size());
    int64_t kib = 0;
    if (first != std::string_view::npos) std::from_chars(text.data() + first, text.data() + text.size(), kib);
    return kib > 0 && kib < (int64_t{1} << 50) ? kib * 1024 : 0;
  }
  return 0;
}

}  // namespace artifex_devices
