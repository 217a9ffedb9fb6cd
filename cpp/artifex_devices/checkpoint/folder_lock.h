// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>

namespace artifex_devices {

/// The lock of one save on a folder, which keeps other saves out of it, in this process and in others. It ends with the
/// process that took it: forked children do not hold it. Thread-safe.
class FolderLock {
 public:
  FolderLock() = default;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  bool is_held() const;
  /// Locks a folder, in place of one that it holds; returns false if the folder does not exist. Throws FileError if it
  /// cannot be opened, and with EWOULDBLOCK if another FolderLock has locked it.
  bool take(const std::string& folder);
  /// Whether the locked folder is still at a path; false without a lock.
  bool is_at(const std::string& path) const;
  /// Unlocks the folder, if it is locked.
  void release();
  /// Whether the calling thread has locked the folder at a path. Such a thread runs a signal handler that interrupted a
  /// save.
  static bool is_taken_by_this_thread(const std::string& folder);

 private:
  friend class FolderLocks;
  bool leads_here(const std::string& path) const;
  void unlock();

  int fd_ = -1;
  std::thread::id thread_;  // that took it
};

}  // namespace artifex_devices
