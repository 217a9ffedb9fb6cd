# SPDX-License-Identifier: Apache-2.0
"""The example that trains runs in several processes as in one; it compares itself with one device."""

import importlib.util
import runpy
import sys

import pytest
from launching import CHECKOUT

pytestmark = pytest.mark.real_processes


def train(arguments):
    sys.argv = ["digits_train.py", *arguments]
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(CHECKOUT / "examples/digits_train.py"), run_name="__main__")
    return ended.value.code


@pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="scikit-learn, which has the digits, is missing"
)
@pytest.mark.parametrize(
    ("count", "arguments"), [(1, []), (2, []), (2, ["--mesh", "data=2,model=2"]), (2, ["--mesh", "data=1,model=4"])]
)
def test_training_in_several_processes_ends_as_in_one(processes, count, arguments):
    job = processes(count, train, arguments, initialize=False, timeout=100)
    assert job.values == [0] * count
    assert job.output.count("largest difference from one device") == 1
