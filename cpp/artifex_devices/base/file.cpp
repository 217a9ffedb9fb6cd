// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

}  // namespace

File::File(std::string path, std::string_view operation, int flags, const Folder* folder)
    : path_(std::move(path)), operation_(operation) {
  constexpr mode_t kMode = 0666;  // less the umask
  const size_t name = folder != nullptr ? path_.rfind('/') + 1 : 0;
  do {
    fd_ = ::openat(folder != nullptr ? folder->fd_ : AT_FDCWD, path_.c_str() + name, flags | O_CLOEXEC, kMode);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) fail("cannot open");
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

File File::open(const std::string& path, std::string_view operation, const Folder* folder) {
  File file(path, operation, O_RDONLY | O_NONBLOCK, folder);  // a named pipe would wait for its writer
  struct stat status{};
  if (::fstat(file.fd_, &status) != 0) file.fail("cannot read the status");
  if (!S_ISREG(status.st_mode)) {
    throw_error("{}: {} is {}; expected a regular file", operation, printable(path),
                S_ISDIR(status.st_mode) ? "a directory" : "not a regular file");
  }
  return file;
}

File File::create(const std::string& path, std::string_view operation) {
  return {path, operation, O_WRONLY | O_CREAT | O_EXCL};
}

void File::fail(std::string_view what, std::string_view operation) const {
  const int code = errno;
  throw FileError(
      fmt::format("{}: {}: {}: {}", operation.empty() ? operation_ : operation, printable(path_), what, reason(code)),
      code);
}

int64_t File::bytes() const {
  struct stat status{};
  if (::fstat(fd_, &status) != 0) fail("cannot read the status");
  return status.st_size;
}

void File::read(void* data, int64_t size, int64_t offset, std::string_view operation) const {
  auto* to = static_cast<std::byte*>(data);
  while (size > 0) {
    const ssize_t got = ::pread(fd_, to, static_cast<size_t>(size), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(fmt::format("cannot read {} bytes at {}", size, offset), operation);
    if (got == 0) {
      throw_error("{}: {} ends at byte {}; expected {} more bytes; the file is truncated, restore another checkpoint",
                  operation.empty() ? operation_ : operation, printable(path_), offset, size);
    }
    to += got;
    size -= got;
    offset += got;
  }
}

void File::write(const void* data, int64_t size, int64_t offset) const {
  const auto* from = static_cast<const std::byte*>(data);
  while (size > 0) {
    const ssize_t done = ::pwrite(fd_, from, static_cast<size_t>(size), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(fmt::format("cannot write {} bytes at {}", size, offset));
    from += done;
    size -= done;
    offset += done;
  }
}

void File::start_sync(int64_t offset, int64_t size) const noexcept {
  (void)::sync_file_range(fd_, offset, size, SYNC_FILE_RANGE_WRITE);  // other file systems do not know it
}

void File::sync() const {
  while (::fsync(fd_) != 0) {
    if (errno != EINTR) fail("cannot write to the storage");
  }
}

Folder::Folder(std::string path, std::string_view operation) : path_(std::move(path)), operation_(operation) {
  do {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) fail("cannot open the folder", errno);
}

Folder::~Folder() { ::close(fd_); }

void Folder::fail(std::string_view what, int code) const {
  throw FileError(fmt::format("{}: {}: {}: {}", operation_, printable(path_), what, reason(code)), code);
}

bool Folder::is_at_path() const noexcept {
  struct stat here{};
  struct stat there{};
  return ::fstat(fd_, &here) == 0 && ::stat(path_.c_str(), &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

std::vector<std::string> Folder::names() const {
  constexpr auto kClose = [](DIR* stream) { ::closedir(stream); };
  const int copy = ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // closedir closes its descriptor
  const std::unique_ptr<DIR, decltype(kClose)> stream(copy < 0 ? nullptr : ::fdopendir(copy));
  if (!stream) {
    const int code = errno;
    if (copy >= 0) ::close(copy);
    fail("cannot list the folder", code);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) fail("cannot list the folder", errno);
  std::ranges::sort(names);
  return names;
}

bool Folder::contains(const std::string& name) const noexcept { return ::faccessat(fd_, name.c_str(), F_OK, 0) == 0; }

std::string read_regular_file(const std::string& path, int64_t max_bytes, std::string_view operation,
                              const Folder* folder) {
  constexpr int64_t kPiece = int64_t{16} << 20;
  const File file = File::open(path, operation, folder);
  const int64_t bytes = file.bytes();
  if (bytes > max_bytes) {
    throw_error("{}: {} has {} bytes; expected at most {}; correct the path", operation, python_repr(path), bytes,
                max_bytes);
  }
  std::string text(static_cast<size_t>(bytes), '\0');
  for (int64_t begin = 0; begin < bytes; begin += kPiece) {
    check_interrupt();
    file.read(text.data() + begin, std::min(kPiece, bytes - begin), begin);
  }
  return text;
}

std::optional<std::string> real_path(const std::string& path) {
  const auto resolve = [](const std::string& existing) -> std::optional<std::string> {
    char resolved[PATH_MAX];
    if (::realpath(existing.c_str(), resolved) == nullptr) return std::nullopt;
    return resolved;
  };
  struct stat entry = {};
  if (::lstat(path.c_str(), &entry) == 0) return resolve(path);
  const size_t end = path.rfind('/');
  if (errno != ENOENT || end == std::string::npos || end + 1 == path.size()) return std::nullopt;
  std::optional<std::string> parent = resolve(path.substr(0, std::max<size_t>(end, 1)));
  if (parent) *parent += (*parent == "/" ? "" : "/") + path.substr(end + 1);
  return parent;
}

bool exchange_paths(const std::string& a, const std::string& b, std::string_view operation) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  const int code = errno;
  if (code == EINVAL || code == ENOSYS || code == ENOTSUP) return false;
  throw FileError(fmt::format("{}: cannot exchange {} and {}: {}", operation, printable(a), printable(b), reason(code)),
                  code);
}

}  // namespace artifex_devices
