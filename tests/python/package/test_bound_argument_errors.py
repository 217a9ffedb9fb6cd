# SPDX-License-Identifier: Apache-2.0
"""What is bound refuses wrong arguments, and wrong objects for its methods and properties, by an exception."""

import subprocess
import sys

CALL_ALL = """
import inspect
from artifex_devices import _core

calls = 0


def try_call(label, function, arguments):
    global calls
    calls += 1
    try:
        function(*arguments)
    except Exception as error:
        assert str(error), label


for name, value in {**vars(_core), **vars(_core.internal)}.items():
    if inspect.isclass(value) and hasattr(value, "_pybind11_conduit_v1_"):
        try_call(name, value, (object(),) * 40)
        for label, member in list(vars(value).items()):
            if isinstance(member, property):
                try_call(f"{name}.{label}", member.fget, (object(),))
            elif callable(getattr(value, label, None)) and label not in ("__new__", "__init_subclass__"):
                for arguments in ((None,), (object(),), (object(),) * 40):
                    try_call(f"{name}.{label}", getattr(value, label), arguments)
    elif callable(value) and not inspect.isclass(value):
        try_call(name, value, (object(),) * 40)
print(calls)
"""


def test_nothing_that_is_bound_takes_none_or_others_for_its_object():
    done = subprocess.run([sys.executable, "-c", CALL_ALL], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 1000
