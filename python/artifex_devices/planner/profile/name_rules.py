# SPDX-License-Identifier: Apache-2.0
"""Rules that give operations of a profile their kinds by name."""

from __future__ import annotations

from typing import NamedTuple

CONTAINER = ""  # an event that spans the operations in it


class NameRule(NamedTuple):
    """A pattern of names, searched in lower case. The first rule that finds its pattern decides."""

    kind: str
    pattern: str
    source: str


_NCCL = "NCCL, src/device: kernels ncclDevKernel_*, before 2.19 ncclKernel_*, before 2.8 ncclAllReduceRingLLKernel_*"
_HLO = "XLA, hlo_opcode.h: names of HLO operations"
_TORCH = "PyTorch, aten/src/ATen/native/cuda"
_FLASH = "Dao-AILab/flash-attention, csrc"
_XFORMERS = "PyTorch, aten/src/ATen/native/transformers/cuda/mem_eff_attention"
_CUDNN = "traces of cuDNN 9: cudnn_generated_fort_native_sdpa_sm90_flash_fprop_*"
_CUBLAS = "traces of cuBLAS: nvjet_*, sm90_xmma_gemm_*, ampere_sgemm_*, cublasLt::splitKreduce_kernel"
_DEEPSEEK = "deepseek-ai/profile-data, train.json"
_INDUCTOR = (
    "PyTorch, torch/_inductor/codegen/triton.py: triton_poi_, triton_red_, triton_per_; triton_tem_ for templates"
)
_SYMMETRIC = "PyTorch, torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemoryOps.cu"
_ENGINE = "TransformerEngine, transformer_engine/common/comm_gemm_overlap/userbuffers/userbuffers.cu"
_VLLM = "vllm-project/vllm, csrc and vllm/v1/attention; sgl-project/sglang, sgl-kernel"
_FLASHINFER = "flashinfer-ai/flashinfer, include/flashinfer"
_AOTRITON = "ROCm/aotriton, tritonsrc: attn_fwd, bwd_kernel_dk_dv, bwd_kernel_dq"
_AITER = "ROCm/aiter, csrc; ROCm/composable_kernel"
_FLA = "fla-org/flash-linear-attention, fla/ops"
_ROCM = "ROCm/clr, rocclr: __amd_rocclr_copyBuffer; CopyHostToDevice"
_OURS = "artifex_devices.profiler.trace"
_TORCH_COMM = "PyTorch, ParamCommsUtils.cpp: the argument `Collective name`"

# The categories that XLA gives operations on TPUs (the argument `hlo_category`), and its opcodes as names.
CATEGORIES = (
    NameRule("products", r"^(convolution|convolution fusion|dot|dot fusion)$", "XLA, HloInstruction::ToCategory"),
    NameRule("all_gather", r"^all-gather", _HLO),
    NameRule("reduce_scatter", r"^reduce-scatter", _HLO),
    NameRule("all_reduce", r"^all-reduce", _HLO),
    NameRule("all_to_all", r"^(ragged-)?all-to-all", _HLO),
    NameRule("send", r"^(collective-permute|send|recv)", _HLO),
    NameRule(CONTAINER, r"^(while|conditional|call|async-start|async-done)$", _HLO),
    NameRule(
        "elementwise", r"^(loop|input|output|reduce|scatter|transpose) fusion$", "XLA, HloInstruction::ToCategory"
    ),
    NameRule("elementwise", r"^(non-fusion elementwise|data formatting)$", "XLA, HloInstruction::ToCategory"),
    NameRule(
        "elementwise",
        r"^(copy|copy-start|copy-done|broadcast|reduce|reduce-window|pad|slice|dynamic-slice|dynamic-update-slice|"
        r"concatenate|gather|scatter|sort|select-and-scatter|iota|reverse|transpose|reshape|rng-bit-generator)$",
        _HLO,
    ),
)

# The names of collectives in PyTorch, which distinguish an all-to-all from the sends that NCCL makes of it.
COLLECTIVES = (
    NameRule("all_gather", r"^_?all_?gather", _TORCH_COMM),
    NameRule("reduce_scatter", r"^_?reduce_?scatter", _TORCH_COMM),
    NameRule("all_reduce", r"^_?all_?reduce", _TORCH_COMM),
    NameRule("all_to_all", r"^_?all_?to_?all", _TORCH_COMM),
    NameRule("send", r"^(send|recv|coalesced)", _TORCH_COMM),
)

#: Rules of names, in order: the first pattern that is found decides.
NAMES = (
    # Generated elementwise kernels list the operations that they replace, products and collectives too.
    NameRule("elementwise", r"^triton_+(poi|red|per|for|spl|unk)_|^triton__?0d", _INDUCTOR),
    NameRule("elementwise", r"^triton_(fused|softmax|reduce)", f"{_INDUCTOR}, of 2022; XLA: triton_softmax_3"),
    # Messages.
    NameRule("all_gather", r"(nccl|msccl)\w*all_?gather|ncclall_?gather", _NCCL),
    NameRule("reduce_scatter", r"(nccl|msccl)\w*reduce_?scatter", _NCCL),
    NameRule("all_reduce", r"(nccl|msccl)\w*all_?reduce", _NCCL),
    NameRule("all_to_all", r"(nccl|msccl)\w*all_?to_?all", _NCCL),
    NameRule(
        "send", r"nccl(dev|sym|symk|symdev|symkdev)*kernel|^nccl\w+kernel|^mscclkernel|^rccl", f"{_NCCL}; RCCL: Generic"
    ),
    NameRule("all_reduce", r"userbuffers\w*_sum_inplace_gpu_(rw|rr|mc)\b", _ENGINE),
    NameRule("all_gather", r"userbuffers\w*_ag\b|userbuffers\w*all_?gather", _ENGINE),
    NameRule("reduce_scatter", r"userbuffers\w*_rs(_|\b)|userbuffers\w*reduce_?scatter", _ENGINE),
    NameRule("send", r"userbuffers\w*(send|recv|push|pull)", _ENGINE),
    NameRule("all_gather", r"(multimem|one_shot|two_shot|cross_device|lamport|trtllm|symm)\w*all_?gather", _SYMMETRIC),
    NameRule(
        "reduce_scatter",
        r"(multimem|one_shot|two_shot|cross_device|trtllm|symm)\w*reduce_?scatter|reduce_scatter_cross_device",
        f"{_SYMMETRIC}; {_AITER}",
    ),
    NameRule("all_to_all", r"(multimem|nvshmem|cross_device|trtllm|symm)\w*all_?to_?all", _SYMMETRIC),
    NameRule(
        "all_to_all", r"ep::(inter|intra)node(_ll)?::(combine|dispatch|cached_notify|notify_dispatch|clean)", _DEEPSEEK
    ),
    NameRule(
        "all_to_all",
        r"hybrid_ep::(combine|dispatch)|all_?to_?all_?(v|kernel|dispatch|combine)|moe\w*all_?to_?all",
        "DeepEP, hybrid-ep; TensorRT-LLM",
    ),
    NameRule(
        "all_reduce",
        r"(?<!block)(?<!warp)all_?reduce_?(\w*kernel|fusion|prototype|_one|_two|<|\()|cross_device_reduce",
        f"{_VLLM}; {_SYMMETRIC}; {_AITER}",
    ),
    NameRule("all_gather", r"all_?gather_?kernel", _SYMMETRIC),
    NameRule("reduce_scatter", r"reduce_?scatter_?kernel", _SYMMETRIC),
    NameRule("send", r"multimem|nvshmem|(put|wait)_signal_kernel|symm_mem\w*barrier", _SYMMETRIC),
    NameRule("all_gather", r"^all-gather(-start|-done)?(\.|$)|^all_gather ", f"{_HLO}; {_OURS}"),
    NameRule("reduce_scatter", r"^reduce-scatter(-start|-done)?(\.|$)|^psum_scatter ", f"{_HLO}; {_OURS}"),
    NameRule("all_reduce", r"^all-reduce(-start|-done)?(\.|$)|^(psum|pmean|pmax|pmin) ", f"{_HLO}; {_OURS}"),
    NameRule("all_to_all", r"^(ragged-)?all-to-all(-start|-done)?(\.|$)|^all_to_all ", f"{_HLO}; {_OURS}"),
    NameRule("send", r"^(collective-permute|send|recv)(-start|-done)?(\.|$)|^(ppermute|pshuffle) ", f"{_HLO}; {_OURS}"),
    # Copies.
    NameRule("host", r"mem_?cpy\w* ?(htod|dtoh|h2d|d2h)", "CUPTI: Memcpy HtoD and DtoH; XLA: MemcpyH2D and MemcpyD2H"),
    NameRule("host", r"copy(host)?to(device|host)\b|copy(hosttodevice|devicetohost)", _ROCM),
    NameRule("send", r"mem_?cpy\w* ?(ptop|p2p|peer)", "CUPTI: Memcpy PtoP"),
    NameRule("elementwise", r"^mem_?(cpy|set)", "CUPTI: Memcpy DtoD, Memset"),
    NameRule("elementwise", r"^copydevicetodevice|^__amd_rocclr_(copy|fill)|^fillbuffer", _ROCM),
    NameRule("host", r"^(host-to-device|device-to-host)$", _OURS),
    NameRule("send", r"^device-to-device$", _OURS),
    # Kernels that only store keys and values, and ATen's own kernels, whose template arguments may name anything.
    NameRule(
        "elementwise",
        r"reshape_and_cache|concat_and_cache|kv_?cache\w*(copy|store|append|write)|(append|store)\w*kv_?cache|"
        r"att(n|ention)_?mask|cross_entropy",
        f"{_VLLM}; {_FLASHINFER}",
    ),
    NameRule("elementwise", r"^(void )?at::native::", _TORCH),
    # Attention.
    NameRule(
        "attention_backward",
        r"flash_?\w*bwd|flash\w*attn?bwd|flashattnbwd|flash_bwd|flash_?attention\w*backward",
        _FLASH,
    ),
    NameRule(
        "attention_forward",
        r"flash_?fwd|flashattnfwd|compute_attn_ws|flash_fwd|flash_?attention\w*forward",
        f"{_FLASH}; {_DEEPSEEK}",
    ),
    NameRule("attention_backward", r"fmha_cutlassb|fmha\w*(bwd|backward)", f"{_XFORMERS}; {_AITER}"),
    NameRule("attention_forward", r"fmha_cutlassf|fmha\w*(fwd|forward)", f"{_XFORMERS}; {_AITER}"),
    NameRule("attention_backward", r"sdpa\w*(bprop|bwd|backward)", _CUDNN),
    NameRule("attention_forward", r"sdpa\w*(fprop|fwd)", _CUDNN),
    NameRule("attention_backward", r"splash_mha_d(kv|q)", "JAX, pallas/ops/tpu/splash_attention: splash_mha_dkv_*"),
    NameRule("attention_forward", r"splash_mha_fwd", "JAX, pallas/ops/tpu/splash_attention: splash_mha_fwd_*"),
    NameRule("attention_backward", r"flex_attention\w*backward", _INDUCTOR),
    NameRule("attention_forward", r"flex_(attention|decod)", _INDUCTOR),
    NameRule(
        "attention_backward",
        r"\bbwd_(kernel|inner)?_?(dk_?dv|dq|fuse)|^_?bwd_(kernel|preprocess)|(attn|attention|mha|mla)\w*(bwd|backward)|\bbwd_preprocess",
        f"{_AOTRITON}; Triton, tutorial 06",
    ),
    NameRule(
        "attention_forward",
        r"^_?fwd_(kernel|grouped_kernel)|(attn|attention|mha|mla)\w*(fwd|forward)|attn_fwd",
        f"{_AOTRITON}; {_VLLM}; Triton, tutorial 06",
    ),
    NameRule(
        "attention_forward",
        r"(prefill|decode)withpagedkv|(single|batch)(prefill|decode)|paged_?attention|unified_attention|(decode|extend|prefill|prefix)_attention|mha_varlen|\bpa_(fwd|decode|bf16|fp8)|merge_(attn_)?states?|cascade_attention",
        f"{_FLASHINFER}; {_VLLM}",
    ),
    NameRule("attention_backward", r"(gated_delta|chunk|recurrent|linear_attn|lightning)\w*_bwd", _FLA),
    NameRule("attention_forward", r"(gated_delta|chunk|recurrent|linear_attn|lightning)\w*_fwd", _FLA),
    NameRule(
        "attention",
        r"flash_?attention|fmha|mha_|sdpa|flash_?(mla|decod)|\bmla_|attention|\battn|_attn_",
        "names that say no direction: flash_attention.1",
    ),
    # Products.
    NameRule(
        "products", r"gemm|nvjet|xmma|cublas|split_?k_?reduce|gemv", f"{_CUBLAS}; CUTLASS; DeepGEMM; Composable Kernel"
    ),
    NameRule(
        "products",
        r"cutlass\w*_(tensorop|wmma|simt)|cijk_",
        "CUTLASS; Tensile (rocBLAS, hipBLASLt): Cijk_Ailk_Bljk_*, Custom_Cijk_*",
    ),
    NameRule("products", r"^(dot|convolution)(\.|$)|^(ynn|onednn)_fusion", "XLA:CPU: dot.3, ynn_fusion (YNNPACK)"),
    NameRule("products", r"^t?gmm(\.|$)|ragged.dot|megablox", "JAX, pallas/ops/tpu/megablox: gmm, tgmm"),
    NameRule(
        "products",
        r"triton\w*_mm(_|$)|^triton_tem_",
        "TorchInductor's templates: triton_tem_fused_mm_*, _bmm_, _addmm_, _convolution_",
    ),
    NameRule(
        "products",
        r"matmul|\bt?bmm_|grouped_mm|scaled_mm|fused_moe_?(kernel|marlin|\()|marlin|machete|fmoe_|wvsplitk|quantized?_mm",
        f"Triton, kernels/matmul_ogs; TensorRT-LLM: bmm_*; {_VLLM}",
    ),
    NameRule(
        "products",
        r"(fprop|dgrad|wgrad)_|convolve|winograd|conv2d_(fwd|bwd)|grouped_conv|^miopensp|implicit_?con",
        "cuDNN and MIOpen: convolutions",
    ),
    # Operations that the memory limits.
    NameRule(
        "elementwise",
        r"at::native::|multi_tensor|layer_?norm|rms_?norm|batch_?norm|group_?norm|l2_?norm|rotary|\brope_|_rope\b|_rope_|fused_rope|softmax|swiglu|silu|gelu|"
        r"geglu|relu|act_and_mul|adam|dropout|embedding|cub::device|\bcub::|::(elementwise|reduce)_kernel|"
        r"elementwise|top_?k|moe_align|moe_?sort|row_id_map|sort_chunks|^_(un)?permute_kernel|moe_sum|moe_(un)?permute|routing|sampling|quantize|_quant|quant_|kquant|selective_scan|causal_conv1d|"
        r"cat_array|index_(put|select|add)|fill_kernel|argmax|\bcvt_",
        f"{_TORCH}; Apex; Transformer Engine; {_VLLM}; {_FLASHINFER}; Liger-Kernel",
    ),
    NameRule("elementwise", r"transpose|_cast_|cast_back|copy_?kernel|copy_tensor", _DEEPSEEK),
    NameRule("products", r"cutlass", "CUTLASS: kernels whose names say nothing else"),
    NameRule(CONTAINER, r"^(while|conditional|call)(\.|$)", _HLO),
    NameRule(
        "elementwise",
        r"^(loop|input|wrapped)_\w|_fusion(\.|_\d+|$)|^fusion(_\d+)?$|"
        r"^(copy|transpose|broadcast|reduce|reduce-window|convert|add|multiply|subtract|select|pad|slice|concatenate|"
        r"gather|scatter|sort|iota|bitcast|dynamic-slice|dynamic-update-slice)(\.|$)",
        f"XLA, rename_fusions.cc; {_HLO}",
    ),
)
