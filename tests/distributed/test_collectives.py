# SPDX-License-Identifier: Apache-2.0
"""shard_map and its collectives over the devices of real processes: the bits of one process."""

import sys
from pathlib import Path

import numpy as np
import pytest
from launching import wait_for_outcomes

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))


def shards_of_everything(sizes, columns, dtypes, order=None, executor="cooperative"):
    """Of each dtype: (index, bytes) of each shard that is here, of all that the program makes."""
    from crossing_programs import run

    return [
        [
            [
                (
                    tuple(part.indices(size)[:2] for part, size in zip(shard.index, made.shape, strict=True)),
                    np.asarray(shard.data).tobytes(),
                )
                for shard in made.addressable_shards
            ]
            for made in run(sizes, columns, dtype, order, executor)
        ]
        for dtype in dtypes
    ]


def check(processes, count, *arguments):
    from crossing_programs import expected

    sizes, columns, dtypes, *rest = arguments
    wanted = [value for dtype in dtypes for value in expected(sizes, columns, dtype, *rest[:1])]
    for outcome in processes(count, shards_of_everything, *arguments, devices=int(np.prod(sizes)) // count).values:
        found = [shards for made in outcome for shards in made]
        assert len(found) == len(wanted)
        for shards, value in zip(found, wanted, strict=True):
            assert shards
            for index, data in shards:
                part = value[tuple(slice(*each) for each in index)]
                assert data == np.ascontiguousarray(part).tobytes()


def rows_of_the_table(sizes):
    """{row, axes, dtype: {index of a device: its result}} of the devices that are here."""
    import artifex_devices as ad
    from artifex_devices import P, lax
    from collective_table import TABLE, blocks_for, size_of

    names = tuple(sizes)
    mesh = ad.Mesh(np.array(ad.devices()).reshape(tuple(sizes.values())), names)
    found = {}
    for axes in dict.fromkeys((names, names[-1:])):  # in one order in all processes
        n = size_of(sizes, axes)
        for name, row in TABLE.items():
            for dtype in [each for each in ("float32", "int64") if each in row.dtypes]:
                blocks = blocks_for(dtype, mesh.size, n)

                def body(place, row=row, blocks=blocks, axes=axes, n=n):
                    return np.asarray(row.call(lax, blocks[int(place[0])], axes, n))[None]

                made = ad.shard_map(body, mesh, in_specs=P(names), out_specs=P(names))(np.arange(mesh.size))
                shards = {shard.index[0].start or 0: np.asarray(shard.data)[0] for shard in made.addressable_shards}
                found[name, axes, dtype] = shards
    return found


@pytest.mark.parametrize(("count", "sizes"), [(2, {"x": 4}), (3, {"x": 3}), (4, {"x": 2, "y": 2})], ids=str)
def test_each_row_of_the_table_is_numpys(processes, count, sizes):
    from collective_table import blocks_for, expected, size_of

    total = int(np.prod(list(sizes.values())))
    for rows in processes(count, rows_of_the_table, sizes, devices=total // count).values:
        for (name, axes, dtype), shards in rows.items():
            wanted = expected(name, blocks_for(dtype, total, size_of(sizes, axes)), sizes, axes)
            assert shards
            for place, block in shards.items():
                where = f"{name} over {axes}, {dtype}, device {place}"
                assert (block.dtype, block.shape) == (wanted[place].dtype, wanted[place].shape), where
                assert block.tobytes() == np.ascontiguousarray(wanted[place]).tobytes(), where


@pytest.mark.parametrize(("count", "sizes"), [(4, (2, 2)), (2, (2, 2))], ids=str)
def test_sums_whose_order_shows_give_the_bits_of_one_process(processes, count, sizes):
    check(processes, count, sizes, 5, ["bfloat16", "float32"])


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_big_blocks_too(processes, executor):
    check(processes, 2, (4,), 400_001, ["float32"], None, executor)


def test_devices_in_another_order(processes):
    check(processes, 2, (4,), 40_000, ["float16"], (0, 2, 1, 3))


def sums_whose_blocks_lie_in_the_first_process():
    import artifex_devices as ad
    from artifex_devices import P, lax

    mesh = ad.Mesh(np.array(ad.devices()).reshape(2, 2), ("p", "y"))
    add = ad.shard_map(lambda b: lax.psum(b, "y"), mesh, in_specs=P("y"), out_specs=P(), axis_names={"y"})
    return [np.asarray(add(np.arange(2.0 * size))).tolist() for size in (1, 100)]


def test_members_whose_blocks_all_come_from_another_process(processes):
    wanted = [[1.0], [2.0 * place + 100 for place in range(100)]]
    assert processes(2, sums_whose_blocks_lie_in_the_first_process).values == [wanted, wanted]


def many_sums():
    import artifex_devices as ad
    from artifex_devices import P, lax

    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    add = ad.shard_map(lambda b: lax.psum(b, "x"), mesh, in_specs=P("x"), out_specs=P())
    x = ad.device_put(np.ones(len(mesh.devices)), ad.NamedSharding(mesh, P("x")))
    return {np.asarray(add(x * turn)).item() for turn in range(200)} == {4.0 * turn for turn in range(200)}


def test_many_calls(processes):
    assert processes(2, many_sums).values == [True, True]


def raise_in_one(executor):
    import artifex_devices as ad
    from artifex_devices import P, lax

    mesh = ad.Mesh(np.array(ad.devices()), ("x",))

    def body(block):
        if lax.axis_index("x") == 3:
            raise ZeroDivisionError("in the last one")
        return lax.psum(block, "x")

    texts = []
    for turn in range(3):
        try:
            ad.shard_map(body, mesh, in_specs=P("x"), out_specs=P(), executor=executor)(np.ones(4))
        except Exception as error:
            texts.append(f"{turn} {type(error).__name__}: {error}")
    add = ad.shard_map(lambda b: lax.psum(b, "x"), mesh, in_specs=P("x"), out_specs=P())
    return texts, np.asarray(add(np.ones(4))).item()


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_an_exception_in_one_process_is_raised_in_the_other_and_the_job_goes_on(processes, executor):
    (first, total), (second, other) = processes(2, raise_in_one, executor).values
    assert [text[:19] for text in second] == [f"{turn} ZeroDivisionError" for turn in range(3)]
    assert len(first) == 3
    assert all("ZeroDivisionError: in the last one" in text for text in first)
    assert total == other == 4.0


def differ():
    import artifex_devices as ad
    from artifex_devices import P, distributed, lax

    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    if ad.process_index() == 0:
        body = lambda b: lax.psum(b, "x")  # noqa: E731
    else:
        body = lambda b: lax.pmax(b, "x")  # noqa: E731
    ad.shard_map(body, mesh, in_specs=P("x"), out_specs=P())(np.ones(4))
    return distributed


def test_different_programs_are_an_error_that_names_both_with_their_lines(processes):
    for name, text in processes(2, differ).errors:
        assert name == "CollectiveError"
        assert "psum float64(1,) over x at " in text
        assert "pmax float64(1,) over x at " in text
        assert text.count("test_collectives.py:") >= 2


def end_in_a_sum(how, executor, folder):
    import os
    import signal
    import threading

    import artifex_devices as ad
    from artifex_devices import P, config, lax

    if how == "deadline":
        config.update("collective_timeout_s", 1.0)
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    me = ad.process_index()

    def body(block):
        block = lax.psum(block, "x")
        if me == 1 and lax.axis_index("x") == 2:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            wait_for_outcomes(folder, 0)
        return lax.psum(block, "x")

    try:
        if how == "interrupted" and me == 0:
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        ad.shard_map(body, mesh, in_specs=P("x"), out_specs=P(), executor=executor)(np.ones(4))
    except BaseException as error:
        return type(error).__name__, str(error)
    return "nothing", ""


@pytest.mark.real_processes
@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_a_process_that_is_killed_in_a_body_is_named_by_the_other(processes, executor, tmp_path):
    job = processes(2, end_in_a_sum, "killed", executor, str(tmp_path / "job0"), shielded=True)
    name, text = job.outcomes[0].value
    assert name == "CollectiveError"
    assert "process 1 (" in text
    assert "ended without notice" in text


@pytest.mark.real_processes
@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_a_process_that_does_not_come_to_a_sum_in_time(processes, executor, tmp_path):
    job = processes(2, end_in_a_sum, "deadline", executor, str(tmp_path / "job0"))
    name, text = job.outcomes[0].value
    assert name == "CollectiveError"
    assert "psum float64(1,) over x" in text
    assert "collective_timeout_s" in text


@pytest.mark.real_processes
@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_ctrl_c_in_a_sum(processes, executor, tmp_path):
    job = processes(2, end_in_a_sum, "interrupted", executor, str(tmp_path / "job0"), shielded=True)
    name, _ = job.outcomes[0].value
    assert name == "KeyboardInterrupt"
