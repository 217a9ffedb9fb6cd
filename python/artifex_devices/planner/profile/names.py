# SPDX-License-Identifier: Apache-2.0
"""Kinds of operations by their names in a profile."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from artifex_devices._base.checks import check_choice, check_str, check_type, failure
from artifex_devices._base.safe_repr import safe_repr

CONTAINER = ""  # an event that spans the operations in it


class NameRule(NamedTuple):
    """A pattern of names, searched in lower case. The first rule that finds its pattern decides."""

    kind: str
    pattern: str
    source: str


_NCCL = "NCCL, src/device: kernels ncclDevKernel_*, before 2.19 ncclKernel_*"
_HLO = "XLA, hlo_opcode.h: names of HLO operations"
_TORCH = "PyTorch, aten/src/ATen/native/cuda"
_FLASH = "Dao-AILab/flash-attention, csrc"
_XFORMERS = "PyTorch, aten/src/ATen/native/transformers/cuda/mem_eff_attention"
_CUDNN = "traces of cuDNN 9: cudnn_generated_fort_native_sdpa_sm90_flash_fprop_*"
_CUBLAS = "traces of cuBLAS: nvjet_*, sm90_xmma_gemm_*, ampere_sgemm_*, cublasLt::splitKreduce_kernel"
_DEEPSEEK = "deepseek-ai/profile-data, train.json"
_OURS = "artifex_devices.profiler.trace"
_TORCH_COMM = "PyTorch, ParamCommsUtils.cpp: the argument `Collective name`"

# The categories that XLA gives operations on TPUs (the argument `hlo_category`), and its opcodes as names.
_CATEGORIES = (
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
_COLLECTIVES = (
    NameRule("all_gather", r"^_?all_?gather", _TORCH_COMM),
    NameRule("reduce_scatter", r"^_?reduce_?scatter", _TORCH_COMM),
    NameRule("all_reduce", r"^_?all_?reduce", _TORCH_COMM),
    NameRule("all_to_all", r"^_?all_?to_?all", _TORCH_COMM),
    NameRule("send", r"^(send|recv|coalesced)", _TORCH_COMM),
)

_NAMES = (
    # Messages.
    NameRule("all_gather", r"nccl\w*kernel_all_?gather", _NCCL),
    NameRule("reduce_scatter", r"nccl\w*kernel_reduce_?scatter", _NCCL),
    NameRule("all_reduce", r"nccl\w*kernel_all_?reduce", _NCCL),
    NameRule("all_to_all", r"nccl\w*kernel_all_?to_?all", _NCCL),
    NameRule("send", r"nccl\w*kernel_(send_?recv|broadcast)", _NCCL),
    NameRule("all_to_all", r"ep::(inter|intra)node::(combine|dispatch|cached_notify|notify_dispatch)", _DEEPSEEK),
    NameRule("all_gather", r"^all-gather(-start|-done)?(\.|$)|^all_gather ", f"{_HLO}; {_OURS}"),
    NameRule("reduce_scatter", r"^reduce-scatter(-start|-done)?(\.|$)|^psum_scatter ", f"{_HLO}; {_OURS}"),
    NameRule("all_reduce", r"^all-reduce(-start|-done)?(\.|$)|^(psum|pmean|pmax|pmin) ", f"{_HLO}; {_OURS}"),
    NameRule("all_to_all", r"^(ragged-)?all-to-all(-start|-done)?(\.|$)|^all_to_all ", f"{_HLO}; {_OURS}"),
    NameRule("send", r"^(collective-permute|send|recv)(-start|-done)?(\.|$)|^(ppermute|pshuffle) ", f"{_HLO}; {_OURS}"),
    # Copies.
    NameRule("host", r"mem_?cpy\w* ?(htod|dtoh|h2d|d2h)", "CUPTI: Memcpy HtoD and DtoH; XLA: MemcpyH2D and MemcpyD2H"),
    NameRule("elementwise", r"^mem_?(cpy|set)", "CUPTI: Memcpy DtoD, Memset"),
    NameRule("host", r"^(host-to-device|device-to-host)$", _OURS),
    NameRule("send", r"^device-to-device$", _OURS),
    # Attention.
    NameRule("attention_backward", r"flash_?\w*bwd|flash\w*attn?bwd|flashattnbwd|flash_bwd", _FLASH),
    NameRule("attention_forward", r"flash_?fwd|flashattnfwd|compute_attn_ws|flash_fwd", f"{_FLASH}; {_DEEPSEEK}"),
    NameRule("attention_backward", r"fmha_cutlassb|fmha\w*(bwd|backward)", _XFORMERS),
    NameRule("attention_forward", r"fmha_cutlassf|fmha\w*(fwd|forward)", _XFORMERS),
    NameRule("attention_backward", r"sdpa\w*(bprop|bwd)", _CUDNN),
    NameRule("attention_forward", r"sdpa\w*(fprop|fwd)", _CUDNN),
    NameRule("attention_backward", r"splash_mha_d(kv|q)", "JAX, pallas/ops/tpu/splash_attention: splash_mha_dkv_*"),
    NameRule("attention_forward", r"splash_mha_fwd", "JAX, pallas/ops/tpu/splash_attention: splash_mha_fwd_*"),
    NameRule("attention", r"flash_?attention|fmha|mha_|sdpa", "names that say no direction: flash_attention.1"),
    # Products.
    NameRule("products", r"gemm|nvjet|xmma|cublas|splitkreduce", f"{_CUBLAS}; CUTLASS; DeepGEMM"),
    NameRule("products", r"cutlass\w*_tensorop_|^cijk_", "CUTLASS; rocBLAS (Tensile): Cijk_Ailk_Bljk_*"),
    NameRule("products", r"^(dot|convolution)(\.|$)|^(ynn|onednn)_fusion", "XLA:CPU: dot.3, ynn_fusion (YNNPACK)"),
    NameRule(
        "products", r"triton\w*_mm(_|$)|^_?matmul_kernel", "TorchInductor: triton_tem_fused_mm_*; Triton, tutorial"
    ),
    # Operations that the memory limits.
    NameRule(
        "elementwise",
        r"at::native::|multi_tensor_apply|layer_?norm|rms_?norm|rotary|softmax|swiglu|silu|gelu|adam|dropout|"
        r"embedding|cross_entropy|cub::device|\bcub::|::(elementwise|reduce)_kernel",
        f"{_TORCH}; Apex; Transformer Engine",
    ),
    NameRule("elementwise", r"transpose|_cast_|cast_back|copy_?kernel|copy_tensor", _DEEPSEEK),
    NameRule("elementwise", r"^triton_(poi|red|per)_", "TorchInductor: triton_poi_fused_*, triton_red_*, triton_per_*"),
    NameRule(CONTAINER, r"^(while|conditional|call)(\.|$)", _HLO),
    NameRule(
        "elementwise",
        r"^(loop|input|wrapped)_\w|_fusion(\.|_\d+|$)|"
        r"^(copy|transpose|broadcast|reduce|reduce-window|convert|add|multiply|subtract|select|pad|slice|concatenate|"
        r"gather|scatter|sort|iota|bitcast|dynamic-slice|dynamic-update-slice)(\.|$)",
        f"XLA, rename_fusions.cc; {_HLO}",
    ),
)
_PRODUCT = re.compile(r"(dot_general|conv_general_dilated)[^/]*$")


class Patterns(NamedTuple):
    """Compiled rules: first the user's, then the table's."""

    own: list[tuple[str, re.Pattern[str]]]
    names: list[tuple[str, re.Pattern[str]]]


def compiled_patterns(operation: str, kinds: Any, expected: Sequence[str]) -> Patterns:
    """Checks and compiles the patterns of the user, {pattern: kind}."""
    fix = "write kinds={'my_kernel': 'products'}"
    check_type(operation, "kinds", kinds, Mapping, "a mapping of regular expressions to kinds", fix)
    own = []
    for pattern, kind in kinds.items():
        check_str(operation, "kinds", pattern, fix)
        check_choice(operation, f"kinds[{pattern!r}]", kind, expected)
        try:
            own.append((kind, re.compile(pattern, re.IGNORECASE)))
        except re.error as error:
            raise failure(
                ValueError,
                operation,
                f"kinds has {safe_repr(pattern)}",
                expected=f"a regular expression: {error}",
                fix=fix,
            ) from error
    return Patterns(own, _compiled(_NAMES))


def kind_of(name: str, arguments: Mapping[str, object], patterns: Patterns) -> str | None:
    """Returns the kind of an operation, CONTAINER, or None for a name that no rule knows.

    Args:
        name: Name of the event.
        arguments: Its arguments.
        patterns: The result of `compiled_patterns`.

    Example:
        >>> patterns = compiled_patterns("kind_of", {}, ())
        >>> kind_of("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", {}, patterns)
        'all_gather'
        >>> kind_of("fusion.12", {"hlo_category": "convolution fusion"}, patterns)
        'products'
    """
    category, collective = (str(arguments.get(key, "")) for key in ("hlo_category", "Collective name"))
    for text, rules in (
        (name, patterns.own),
        (collective, _COLLECTIVE_PATTERNS),
        (category, _CATEGORY_PATTERNS),
        (name, patterns.names),
        (str(arguments.get("hlo_op", "")), patterns.names),
    ):
        lower = text.lower()
        found = next((kind for kind, pattern in rules if pattern.search(lower)), None) if text else None
        if found is not None:
            return found
    # A fusion whose last operation is a product (the argument `tf_op`: "jit(step)/dot_general").
    return "products" if _PRODUCT.search(str(arguments.get("tf_op", ""))) else None


def _compiled(rules: Sequence[NameRule]) -> list[tuple[str, re.Pattern[str]]]:
    return [(rule.kind, re.compile(rule.pattern)) for rule in rules]


_COLLECTIVE_PATTERNS = _compiled(_COLLECTIVES)
_CATEGORY_PATTERNS = _compiled(_CATEGORIES)
