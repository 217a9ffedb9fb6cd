// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/kernel_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "artifex_devices/base/file.h"
#include "artifex_devices/topology/accelerators.h"
#include "artifex_devices/topology/cgroup.h"
#include "artifex_devices/topology/folder_entries.h"
#include "artifex_devices/topology/loaded_machine.h"
#include "artifex_devices/topology/system_files.h"

namespace artifex_devices {
namespace {

/// While it lives, the process can open this many files more.
class FreeDescriptors {
 public:
  explicit FreeDescriptors(size_t left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int file = open("/", O_PATH); file >= 0; file = open("/", O_PATH)) files_.push_back(file);
    for (; left > 0; --left) {
      close(files_.back());
      files_.pop_back();
    }
  }
  ~FreeDescriptors() {
    for (const int file : files_) close(file);
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  FreeDescriptors(const FreeDescriptors&) = delete;
  FreeDescriptors& operator=(const FreeDescriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<int> files_;
};

class KernelFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "files-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file_with(const std::string& text) const {
    std::ofstream(folder_ / "file") << text;
    return (folder_ / "file").string();
  }
  std::filesystem::path folder_;
};

/// The error of a call for which this many files more can be opened; sanitizers need one to look at the error itself.
int code_of(const std::function<void()>& call, size_t left = 0) {
  try {
    const FreeDescriptors few(left);
    call();
  } catch (const FileError& error) {
    return error.code();
  }
  return 0;
}

TEST_F(KernelFiles, AreReadUpToALimit) {
  const std::string text(10'000, 'x');
  const std::string path = file_with(text);
  EXPECT_EQ(read_kernel_file(path).text, text);
  EXPECT_EQ(read_kernel_file(path, 5000).text, text.substr(0, 5000));
  EXPECT_EQ(read_kernel_file(path).problem(path), "");
}

TEST_F(KernelFiles, ThatCannotBeReadHaveAReason) {
  EXPECT_EQ(read_kernel_file("/nowhere/file").error, ENOENT);
  EXPECT_EQ(read_kernel_file("/nowhere/file").problem("it"), "it cannot be read (No such file or directory)");
  EXPECT_EQ(read_kernel_file(folder_.string()).problem("it"), "it cannot be read (Is a directory)");
  EXPECT_EQ(read_kernel_file(file_with("")).problem("it"), "it is empty");
  EXPECT_EQ(read_kernel_file(file_with("x") + "/file").error, ENOTDIR);
}

TEST_F(KernelFiles, HaveNumbersOfBytes) {
  const std::string table =
      "MemTotal:  16 kB\nXMemTotal: 8 kB\nNode 0 SwapTotal:\t4 kB\nHuge: 99999999999999999 kB\nBad: x";
  EXPECT_EQ(bytes_in_table(table, "MemTotal:"), 16 << 10);
  EXPECT_EQ(bytes_in_table("X" + table, "MemTotal:"), 0);
  EXPECT_EQ(bytes_in_table(table, "SwapTotal:"), 4 << 10);
  for (const char* key : {"Huge:", "Bad:", "None:"}) EXPECT_EQ(bytes_in_table(table, key), 0) << key;
}

TEST_F(KernelFiles, AreNotTakenForMissingWhenNoFileCanBeOpened) {
  const std::string path = file_with("16");
  std::error_code error;
  EXPECT_EQ(code_of([&] { read_kernel_file(path); }), EMFILE);
  EXPECT_EQ(code_of([&] { folder_entries(folder_.string(), error); }), EMFILE);
  EXPECT_EQ(code_of([] { read_cgroup_report(); }), EMFILE);
  EXPECT_EQ(code_of([] { system_memory_bytes(); }), EMFILE);
  EXPECT_EQ(code_of([] { available_memory_bytes(); }), EMFILE);
  EXPECT_EQ(code_of([] { sysfs_problem(affinity_cpus()); }), EMFILE);
  EXPECT_EQ(code_of([] { system_xml(affinity_cpus(), ""); }), EMFILE);
  EXPECT_EQ(code_of([] { accelerators_in_sysfs(""); }), EMFILE);
}

TEST_F(KernelFiles, OfThisMachineAreReadAgainAfterAShortage) {
  const std::shared_ptr<const Machine> expected = load_live_machine();
  for (size_t left = 0; left < 24; ++left) {
    std::shared_ptr<const Machine> found;
    const int code = code_of([&] { found = load_live_machine(); }, left);
    if (!found) {
      EXPECT_EQ(code, EMFILE) << left;
      continue;
    }
    EXPECT_EQ(found->counts().cores, expected->counts().cores) << left;
    EXPECT_EQ(found->counts().l3_caches, expected->counts().l3_caches) << left;
    EXPECT_EQ(found->usable_memory_bytes(), expected->usable_memory_bytes()) << left;
  }
}

}  // namespace
}  // namespace artifex_devices
