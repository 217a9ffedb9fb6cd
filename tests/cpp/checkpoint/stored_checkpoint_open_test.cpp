// SPDX-License-Identifier: Apache-2.0
// Saves that replace or remove the folder at each step of StoredCheckpoint::open. The interrupt hook, which open calls
// between its steps, is where the save takes place.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/file.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/checkpoint/stored_checkpoint.h"

namespace artifex_devices {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOperation = "test";
constexpr const char* kIndex = "model.safetensors.index.json";
int calls = 0;                     // of the hook
std::function<bool(int)> at_call;  // gets the number of the call, from 1; true interrupts

std::string shard(int number) { return fmt::format("shard-{:05}-model-00001-of-00001.safetensors", number); }

void write(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

/// A safetensors file of one int8 array, part `number` of two or a whole one, with the values of the turn.
void write_file(const fs::path& path, const std::string& name, int turn, int number = 0) {
  const std::string box = fmt::format(
      R"(,"__metadata__":{{"DCP_SHARDING_INFO":"{{\"w\":{{\"saved_offsets\":[{}]}}}}"}})", (number - 1) * turn);
  const std::string header = fmt::format(R"({{"{}":{{"dtype":"I8","shape":[{}],"data_offsets":[0,{}]}}{}}})", name,
                                         turn, turn, number > 0 ? box : "");
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size());
  write(path, text + header + std::string(static_cast<size_t>(turn), static_cast<char>(turn)));
}

/// A checkpoint of checkpoint.save: "w" of 2 * turn elements, in two files.
void write_saved(const fs::path& folder, int turn) {
  fs::create_directory(folder);
  for (const int number : {1, 2}) write_file(folder / shard(number), "w", turn, number);
  constexpr std::string_view kManifest =
      R"({{"format":"artifex_devices.checkpoint","version":1,"process_count":2,"arrays":{{"w":{{"shape":[{}],)"
      R"("dtype":"int8"}}}},"values":{{}}}})";
  write(folder / "checkpoint.json", fmt::format(kManifest, 2 * turn));
}

/// A model of two files, whose names differ from turn to turn, and an index.
void write_indexed(const fs::path& folder, int turn) {
  fs::create_directory(folder);
  for (const char* name : {"a", "b"}) write_file(folder / fmt::format("{}{}.safetensors", name, turn), name, turn);
  write(folder / kIndex,
        fmt::format(R"({{"weight_map":{{"a":"a{}.safetensors","b":"b{}.safetensors"}}}})", turn, turn));
}

class StoredCheckpointOpenTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("stored_checkpoint_" + std::to_string(::getpid()));
    fs::create_directory(root_);
  }
  void TearDown() override {
    set_interrupt_hook(nullptr);
    fs::remove_all(root_);
  }

  /// Replaces the folder "c" by one that `write` creates, as a save does.
  void replace(void (*write)(const fs::path&, int), int turn) const {
    fs::rename(root_ / "c", root_ / "old");
    write(root_ / "c", turn);
    fs::remove_all(root_ / "old");
  }

  /// Opens root_ / path, with `action` at each call of the hook.
  StoredCheckpoint open(const fs::path& path, std::function<bool(int)> action) const {
    calls = 0;
    at_call = std::move(action);
    set_interrupt_hook([] { return at_call(++calls); });
    return StoredCheckpoint::open(root_ / path, kOperation);
  }

  /// The code and text of the FileError of open().
  std::pair<int, std::string> file_error(const fs::path& path, std::function<bool(int)> action) const {
    try {
      open(path, std::move(action));
    } catch (const FileError& error) {
      return {error.code(), error.what()};
    }
    return {0, ""};
  }

  fs::path root_;
};

/// All bytes of a file of the checkpoint are those of the turn.
void expect_turn(const StoredCheckpoint& found, int turn) {
  ASSERT_EQ(found.tensors.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const StoredTensor& tensor = found.tensors[i];
    EXPECT_EQ(tensor.shape, (Dims{turn}));
    std::string data(static_cast<size_t>(tensor.end - tensor.begin), '\0');
    found.files.open(found.file_of_tensor[i], kOperation)
        ->read(data.data(), static_cast<int64_t>(data.size()), tensor.begin);
    EXPECT_EQ(data, std::string(static_cast<size_t>(turn), static_cast<char>(turn)));
  }
}

TEST_F(StoredCheckpointOpenTest, ReadsOneWholeSaveIfTheFolderIsReplacedAtAnyStep) {
  write_saved(root_ / "c", 1);
  open("c", [](int) { return false; });
  const int steps = calls;
  EXPECT_GE(steps, 5);  // folder open, manifest open, before each file, checks of the parts
  for (int step = 1; step <= steps; ++step) {
    SCOPED_TRACE(step);
    replace(write_saved, 1);
    const StoredCheckpoint found = open("c", [&](int call) {
      if (call == step) replace(write_saved, 3);
      return false;
    });
    expect_turn(found, 3);
    EXPECT_EQ(found.arrays.at(0).shape, (Dims{6}));
  }
}

TEST_F(StoredCheckpointOpenTest, ReadsAnIndexAndItsFilesFromOneFolder) {
  write_indexed(root_ / "c", 1);
  for (const fs::path& path : {fs::path("c"), fs::path("c") / kIndex}) {
    open(path, [](int) { return false; });
    const int steps = calls;
    EXPECT_GE(steps, 4);  // folder open, index open, before each file
    for (int step = 1; step <= steps; ++step) {
      SCOPED_TRACE(fmt::format("{} {}", path.string(), step));
      replace(write_indexed, 1);
      const StoredCheckpoint found = open(path, [&](int call) {
        if (call == step) replace(write_indexed, 2);
        return false;
      });
      expect_turn(found, 2);
    }
  }
}

TEST_F(StoredCheckpointOpenTest, ADamagedCheckpointThatIsReplacedIsReadAgainAndOtherwiseAnErrorOfTheFirstTry) {
  write_saved(root_ / "c", 1);
  fs::resize_file(root_ / "c" / shard(1), 20);
  EXPECT_THROW(open("c", [](int) { return false; }), InvalidArgument);
  EXPECT_EQ(calls, 3);  // folder open, manifest open, before the first file
  const StoredCheckpoint found = open("c", [&](int call) {
    if (call == 3) replace(write_saved, 2);
    return false;
  });
  expect_turn(found, 2);
}

TEST_F(StoredCheckpointOpenTest, AFolderThatIsRemovedWhileItIsReadIsMissingWithTheCause) {
  write_saved(root_ / "c", 1);
  const auto [code, text] = file_error("c", [&](int) {
    fs::remove_all(root_ / "c");
    return false;
  });
  EXPECT_EQ(code, ENOENT);
  EXPECT_NE(text.find("c' was removed while it was read; expected a checkpoint that stays"), std::string::npos);
}

TEST_F(StoredCheckpointOpenTest, AFolderThatIsReplacedAtEachTryIsStale) {
  write_saved(root_ / "c", 1);
  const auto [code, text] = file_error("c", [&](int) {
    replace(write_saved, 1);
    return false;
  });
  EXPECT_EQ(code, ESTALE);
  EXPECT_NE(text.find("c' was replaced by another save each of the 100 times that it was read"), std::string::npos);
}

TEST_F(StoredCheckpointOpenTest, AnInterruptBetweenFilesEndsItAlsoIfTheFolderIsReplaced) {
  write_saved(root_ / "c", 1);
  EXPECT_THROW(open("c",
                    [&](int call) {
                      if (call == 4) replace(write_saved, 1);
                      return call == 4;
                    }),
               Interrupted);
  EXPECT_EQ(calls, 4);
}

}  // namespace
}  // namespace artifex_devices
