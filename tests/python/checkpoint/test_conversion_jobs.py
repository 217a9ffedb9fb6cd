# SPDX-License-Identifier: Apache-2.0
"""convert for a job of another size: which file has what each process reads, and what is left over."""

import os

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import rules

W = np.arange(96.0).reshape(8, 12)


@pytest.fixture
def source(tmp_path):
    checkpoint.save(tmp_path / "a", {"params": {"w": W, "b": np.arange(6)}, "step": 5})
    return tmp_path / "a"


def boxes(path, name):
    return {(part.file[:11], part.origin, part.shape) for part in checkpoint.metadata(path).arrays[name].parts}


def test_each_future_process_has_a_file_with_its_boxes(source, tmp_path):
    with ad.simulate(8, processes=4):
        mesh = ad.make_mesh((4, 2), ("x", "y"))
        like = {
            "params": {"w": ad.NamedSharding(mesh, ad.P("x", "y")), "b": ad.NamedSharding(mesh, ad.P())},
            "step": 0,
        }
        done = checkpoint.convert(source, tmp_path / "b", like=like)
    assert len(done.files) == 4
    assert boxes(tmp_path / "b", "params.w") == {(f"shard-0000{p}", (2 * p - 2, 0), (2, 12)) for p in (1, 2, 3, 4)}
    parts = checkpoint.metadata(tmp_path / "b").arrays["params.b"].parts  # replicated: each element is written once
    assert sum(part.shape[0] for part in parts) == 6
    found = checkpoint.restore(tmp_path / "b", verify=True)
    assert found["params"]["w"].tobytes() == W.tobytes()
    assert found["params"]["b"].tolist() == list(range(6))
    assert found["step"] == 5


def test_a_job_of_another_size_restores_it(source, tmp_path):
    with ad.simulate(8):
        mesh = ad.make_mesh((2, 4), ("x", "y"))
        like = {"params": {"w": ad.NamedSharding(mesh, ad.P("y", "x")), "b": np.zeros(6, int)}, "step": 0}
        checkpoint.convert(source, tmp_path / "b", like=like)
        found = checkpoint.restore(tmp_path / "b", like)
        assert found["params"]["w"].sharding == like["params"]["w"]
        assert np.asarray(found["params"]["w"]).tobytes() == W.tobytes()


def test_processes_of_a_mesh_have_equal_parts(source, tmp_path):
    with ad.simulate(8, processes=2):
        checkpoint.convert(source, tmp_path / "b", mesh=ad.make_mesh((8,), ("x",)))
    assert boxes(tmp_path / "b", "params.w") == {("shard-00001", (0, 0), (4, 12)), ("shard-00002", (4, 0), (4, 12))}
    assert checkpoint.metadata(tmp_path / "b").process_count == 2


def test_names_and_shapes_follow_like_after_the_rules(source, tmp_path):
    like = {"dense": {"kernel": ad.ShapeDtypeStruct((12, 8), np.float64)}, "b": np.zeros(6, int)}
    checkpoint.convert(
        source,
        tmp_path / "b",
        like=like,
        rules=[
            rules.transpose("params.w", (1, 0)),
            rules.rename("params.w", "dense.kernel"),
            rules.rename("params.b", "b"),
        ],
        allow_extra=["step"],
    )
    found = checkpoint.restore(tmp_path / "b")
    assert sorted(found) == ["b", "dense"]
    assert found["dense"]["kernel"].tolist() == W.T.tolist()


@pytest.mark.parametrize(
    ("like", "text"),
    [
        ({"params": {"w": W}, "step": 0}, r"1 array is not in like: 'params.b'; expected the arrays of like; add"),
        ({"params": {"w": W, "b": np.zeros(6, int), "c": W}, "step": 0}, r"1 of like has no source: 'params.c'"),
        ({"params": {"w": W, "b": np.zeros(6, int)}}, r"like does not have the values 'step'; expected the values of"),
        ({"params": {"w": W, "b": np.zeros(6, int)}, "step": 0, "run": "x"}, r"does not have the values 'run' of like"),
        (
            {"params": {"w": W, "b": np.zeros(6, int)}, "step": 0.5},
            r"does not have the values 'step' of like, of their",
        ),
        ({"params": {"w": W[:2], "b": np.zeros(6, int)}, "step": 0}, r"'params.w' has shape \(2, 12\) in like and \(8"),
    ],
)
def test_names_that_are_left_over_are_an_error(source, tmp_path, like, text):
    with pytest.raises(ValueError, match=rf"^checkpoint.convert: .*{text}"):
        checkpoint.convert(source, tmp_path / "b", like=like)
    assert os.listdir(tmp_path) == ["a"]


def test_names_that_are_allowed_are_left_out(source, tmp_path):
    like = {"params": {"w": W, "c": W}, "run": "x"}
    checkpoint.convert(
        source, tmp_path / "b", like=like, allow_missing=["params.c", "run"], allow_extra=["params.b", "step"]
    )
    assert sorted(checkpoint.restore(tmp_path / "b")) == ["params"]


def test_a_sharding_without_devices_is_refused(source, tmp_path):
    like = ad.NamedSharding(ad.AbstractMesh((8,), ("x",)), ad.P("x"))
    with pytest.raises(ValueError, match=r"AbstractMesh, which has no devices"):
        checkpoint.convert(source, tmp_path / "b", like={"params": {"w": like, "b": like}, "step": 0})


def test_only_one_argument_says_which_processes_read_it(source, tmp_path):
    with pytest.raises(ValueError, match=r"two of like, mesh and num_files are given; expected one"):
        checkpoint.convert(source, tmp_path / "b", like={}, num_files=2)
