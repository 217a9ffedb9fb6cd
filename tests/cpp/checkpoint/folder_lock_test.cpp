// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <thread>

#include "../base/forked_child.h"
#include "artifex_devices/base/file.h"

namespace artifex_devices {
namespace {

std::string folder(const std::string& name) {
  std::string path = testing::TempDir() + name;
  ::mkdir(path.c_str(), 0777);
  return path;
}

int code_of_take(FolderLock& lock, const std::string& path) {
  try {
    return lock.take(path) ? 0 : ENOENT;
  } catch (const FileError& error) {
    return error.code();
  }
}

TEST(FolderLock, KeepsOthersOutUntilItIsReleased) {
  const std::string path = folder("folder_lock_others");
  FolderLock second;
  {
    FolderLock first;
    EXPECT_EQ(code_of_take(first, path), 0);
    EXPECT_EQ(code_of_take(second, path), EWOULDBLOCK);
    EXPECT_TRUE(first.is_held() && first.is_at(path));
    EXPECT_FALSE(second.is_held());
    first.release();
    EXPECT_EQ(code_of_take(second, path), 0);
    second.release();
    EXPECT_EQ(code_of_take(first, path), 0);
  }
  EXPECT_EQ(code_of_take(second, path), 0);  // the destructor has released it
  EXPECT_EQ(code_of_take(second, path + "/none"), ENOENT);
  EXPECT_FALSE(second.is_held());
  EXPECT_EQ(code_of_take(second, "/dev/null"), ENOTDIR);
}

TEST(FolderLock, KnowsTheThreadThatTookIt) {
  const std::string path = folder("folder_lock_thread");
  FolderLock lock;
  std::thread([&] { EXPECT_EQ(code_of_take(lock, path), 0); }).join();
  EXPECT_FALSE(FolderLock::is_taken_by_this_thread(path));
  lock.release();
  EXPECT_EQ(code_of_take(lock, path), 0);
  EXPECT_TRUE(FolderLock::is_taken_by_this_thread(path));
  EXPECT_FALSE(FolderLock::is_taken_by_this_thread(testing::TempDir()));
}

TEST(FolderLock, IsNotHeldByAForkedChild) {
  const std::string path = folder("folder_lock_fork");
  FolderLock lock;
  EXPECT_EQ(code_of_take(lock, path), 0);
  EXPECT_EQ(in_forked_child([&] {
              FolderLock other;
              return std::to_string(lock.is_held()) + std::to_string(code_of_take(other, path) == EWOULDBLOCK);
            }),
            "01");
  EXPECT_TRUE(lock.is_held());
}

}  // namespace
}  // namespace artifex_devices
