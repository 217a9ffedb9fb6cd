// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/abstract_mesh.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

template <class Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

TEST(AxisName, IsEqualForEqualTexts) {
  EXPECT_EQ(AxisName("data"), AxisName(std::string("da") + "ta"));
  EXPECT_EQ(AxisName("data").id(), AxisName("data").id());
  EXPECT_NE(AxisName("data"), AxisName("model"));
  EXPECT_EQ(AxisName("data").text(), "data");
  EXPECT_EQ(AxisName("").text(), "");
  EXPECT_FALSE(AxisName("data").is_foreign());
}

TEST(AxisName, IsEmptyByDefault) {
  EXPECT_EQ(AxisName().id(), -1);
  EXPECT_EQ(AxisName().text(), "");
  EXPECT_NE(AxisName(), AxisName(""));
}

TEST(AxisName, IsDistinctForEachForeignObject) {
  const AxisName a = AxisName::foreign("('a', 1)");
  const AxisName b = AxisName::foreign("('a', 1)");
  EXPECT_NE(a, b);
  EXPECT_NE(a, AxisName("('a', 1)"));
  EXPECT_TRUE(a.is_foreign());
  EXPECT_EQ(a.text(), "('a', 1)");
  EXPECT_EQ(a.repr(), "('a', 1)");
}

TEST(AxisName, PrintsAsPythonRepr) {
  EXPECT_EQ(AxisName("data").repr(), "'data'");
  EXPECT_EQ(AxisName("").repr(), "''");
  EXPECT_EQ(AxisName("a'b").repr(), "\"a'b\"");
  EXPECT_EQ(AxisName("a\"b").repr(), "'a\"b'");
  EXPECT_EQ(AxisName("a'b\"c").repr(), "'a\\'b\"c'");
  EXPECT_EQ(AxisName("a\\b\n\t\r").repr(), "'a\\\\b\\n\\t\\r'");
  EXPECT_EQ(AxisName(std::string_view("\0\x1b\x7f", 3)).repr(), "'\\x00\\x1b\\x7f'");
  EXPECT_EQ(AxisName("größe\xE2\x82\xAC\xF0\x9F\x98\x80").repr(), "'größe\xE2\x82\xAC\xF0\x9F\x98\x80'");
  EXPECT_EQ(AxisName("\xC2\xAD\xE2\x80\x8B").repr(), "'\\xad\\u200b'");
  EXPECT_EQ(AxisName("\xF3\xA0\x80\x81").repr(), "'\\U000e0001'");
  EXPECT_EQ(AxisName("\xFF\xC3").repr(), "'\\udcff\\udcc3'");
}

TEST(AxisName, IsTheSameInAllThreads) {
  constexpr int kThreads = 8;
  constexpr int kNames = 500;
  std::vector<std::vector<int32_t>> ids(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kNames; ++i) {
        const AxisName name("thread_name_" + std::to_string(i));
        ids[static_cast<size_t>(t)].push_back(name.text() == "thread_name_" + std::to_string(i) ? name.id() : -2);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& of_thread : ids) EXPECT_EQ(of_thread, ids[0]);
  EXPECT_EQ(std::ranges::count(ids[0], -2), 0);
}

TEST(AxisName, CanBeCreatedInAForkedChild) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer does not support a fork while another thread allocates";
#endif
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    for (int i = 0; !stop; ++i) (void)AxisName("busy_" + std::to_string(i % 1000));
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);  // instead of a hang
      _exit(AxisName("made in the child " + std::to_string(round)).text().starts_with("made") ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

TEST(AbstractMesh, ReturnsItsAxes) {
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {2, 4});
  EXPECT_EQ(mesh.size(), 8);
  EXPECT_EQ(mesh.rank(), 2);
  EXPECT_FALSE(mesh.empty());
  EXPECT_EQ(mesh.find(AxisName("y")), 1);
  EXPECT_EQ(mesh.find(AxisName("z")), std::nullopt);
  EXPECT_EQ(mesh.axis_types(), (std::vector{AxisType::kAuto, AxisType::kAuto}));
}

TEST(AbstractMesh, PrintsAsJax) {
  EXPECT_EQ(AbstractMesh({AxisName("x"), AxisName("y")}, {2, 4}).to_string(),
            "AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto))");
  EXPECT_EQ(AbstractMesh({AxisName("x")}, {2}).to_string(), "AbstractMesh('x': 2, axis_types=(Auto,))");
  EXPECT_EQ(AbstractMesh().to_string(), "AbstractMesh((), axis_types=())");
  EXPECT_EQ(AbstractMesh({AxisName("x"), AxisName("y")}, {2, 4}, {AxisType::kExplicit, AxisType::kManual}).to_string(),
            "AbstractMesh('x': 2, 'y': 4, axis_types=(Explicit, Manual))");
  EXPECT_EQ(AbstractMesh({AxisName::foreign("('a', 1)")}, {2}).to_string(),
            "AbstractMesh('('a', 1)': 2, axis_types=(Auto,))");
  EXPECT_EQ(AbstractMesh({AxisName("x"), AxisName("y")}, {2, 4}).axes_text(), "'x': 2, 'y': 4");
}

TEST(AbstractMesh, ComparesNamesSizesAndTypes) {
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {2, 4});
  EXPECT_EQ(mesh, AbstractMesh({AxisName("x"), AxisName("y")}, {2, 4}));
  EXPECT_EQ(mesh.hash(), AbstractMesh({AxisName("x"), AxisName("y")}, {2, 4}).hash());
  EXPECT_NE(mesh, AbstractMesh({AxisName("y"), AxisName("x")}, {2, 4}));
  EXPECT_NE(mesh, AbstractMesh({AxisName("x"), AxisName("y")}, {4, 2}));
  EXPECT_NE(mesh, AbstractMesh({AxisName("x"), AxisName("y")}, {2, 4}, {AxisType::kExplicit, AxisType::kExplicit}));
  EXPECT_EQ(mesh, AbstractMesh({AxisName("x"), AxisName("y")}, {2, 4}, {AxisType::kAuto, AxisType::kAuto}));
}

TEST(AbstractMesh, ReportsAllFaultsAtOnce) {
  EXPECT_EQ(message_of([] { AbstractMesh({AxisName("x"), AxisName("x")}, {2, 0, -4}, {AxisType::kAuto}); }),
            "AbstractMesh: 2 axis names but 3 axis sizes (2, 0, -4); 2 axis names but 1 axis types; axis name 'x' is "
            "given more than once; axis 'x' has size 0; axis number 2 has size -4; expected distinct names with one "
            "size of 1 or more and one type for each; correct the axes");
}

TEST(AbstractMesh, RefusesAnOverflowingProduct) {
  EXPECT_PRED_FORMAT2(
      testing::IsSubstring, "the product of the sizes (4294967296, 2147483648) does not fit 63 bits",
      message_of([] { AbstractMesh({AxisName("x"), AxisName("y")}, {int64_t{1} << 32, int64_t{1} << 31}); }));
  EXPECT_EQ(AbstractMesh({AxisName("x"), AxisName("y")}, {int64_t{1} << 31, int64_t{1} << 31}).size(),
            int64_t{1} << 62);
}

}  // namespace
}  // namespace artifex_devices
