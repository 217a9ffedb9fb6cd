// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {

/// A call of the operating system for a file failed; OSError in Python.
class FileError : public Error {
 public:
  FileError(const std::string& text, int code) : Error(text), code_(code) {}
  int code() const noexcept { return code_; }  // errno

 private:
  int code_;
};

class Folder;

/// An open regular file, read and written at positions, by several threads at once. Every failure throws FileError
/// `<operation>: <path>: cannot write 4096 bytes at 0: No space left on device`.
class File {
 public:
  /// Opens for reading. A file that is not regular is an InvalidArgument. With a `folder`, the last name of
  /// the path is opened in it, and the path is only for messages.
  static File open(const std::string& path, std::string_view operation, const Folder* folder = nullptr);
  /// Creates a file for writing, which must not exist.
  static File create(const std::string& path, std::string_view operation);
  File(File&& other) noexcept
      : path_(std::move(other.path_)), operation_(std::move(other.operation_)), fd_(std::exchange(other.fd_, -1)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& path() const noexcept { return path_; }
  int64_t bytes() const;
  /// Reads exactly `size` bytes; the end of the file before them is an InvalidArgument. Errors name `operation`, or the
  /// operation that opened the file.
  void read(void* data, int64_t size, int64_t offset, std::string_view operation = {}) const;
  void write(const void* data, int64_t size, int64_t offset) const;
  /// Lets the system start to write these bytes to storage, which shortens the wait of sync(). Errors are left to
  /// sync().
  void start_sync(int64_t offset, int64_t size) const noexcept;
  /// Waits until the storage has everything.
  void sync() const;

 private:
  File(std::string path, std::string_view operation, int flags, const Folder* folder = nullptr);
  [[noreturn]] void fail(std::string_view what, std::string_view operation = {}) const;

  std::string path_;
  std::string operation_;
  int fd_ = -1;
};

/// An open folder. It remains the same folder if it is renamed. Failures throw FileError.
class Folder {
 public:
  Folder(std::string path, std::string_view operation);
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();

  /// The path at which it was opened.
  const std::string& path() const noexcept { return path_; }
  /// Whether the path still leads to this folder.
  bool is_at_path() const noexcept;
  /// The names of its entries, sorted.
  std::vector<std::string> names() const;
  /// Whether it has a file of this name, which may be a link.
  bool contains(const std::string& name) const noexcept;

 private:
  friend class File;
  [[noreturn]] void fail(std::string_view what, int code) const;

  std::string path_;
  std::string operation_;
  int fd_ = -1;
};

/// Returns the bytes of a regular file, which is an InvalidArgument if it has more than `max_bytes`. Pipes and devices,
/// whose read may never end, are refused without reading them. `folder` as in File::open. Interruptible.
std::string read_regular_file(const std::string& path, int64_t max_bytes, std::string_view operation,
                              const Folder* folder = nullptr);

/// Returns the absolute path without symbolic links. The last name need not exist. Returns nothing if more of the path
/// is missing, or if it cannot be followed.
std::optional<std::string> real_path(const std::string& path);

/// Exchanges two folders of one file system in one step. Returns false where the file system cannot.
bool exchange_paths(const std::string& a, const std::string& b, std::string_view operation);

}  // namespace artifex_devices
