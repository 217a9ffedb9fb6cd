# SPDX-License-Identifier: Apache-2.0
"""Replacements for names that JAX's modules have and this package lacks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from artifex_devices._base.nearest_name import did_you_mean

_GRADIENT = (
    "functions are not differentiated here; write the gradient as a function of its own and average it over devices "
    "with lax.pmean"
)
_NO_GRADIENT = "functions are not differentiated here; call the function itself"
_NO_TRACE = "nothing is traced here; call the function itself, which is plain Python"
_NO_EFFECT = "nothing is compiled here; leave it out"
_NUMPY_ONLY = "write the function with NumPy"
_SCIPY = "write it with scipy.special, whose functions take np.asarray(x)"
_TRACE = "write `with ad.profiler.trace('trace.json'):` around the code"
_COLLECTIVE = "write ad.lax.psum(x, 'x') or another function of ad.lax, in the body of ad.shard_map"
_LAUNCH = "start the processes by mpiexec -n 2 python script.py"
_SPAN = "write `with ad.profiler.annotate('name'):` around the code"

# By module: names, separated by blanks, and what to write.
_HINTS = {
    "": {
        "grad value_and_grad jacfwd jacrev jacobian hessian jvp vjp linearize linear_transpose fwd_and_bwd": _GRADIENT,
        "custom_jvp custom_vjp custom_gradient custom_derivatives closure_convert": _NO_GRADIENT,
        "remat checkpoint_policies": "nothing is differentiated here, so nothing is computed again; call the function "
        "itself",
        "vmap custom_batching": "functions are not traced here; use NumPy's broadcasting, or pmap and shard_map to map "
        "over devices",
        "eval_shape": "nothing is traced here; call the function and read x.shape, x.dtype and x.sharding, or describe "
        "an array by ad.ShapeDtypeStruct(shape, dtype)",
        "make_jaxpr xla_computation stages export": "nothing is traced here; call the function, and see "
        "ad.profiler.trace and ad.transfers.record for what it does",
        "named_scope named_call": _SPAN,
        "pure_callback io_callback": _NO_TRACE,
        "effects_barrier": "write ad.block_until_ready(x)",
        "ensure_compile_time_eval no_tracing no_execution checking_leaks check_tracer_leaks log_compiles "
        "explain_cache_misses enable_checks debug_key_reuse default_matmul_precision numpy_dtype_promotion "
        "numpy_rank_promotion enable_custom_prng default_prng_impl threefry_partitionable legacy_prng_key "
        "allow_f16_reductions auto_pcast array_garbage_collection_guard thread_guard make_user_context "
        "jax2tf_associative_scan_reductions remove_size_one_mesh_axis_from_type softmax_custom_jvp": _NO_EFFECT,
        "debug_nans debug_infs": "write `with np.errstate(invalid='raise', over='raise'):` around the code",
        "random": "write rng = np.random.default_rng(0), and x = ad.device_put(rng.normal(size=(8, 8)), sharding)",
        "nn": f"{_NUMPY_ONLY}: np.maximum(x, 0) is relu",
        "image ops ffi": _NUMPY_ONLY,
        "scipy": "write import scipy; its functions take np.asarray(x)",
        "dtypes float0": "write NumPy's dtypes, or ml_dtypes.bfloat16",
        "core interpreters lib api_util ad extend monitoring typing": "it belongs to JAX's tracing; this package has "
        "Array, Device, Mesh and NamedSharding",
        "Ref ref new_ref empty_ref free_ref freeze": "ndarrays are mutable; write x = np.array(y)",
        "ds": "write x[start : start + size]",
        "version": "write ad.__version__",
        "use_mesh": "write `with ad.set_mesh(mesh):`",
        "pjit xmap": "write ad.jit or ad.shard_map",
        "device cuda get_device cpu gpu tpu": "write ad.devices()[0], and ad.default_backend() for its platform",
        "rank get_rank process_id local_rank": "write ad.process_index()",
        "world_size get_world_size num_processes": "write ad.process_count()",
        "sync synchronize": "write ad.block_until_ready(x)",
        "barrier": "write ad.multihost_utils.sync_global_devices('name')",
        "shard put distribute": "write ad.device_put(x, ad.NamedSharding(mesh, ad.P('x')))",
        "simulate_devices cpu_devices fake_devices virtual_devices set_device_count": "write `with ad.simulate(8):`",
        "memory_stats": "write ad.devices()[0].memory_stats()",
        "plot show show_sharding visualize visualize_sharding": "write ad.debug.visualize_array_sharding(x)",
        "num_devices n_devices get_device_count": "write ad.device_count()",
        "tensor Tensor from_numpy as_tensor distribute_tensor": "write ad.device_put(np.array([1, 2]), sharding)",
        "init_device_mesh DeviceMesh create_mesh create_device_mesh": "write ad.make_mesh((4, 2), ('data', 'model'))",
        "Replicate": "write ad.P()",
        "DataLoader Dataset": "write `for batch in prefetch_to_device(batches, sharding):` with "
        "artifex_devices.prefetch.prefetch_to_device",
        "run_processes": "write from artifex_devices.testing import run_processes",
        "no_grad stop_gradient": "functions are not differentiated here; leave it out",
        "compile": "write ad.jit(f); nothing is compiled here",
        "manual_seed seed": "write rng = np.random.default_rng(0)",
        "all_reduce all_gather reduce_scatter broadcast send recv": _COLLECTIVE,
        "launch run": _LAUNCH,
        "plan suggest": "write from artifex_devices import planner; planner.suggest(...)",
        "tree_map tree_leaves tree_flatten tree_unflatten tree_structure tree_reduce tree_all tree_transpose": "write "
        "ad.tree.map, ad.tree.leaves and so on",
    },
    "lax": {
        "scan": "nothing is traced here; write a loop: for x in xs: carry, y = f(carry, x)",
        "map": "nothing is traced here; write np.stack([f(x) for x in xs])",
        "fori_loop": "nothing is traced here; write a loop: for i in range(lower, upper): value = body(i, value)",
        "while_loop": "nothing is traced here; write a loop: while cond(value): value = body(value)",
        "cond": "nothing is traced here; write y = f(x) if pred else g(x), or np.where(pred, a, b) for elements",
        "switch": "nothing is traced here; write y = branches[index](x)",
        "platform_dependent": "nothing is compiled here; read ad.default_backend() and branch by if",
        "associative_scan": "write np.cumsum(x, axis), or np.add.accumulate with another ufunc",
        "stop_gradient custom_root custom_linear_solve": "functions are not differentiated here; leave it out",
        "optimization_barrier stage composite after_all create_token dce_sink Precision PrecisionLike DotAlgorithm "
        "DotAlgorithmPreset AccuracyMode Tolerance": _NO_EFFECT,
        "select select_n": "write np.where(pred, on_true, on_false)",
        "clamp": "write np.clip(x, min, max)",
        "convert_element_type": "write x.astype(dtype)",
        "reduce_precision": "write x.astype(dtype)",
        "bitcast_convert_type": "write x.view(dtype)",
        "iota broadcasted_iota": "write np.arange(size)",
        "dot dot_general batch_matmul ragged_dot ragged_dot_general scaled_dot": "write x @ y, or np.einsum",
        "conv conv_general_dilated conv_general_dilated_local conv_general_dilated_patches conv_transpose "
        "conv_with_general_padding": "write it with scipy.signal or scipy.ndimage, on the blocks of a shard_map",
        "slice slice_in_dim index_in_dim index_take dynamic_slice dynamic_slice_in_dim dynamic_index_in_dim": "write "
        "x[start:stop]",
        "dynamic_update_slice dynamic_update_slice_in_dim dynamic_update_index_in_dim": "write "
        "x.at[start:stop].set(value), or in a body x = x.copy(); x[start:stop] = value",
        "gather": "write x[indices], or ad.lax.all_gather for blocks of other devices",
        "scatter scatter_apply": "write x.at[indices].set(value)",
        "scatter_add": "write x.at[indices].add(value)",
        "scatter_sub": "write x.at[indices].subtract(value)",
        "scatter_mul": "write x.at[indices].multiply(value)",
        "scatter_min": "write x.at[indices].min(value)",
        "scatter_max": "write x.at[indices].max(value)",
        "add sum": "write x + y or np.sum(x); ad.lax.psum adds over devices",
        "sub": "write x - y",
        "mul": "write x * y",
        "div": "write x / y",
        "rem": "write np.fmod(x, y)",
        "neg": "write -x",
        "pow integer_pow": "write x**y",
        "max": "write np.maximum(x, y); ad.lax.pmax is the maximum over devices",
        "min": "write np.minimum(x, y); ad.lax.pmin is the minimum over devices",
        "eq ne lt le gt ge": "write x == y, x < y and so on",
        "is_finite": "write np.isfinite(x)",
        "rsqrt": "write 1 / np.sqrt(x)",
        "reciprocal": "write 1 / x",
        "logistic": "write 1 / (1 + np.exp(-x))",
        "reduce_sum": "write np.sum(x, axis)",
        "reduce_prod": "write np.prod(x, axis)",
        "reduce_max": "write np.max(x, axis)",
        "reduce_min": "write np.min(x, axis)",
        "reduce_and": "write np.all(x, axis)",
        "reduce_or": "write np.any(x, axis)",
        "reduce reduce_xor reduce_window": "write a ufunc's reduce: np.bitwise_xor.reduce(x, axis)",
        "cummax": "write np.maximum.accumulate(x, axis)",
        "cummin": "write np.minimum.accumulate(x, axis)",
        "cumlogsumexp": "write np.logaddexp.accumulate(x, axis)",
        "top_k approx_max_k approx_min_k": "write np.sort(x)[..., ::-1][..., :k]",
        "sort_key_val": "write order = np.argsort(keys); keys[order], values[order]",
        "rev": "write np.flip(x, axis)",
        "collapse": "write x.reshape(shape)",
        "broadcast broadcast_in_dim broadcast_like broadcast_to_rank": "write np.broadcast_to(x, shape)",
        "atan2": "write np.arctan2(x, y)",
        "complex": "write x + 1j * y",
        "population_count": "write np.bitwise_count(x)",
        "shift_left": "write np.left_shift(x, n)",
        "shift_right_arithmetic shift_right_logical": "write np.right_shift(x, n)",
        "clz mulhi": _NUMPY_ONLY,
        "erf erf_inv erfc lgamma digamma polygamma igamma igammac igamma_grad_a random_gamma_grad betainc "
        "regularized_incomplete_beta bessel_i0e bessel_i1e zeta": _SCIPY,
        "rng_uniform rng_bit_generator": "write np.random.default_rng(0).random(shape)",
        "all_reduce allreduce": "write ad.lax.psum(x, 'x')",
        "reduce_scatter": "write ad.lax.psum_scatter(x, 'x')",
        "broadcast_one_to_all bcast": "write ad.lax.pbroadcast(x, 'x', 0)",
        "psend precv": "write ad.lax.ppermute(x, axis_name, [(source, target)])",
        "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers DotDimensionNumbers FftType GatherDimensionNumbers "
        "GatherScatterMode RaggedDotDimensionNumbers RandomAlgorithm RoundingMethod ScatterDimensionNumbers "
        "conv_dimension_numbers conv_general_permutations conv_general_shape_tuple conv_shape_tuple "
        "conv_transpose_shape_tuple padtype_to_pads reduce_window_shape_tuple shape_as_value": "it describes an "
        "operation of JAX's compiler; write the operation with NumPy or SciPy",
        "ragged_all_to_all": "write ad.lax.all_to_all, with blocks padded to one size",
    },
    "sharding": {
        "PositionalSharding GSPMDSharding PmapSharding": "write ad.NamedSharding(mesh, ad.P('x'))",
        "use_mesh": "write `with ad.set_mesh(mesh):`",
        "auto_axes explicit_axes": "nothing is traced here; write x = ad.reshard(x, sharding) where a placement is "
        "needed, or make the mesh with axis_types='auto'",
        "AbstractDevice ManualAxisType": "write ad.AbstractMesh for a mesh without devices",
    },
    "debug": {
        "callback": _NO_TRACE,
        "breakpoint": "write breakpoint(): bodies are plain Python",
        "log": "write logging.info(text): bodies are plain Python",
        "DebugEffect OrderedDebugEffect": _NO_EFFECT,
    },
    "profiler": {
        "start_trace stop_trace start_server stop_server register_subprocess ProfileOptions": _TRACE,
        "TraceAnnotation StepTraceAnnotation annotate_function": _SPAN,
        "ProfileData ProfileEvent ProfilePlane": "write t = ad.profiler.trace('trace.json'), enter it by `with`, and "
        "read its events",
    },
    "distributed": {
        "init init_process_group Initialize": "write ad.distributed.initialize()",
        "barrier": "write ad.multihost_utils.sync_global_devices('name')",
        "rank get_rank": "write ad.process_index()",
        "world_size get_world_size": "write ad.process_count()",
        "all_reduce all_gather reduce reduce_scatter broadcast scatter gather send recv all_to_all": _COLLECTIVE,
        "launch spawn run": _LAUNCH,
        "destroy_process_group finalize": "write ad.distributed.shutdown()",
    },
    "errors": {
        "ConcretizationTypeError InconclusiveDimensionOperation JaxprTypeError KeyReuseError "
        "NonConcreteBooleanIndexError TracerArrayConversionError TracerBoolConversionError "
        "TracerIntegerConversionError UnexpectedTracerError": "nothing is traced here, so it does not occur; drop it",
        "JAXIndexError": "write IndexError",
        "JAXTypeError": "write TypeError",
    },
    "tree_util": {"tree_multimap": "write ad.tree.map(f, tree, *rest)"},
    "layout": {
        "with_layout_constraint": "write ad.device_put(x, ad.layout.Format(layout, sharding))",
        "DeviceLocalLayout": "write ad.layout.Layout(major_to_minor)",
    },
    "dlpack": {"to_dlpack": "pass x itself: np.from_dlpack(x), torch.from_dlpack(x)"},
    "experimental": {
        "pjit maps xmap": "write ad.jit or ad.shard_map",
        "EArray cur_qdd primal_tangent_dtype": "it belongs to JAX's tracing; leave it out",
        "io_callback pure_callback host_callback": _NO_TRACE,
        "layout": "write ad.layout",
        "pallas mosaic sparse checkify jax2tf export compilation_cache serialize_executable rnn ode fused": "it needs "
        "JAX's compiler; write the function with NumPy and SciPy",
        "multihost mesh": "write ad.multihost_utils or ad.mesh_utils",
    },
    "checkpoint": {
        "load load_file load_checkpoint restore_checkpoint": "write ad.checkpoint.restore(folder)",
        "save_file save_checkpoint": "write ad.checkpoint.save(folder, tree)",
        "CheckpointManager CheckpointManagerOptions": "write ad.checkpoint.Manager(folder, max_to_keep=3)",
        "Checkpointer PyTreeCheckpointer StandardCheckpointer AsyncCheckpointer": "write "
        "ad.checkpoint.save(folder, tree) or save_async, and ad.checkpoint.restore(folder)",
    },
    "models": {
        "get load from_pretrained llama llama_2_7b llama_2_70b llama_3_8b llama_3_70b gpt2": "write "
        "ad.models.transformer('llama-2-7b', batch=64, sequence=4096); ad.models.SHAPES lists the names",
        "from_config": "write ad.models.from_hf_config('config.json')",
    },
    "planner": {
        "suggest_training": "write planner.suggest('llama-3-70b', '64 x h100', batch=512, sequence=8192)",
        "plan search optimize recommend": "write planner.suggest('llama-3-70b', '64 x h100', batch=512, sequence=8192)",
        "memory estimate": "write planner.plan_training or planner.plan_step",
    },
    "prefetch": {
        "prefetch DataLoader device_prefetch": "write prefetch_to_device(batches, sharding)",
    },
    "testing": {
        "simulate": "write `with ad.simulate(8):`",
        "run run_multiprocess spawn": "write run_processes(function, 2)",
    },
    "multihost_utils": {
        "live_devices": "a process that ends stops the job; ad.devices() has the devices of all processes",
        "reached_preemption_sync_point": "preemption is not announced here; save by ad.checkpoint.Manager",
        "ProcessFailureError": "write except RuntimeError",
    },
    "tree": {"multimap": "write ad.tree.map(f, tree, *rest)", "register": "write ad.tree_util.register_dataclass"},
}


def hint_for(module_name: str, name: str) -> str | None:
    """Returns what to write for a name of JAX, or None."""
    short = module_name.partition(".")[2]
    for names, hint in _HINTS.get(short, {}).items():
        if name in names.split():
            return hint
    if short == "lax":
        if name.endswith("_p"):
            return "it is a primitive of JAX's tracing, and nothing is traced here; leave it out"
        if hasattr(np, name):
            return f"write np.{name}; NumPy's functions take Arrays"
    return None


def explained(module_name: str, name: str, known: Iterable[str]) -> str:
    """Returns the text of the error for a name that a module does not have."""
    hint = hint_for(module_name, name)
    if hint is not None:
        return f"{module_name}.{name} does not exist: {hint}"
    return f"module {module_name!r} has no attribute {name!r}{did_you_mean(name, known)}"
