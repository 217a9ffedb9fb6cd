// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <vector>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {

// All locks that are held. A forked child has copies of their descriptors, and a lock ends when the last copy is
// closed. So a fork waits while a descriptor is opened and noted, and the child closes its copies.
class FolderLocks final : AtFork {
 public:
  Mutex<"locks on folders"> mutex;
  std::vector<FolderLock*> held;

 private:
  void before() override { mutex.lock(); }
  void in_parent() override { mutex.unlock(); }
  void in_child() override {
    for (FolderLock* const lock : held) {
      ::close(lock->fd_);
      lock->fd_ = -1;
    }
    held.clear();
    mutex.unlock();
  }
};

namespace {

FolderLocks& g_locks = *new FolderLocks;  // Python's objects may outlive the destructors of globals

[[noreturn]] void fail(int code) { throw FileError(std::generic_category().message(code), code); }

}  // namespace

FolderLock::~FolderLock() {
  if (fd_ >= 0) release();
}

bool FolderLock::is_held() const {
  const std::lock_guard lock(g_locks.mutex);
  return fd_ >= 0;
}

bool FolderLock::take(const std::string& folder) {
  const std::lock_guard lock(g_locks.mutex);
  unlock();
  do {
    fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) {
    if (errno == ENOENT) return false;
    fail(errno);
  }
  g_locks.held.push_back(this);
  thread_ = std::this_thread::get_id();
  int result = 0;
  do {
    result = ::flock(fd_, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    const int code = errno;
    unlock();
    fail(code);
  }
  if (leads_here(folder)) return true;
  unlock();  // another save has just renamed it
  return false;
}

bool FolderLock::is_at(const std::string& path) const {
  const std::lock_guard lock(g_locks.mutex);
  return leads_here(path);
}

void FolderLock::release() {
  const std::lock_guard lock(g_locks.mutex);
  unlock();
}

bool FolderLock::leads_here(const std::string& path) const {
  struct stat here{};
  struct stat there{};
  return fd_ >= 0 && ::fstat(fd_, &here) == 0 && ::lstat(path.c_str(), &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

void FolderLock::unlock() {
  if (fd_ < 0) return;
  std::erase(g_locks.held, this);
  ::flock(fd_, LOCK_UN);  // also for copies of processes that were forked without the handlers of pthread_atfork
  ::close(fd_);
  fd_ = -1;
}

bool FolderLock::is_taken_by_this_thread(const std::string& folder) {
  const std::lock_guard lock(g_locks.mutex);
  return std::ranges::any_of(g_locks.held, [&](const FolderLock* each) {
    return each->thread_ == std::this_thread::get_id() && each->leads_here(folder);
  });
}

}  // namespace artifex_devices
