# SPDX-License-Identifier: Apache-2.0
"""Profiles of training steps from traces in the JSON format of Chrome."""

import gzip
import json
import pickle
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, lax, profiler
from artifex_devices.planner import read_profile
from artifex_devices.planner.profile.name_rules import CONTAINER
from artifex_devices.planner.profile.names import compiled_patterns, kind_of


def kernel(name, begin, end, device=0, category="kernel", **arguments):
    """A kernel of torch.profiler; times in milliseconds."""
    return {
        "ph": "X", "cat": category, "name": name, "pid": device, "tid": 7, "ts": 1.7e15 + begin * 1e3,
        "dur": (end - begin) * 1e3, "args": {"device": device, "stream": 7, **arguments},
    }  # fmt: skip


def mark(number):
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": f"ProfilerStep#{number}",
        "pid": 5,
        "tid": 5,
        "ts": 1,
        "dur": 9,
    }


KERNEL_NAMES = Path(__file__).resolve().parents[2] / "data" / "kernel_names.txt"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64_cublas"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TORCH = [
    mark(4),
    mark(5),
    mark(5),
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 5, "ts": 0, "dur": 1e9},
    kernel(GEMM, 0, 4),
    kernel(GATHER, 3, 9),
    kernel("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >", 5, 6),
    kernel("Memcpy HtoD (Pinned -> Device)", 8, 10, category="gpu_memcpy"),
    kernel("my_kernel", 12, 14),
    kernel(GEMM, 0, 100, device=1),
]


def test_kinds_of_a_trace_of_torch():
    profile = read_profile({"traceEvents": TORCH})
    assert (profile.device, profile.devices) == ("gpu:0", ("gpu:0", "gpu:1"))
    assert (profile.steps, profile.steps_from) == (2, "steps of torch.profiler (ProfilerStep#)")
    busy = {kind: round(1e3 * seconds, 6) for kind, seconds in profile.busy.items() if seconds}
    alone = {kind: round(1e3 * seconds, 6) for kind, seconds in profile.alone.items() if seconds}
    assert busy == {"products": 2, "elementwise": 0.5, "other": 1, "all_gather": 3, "host": 1}
    assert alone == {"products": 2, "elementwise": 0.5, "other": 1, "all_gather": 2, "host": 0.5}
    assert (round(1e3 * profile.idle, 6), round(1e3 * profile.seconds, 6)) == (1, 7)
    assert sum(profile.alone.values()) + profile.idle == pytest.approx(profile.seconds)
    assert {name: round(1e3 * seconds, 6) for name, seconds in profile.unknown.items()} == {"my_kernel": 1}
    assert profile.operations == 5


def test_another_device_steps_and_kinds():
    profile = read_profile(TORCH, device="gpu:1", steps=4)
    assert (profile.busy["products"], profile.steps_from) == (pytest.approx(0.025), "given")
    profile = read_profile(TORCH, kinds={"^my_": "attention", "gemm": "elementwise"})
    assert profile.busy["attention"] == pytest.approx(0.001)
    assert (profile.busy["products"], profile.unknown) == (0, {})


def test_collectives_have_the_names_of_torch():
    sends = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    events = [kernel(sends, 0, 1, **{"Collective name": "all_to_allv"}), kernel(sends, 1, 3)]
    profile = read_profile(events, steps=1)
    assert (profile.busy["all_to_all"], profile.busy["send"]) == (pytest.approx(0.001), pytest.approx(0.002))


def metadata(kind, pid, name, tid=0):
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def operation(pid, tid, name, begin, end, **arguments):
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": begin * 1e3, "dur": (end - begin) * 1e3,
            "args": arguments}  # fmt: skip


def test_tracks_of_a_trace_of_jax_on_tpus():
    threads = {1: "Steps", 2: "XLA Modules", 3: "XLA Ops", 4: "Async XLA Ops", 5: "Framework Name Scope"}
    events = [
        metadata("process_name", 3, "/device:TPU:0"),
        metadata("process_name", 4, "/device:TPU:0 SparseCore 0"),
        metadata("process_name", 9, "/host:CPU"),
        *(metadata("thread_name", pid, name, tid) for tid, name in threads.items() for pid in (3, 4)),
        operation(3, 1, "0", 0, 10),
        operation(3, 1, "1", 10, 20),
        operation(3, 2, "jit_step", 0, 20),
        operation(3, 5, "transformer", 0, 20),
        operation(3, 3, "while.4", 0, 16, hlo_category="while"),
        operation(3, 3, "fusion.12", 0, 6, hlo_category="convolution fusion"),
        operation(3, 3, "fusion.13", 6, 8, hlo_category="loop fusion"),
        operation(3, 3, "fusion.14", 8, 9, tf_op="jit(step)/layer/dot_general:"),
        operation(3, 3, "splash_mha_fwd_residuals.2", 9, 11, hlo_category="custom-call"),
        operation(3, 3, "splash_mha_dkv_no_residuals.1", 11, 14, hlo_category="custom-call"),
        operation(3, 3, "all-gather-start.7", 6, 6.001, hlo_category="all-gather-start"),
        operation(3, 3, "all-gather-done.7", 14, 16, hlo_category="all-gather-done"),
        operation(3, 4, "all-gather-start.7", 6, 16, hlo_category="all-gather-start"),
        operation(4, 3, "fusion.1", 0, 99),
        operation(9, 3, "PjitFunction(step)", 0, 99),
    ]
    profile = read_profile(events)
    assert (profile.devices, profile.steps, profile.steps_from) == (("tpu:0",), 2, "steps of the track Steps")
    busy = {kind: round(1e3 * seconds, 6) for kind, seconds in profile.busy.items() if seconds}
    assert busy == {
        "products": 3.5, "elementwise": 1, "attention_forward": 1, "attention_backward": 1.5, "all_gather": 5
    }  # fmt: skip
    assert profile.alone["all_gather"] == pytest.approx(0.001)
    assert profile.notes == ()
    without = [event for event in events if event["tid"] != 4]
    assert "no track 'Async XLA Ops'" in read_profile(without).notes[0]


def test_tracks_of_a_trace_of_jax_on_gpus():
    events = [
        metadata("process_name", 1, "/device:GPU:3"),
        metadata("thread_name", 1, "Stream #18(Compute)", 18),
        metadata("thread_name", 1, "Stream #19(MemcpyD2H)", 19),
        metadata("thread_name", 1, "XLA Modules", 2),
        operation(1, 2, "jit_step", 0, 50),
        operation(1, 18, "nvjet_tst_128x128_64x6_2x1_v_bz_TNT", 0, 2, hlo_op="cublas-gemm.3"),
        operation(1, 18, "loop_add_fusion", 2, 3, hlo_op="loop_add_fusion"),
        operation(1, 18, "a_kernel", 3, 4, hlo_op="all-reduce-start.1"),
        operation(1, 19, "MemcpyD2H", 3, 5),
        {"ph": "X", "pid": 7, "tid": 1, "name": "train", "ts": 0, "dur": 1, "args": {"step_num": "8"}},
    ]
    profile = read_profile(events)
    assert (profile.devices, profile.steps) == (("gpu:3",), 1)
    assert profile.steps_from == "steps of jax.profiler.StepTraceAnnotation"
    busy = {kind: round(1e3 * seconds, 6) for kind, seconds in profile.busy.items() if seconds}
    assert busy == {"products": 2, "elementwise": 1, "all_reduce": 1, "host": 2}


NAMES = {
    "products": [
        "nvjet_tst_192x192_64x3_2x1_v_bz_coopB_NNN",
        "ampere_sgemm_128x128_tn",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>(cutlass::Params)",
        "void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_dptp128c_acc::GemmKernel>(Params)",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>",
        "Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1",
        "gemm_fusion_dot_1",
        "triton_tem_fused_mm_3",
        "dot.3",
        "ynn_fusion.1",
    ],
    "attention_forward": [
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false>>",
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128>>",
        "void flash::compute_attn_ws<Flash_fwd_kernel_traits<192, 128, 128, 12, 2, false, 1, cutlass::bfloat16_t>>",
        "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>",
        "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1",
        "splash_mha_fwd_residuals.3",
    ],
    "attention_backward": [
        "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128>>",
        "void cutlass::device_kernel<flash::FlashAttnBwd<flash::CollectiveMainloopBwd<2>>>",
        "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<cute::C<64>>>>",
        "fmha_cutlassB_bf16_aligned_128x128_k128_sm80(PyTorchMemEffAttention::AttentionBackwardKernel)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x1x1",
        "splash_mha_dkv_no_residuals.1",
    ],
    "attention": ["flash_attention.1"],
    "elementwise": [
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, float, int>>",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
        "void layer_norm::ln_fwd_kernel<layer_norm::Kernel_traits<__nv_bfloat16>>",
        "triton_red_fused__to_copy_add_mul_2",
        "Memcpy DtoD (Device -> Device)",
        "Memset (Device)",
        "rotary_kernel",
        "loop_add_fusion_4",
        "input_reduce_fusion",
        "wrapped_multiply.1",
        "copy_subtract_fusion",
        "broadcast_multiply_fusion.2",
    ],
    "all_gather": [GATHER, "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", "all-gather.3"],
    "reduce_scatter": ["ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(Args)", "reduce-scatter.1.1"],
    "all_reduce": [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(Args)",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "all-reduce-start.12",
    ],
    "all_to_all": ["all-to-all.1", "void deep_ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 24>"],
    "send": ["ncclDevKernel_SendRecv(Args)", "collective-permute.2", "collective-permute-done.2"],
    "host": ["Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pageable)", "MemcpyH2D"],
    CONTAINER: ["while.12", "conditional.1", "call"],
    None: ["my_kernel", "fusion.12", "void permute_pooled_embs_kernel<float>(float const*)"],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names])
def test_names_of_real_traces(kind, name):
    assert kind_of(name, {}, compiled_patterns("read_profile", {}, ())) == kind


def test_names_of_compiled_programs_servers_and_other_vendors():
    patterns = compiled_patterns("read_profile", {}, ())
    rows = [line.split(": ", 1) for line in KERNEL_NAMES.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert len(rows) > 150
    assert [[kind_of(name, {}, patterns), name] for _, name in rows] == rows


def test_the_generic_kernel_of_rccl_has_the_name_of_torch():
    patterns = compiled_patterns("read_profile", {}, ())
    name = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
    assert kind_of(name, {"Collective name": "allreduce"}, patterns) == "all_reduce"
    assert kind_of(name, {}, patterns) == "send"


def body(block):
    gathered = lax.all_gather(lax.psum(block, "x"), "x")
    return lax.ppermute(lax.psum_scatter(gathered, "x"), "x", [(0, 1), (1, 0)])


def test_a_trace_of_our_own(tmp_path):
    with ad.simulate(2):
        mesh = ad.make_mesh((2,), ("x",), (ad.AxisType.Auto,))
        mapped = ad.shard_map(body, mesh, P("x"), P("x"))
        with profiler.trace(tmp_path / "trace.json") as trace:
            for number in range(3):
                with profiler.annotate("step", number=number):
                    mapped(ad.device_put(np.ones((2, 8)), ad.NamedSharding(mesh, P("x"))))
    profile = read_profile(tmp_path / "trace.json", device="cpu:1")
    assert (profile.devices, profile.steps) == (("cpu:0", "cpu:1"), 3)
    assert profile.steps_from == "spans of profiler.annotate('step')"
    own = [event for event in trace.events if event.device == "cpu:1"]
    for kind, start in (("all_reduce", "psum "), ("all_gather", "all_gather"), ("reduce_scatter", "psum_scatter"),
                        ("send", "ppermute"), ("host", "host-to-device")):  # fmt: skip
        expected = sum(event.end_s - event.begin_s for event in own if event.name.startswith(start))
        assert 3 * profile.busy[kind] == pytest.approx(expected, rel=1e-6), kind
    assert (profile.unknown, profile.busy["products"]) == ({}, 0)


def test_files_and_folders(tmp_path):
    folder = tmp_path / "plugins" / "profile" / "2026_11_27"
    folder.mkdir(parents=True)
    text = json.dumps({"traceEvents": TORCH})
    (folder / "perfetto_trace.json.gz").write_bytes(gzip.compress(text.encode()))
    plain = tmp_path / "a.json"
    plain.write_text(text, encoding="utf-8")
    from_folder, from_file, from_text = (
        read_profile(tmp_path), read_profile(folder / "perfetto_trace.json.gz"), read_profile(str(plain))
    )  # fmt: skip
    assert from_folder.source == from_file.source == "perfetto_trace.json.gz"
    assert from_text.source == "a.json"
    assert from_folder.busy == from_file.busy == from_text.busy == read_profile(TORCH).busy


def test_texts_and_pickles():
    profile = read_profile(TORCH)
    text = str(profile)
    assert "gpu:0 of 2 devices" in text
    assert "2 [steps of torch.profiler (ProfilerStep#)]" in text
    assert "other: my_kernel" in text
    assert repr(profile) == "<Profile: a trace, gpu:0, 2 steps of 7 ms>"
    assert json.loads(profile.to_json())["busy"]["products"] == profile.busy["products"]
    assert pickle.loads(pickle.dumps(profile)).busy == profile.busy


def test_events_without_times_are_noted():
    events = [kernel(GEMM, 0, 1), {**kernel(GEMM, 0, 1), "dur": -1}, {**kernel(GEMM, 0, 1), "ts": "x"}, 3, None]
    profile = read_profile(events, steps=1)
    assert (profile.operations, profile.notes) == (1, ("2 events of devices have no time and are left out",))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: read_profile(3), TypeError, r"read_profile: source is 3 \(int\); expected a path, or a trace"),
        (lambda: read_profile({}), ValueError, "read_profile: 'source' has no list of traceEvents"),
        (lambda: read_profile([]), ValueError, "'a trace' has no operations of a device; expected kernels"),
        (lambda: read_profile(TORCH, device="gpu:7"), ValueError,
         "device is 'gpu:7'.*; expected one of gpu:0, gpu:1; choose one"),
        (lambda: read_profile(TORCH, device=0), TypeError, r"read_profile: device is 0 \(int\)"),
        (lambda: read_profile(TORCH, steps=0), ValueError, "read_profile: steps is 0"),
        (lambda: read_profile(TORCH[4:]), ValueError, "'a trace' marks no steps; .*; or write steps=3"),
        (lambda: read_profile(TORCH, kinds=3), TypeError, r"read_profile: kinds is 3 \(int\)"),
        (lambda: read_profile(TORCH, kinds={"(": "products"}), ValueError, r"kinds has '\('; expected a regular"),
        (lambda: read_profile(TORCH, kinds={"x": "gemm"}), ValueError, r"kinds\['x'\] is 'gemm'"),
        (lambda: read_profile("/nowhere/trace.json"), FileNotFoundError, "nowhere"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\x1f\x8b\x08", b"\xff\xfe", b"[" * 100_000, gzip.compress(b"no", mtime=0)]
)
def test_files_that_are_not_json(tmp_path, data):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"read_profile: 'trace\.json\.gz' is not JSON: .*; expected a trace"):
        read_profile(path)


def test_a_folder_without_a_trace(tmp_path):
    with pytest.raises(
        ValueError, match=r"read_profile: no file in .* ends in trace\.json\.gz or trace\.json; expected"
    ):
        read_profile(tmp_path)
