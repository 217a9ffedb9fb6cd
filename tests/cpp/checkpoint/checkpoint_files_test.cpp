// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/checkpoint_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

namespace fs = std::filesystem;

class CheckpointFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("checkpoint_files_" + std::to_string(::getpid()));
    fs::create_directory(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  /// What is found in a folder with files of these names.
  CheckpointFiles found(const std::vector<std::string>& names) const {
    for (const auto& entry : fs::directory_iterator(root_)) fs::remove(entry);
    for (const std::string& name : names) std::ofstream(root_ / name) << "x";
    return find_checkpoint_files(root_, open_checkpoint_folder(root_, "load", false).get(), "load");
  }

  /// The message for such a folder after its path; code of a FileError, or 0.
  std::pair<std::string, int> refused(const std::vector<std::string>& names) const {
    const std::string begin = "load: '" + root_.string() + "' ";
    try {
      found(names);
    } catch (const FileError& error) {
      return {std::string(error.what()).substr(begin.size()), error.code()};
    } catch (const InvalidArgument& error) {
      return {std::string(error.what()).substr(begin.size()), 0};
    }
    return {"nothing is refused", 0};
  }

  std::vector<std::string> names(const CheckpointFiles& files) const {
    std::vector<std::string> found;
    for (const std::string& path : files.paths) found.push_back(fs::path(path).filename());
    return found;
  }

  fs::path root_;
};

using Names = std::vector<std::string>;

TEST_F(CheckpointFilesTest, TheManifestDecidesThenTheIndex) {
  const CheckpointFiles ours = found({"a.safetensors", "checkpoint.json", "model.safetensors.index.json", "notes.txt"});
  EXPECT_EQ(ours.manifest, (root_ / "checkpoint.json").string());
  EXPECT_EQ(ours.index, "");
  EXPECT_EQ(names(ours), (Names{"a.safetensors"}));
  const CheckpointFiles indexed = found({"a.safetensors", "model.safetensors.index.json"});
  EXPECT_EQ(indexed.index, (root_ / "model.safetensors.index.json").string());
  EXPECT_EQ(names(indexed), Names{});
  EXPECT_EQ(refused({"a.safetensors.index.json", "b.safetensors.index.json"}),
            std::pair(std::string("has several indexes, 'a.safetensors.index.json' and 'b.safetensors.index.json'; "
                                  "expected one model; pass the path of one of them"),
                      0));
}

TEST_F(CheckpointFilesTest, APathOfAFileIsThatFileAndThePathOfAnIndexItsFolder) {
  found({"a.safetensors", "model.safetensors.index.json"});
  const std::string file = root_ / "a.safetensors";
  EXPECT_EQ(open_checkpoint_folder(file, "load", false), nullptr);
  EXPECT_EQ(find_checkpoint_files(file, nullptr, "load").paths, Names{file});
  const std::string index = root_ / "model.safetensors.index.json";
  const auto folder = open_checkpoint_folder(index, "load", false);
  EXPECT_EQ(folder->path(), root_.string() + "/");
  EXPECT_EQ(find_checkpoint_files(index, folder.get(), "load").index, index);
}

TEST_F(CheckpointFilesTest, NamesThatCountFilesAreOneSetIfAllAreThere) {
  EXPECT_TRUE(found({"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}).are_one_set);
  EXPECT_TRUE(found({"model-0-of-2.safetensors", "model-1-of-2.safetensors"}).are_one_set);
  EXPECT_TRUE(found({"model.safetensors"}).are_one_set);
  EXPECT_FALSE(found({"model.safetensors", "consolidated.safetensors"}).are_one_set);
  EXPECT_FALSE(found({"a-1-of-1.safetensors", "b-1-of-1.safetensors"}).are_one_set);
  EXPECT_FALSE(found({"a-1-of-1.safetensors", "other.safetensors"}).are_one_set);
  EXPECT_EQ(
      refused({"m-00001-of-00006.safetensors", "m-00005-of-00006.safetensors", "other.safetensors"}),
      std::pair(std::string("lacks files: the names 'm-N-of-6' say that there are 6, and number 2, 3, 4 is "
                            "missing; expected all files; download the missing files, or pass the path of one file to "
                            "read it alone"),
                0));
}

TEST_F(CheckpointFilesTest, FilesOfProcessesHaveNumbersWithoutGaps) {
  const auto shard = [](int number) { return "shard-0000" + std::to_string(number) + "-model-1-of-1.safetensors"; };
  EXPECT_EQ(found({shard(1), shard(2)}).missing_shards, std::vector<int64_t>{});
  EXPECT_EQ(found({shard(1), shard(2), shard(5)}).missing_shards, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(found({shard(0), shard(2)}).missing_shards, std::vector<int64_t>{1});
  EXPECT_EQ(found({shard(3)}).missing_shards, (std::vector<int64_t>{1, 2}));
  const auto [text, code] = refused({"shard-1-model-1-of-3.safetensors", "shard-1-model-3-of-3.safetensors"});
  EXPECT_TRUE(text.starts_with("lacks files: the names 'shard-N-model-N-of-3' say that there are 3, and number 2 "));
  EXPECT_EQ(code, 0);
}

TEST_F(CheckpointFilesTest, AFolderWithoutACheckpointIsAMissingFileThatNamesWhatItHas) {
  EXPECT_EQ(refused({"notes.txt"}), std::pair(std::string("has neither checkpoint.json nor safetensors files; expected "
                                                          "a checkpoint; correct the path"),
                                              ENOENT));
  for (const std::string name : {"__0_0.distcp", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    const auto [text, code] = refused({"config.json", name});
    EXPECT_TRUE(text.starts_with("has files of PyTorch, such as '" + name + "', and no safetensors files"));
    EXPECT_EQ(code, ENOENT);
  }
  try {
    open_checkpoint_folder(root_ / "none", "load", true);
    FAIL();
  } catch (const FileError& error) {
    EXPECT_EQ(error.code(), ENOENT);
    EXPECT_TRUE(std::string(error.what())
                    .ends_with("was removed while it was read; expected a checkpoint that stays; "
                               "read another checkpoint"));
  }
}

}  // namespace
}  // namespace artifex_devices
