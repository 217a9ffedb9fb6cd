# SPDX-License-Identifier: Apache-2.0
"""The script of the page about many processes runs as it stands."""

import re

import pytest
from launching import CHECKOUT

pytestmark = pytest.mark.real_processes


def run_script(code):
    exec(compile(code, "script.py", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_script_of_the_page_runs(processes, count):
    page = (CHECKOUT / "docs/learn/processes.md").read_text()
    code = "\n".join(re.findall(r"(?ms)^```py\n(.*?)^```$", page))
    job = processes(count, run_script, code, initialize=False)
    assert len(job.values) == count
    for number in range(count):
        assert f"{number} of {count} has 2 of ({8 * count}, 8)" in job.output
