# SPDX-License-Identifier: Apache-2.0
"""tools/array_api_suite.py: the placements that it tests, and which outcomes it reports."""

import sys
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"
sys.path.insert(0, str(TOOLS))
import array_api_suite  # noqa: E402


def test_one_device_is_the_namespace_itself():
    assert array_api_suite.namespace("one") is ad.array_api


EVEN = {
    (): (),
    (3,): (None,),
    (0,): (None,),
    (6,): ("a",),
    (8, 2): (("a", "b", "c"), None),
    (4, 3, 6): (("a", "b"), None, "c"),
}


@pytest.mark.parametrize(("shape", "spec"), EVEN.items())
def test_even_shards(shape, spec):
    x = array_api_suite.namespace("even").ones(shape)
    assert tuple(x.sharding.spec) == spec
    assert len(x.devices()) == 8


@pytest.mark.parametrize(("shape", "spec"), [((), ()), ((3,), ("a",)), ((3, 4), ("a",))])
def test_uneven_shards(shape, spec):
    xp = array_api_suite.namespace("uneven")
    x = xp.asarray(np.ones(shape))
    assert tuple(x.sharding.spec) == spec
    assert x.sharding.uneven == "last-short"
    assert xp.asarray(x) is x
    assert xp.zeros(3, device=ad.devices()[1]).devices() == {ad.devices()[1]}
    assert xp.sin(x).sharding == x.sharding
    assert not hasattr(xp, "extract")


def test_a_test_that_only_numpy_passes_is_reported(monkeypatch, capsys, tmp_path):
    (tmp_path / "array-api" / "spec").mkdir(parents=True)
    immutable = next(iter(array_api_suite.KNOWN))
    outcomes = {
        "numpy": {"a": "passed", "b": "failed", immutable: "passed"},
        "one": {"a": "passed", "b": "passed", immutable: "failed"},
        "even": {"a": "failed", "b": "failed", immutable: "failed"},
    }
    monkeypatch.setattr(array_api_suite, "run", lambda suite, placement, arguments: outcomes[placement])
    for placement, status, text in (("one", 0, ""), ("even", 1, "  a: passes in NumPy, here failed\n")):
        monkeypatch.setattr(sys, "argv", ["array_api_suite.py", str(tmp_path), "--placements", placement])
        assert array_api_suite.main() == status
        assert capsys.readouterr().out == text


def test_a_suite_without_its_submodule_is_an_error(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["array_api_suite.py", str(tmp_path)])
    with pytest.raises(SystemExit) as error:
        array_api_suite.main()
    assert error.value.code == 2
    assert "git submodule update --init" in capsys.readouterr().err
