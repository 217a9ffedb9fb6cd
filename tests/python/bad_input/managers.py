# SPDX-License-Identifier: Apache-2.0
"""Bad calls: device managers, placement and batches."""

from artifex_devices.errors import IndivisibleError

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "DeviceConfiguration",
        "ad.DeviceConfiguration()",
        [
            bad("ad.DeviceConfiguration(memory_strategy='spam')", TypeError, "DeviceConfiguration:", "memory_strategy", "'spam'"),
            bad("ad.DeviceConfiguration(memory_strategy=3)", TypeError, "DeviceConfiguration:", "memory_strategy"),
            bad("ad.DeviceConfiguration(memory_fraction=2)", ValueError, "DeviceConfiguration:", "memory_fraction"),
            bad("ad.DeviceConfiguration(memory_fraction=-1)", ValueError, "DeviceConfiguration:", "memory_fraction"),
            bad("ad.DeviceConfiguration(memory_fraction=NAN)", ValueError, "DeviceConfiguration:", "memory_fraction"),
            bad("ad.DeviceConfiguration(memory_fraction='half')", TypeError, "DeviceConfiguration:", "memory_fraction", "'half'"),
            bad("ad.DeviceConfiguration(enable_x64='yes')", TypeError, "DeviceConfiguration:", "enable_x64", "'yes'"),
            bad("ad.DeviceConfiguration(enable_jit=3)", TypeError, "DeviceConfiguration:", "enable_jit"),
            bad("ad.DeviceConfiguration(platform_priority='cpu')", TypeError, "DeviceConfiguration:", "platform_priority", "'cpu'"),
            bad("ad.DeviceConfiguration(platform_priority=3)", TypeError, "DeviceConfiguration:", "platform_priority"),
            bad("ad.DeviceConfiguration(environment_variables=3)", TypeError, "DeviceConfiguration:", "environment_variables", repair="write (\\{.*\\})$", then="ad.DeviceConfiguration(environment_variables={})"),
            bad("ad.DeviceConfiguration(environment_variables={3: 4})", TypeError, "DeviceConfiguration:", "environment_variables"),
        ],
    ),
    Calls(
        "DeviceManager",
        "ad.DeviceManager(ad.DeviceConfiguration(platform_priority=['cpu'])).close()",
        [
            bad("ad.DeviceManager(3)", TypeError, "DeviceManager:", "config", repair="write (DeviceConfiguration\\(memory_strategy=MemoryStrategy\\.BALANCED\\))"),
            bad("ad.DeviceManager('cpu')", TypeError, "DeviceManager:", "config", "'cpu'"),
            bad("ad.DeviceManager(None, 3)", TypeError, "DeviceManager:", "detector"),
            bad("ad.DeviceManager({'memory_fraction': 2})", TypeError, "DeviceManager:", "config", "'memory_fraction'"),
        ],
    ),
    Calls(
        "DeviceManager.acts_by",
        "manager.acts_by(ad.DeviceConfiguration())",
        [
            bad("manager.acts_by()", TypeError, "DeviceManager", "positional"),
            bad("manager.acts_by(1, 2)", TypeError, "DeviceManager", "positional"),
            bad("manager.acts_by(spam=1)", TypeError, "'spam'"),
        ],
        where="manager = ad.DeviceManager(ad.DeviceConfiguration(platform_priority=['cpu']))",
    ),
    Calls(
        "DeviceManager.optimize_for_model_size",
        "manager.optimize_for_model_size(10**6)",
        [
            bad("manager.optimize_for_model_size('x')", TypeError, "DeviceManager.optimize_for_model_size:", "model_params", "'x'"),
            bad("manager.optimize_for_model_size(-1)", ValueError, "DeviceManager.optimize_for_model_size:", "model_params"),
            bad("manager.optimize_for_model_size(None)", TypeError, "DeviceManager.optimize_for_model_size:", "model_params"),
            bad("manager.optimize_for_model_size(NAN)", ValueError, "DeviceManager.optimize_for_model_size:", "model_params"),
        ],
        where="manager = ad.DeviceManager(ad.DeviceConfiguration(platform_priority=['cpu']))",
    ),
    Calls(
        "JAXDeviceManager",
        "ad.JAXDeviceManager().get_default_device()",
        [
            bad("ad.JAXDeviceManager(3)", TypeError, "JAXDeviceManager:", "config"),
            bad("ad.JAXDeviceManager('cpu')", TypeError, "JAXDeviceManager:", "config", "'cpu'"),
            bad("ad.JAXDeviceManager(True)", TypeError, "JAXDeviceManager:", "True"),
            bad("ad.JAXDeviceManager(NO_REPR)", TypeError, "JAXDeviceManager:", "<NoRepr, whose repr raised ZeroDivisionError>"),
            bad("ad.JAXDeviceManager({'memory_strategy': 3})", TypeError, "JAXDeviceManager:", "dict", repair="write (DeviceConfiguration\\(memory_strategy=MemoryStrategy\\.BALANCED\\))", then="ad.JAXDeviceManager({})"),
        ],
    ),
    Calls(
        "JAXDeviceManager.distribute_data",
        "manager.distribute_data(X)",
        [
            bad("manager.distribute_data('text')", TypeError, "JAXDeviceManager.distribute_data:", "expected"),
            bad("manager.distribute_data(X, 3)", TypeError, "JAXDeviceManager.distribute_data:", "3", repair="write (artifex_devices\\.devices\\(\\)\\[:2\\])", then="manager.distribute_data(X, {})"),
            bad("manager.distribute_data(X, [])", ValueError, "JAXDeviceManager.distribute_data:", "target_devices"),
            bad("manager.distribute_data(X, ['cpu:0'])", TypeError, "JAXDeviceManager.distribute_data:", "'cpu:0'"),
            bad("manager.distribute_data(BAD_ARRAY)", ZeroDivisionError, "no array"),
        ],
        where="manager = ad.JAXDeviceManager()",
    ),
    Calls(
        "get_device_manager",
        "ad.get_device_manager(ad.DeviceConfiguration(platform_priority=['cpu']), force_reinit=True)",
        [
            bad("ad.get_device_manager(3)", TypeError, "get_device_manager:", "config"),
            bad("ad.get_device_manager('cpu')", TypeError, "get_device_manager:", "config", "'cpu'"),
            bad("ad.get_device_manager(ad.DeviceManager)", TypeError, "get_device_manager:", "config"),
        ],
    ),
    Calls(
        "configure_for_generative_models",
        "ad.configure_for_generative_models",
        [
            bad("ad.configure_for_generative_models('spam')", TypeError, "DeviceConfiguration:", "memory_strategy", "'spam'"),
            bad("ad.configure_for_generative_models(3)", TypeError, "DeviceConfiguration:", "memory_strategy"),
            bad("ad.configure_for_generative_models(enable_mixed_precision='yes')", TypeError, "DeviceConfiguration:", "enable_mixed_precision", "'yes'"),
        ],
    ),
    Calls(
        "CUDADetector",
        "ad.CUDADetector()",
        [
            bad("ad.CUDADetector(root=3)", TypeError, "CUDADetector:", "root"),
            bad("ad.CUDADetector(nvml_library=3)", TypeError, "CUDADetector:", "nvml_library"),
            bad("ad.CUDADetector(nvml_library='libspam.so')", ValueError, "CUDADetector:", "nvml_library", "'libspam.so'"),
        ],
    ),
    Calls(
        "DeviceMeshManager",
        "ad.DeviceMeshManager(devices)",
        [
            bad("ad.DeviceMeshManager(3)", TypeError, "DeviceMeshManager:", "devices"),
            bad("ad.DeviceMeshManager('cpu')", TypeError, "DeviceMeshManager:", "devices"),
            bad("ad.DeviceMeshManager([1])", TypeError, "DeviceMeshManager:", "devices", repair="them from (artifex_devices\\.devices\\(\\))", then="ad.DeviceMeshManager({})"),
        ],
    ),
    Calls(
        "DeviceMeshManager.create_data_parallel_mesh",
        "ad.DeviceMeshManager(devices).create_data_parallel_mesh(8)",
        [
            bad("ad.DeviceMeshManager(devices).create_data_parallel_mesh(9)", ValueError, "DeviceMeshManager.create_device_mesh:", "9"),
            bad("ad.DeviceMeshManager(devices).create_data_parallel_mesh(-1)", ValueError, "DeviceMeshManager.create_device_mesh:", "-1"),
            bad("ad.DeviceMeshManager(devices).create_data_parallel_mesh('x')", TypeError, "DeviceMeshManager.create_device_mesh:", "'x'"),
            bad("ad.DeviceMeshManager(devices).create_data_parallel_mesh(1.5)", TypeError, "DeviceMeshManager.create_device_mesh:", "1.5"),
            bad("ad.DeviceMeshManager(devices).create_data_parallel_mesh(2**63)", ValueError, "DeviceMeshManager.create_device_mesh:", "expected"),
            bad("ad.DeviceMeshManager(devices).create_data_parallel_mesh(8, axis_name=[])", TypeError, "DeviceMeshManager.create_device_mesh:", "expected"),
        ],
    ),
    Calls(
        "DeviceMeshManager.create_model_parallel_mesh",
        "ad.DeviceMeshManager(devices).create_model_parallel_mesh(8)",
        [
            bad("ad.DeviceMeshManager(devices).create_model_parallel_mesh(9)", ValueError, "DeviceMeshManager.create_device_mesh:", "9"),
            bad("ad.DeviceMeshManager(devices).create_model_parallel_mesh(0)", ValueError, "DeviceMeshManager.create_device_mesh:", "0"),
            bad("ad.DeviceMeshManager(devices).create_model_parallel_mesh('x')", TypeError, "DeviceMeshManager.create_device_mesh:", "'x'"),
        ],
    ),
    Calls(
        "DeviceMeshManager.create_device_mesh",
        "ad.DeviceMeshManager(devices).create_device_mesh([('a', 8)])",
        [
            bad("ad.DeviceMeshManager(devices).create_device_mesh([('a', 9)])", ValueError, "DeviceMeshManager.create_device_mesh:", "devices", "'a'"),
            bad("ad.DeviceMeshManager(devices).create_device_mesh(3)", TypeError, "DeviceMeshManager.create_device_mesh:", "mesh_shape"),
            bad("ad.DeviceMeshManager(devices).create_device_mesh('a')", TypeError, "DeviceMeshManager.create_device_mesh:", "mesh_shape", "'a'"),
            bad("ad.DeviceMeshManager(devices).create_device_mesh([('a', -8)])", ValueError, "DeviceMeshManager.create_device_mesh:", "'a'"),
            bad("ad.DeviceMeshManager(devices).create_device_mesh([('a', 'x')])", TypeError, "DeviceMeshManager.create_device_mesh:", "'a'", "'x'"),
            bad("ad.DeviceMeshManager(devices).create_device_mesh([('a',)])", TypeError, "DeviceMeshManager.create_device_mesh:", "'a'"),
            bad("ad.DeviceMeshManager(devices).create_device_mesh([('a', 2), ('a', 4)])", ValueError, "DeviceMeshManager.create_device_mesh:", "'a'"),
            bad("ad.DeviceMeshManager(devices).create_device_mesh([('a', 8)], devices=3)", TypeError, "DeviceMeshManager.create_device_mesh:", "devices"),
        ],
    ),
    Calls(
        "DeviceMeshManager.create_hybrid_mesh",
        "ad.DeviceMeshManager(devices).create_hybrid_mesh(2, 4)",
        [
            bad("ad.DeviceMeshManager(devices).create_hybrid_mesh(3, 4)", ValueError, "DeviceMeshManager.create_device_mesh:", "3", "4"),
            bad("ad.DeviceMeshManager(devices).create_hybrid_mesh(-2, -4)", ValueError, "DeviceMeshManager.create_device_mesh:", "-2", "-4"),
            bad("ad.DeviceMeshManager(devices).create_hybrid_mesh('x', 4)", TypeError, "DeviceMeshManager.create_device_mesh:", "'x'"),
            bad("ad.DeviceMeshManager(devices).create_hybrid_mesh(2, 4, 'a', 'a')", ValueError, "DeviceMeshManager.create_device_mesh:", "'a'"),
        ],
    ),
    Calls(
        "DeviceMeshManager.get_mesh_info",
        "ad.DeviceMeshManager(devices).get_mesh_info(grid)",
        [
            bad("ad.DeviceMeshManager(devices).get_mesh_info(3)", TypeError, "DeviceMeshManager.get_mesh_info:", "3"),
            bad("ad.DeviceMeshManager(devices).get_mesh_info(None)", TypeError, "DeviceMeshManager.get_mesh_info:", "None"),
            bad("ad.DeviceMeshManager(devices).get_mesh_info('x')", TypeError, "DeviceMeshManager.get_mesh_info:", "'x'"),
        ],
    ),
    Calls(
        "DevicePlacement",
        "ad.DevicePlacement(d)",
        [
            bad("ad.DevicePlacement(3)", TypeError, "DevicePlacement:", "default_device"),
            bad("ad.DevicePlacement('cpu:0')", TypeError, "DevicePlacement:", "default_device", "'cpu:0'"),
            bad("ad.DevicePlacement([d])", TypeError, "DevicePlacement:", "default_device"),
        ],
    ),
    Calls(
        "DevicePlacement.place_on_device",
        "ad.DevicePlacement().place_on_device(X)",
        [
            bad("ad.DevicePlacement().place_on_device('text')", TypeError, "device_put:", "expected"),
            bad("ad.DevicePlacement().place_on_device(X, 3)", TypeError, "DevicePlacement.place_on_device:", "the target is"),
            bad("ad.DevicePlacement().place_on_device(X, 'cpu')", TypeError, "DevicePlacement.place_on_device:", "the target is", "'cpu'"),
            bad("ad.DevicePlacement().place_on_device(BAD_ARRAY)", ZeroDivisionError, "no array"),
        ],
    ),
    Calls(
        "DevicePlacement.distribute_batch",
        "ad.DevicePlacement().distribute_batch(X, named('x'))",
        [
            bad("ad.DevicePlacement().distribute_batch(X, 3)", TypeError, "distribute_batch:", "the target is"),
            bad("ad.DevicePlacement().distribute_batch(X[:7], named('x'))", IndivisibleError, "device_put:", "'x'"),
            bad("ad.DevicePlacement().distribute_batch('text', named('x'))", TypeError, "device_put:", "expected"),
        ],
    ),
    Calls(
        "DevicePlacement.replicate_across_devices",
        "ad.DevicePlacement().replicate_across_devices(X)",
        [
            bad("ad.DevicePlacement().replicate_across_devices('text')", TypeError, "device_put:", "expected"),
            bad("ad.DevicePlacement().replicate_across_devices(X, 3)", TypeError, "DevicePlacement.replicate_across_devices:", "3"),
            bad("ad.DevicePlacement().replicate_across_devices(X, [])", ValueError, "DevicePlacement.replicate_across_devices:", "expected"),
            bad("ad.DevicePlacement().replicate_across_devices(X, ['cpu'])", TypeError, "DevicePlacement.replicate_across_devices:", "'cpu'"),
        ],
    ),
    Calls(
        "DevicePlacement.shard_batch_dim",
        "ad.DevicePlacement().shard_batch_dim(X, line, mesh_axis='x')",
        [
            bad("ad.DevicePlacement().shard_batch_dim(X, 3)", TypeError, "DevicePlacement.shard_batch_dim:", "mesh"),
            bad("ad.DevicePlacement().shard_batch_dim(X[:7], line, mesh_axis='x')", IndivisibleError, "DevicePlacement.shard_batch_dim:", "mesh", "'x'"),
            bad("ad.DevicePlacement().shard_batch_dim(X, line, batch_axis='x', mesh_axis='x')", TypeError, "DevicePlacement.shard_batch_dim:", "batch_axis", "'x'"),
            bad("ad.DevicePlacement().shard_batch_dim(X, line, mesh_axis='z')", ValueError, "DevicePlacement.shard_batch_dim:", "mesh", "mesh_axis"),
            bad("ad.DevicePlacement().shard_batch_dim(X, line, mesh_axis=3)", ValueError, "DevicePlacement.shard_batch_dim:", "mesh", "mesh_axis"),
        ],
    ),
    Calls(
        "DevicePlacement.prefetch_to_device",
        "list(ad.DevicePlacement().prefetch_to_device(iter([X])))",
        [
            bad("ad.DevicePlacement().prefetch_to_device(3)", TypeError, "prefetch_to_device:", "expected"),
            bad("ad.DevicePlacement().prefetch_to_device(iter([X]), 3)", TypeError, "prefetch_to_device:", "3"),
            bad("ad.DevicePlacement().prefetch_to_device(iter([X]), buffer_size=0)", ValueError, "prefetch_to_device:", "buffer_size"),
            bad("ad.DevicePlacement().prefetch_to_device(iter([X]), buffer_size='x')", TypeError, "prefetch_to_device:", "buffer_size", "'x'"),
            bad("ad.DevicePlacement().prefetch_to_device(iter([X]), buffer_size=1.5)", TypeError, "prefetch_to_device:", "buffer_size", "1.5"),
            bad("list(ad.DevicePlacement().prefetch_to_device(iter(['text'])))", TypeError, "device_put:", "expected"),
            bad("list(ad.DevicePlacement().prefetch_to_device(BAD_ITER))", ZeroDivisionError, "no more"),
        ],
    ),
    Calls(
        "DevicePlacement.get_batch_size_recommendation",
        "ad.DevicePlacement().get_batch_size_recommendation()",
        [
            bad("ad.DevicePlacement().get_batch_size_recommendation('spam')", ValueError, "get_batch_size_recommendation:", "'spam'"),
            bad("ad.DevicePlacement().get_batch_size_recommendation(3)", ValueError, "get_batch_size_recommendation:", "3"),
            bad("ad.DevicePlacement().get_batch_size_recommendation(bytes_per_example=-1)", ValueError, "max_memory_batch_size:", "bytes_per_example", "model_state_bytes"),
            bad("ad.DevicePlacement().get_batch_size_recommendation(bytes_per_example='x')", TypeError, "get_batch_size_recommendation:", "bytes_per_example", "'x'"),
            bad("ad.DevicePlacement().get_batch_size_recommendation(device=3)", TypeError, "get_batch_size_recommendation:", "device"),
        ],
    ),
    Calls(
        "DevicePlacement.validate_batch_size",
        "ad.DevicePlacement().validate_batch_size(256)",
        [
            bad("ad.DevicePlacement().validate_batch_size('x')", TypeError, "validate_batch_size:", "'x'", repair="use (int\\(batch_size\\)) if", then="ad.DevicePlacement().validate_batch_size({})", given="batch_size = 256.0"),
            bad("ad.DevicePlacement().validate_batch_size(1.5)", TypeError, "validate_batch_size:", "1.5"),
            bad("ad.DevicePlacement().validate_batch_size(None)", TypeError, "validate_batch_size:", "None"),
            bad("ad.DevicePlacement().validate_batch_size(NAN)", TypeError, "validate_batch_size:", "expected"),
        ],
    ),
    Calls(
        "get_batch_size_recommendation",
        "ad.get_batch_size_recommendation('h100') if False else ad.get_batch_size_recommendation()",
        [
            bad("ad.get_batch_size_recommendation('spam')", ValueError, "get_batch_size_recommendation:", "'spam'"),
            bad("ad.get_batch_size_recommendation(3)", ValueError, "get_batch_size_recommendation:", "3"),
            bad("ad.get_batch_size_recommendation(device=3)", TypeError, "get_batch_size_recommendation:", "device"),
            bad("ad.get_batch_size_recommendation(bytes_per_example=8, model_state_bytes=-1)", ValueError, "max_memory_batch_size:", "bytes_per_example", "model_state_bytes"),
            bad("ad.get_batch_size_recommendation(bytes_per_example=8, free_bytes='x')", TypeError, "get_batch_size_recommendation:", "free_bytes", "'x'"),
            bad("ad.get_batch_size_recommendation(bytes_per_example=NAN)", TypeError, "get_batch_size_recommendation:", "bytes_per_example"),
        ],
    ),
    Calls(
        "HardwareType",
        "ad.HardwareType",
        [
            bad("ad.HardwareType('spam')", ValueError, "'spam'", "HardwareType"),
            bad("ad.HardwareType(99)", ValueError, "99", "HardwareType"),
            bad("ad.HardwareType['spam']", KeyError, "'spam'"),
        ],
    ),
    Calls(
        "DeviceType",
        "ad.DeviceType",
        [
            bad("ad.DeviceType('spam')", ValueError, "'spam'", "DeviceType"),
            bad("ad.DeviceType(99)", ValueError, "99", "DeviceType"),
            bad("ad.DeviceType['spam']", KeyError, "'spam'"),
        ],
    ),
    Calls(
        "MemoryStrategy",
        "ad.MemoryStrategy",
        [
            bad("ad.MemoryStrategy('spam')", ValueError, "'spam'", "MemoryStrategy"),
            bad("ad.MemoryStrategy(99)", ValueError, "99", "MemoryStrategy"),
            bad("ad.MemoryStrategy['spam']", KeyError, "'spam'"),
        ],
    ),
    Calls(
        "measure_batch_size",
        "ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), max_batch_size=2, max_seconds=0.2, probe_seconds=0.01, progress=False)",
        [
            bad("ad.measure_batch_size(3, lambda n: np.zeros(n))", TypeError, "measure_batch_size:", "step_fn"),
            bad("ad.measure_batch_size(lambda b: b, 3)", TypeError, "measure_batch_size:", "make_batch"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), target=2)", ValueError, "measure_batch_size:", "target"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), target='x')", TypeError, "measure_batch_size:", "target", "'x'"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), multiple_of=0)", ValueError, "measure_batch_size:", "multiple_of", "min_batch_size"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), min_batch_size='x')", TypeError, "measure_batch_size:", "min_batch_size", "'x'", repair="use (int\\(min_batch_size\\)) if", given="min_batch_size = 2.0"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), max_batch_size=-1)", ValueError, "measure_batch_size:", "max_batch_size"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), max_seconds=NAN)", ValueError, "measure_batch_size:", "max_seconds"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), memory_fraction=2)", ValueError, "measure_batch_size:", "memory_fraction"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), warmup_calls=-1)", ValueError, "measure_batch_size:", "warmup_calls"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), min_calls=0)", ValueError, "measure_batch_size:", "min_calls"),
            bad("ad.measure_batch_size(lambda b: b, lambda n: np.zeros(n), on_probe=3)", TypeError, "measure_batch_size:", "on_probe"),
            bad("ad.measure_batch_size(lambda b: (_ for _ in b), lambda n: np.zeros(n), progress=False)", TypeError, "measure_batch_size:", "step_fn"),
        ],
    ),
]
