// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/program_text.h"

#include <gtest/gtest.h>

#include <string>

#include "artifex_devices/base/error.h"
#include "artifex_devices/hlo/execution_counts.h"

namespace artifex_devices::hlo {
namespace {

using Runs = std::optional<int64_t>;

/// A module whose entry has these lines, below these other computations.
std::string module_of(const std::string& lines, const std::string& others = "", const std::string& head = "") {
  return "HloModule step, is_scheduled=true, num_partitions=8" + head + "\n\n" + others +
         "ENTRY %main (x: f32[8,16]) -> f32[8,16] {\n  %x = f32[8,16]{1,0} parameter(0)\n" + lines + "}\n";
}

const std::string kGroups = "channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true";

Collective only(const std::string& text) {
  const ProgramText program = read_program(text, {});
  EXPECT_EQ(program.collectives.size(), 1U);
  return program.collectives.at(0);
}

TEST(RingBytes, AreTheLeastThatOneDeviceSends) {
  EXPECT_EQ(ring_bytes("all_gather", 100, 4), 300);
  EXPECT_EQ(ring_bytes("all_reduce", 100, 4), 150);
  EXPECT_EQ(ring_bytes("reduce_scatter", 100, 4), 75);
  EXPECT_EQ(ring_bytes("all_to_all", 100, 4), 75);
  EXPECT_EQ(ring_bytes("collective_permute", 100, 4), 100);
  EXPECT_EQ(ring_bytes("all_reduce", 4, 3), 6);  // 16 / 3, rounded up
  EXPECT_EQ(ring_bytes("all_gather", 100, 1), 0);
  EXPECT_EQ(ring_bytes("all_gather", std::nullopt, 4), std::nullopt);
  EXPECT_EQ(ring_bytes("ragged_all_to_all", 100, 4), std::nullopt);
}

TEST(ProgramText, ReadsACollective) {
  const ProgramText program = read_program(
      module_of(
          "  ROOT %all-gather.1 = f32[8,64]{1,0:T(8,128)} all-gather(%x), " + kGroups +
          ", dimensions={1}, metadata={op_name=\"jit(step)/dot\" source_file=\"/home/me/step.py\" source_line=12}\n"),
      {});
  EXPECT_EQ(program.name, "step");
  EXPECT_EQ(program.devices, 8);
  EXPECT_TRUE(program.is_partitioned);
  const Collective& each = program.collectives.at(0);
  EXPECT_EQ(each.name, "all-gather.1");
  EXPECT_EQ(each.kind, "all_gather");
  EXPECT_EQ(each.dtypes, std::vector<std::string_view>{"float32"});
  EXPECT_EQ(each.shapes, (std::vector<std::vector<int64_t>>{{8, 16}}));
  EXPECT_EQ(each.bytes, 3 * 8 * 16 * 4);
  EXPECT_EQ(program.groups.at(each.groups), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(program.mesh, (MeshAxes{{"axis_0", 4}, {"axis_1", 2}}));
  EXPECT_EQ(each.axes, (std::vector<size_t>{0}));
  EXPECT_EQ(each.runs, 1);
  EXPECT_EQ(each.op_name, "jit(step)/dot");
  EXPECT_EQ(each.file, "/home/me/step.py");
  EXPECT_EQ(each.line, 12);
}

TEST(ProgramText, CountsGroupsOfReplicasForEachPartition) {
  const std::string head =
      "HloModule m, replica_count=2, num_partitions=2\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n";
  const auto groups = [&](const std::string& attributes) {
    const ProgramText program = read_program(head + "  ROOT y = f32[4]{0} all-reduce(x), " + attributes + "\n}\n", {});
    return program.groups.at(program.collectives.at(0).groups);
  };
  EXPECT_EQ(groups("replica_groups={{0,1}}"), (Groups{{0, 2}, {1, 3}}));                  // for each partition
  EXPECT_EQ(groups("channel_id=1, replica_groups={{0},{1}}"), (Groups{{0, 1}, {2, 3}}));  // all partitions of each
  EXPECT_EQ(groups("replica_groups={}"), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups("channel_id=1, replica_groups={{0,3}}, use_global_device_ids=true"), (Groups{{0, 3}}));
}

TEST(ProgramText, ReadsTheInnermostFrameOfTheUser) {
  const std::string tables =
      "FileNames\n1 \"/home/me/step.py\"\n2 \"/usr/lib/python3/site-packages/flax/linen.py\"\n\n"
      "FunctionNames\n1 \"f\"\n\nFileLocations\n1 {file_name_id=1 function_name_id=1 line=7 end_line=7}\n"
      "2 {file_name_id=2 function_name_id=1 line=99 end_line=99}\n\n"
      "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n\n";
  const Collective each = only(
      module_of("  ROOT %y = f32[8,16]{1,0} all-reduce(%x), " + kGroups + ", metadata={stack_frame_id=2}\n", tables));
  EXPECT_EQ(each.file, "/home/me/step.py");
  EXPECT_EQ(each.line, 7);
}

std::string loop_of(const std::string& attributes, const std::string& limit = "5") {
  return module_of(
      "  %zero = s32[] constant(1)\n  %t = (s32[], f32[8,16]) tuple(%zero, %x)\n"
      "  %w = (s32[], f32[8,16]) while(%t), condition=%cond, body=%body" +
          attributes + "\n  ROOT %y = f32[8,16]{1,0} get-tuple-element(%w), index=1\n",
      "%body (p: (s32[], f32[8,16])) -> (s32[], f32[8,16]) {\n"
      "  %p = (s32[], f32[8,16]) parameter(0)\n"
      "  %i = s32[] get-tuple-element(%p), index=0\n  %one = s32[] constant(2)\n"
      "  %next = s32[] add(%i, %one)\n  %v = f32[8,16]{1,0} get-tuple-element(%p), index=1\n"
      "  %sum = f32[8,16]{1,0} all-reduce(%v), " +
          kGroups +
          "\n"
          "  ROOT %r = (s32[], f32[8,16]) tuple(%next, %sum)\n}\n\n"
          "%cond (q: (s32[], f32[8,16])) -> pred[] {\n  %q = (s32[], f32[8,16]) parameter(0)\n"
          "  %j = s32[] get-tuple-element(%q), index=0\n  %limit = s32[] constant(" +
          limit +
          ")\n"
          "  ROOT %lt = pred[] compare(%j, %limit), direction=LT\n}\n\n");
}

TEST(Runs, AreTheTripCountOfALoop) {
  const Collective each = only(loop_of(""));
  EXPECT_EQ(each.runs, 2);  // 1, 3
  EXPECT_TRUE(each.in_loop);
  EXPECT_EQ(only(loop_of(", backend_config={\"known_trip_count\":{\"n\":\"12\"}}")).runs, 12);
  EXPECT_EQ(only(loop_of(", backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"3\\\"}}\"")).runs, 3);
  EXPECT_EQ(only(loop_of("", "-5")).runs, 0);
  EXPECT_EQ(only(loop_of("", "{1}")).runs, std::nullopt);
}

TEST(Runs, AreNotKnownInABranch) {
  const std::string branch =
      "%branch (p: f32[8,16]) -> f32[8,16] {\n  %p = f32[8,16]{1,0} parameter(0)\n"
      "  ROOT %sum = f32[8,16]{1,0} all-reduce(%p), " +
      kGroups + "\n}\n\n";
  const Collective each = only(module_of(
      "  %c = pred[] constant(true)\n"
      "  ROOT %y = f32[8,16]{1,0} conditional(%c, %x, %x), true_computation=%branch, false_computation=%branch\n",
      branch));
  EXPECT_EQ(each.runs, std::nullopt);
}

TEST(Runs, AddUpOverCalls) {
  const std::string callee =
      "%f (p: f32[8,16]) -> f32[8,16] {\n  %p = f32[8,16]{1,0} parameter(0)\n"
      "  ROOT %sum = f32[8,16]{1,0} all-reduce(%p), " +
      kGroups + "\n}\n\n";
  EXPECT_EQ(only(module_of("  %y = f32[8,16]{1,0} call(%x), to_apply=%f\n"
                           "  ROOT %z = f32[8,16]{1,0} call(%y), to_apply=%f\n",
                           callee))
                .runs,
            2);
}

TEST(Runs, OfLoopsDoNotOverflow) {
  EXPECT_EQ(passes_of(0, 5, 2), 3);
  EXPECT_EQ(passes_of(5, 5, 1), 0);
  EXPECT_EQ(passes_of(-(int64_t{1} << 62), int64_t{1} << 62, 1), std::nullopt);
  EXPECT_EQ(passes_of(0, 5, 0), std::nullopt);
}

TEST(Asynchronous, OverlapsWithComputationBetweenStartAndDone) {
  const auto read = [](const std::string& between) {
    return only(module_of("  %s = (f32[8,16]{1,0}, f32[8,64]{1,0}) all-gather-start(%x), " + kGroups +
                          ", dimensions={1}\n" + between + "  ROOT %y = f32[8,64]{1,0} all-gather-done(%s)\n"));
  };
  EXPECT_TRUE(read("").is_async);
  EXPECT_FALSE(read("").overlaps);
  EXPECT_FALSE(read("  %b = f32[128]{0} bitcast(%x)\n").overlaps);
  EXPECT_TRUE(read("  %m = f32[8,16]{1,0} multiply(%x, %x)\n").overlaps);
  EXPECT_EQ(read("").bytes, 3 * 8 * 16 * 4);
}

TEST(Asynchronous, HasTheNameOfTheWrapper) {
  const Collective each =
      only(module_of("  %s = ((f32[8,16]{1,0}), f32[2,16]{1,0}) async-start(%x), calls=%wrapped\n"
                     "  ROOT %y = f32[2,16]{1,0} async-done(%s)\n",
                     "%wrapped (p: f32[8,16]) -> f32[2,16] {\n  %p = f32[8,16]{1,0} parameter(0)\n"
                     "  ROOT %rs = f32[2,16]{1,0} reduce-scatter(%p), " +
                         kGroups + ", dimensions={0}\n}\n\n"));
  EXPECT_EQ(each.name, "s");
  EXPECT_EQ(each.kind, "reduce_scatter");
  EXPECT_EQ(each.bytes, 8 * 16 * 4 * 3 / 4);
  EXPECT_EQ(each.runs, 1);
  EXPECT_TRUE(each.is_async);
}

TEST(ProgramText, ReadsAsFarAsTheTextGoes) {
  const std::string text = module_of("  %a = f32[8,16]{1,0} all-reduce(%x), " + kGroups +
                                     "\n  ROOT %b = f32[8,16]{1,0} "
                                     "all-reduce(%a), " +
                                     kGroups + "\n");
  const ProgramText program = read_program(std::string_view(text).substr(0, text.size() - 40), {});
  EXPECT_EQ(program.collectives.size(), 1U);  // the last line may be cut anywhere
  EXPECT_EQ(program.notes.at(0), "the text ends in the middle: it was read as far as it goes");
}

TEST(ProgramText, RefusesOtherTexts) {
  for (const std::string& text :
       {std::string("int main() {}\n"),
        std::string("\x7f"
                    "ELF\x00\x01",
                    6),
        std::string(), std::string("HloModule m\n"), std::string(1 << 20, '('), std::string("module\n")}) {
    try {
      read_program(text, {});
      ADD_FAILURE() << text.substr(0, 40);
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("expected"), std::string::npos);
    }
  }
  EXPECT_THROW(read_program(module_of("  ROOT %y = f32[8,16]{1,0} all-reduce(%x), " + kGroups + "\n"), {{"data", 4}}),
               InvalidArgument);
}

TEST(ProgramText, ReadsDeepNesting) {
  const std::string deep(1 << 20, '(');
  const ProgramText program = read_program(module_of("  %t = " + deep +
                                                     " tuple(%x)\n  ROOT %y = f32[8,16]{1,0} "
                                                     "all-reduce(%x), " +
                                                     kGroups + "\n"),
                                           {});
  EXPECT_EQ(program.collectives.size(), 1U);
}

TEST(StablehloText, ReadsCollectivesInLoopsAndFunctions) {
  const ProgramText program = read_program(R"(module @jit_f attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<8xbf16>) -> tensor<8xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<8xbf16>
    cond {
      %c_1 = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = func.call @g(%iterArg_0) : (tensor<8xbf16>) -> tensor<8xbf16>
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %iterArg, %c_1 : tensor<i32>
      stablehlo.return %2, %1 : tensor<i32>, tensor<8xbf16>
    }
    return %0#1 : tensor<8xbf16>
  }
  func.func private @g(%arg0: tensor<8xbf16>) -> tensor<8xbf16> {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<bf16>, %arg2: tensor<bf16>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<bf16>
      stablehlo.return %1 : tensor<bf16>
    }) : (tensor<8xbf16>) -> tensor<8xbf16> loc(#loc2)
    return %0 : tensor<8xbf16>
  }
}
#loc1 = loc("/home/me/step.py":12:6 to :46)
#loc2 = loc("psum"(#loc1))
)",
                                           {});
  const Collective& each = program.collectives.at(0);
  EXPECT_EQ(program.source, "StableHLO text");
  EXPECT_EQ(each.kind, "all_reduce");
  EXPECT_EQ(each.bytes, 8 * 2);
  EXPECT_EQ(each.runs, 3);
  EXPECT_TRUE(each.in_loop);
  EXPECT_EQ(program.mesh.at(each.axes.value().at(0)).first, "model");
  EXPECT_EQ(each.file, "/home/me/step.py");
  EXPECT_EQ(each.line, 12);
  EXPECT_FALSE(program.is_partitioned);
}

}  // namespace
}  // namespace artifex_devices::hlo
