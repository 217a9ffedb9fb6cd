# SPDX-License-Identifier: Apache-2.0
"""Options: names, values, environment variables, and the platforms that are asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import artifex_devices as ad
import pytest

DEFAULTS = {
    "jax_platform_name": None,
    "jax_platforms": None,
    "jax_transfer_guard": None,
    "jax_transfer_guard_host_to_device": None,
    "jax_transfer_guard_device_to_device": None,
    "jax_transfer_guard_device_to_host": None,
    "jax_default_device": None,
    "jax_enable_x64": True,
    "jax_num_cpu_devices": -1,
    "cache_bytes": -1,
    "trace_allocations": False,
    "spmd_executor": "auto",
    "spmd_threads_bytes": 1 << 20,
    "collective_timeout_s": 60.0,
    "distributed_buffer_bytes": 64 << 20,
    "distributed_checks": True,
    "distributed_shared_memory": True,
    "flight_record_dir": f"{os.environ.get('TMPDIR') or '/tmp'}/artifex_devices-{os.getuid()}/flight",
}
PROGRAMS = ("spmd_executor", "spmd_threads_bytes", "collective_timeout_s")
PROCESSES = ("distributed_buffer_bytes", "distributed_checks", "distributed_shared_memory", "flight_record_dir")


def output_of(code, **variables):
    """Standard output of a new process, and the last line of its errors."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    code = "import artifex_devices as ad\n" + code
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**kept, **variables}
    )
    return done.stdout.strip() or (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]


def test_defaults_can_be_read_in_three_ways():
    values = ad.config.values
    for name, default in DEFAULTS.items():
        if name.startswith("jax_platform"):
            continue  # the environment of the tests may say cpu
        assert values[name] == ad.config.read(name) == getattr(ad.config, name) == default
    own = [
        *(name for name in DEFAULTS if name not in ("cache_bytes", "trace_allocations", *PROGRAMS, *PROCESSES)),
        "cache_bytes",
        "parallel_copy_bytes",
        "async_copy_bytes",
        "trace_allocations",
        "auto_axes_moves",
        "spmd_executor",
        "spmd_threads_bytes",
        "collective_timeout_s",
        *PROCESSES,
    ]
    assert list(values)[: len(own)] == own  # then the options of JAX that are only recorded
    assert all(name.startswith("jax_") for name in list(values)[len(own) :])


def test_flight_records_can_be_moved_and_turned_off_by_a_variable():
    code = "print(ad.config.flight_record_dir)"
    assert output_of(code, ARTIFEX_FLIGHT_RECORD_DIR="/a/folder") == "/a/folder"
    assert output_of(code, ARTIFEX_FLIGHT_RECORD_DIR="off") == "None"


def test_defaults_of_a_process_without_variables():
    code = f"print([(n, ad.config.read(n)) for n in {list(DEFAULTS)!r}])"
    assert output_of(code) == str(list(DEFAULTS.items()))


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("jax_transfer_gard", "jax_transfer_guard"),
        ("jax_platfrom_name", "jax_platform_name"),
        ("jax_default_devices", "jax_default_device"),
        ("enable_x64", "jax_enable_x64"),
        ("trace_allocation", "trace_allocations"),
        ("zzz", None),
    ],
)
def test_an_unknown_name_gets_the_nearest_one(name, near):
    text = f" is not an option (did you mean {near}?); expected" if near else f"{name!r} is not an option; expected one"
    for call in (
        lambda: ad.config.update(name, 1),
        lambda: ad.config.read(name),
        lambda: getattr(ad.config, name),
    ):
        with pytest.raises(AttributeError, match="is not an option") as caught:
            call()
        assert text in str(caught.value)


def test_trace_allocations_is_a_bool():
    ad.config.update("trace_allocations", True)
    assert ad.config.trace_allocations is True
    ad.config.update("trace_allocations", False)
    assert ad.config.trace_allocations is False
    for value in (1, None, "yes"):
        with pytest.raises(TypeError, match="expected True or False"):
            ad.config.update("trace_allocations", value)


@pytest.mark.parametrize("name", ["jax_platforms", "jax_platform_name"])
@pytest.mark.parametrize("value", [3, True, b"cpu", ["cpu"]])
def test_a_platform_is_text(name, value):
    with pytest.raises(ValueError, match=f"config.update: {name} is .*; expected a platform's name or None"):
        ad.config.update(name, value)


@pytest.mark.parametrize("name", ["jax_platforms", "jax_platform_name"])
def test_a_platform_changes_nothing_once_the_devices_are_there(name, devices):
    before = ad.config.read(name)
    for value in ("gpu", "tpu", "bogus", "cpu", ""):
        ad.config.update(name, value)
        assert ad.config.read(name) == value
        assert ad.devices() == devices
    ad.config.update(name, before)


WHO_IS_THERE = """
try: print(ad.devices())
except RuntimeError as error: print(error)
"""


@pytest.mark.parametrize(
    ("setting", "variables", "source"),
    [
        ("ad.config.update('jax_platform_name', 'gpu')", {}, 'config.update("jax_platform_name")'),
        ("ad.config.update('jax_platforms', 'cpu,gpu')", {}, 'config.update("jax_platforms")'),
        ("", {"JAX_PLATFORMS": "gpu"}, "the environment variable JAX_PLATFORMS"),
        ("", {"JAX_PLATFORM_NAME": "gpu"}, "the environment variable JAX_PLATFORM_NAME"),
    ],
)
def test_an_absent_platform_is_an_error_at_first_use(setting, variables, source):
    text = output_of(setting + WHO_IS_THERE, ARTIFEX_CUDA_LIBRARY="/no/libcuda.so.1", **variables)
    assert text.startswith(
        f'devices: {source} requests platform "gpu", which is not available: /no/libcuda.so.1 cannot be loaded'
    )
    assert text.endswith("request cpu, or leave it out")


def test_a_platform_can_be_set_right_after_the_error():
    code = WHO_IS_THERE + "ad.config.update('jax_platforms', 'cpu')\nprint(ad.devices())"
    variables = {"JAX_PLATFORMS": "tpu", "JAX_NUM_CPU_DEVICES": "1"}
    assert output_of(code, **variables).endswith("\n[CpuDevice(id=0)]")


def test_worlds_of_their_own_do_not_ask_for_platforms():
    code = "with ad.simulate(2): print(ad.device_count(), ad.device_put(1.0).shape)"
    assert output_of(code, JAX_PLATFORMS="gpu") == "2 ()"


@pytest.mark.parametrize("value", ["", "cpu"])
@pytest.mark.parametrize("name", ["JAX_PLATFORMS", "JAX_PLATFORM_NAME"])
def test_platforms_that_are_there(name, value):
    code = "print(ad.devices(), [ad.config.jax_platforms, ad.config.jax_platform_name])"
    values = [value, None] if name == "JAX_PLATFORMS" else [None, value]
    assert output_of(code, JAX_NUM_CPU_DEVICES="1", **{name: value}) == f"[CpuDevice(id=0)] {values}"


@pytest.mark.parametrize(
    ("variable", "value", "option", "expected"),
    [
        ("JAX_TRANSFER_GUARD", "log", "jax_transfer_guard_device_to_host", "log"),
        ("JAX_TRANSFER_GUARD", "disallow", "jax_transfer_guard", "disallow"),
        ("JAX_TRANSFER_GUARD_HOST_TO_DEVICE", "disallow", "jax_transfer_guard_host_to_device", "disallow"),
        ("JAX_TRANSFER_GUARD_DEVICE_TO_DEVICE", "log", "jax_transfer_guard_device_to_device", "log"),
        ("JAX_TRANSFER_GUARD_DEVICE_TO_HOST", "log", "jax_transfer_guard_device_to_host", "log"),
        ("JAX_DEFAULT_DEVICE", "cpu", "jax_default_device", "cpu"),
        ("JAX_ENABLE_X64", "0", "jax_enable_x64", "False"),
        ("JAX_ENABLE_X64", "No", "jax_enable_x64", "False"),
        ("JAX_ENABLE_X64", "TRUE", "jax_enable_x64", "True"),
    ],
)
def test_variables_set_options(variable, value, option, expected):
    assert output_of(f"print(ad.config.{option})", **{variable: value}) == expected


def test_variables_act_on_the_first_placement():
    guarded = "with ad.simulate(1) as world: d = world.devices()[0]\nad.device_put(1.0, d)"
    assert "disallowed explicit host-to-device transfer" in output_of(guarded, JAX_TRANSFER_GUARD="disallow_explicit")
    assert output_of("print(ad.device_put(1.5).dtype)", JAX_ENABLE_X64="false") == "float32"


def test_a_direction_refines_the_guard_for_all():
    code = "print(ad.config.jax_transfer_guard_device_to_device, ad.config.jax_transfer_guard_host_to_device)"
    variables = {"JAX_TRANSFER_GUARD": "log", "JAX_TRANSFER_GUARD_DEVICE_TO_DEVICE": "disallow"}
    assert output_of(code, **variables) == "disallow log"


def test_config_wins_over_variables_and_scopes_over_both():
    code = """
ad.config.update('jax_enable_x64', True)
print(ad.device_put(1).dtype)
with ad.enable_x64(False): print(ad.device_put(1).dtype)
"""
    assert output_of(code, JAX_ENABLE_X64="0").split() == ["int64", "int32"]


@pytest.mark.parametrize(
    "variables",
    [
        {"JAX_TRANSFER_GUARD": "bogus"},
        {"JAX_TRANSFER_GUARD_HOST_TO_DEVICE": "DISALLOW"},
        {"JAX_ENABLE_X64": "maybe"},
        {"JAX_ENABLE_X64": ""},
        {"JAX_DEFAULT_DEVICE": "cpu:1"},
        {"JAX_TRANSFER_GUARD_DEVICE_TO_HOST": "", "JAX_ENABLE_X64": "2", "JAX_DEFAULT_DEVICE": "0"},
    ],
)
@pytest.mark.parametrize(
    "use",
    ["ad.devices()", "ad.device_put(1.0)", "ad.config.values", "ad.config.update('jax_transfer_guard', 'log')"],
)
def test_malformed_variables_are_one_error_that_names_them(variables, use):
    code = f"for _ in range(2):\n  try: {use}\n  except ValueError as error: print(error)"
    first, second = output_of(code, **variables).splitlines()
    assert first == second  # nothing was kept
    assert first.startswith("devices: environment variables are malformed: ")
    for name, value in variables.items():
        assert f'{name} is "{value}", expected ' in first


def test_variables_that_are_not_text_are_named_too():
    names = ("JAX_TRANSFER_GUARD", "JAX_DEFAULT_DEVICE", "JAX_ENABLE_X64", "JAX_PLATFORMS", "JAX_PLATFORM_NAME")
    code = "try: ad.config.values\nexcept ValueError as error: print(error)"
    text = output_of(code, **dict.fromkeys(names, "\udcff\x1b"))  # no UTF-8, and an order to terminals
    for name in names:
        assert f'{name} is "\\xff\\x1b", expected ' in text


def test_variables_are_read_once():
    code = "import os\nad.devices()\nos.environ['JAX_ENABLE_X64'] = 'maybe'\nprint(ad.device_put(1).dtype)"
    assert output_of(code) == "int64"


@pytest.mark.parametrize(
    ("name", "text"), [("jax_enable_x64", "write config.update"), ("jax_enable_x65", "is not an option")]
)
def test_an_option_is_not_assigned(name, text):
    before = ad.config.values
    with pytest.raises(AttributeError, match=text):
        setattr(ad.config, name, False)
    assert ad.config.values == before
    assert not hasattr(ad.config, "jax_enable_x65")


def test_a_preferred_platform_does_not_matter_to_calls_that_name_one():
    code = """
import numpy as np
print(len(ad.devices("cpu")), ad.device_count("cpu"), ad.local_devices(backend="cpu")[0], ad.process_count("cpu"))
print(ad.device_put(np.ones(2), ad.devices("cpu")[1]).devices())
for call in (ad.devices, ad.device_count, ad.default_backend):
    try: print(call())
    except RuntimeError as error: print(error)
"""
    one, two, *refused = output_of(code, JAX_PLATFORM_NAME="tpu", JAX_NUM_CPU_DEVICES="2").splitlines()
    assert (one, two) == ("2 2 cpu:0 1", "{CpuDevice(id=1)}")
    text = (
        'devices: the environment variable JAX_PLATFORM_NAME requests platform "tpu", which is not available; expected '
        "one of: cpu; request cpu, or leave it out"
    )
    assert refused == [text] * 3
    assert "jax_platforms" not in output_of("print(len(ad.devices('cpu')))", JAX_PLATFORM_NAME="tpu")
    assert 'JAX_PLATFORMS requests platform "tpu"' in output_of("ad.devices('cpu')", JAX_PLATFORMS="tpu")


def test_the_current_number_of_devices_is_accepted_after_first_use():
    code = """
for name in ("first", "second"):
    ad.config.update("jax_num_cpu_devices", ad.config.jax_num_cpu_devices)
    print(ad.config.jax_num_cpu_devices, ad.device_count())
try: ad.config.update("jax_num_cpu_devices", 5)
except RuntimeError: print("refused", ad.config.jax_num_cpu_devices)
"""
    assert output_of(code, JAX_NUM_CPU_DEVICES="3").splitlines() == ["3 3", "3 3", "refused 3"]
    first = "ad.config.update('jax_num_cpu_devices', 2)\n"
    assert output_of(first + code).splitlines() == ["2 2", "2 2", "refused 2"]
    assert output_of(code, XLA_FLAGS="--xla_force_host_platform_device_count=4").splitlines()[0] == "-1 4"
    assert output_of("ad.config.update('jax_num_cpu_devices', None)\n" + code).startswith("-1 ")


def test_options_of_the_compiler_are_recorded():
    before = ad.config.values
    for name, value in {
        "jax_disable_jit": True,
        "jax_log_compiles": True,
        "jax_compilation_cache_dir": "/tmp/cache",
        "jax_default_matmul_precision": "highest",
        "jax_cpu_collectives_implementation": "mpi",
        "jax_threefry_partitionable": False,
        "jax_debug_nans": False,
    }.items():
        ad.config.update(name, value)
        assert ad.config.read(name) == getattr(ad.config, name) == value
        ad.config.update(name, before[name])
    assert ad.config.values == before
    assert ad.jit(lambda a: a + 1)(1).item() == 2


@pytest.mark.parametrize(
    ("name", "value", "kind", "text"),
    [
        ("jax_debug_nans", True, NotImplementedError, r"expected False: .*write np.errstate\(invalid='raise'\)"),
        ("jax_debug_infs", True, NotImplementedError, r"write np.errstate\(over='raise'\)"),
        ("jax_numpy_rank_promotion", "raise", NotImplementedError, "ranks are promoted by NumPy's rules"),
        ("jax_numpy_dtype_promotion", "strict", NotImplementedError, "dtypes are promoted by NumPy's rules"),
        ("jax_array_garbage_collection_guard", "fatal", NotImplementedError, "is not monitored"),
        ("jax_disable_jit", "yes", TypeError, "jax_disable_jit is 'yes' .str.; expected True or False"),
        ("jax_disable_jit", 1, TypeError, "is 1 .int."),
        ("jax_cpu_collectives_implementation", "bogus", ValueError, "expected None, 'gloo', 'mpi' or 'megascale'"),
    ],
)
def test_options_that_would_have_no_effect_are_refused_with_the_reason(name, value, kind, text):
    before = ad.config.read(name)
    with pytest.raises(kind, match=text):
        ad.config.update(name, value)
    assert ad.config.read(name) == before
