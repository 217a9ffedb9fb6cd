# SPDX-License-Identifier: Apache-2.0
"""audit.program: what it takes, its totals, tables and findings. The reader itself is tested in tests/cpp/hlo."""

import gzip
from types import SimpleNamespace

import pytest
from artifex_devices import audit
from artifex_devices.planner import read_profile

HEAD = "HloModule step, is_scheduled=true, num_partitions=8\n\n"
# In a loop of 3 passes an all-reduce of 256 bytes over 2; before it a gather of 512 bytes over 4.
STEP = (
    HEAD
    + """%body (p: (s32[], f32[8,8])) -> (s32[], f32[8,8]) {
  %p = (s32[], f32[8,8]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %v = f32[8,8]{1,0} get-tuple-element(%p), index=1
  %sum = f32[8,8]{1,0} all-reduce(%v), channel_id=2, replica_groups=[4,2]<=[8],
    use_global_device_ids=true, metadata={op_name="jit(step)/psum" source_file="/home/me/step.py" source_line=7}
  ROOT %r = (s32[], f32[8,8]) tuple(%next, %sum)
}

%cond (q: (s32[], f32[8,8])) -> pred[] {
  %q = (s32[], f32[8,8]) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %limit = s32[] constant(3)
  ROOT %lt = pred[] compare(%j, %limit), direction=LT
}

ENTRY %main (x: f32[2,8]) -> f32[8,8] {
  %x = f32[2,8]{1,0} parameter(0)
  %g = f32[8,8]{1,0} all-gather(%x), channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0),
    dimensions={0},
    use_global_device_ids=true, metadata={op_name="jit(step)/gather" source_file="/home/me/step.py" source_line=5}
  %zero = s32[] constant(0)
  %t = (s32[], f32[8,8]) tuple(%zero, %g)
  %w = (s32[], f32[8,8]) while(%t), condition=%cond, body=%body
  ROOT %y = f32[8,8]{1,0} get-tuple-element(%w), index=1
}
"""
)
MESH = {"data": 4, "model": 2}


def test_totals_multiply_by_runs():
    program = audit.program(STEP, mesh=MESH)
    gather = audit.Total(count=1, runs=1, bytes=3 * 64, at_least=False)
    reduce = audit.Total(count=1, runs=3, bytes=3 * 256, at_least=False)
    assert program.totals() == {"model": reduce, "data": gather}
    assert program.totals("kind") == {"all_reduce": reduce, "all_gather": gather}
    assert program.totals("line") == {"step.py:7": reduce, "step.py:5": gather}


def test_unknown_trip_counts_make_totals_least_ones():
    program = audit.program(STEP.replace("s32[] constant(3)", "s32[] parameter(1)"), mesh=MESH)
    assert program.collectives[0].runs is None
    assert program.totals()["model"] == audit.Total(count=1, runs=None, bytes=256, at_least=True)
    assert "at least 448 bytes sent by one device" in str(program)


def test_the_table_has_a_row_for_each_place():
    assert str(audit.program(STEP, mesh=MESH)).splitlines() == [
        "program step",
        "  source       HLO text, compiled for cpu",
        "  devices      8 (data=4, model=2)",
        "  collectives  2, 960 bytes sent by one device",
        "  kind        axes   dtype    count  runs  bytes of a run      bytes  where",
        "  all_reduce  model  float32      1     3       256 bytes  768 bytes  step.py:7",
        "  all_gather  data   float32      1     1       192 bytes  192 bytes  step.py:5",
    ]


def test_a_program_is_equal_after_json():
    program = audit.program(STEP, mesh=MESH)
    assert audit.Program.from_json(program.to_json()) == program


def test_pictures_and_html_have_the_axes():
    program = audit.program(STEP, mesh=MESH)
    assert "all_reduce" in program.to_svg()
    assert "model" in program.to_svg()
    assert "step.py:7" in program._repr_html_()
    with pytest.raises(ValueError, match="has no collectives"):
        audit.program("module @step {\n}\n").to_svg()


def test_files_compressed_files_and_folders_of_dumps_are_read(tmp_path):
    expected = audit.program(STEP)
    (tmp_path / "module_0001.jit_init.cpu_after_optimizations.txt").write_text(HEAD + "ENTRY %m {\n}\n")
    dump = tmp_path / "module_0002.jit_step.cpu_after_optimizations.txt"
    dump.write_text(STEP)
    (tmp_path / "step.hlo.gz").write_bytes(gzip.compress(STEP.encode()))
    assert audit.program(dump) == expected
    assert audit.program(str(tmp_path / "step.hlo.gz")) == expected
    assert audit.program(tmp_path) == expected


def test_objects_with_a_text_give_the_names_of_their_mesh():
    mesh = SimpleNamespace(axis_names=("a", "b"), shape={"b": 2, "a": 4})
    compiled = SimpleNamespace(as_text=lambda: STEP, input_shardings=([{"x": SimpleNamespace(mesh=mesh)}], {}))
    assert [each.axes for each in audit.program(compiled).collectives] == [("b",), ("a",)]
    assert [each.axes for each in audit.program(compiled, mesh=MESH).collectives] == [("model",), ("data",)]


def test_a_mesh_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"mesh has 4 devices \(data=4\), the program 8; expected as many"):
        audit.program(STEP, mesh={"data": 4})


def in_entry(lines, computations=""):
    return f"{HEAD}{computations}ENTRY %main (x: f32[512,1024]) -> f32[64,1024] {{\n{lines}}}\n"


GATHER = "all-gather(%x), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true"
SLICED = in_entry(f"""  %x = f32[64,1024]{{1,0}} parameter(0)
  %id = u32[] partition-id()
  %g = f32[512,1024]{{1,0}} {GATHER}
  %zero = u32[] constant(0)
  ROOT %s = f32[512,128]{{1,0}} dynamic-slice(%g, %zero, %id), dynamic_slice_sizes={{512,128}}
""")


def test_a_gather_of_which_each_device_takes_a_slice_is_a_rematerialization():
    (finding,) = audit.program(SLICED).findings()
    assert (finding.kind, finding.name, finding.bytes) == ("rematerialization", "g", 7 * 64 * 1024 * 4)
    assert finding.text.startswith("the tensor is gathered over axis_0")


@pytest.mark.parametrize(
    "changed",
    [
        SLICED.replace("partition-id()", "constant(3)"),  # all devices take the same slice
        SLICED.replace("ROOT %s", "%s").replace(
            "}\n}", "}\n  ROOT %r = f32[512,1024]{1,0} tanh(%g)\n}"
        ),  # used elsewhere
    ],
    ids=["the same slice", "used as a whole"],
)
def test_other_gathers_are_not(changed):
    assert audit.program(changed).findings(at_least=0) == ()


def test_findings_have_a_least_size():
    assert audit.program(SLICED).findings(at_least="2 MiB") == ()
    assert len(audit.program(SLICED).findings(at_least=7 * 64 * 1024 * 4)) == 1


SUM = 'all-reduce(%x), channel_id=1, replica_groups=[1,8]<=[8], metadata={op_name="jit(f)/dot_general"}'
SUMMED = SLICED.replace(GATHER, SUM).replace("f32[64,1024]{1,0} parameter", "f32[512,1024]{1,0} parameter")


def test_a_sum_that_is_sliced_is_a_note_for_cpus_and_a_finding_elsewhere():
    program = audit.program(SUMMED)
    assert program.backend == "cpu"
    assert program.findings(at_least=0) == ()
    assert program.notes == ("all-reduces followed by a slice, as the compiler writes reduce-scatters here: 1",)
    on_gpu = audit.program(SUMMED.replace("parameter(0)", 'parameter(0), backend_config={"operation_queue_id":"0"}'))
    assert [each.kind for each in on_gpu.findings(at_least=0)] == ["all-reduce then slice"]


def test_the_same_tensor_gathered_twice_is_found_except_backward():
    def twice(first, second):
        other = GATHER.replace("channel_id=1", "channel_id=2").replace("dimensions={0}", "dimensions={1}")
        return in_entry(f"""  %x = f32[64,1024]{{1,0}} parameter(0)
  %a = f32[512,1024]{{1,0}} {GATHER}, metadata={{op_name="{first}"}}
  %b = f32[64,8192]{{1,0}} {other}, metadata={{op_name="{second}"}}
  %t = f32[8192,1024] transpose(%b)
  ROOT %d = f32[64,1024]{{1,0}} dot(%a, %t)
""")

    (finding,) = audit.program(twice("jit(f)/dot", "jit(f)/mul")).findings()
    assert (finding.kind, finding.name) == ("gathered twice", "b")
    assert "here and by a" in finding.text
    assert audit.program(twice("jit(f)/jvp()/dot", "jit(f)/transpose(jvp())/dot")).findings() == ()


def test_truncated_text_has_a_note_and_other_files_are_refused(tmp_path):
    assert "the text ends in the middle" in audit.program(STEP[: len(STEP) // 2]).notes[0]
    binary = tmp_path / "step.hlo"
    for content in (b"\x7fELF\0\1", b"int main() { return 0; }\n", b"{}", "HloModule ü".encode("latin-1")):
        binary.write_bytes(content)
        with pytest.raises(ValueError, match="expected"):
            audit.program(binary)


GRAPH = """class f(torch.nn.Module):
    def forward(self, x: "bf16[8, 16]"):
        # File: /home/me/model.py:31 in forward, code: return gather(x)
        all_gather_into_tensor: "bf16[32, 16]" = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 4, '0')
        wait_tensor: "bf16[32, 16]" = torch.ops._c10d_functional.wait_tensor.default(all_gather_into_tensor)
        all_reduce: "bf16[32, 16]" = torch.ops._c10d_functional.all_reduce.default(wait_tensor, 'sum', '0')
        return all_reduce
"""


def test_graphs_of_torch_have_shapes_and_lines():
    program = audit.program(GRAPH)
    gather, reduce = program.collectives
    assert program.source == "FX graph"
    assert (gather.kind, gather.bytes, gather.where) == ("all_gather", 3 * 8 * 16 * 2, "model.py:31")
    assert (reduce.kind, reduce.shapes, reduce.bytes) == ("all_reduce", ((32, 16),), None)  # of unknown groups


def test_counts_of_comm_debug_mode_are_runs():
    counts = {"c10d_functional.all_reduce": 4, "c10d._allgather_base_.default": 2}
    program = audit.program(counts)
    assert [(each.kind, each.runs, each.bytes) for each in program.collectives] == [
        ("all_reduce", 4, None),
        ("all_gather", 2, None),
    ]
    assert audit.program(SimpleNamespace(get_comm_counts=lambda: counts)) == program


def test_profiles_have_kinds_without_numbers():
    event = {"ph": "X", "cat": "kernel", "ts": 0, "dur": 9, "args": {"device": 0}}
    names = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_SendRecv", "sm90_xmma_gemm_bf16")
    profile = read_profile({"traceEvents": [{**event, "name": name} for name in names]}, steps=1)
    program = audit.program(profile)
    assert {(each.kind, each.runs, each.bytes) for each in program.collectives} == {
        ("all_reduce", None, None),
        ("collective_permute", None, None),
    }
    assert program.source == "profile"
