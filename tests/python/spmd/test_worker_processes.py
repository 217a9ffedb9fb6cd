# SPDX-License-Identifier: Apache-2.0
"""Arrays that multiprocessing sends to workers and back: they load, on other devices if need be, and nothing hangs."""

import json
import os
import pickle
import subprocess
import sys

import artifex_devices as ad
import numpy as np
import pytest

PROGRAM = """
import contextlib, json, multiprocessing, sys, warnings
import artifex_devices as ad
import numpy as np

VALUE = np.arange(16.0).reshape(8, 2)


def sharded():
    return ad.device_put(VALUE, ad.NamedSharding(ad.Mesh(ad.devices(), "x"), ad.P("x")))


def look(x):
    with warnings.catch_warnings(record=True):
        return type(x).__name__, len(x.devices()), np.asarray(x).tolist() == VALUE.tolist()


def answer(x):
    # What the worker returns: the Array itself, and one of its own.
    return x, ad.device_put(VALUE + 1, x.sharding)


def main(method, world):
    scope = ad.simulate(8) if world == "simulated" else contextlib.nullcontext()
    with scope, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = sharded()
        with multiprocessing.get_context(method).Pool(1) as pool:
            seen = pool.map_async(look, [x]).get(60)[0]
            nested = pool.apply_async(look, ({"x": x}["x"],)).get(60)
            same, new = pool.apply_async(answer, (x,)).get(60)
        process = multiprocessing.get_context(method).Process(target=look, args=(x,))
        process.start()
        process.join(60)
    print(json.dumps({
        "seen": seen, "nested": nested, "back": [np.asarray(same).tolist() == VALUE.tolist(),
        np.asarray(new).tolist() == (VALUE + 1).tolist()], "devices": [len(same.devices()), len(new.devices())],
        "warnings": [str(w.message) for w in caught if w.category is RuntimeWarning], "exit": process.exitcode,
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
"""


def run(tmp_path, method, world, devices, *options):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, *options, str(program), method, world],
        capture_output=True,
        text=True,
        timeout=110,
        env={**os.environ, "XLA_FLAGS": "", "JAX_NUM_CPU_DEVICES": devices},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_that_have_the_devices_use_them(method, tmp_path):
    found, _ = run(tmp_path, method, "base", "8")
    assert found["seen"] == found["nested"] == ["Array", 8, True]
    assert found["back"] == [True, True]
    assert found["devices"] == [8, 8]
    assert found["warnings"] == []
    assert found["exit"] == 0


@pytest.mark.parametrize("options", [(), ("-Werror::RuntimeWarning",)])
def test_spawned_workers_without_the_devices_use_their_default_device(options, tmp_path):
    found, errors = run(tmp_path, "spawn", "simulated", "1", *options)
    assert found["seen"] == found["nested"] == ["Array", 1, True]
    assert found["back"] == [True, True]
    assert found["exit"] == 0
    assert "an Array of shape (8, 2) is placed on the default device" in errors
    assert "cpu:7" in errors
    assert "JAX_NUM_CPU_DEVICES" in errors


def test_results_come_back_though_the_thread_that_receives_them_is_in_another_world(tmp_path):
    found, _ = run(tmp_path, "fork", "simulated", "1")
    assert found["seen"] == ["Array", 8, True]
    assert found["back"] == [True, True]
    assert found["devices"] == [1, 1]
    assert "is placed on the default device" in found["warnings"][0]


def test_other_pickles_of_missing_devices_are_still_an_error(named):
    data = pickle.dumps(ad.device_put(np.ones(8), named("x")))
    with ad.simulate(2), pytest.raises(ValueError, match="are not here"):
        pickle.loads(data)
