# SPDX-License-Identifier: Apache-2.0
"""Bugs of programs of several processes, each found by simulated processes within some schedules, and found again.

`ARTIFEX_SCHEDULES=1000 ARTIFEX_REPLAYS=100` is the long run.
"""

import contextlib
import os
import re
import shutil
from dataclasses import dataclass

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, checkpoint, config, lax, multihost_utils
from artifex_devices.errors import CollectiveError
from artifex_devices.testing import kill, run_processes, stall

SCHEDULES = int(os.environ.get("ARTIFEX_SCHEDULES", "100"))
REPLAYS = int(os.environ.get("ARTIFEX_REPLAYS", "2"))
DIFFERENT = "the processes called different operations"
LEFT = r"process \d \(simulated\) takes no further part"
LOST = r"process \d \(simulated\) has ended without notice"


@dataclass(frozen=True)
class Bug:
    """A program with a bug, and how it shows: an error with a text, or wrong results."""

    program: object
    error: type | None
    text: str
    is_wrong: object
    faults: tuple
    prepare: object


BUGS = {}


def bug(error=None, text="", *, is_wrong=None, faults=(), prepare=None):
    def add(program):
        BUGS[program.__name__] = Bug(program, error, text, is_wrong, faults, prepare)
        return program

    return add


def look(planted, seed, folder):
    """The error or the wrong results of one schedule, with its events; None where the bug does not show."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if planted.prepare is not None:
        planted.prepare(folder, seed)
    try:
        done = run_processes(planted.program, 3, 1, seed, planted.faults, args=[folder])
    except Exception as error:
        if planted.error is None or type(error) is not planted.error or not re.search(planted.text, str(error)):
            raise
        return f"{type(error).__name__}: {error}"
    if planted.is_wrong is not None and planted.is_wrong(done.results):
        return f"{done.results} {done.events}"
    return None


# --- what programs are made of


def me():
    return ad.process_index()


def mesh(axes=("x",), devices=None):
    devices = np.array(ad.devices() if devices is None else devices)
    return ad.Mesh(devices.reshape((-1, *[1] * (len(axes) - 1))), axes)


def rows_of_all(columns=2):
    """An array with a row of each process."""
    return ad.make_array_from_process_local_data(ad.NamedSharding(mesh(), P("x")), np.full((1, columns), me() + 1.0))


def reduce(function, x=None, **options):
    x = rows_of_all() if x is None else x
    options = {"in_specs": P("x"), "out_specs": P(), **options}
    return np.asarray(ad.shard_map(function, mesh(), **options)(x).addressable_data(0))


def total(x=None):
    return reduce(lambda block: lax.psum(block, "x"), x)


def largest(x=None):
    return reduce(lambda block: lax.pmax(block, "x"), x)


def meet(name="here"):
    multihost_utils.sync_global_devices(name)


def pair_total(first, second):
    devices = [ad.local_devices(number)[0] for number in (first, second)]
    add = ad.shard_map(lambda b: lax.psum(b, "x"), mesh(devices=devices), in_specs=P("x"), out_specs=P())
    return np.asarray(add(np.ones(2)))


def differ(results):
    return any(not np.array_equal(result, results[0]) for result in results)


def all_are_not(*expected):
    return lambda results: any(np.ravel(result).tolist() != list(expected) for result in results)


# --- collectives that do not match


@bug(CollectiveError, DIFFERENT)
def two_sums_in_another_order_in_one_process(folder):
    for step in (largest, total) if me() == 1 else (total, largest):
        step()


@bug(CollectiveError, DIFFERENT)
def a_process_skips_a_sum(folder):
    if me() != 2:
        total()
    meet()


@bug(CollectiveError, LEFT)
def a_process_sums_once_more(folder):
    for _ in range(2 if me() == 0 else 1):
        total()


@bug(CollectiveError, DIFFERENT)
def a_process_sums_over_another_axis(folder):
    axis = "y" if me() == 1 else "x"
    grid = mesh(("x", "y"))
    ad.shard_map(lambda b: lax.psum(b, axis), grid, in_specs=P("x"), out_specs=P("x"))(np.ones(3))
    meet()


@bug(CollectiveError, DIFFERENT)
def a_process_sums_another_dtype(folder):
    kind = np.float64 if me() == 0 else np.float32
    reduce(lambda block: lax.psum(block.astype(kind), "x"))


@bug(CollectiveError, DIFFERENT)
def a_process_sums_another_shape(folder):
    reduce(lambda block: lax.psum(block[:, : 1 + (me() == 2)], "x"))


@bug(CollectiveError, DIFFERENT)
def a_process_gathers_where_others_sum(folder):
    reduce(lambda block: lax.all_gather(block, "x") if me() == 1 else lax.psum(block, "x"))


@bug(CollectiveError, DIFFERENT)
def a_process_moves_to_another_sharding(folder):
    x = rows_of_all(3)
    ad.device_put(x, ad.NamedSharding(mesh(), P() if me() == 0 else P(None, "x")))


@bug(CollectiveError, DIFFERENT)
def meshes_in_another_order_of_devices(folder):
    devices = ad.devices() if me() == 0 else ad.devices()[::-1]
    put = ad.NamedSharding(mesh(devices=devices), P())
    ad.device_put(rows_of_all(), put)


@bug(CollectiveError, DIFFERENT)
def the_order_of_parameters_depends_on_the_process(folder):
    shapes = {"w": 3, "b": 1}
    for name in sorted(shapes, reverse=me() == 2):
        total(rows_of_all(shapes[name]))


@bug(CollectiveError, DIFFERENT)
def only_the_first_process_logs_a_global_value(folder):
    x = rows_of_all()
    if me() == 0:
        multihost_utils.process_allgather(x, tiled=True)
    total(x)


@bug(CollectiveError, DIFFERENT)
def only_the_first_process_saves(folder):
    if me() == 0:
        checkpoint.save(folder / "c", {"x": rows_of_all()})
    meet("saved")


@bug(CollectiveError, DIFFERENT)
def processes_save_different_trees(folder):
    name = "w" if me() == 0 else "v"
    checkpoint.save(folder / "c", {name: rows_of_all()})


@bug(CollectiveError, LEFT)
def a_process_has_fewer_batches(folder):
    for _ in range(3 + (me() == 0)):
        total()


@bug(CollectiveError, LEFT + "|" + DIFFERENT)
def a_process_stops_at_its_own_loss(folder):
    for step in range(5):
        if 1.0 / (step + 1) < 0.3 + 0.1 * me():
            break
        total()


@bug(CollectiveError, DIFFERENT)
def an_early_return_on_bad_data(folder):
    if me() == 1:
        return meet("end")
    total()
    return meet("end")


# --- groups that wait for each other


@bug(CollectiveError, "the processes wait for each other and none can go on")
def pairs_in_a_circle(folder):
    pair_total(*[(0, 1), (1, 2), (0, 2)][me()])


@bug(CollectiveError, "wait for each other|" + DIFFERENT)
def a_barrier_of_all_beside_a_sum_of_two(folder):
    if me() < 2:
        pair_total(0, 1)
    if me() == 1:
        pair_total(1, 2)
    meet()


@bug(CollectiveError, "wait for each other|" + DIFFERENT)
def a_message_ring_begins_everywhere_with_its_sender(folder):
    pair_total(*sorted((me(), (me() + 1) % 3)))
    pair_total(*sorted((me(), (me() - 1) % 3)))


# --- values that should be equal


@bug(ValueError, "the processes do not have the same value")
def a_replicated_value_differs(folder):
    ad.device_put(np.full(3, me() == 1), ad.NamedSharding(mesh(), P()))


@bug(ValueError, "the processes do not have the same value")
def each_process_has_its_own_seed(folder):
    ad.device_put(np.random.default_rng(me()).normal(size=3), ad.NamedSharding(mesh(), P()))


@bug(AssertionError, "the step differs")
def the_step_differs(folder):
    multihost_utils.assert_equal({"step": 3 + (me() == 2)}, "the step differs")


@bug(AssertionError, "sync_global_devices name mismatch")
def barriers_with_different_names(folder):
    meet(f"epoch {me() // 2}")


@bug(ValueError, "2 processes are the source")
def two_processes_broadcast(folder):
    multihost_utils.broadcast_one_to_all(7, is_source=me() > 0)


@bug(ValueError, "0 processes are the source")
def no_process_broadcasts(folder):
    multihost_utils.broadcast_one_to_all(7, is_source=me() == 3)


@bug(ValueError, "process_allgather: the values of the processes differ")
def a_last_batch_is_shorter(folder):
    multihost_utils.process_allgather(np.ones(4 - (me() == 2)))


@bug(ValueError, "process_allgather: the values of the processes differ")
def trees_differ(folder):
    multihost_utils.process_allgather({"loss": 1.0, **({"extra": 2.0} if me() == 0 else {})})


@bug(ValueError, "is replicated by its spec, but not the same in processes")
def a_mean_without_a_collective(folder):
    reduce(lambda block: block.mean(keepdims=True))


@bug(is_wrong=differ)
def a_mean_without_a_collective_and_without_its_check(folder):
    return reduce(lambda block: block.mean(keepdims=True), check_vma=False)


@bug(is_wrong=all_are_not(6.0, 6.0))
def a_sum_over_the_devices_of_one_process(folder):
    local = mesh(devices=ad.local_devices())
    add = ad.shard_map(lambda b: lax.psum(b, "x"), local, in_specs=P("x"), out_specs=P())
    return np.asarray(add(np.full((1, 2), me() + 1.0)))


@bug(is_wrong=all_are_not(6.0, 6.0))
def a_sum_that_is_taken_twice(folder):
    return reduce(lambda block: lax.psum(lax.psum(block, "x"), "x"))


@bug(RuntimeError, "")
def a_global_array_is_read_as_if_it_were_here(folder):
    np.asarray(rows_of_all())


# --- processes that end, stop or are late


@bug(ZeroDivisionError, "division by zero")
def a_process_divides_by_the_size_of_its_empty_shard(folder):
    total()
    1 / (2 - me())


@bug(CollectiveError, LOST, faults=(kill(),))
def nobody_expects_a_process_to_end(folder):
    for _ in range(6):
        total()


@bug(CollectiveError, "the deadline of 2 s", faults=(stall(at="psum", seconds=3.0),))
def a_deadline_shorter_than_a_slow_process(folder):
    config.update("collective_timeout_s", 2.0)
    for _ in range(6):
        total()


@bug(CollectiveError, "no longer work together", faults=(kill(1, at="psum", call=2),))
def an_error_is_swallowed_and_the_loop_goes_on(folder):
    for _ in range(3):
        with contextlib.suppress(CollectiveError):
            total()
    meet("end")


def write_latest(folder, step):
    """Names a step before its file is complete."""
    (folder / "latest").write_text(str(step))
    meet(f"named {step}")
    (folder / f"step.{step}").write_text("complete")
    meet(f"saved {step}")


def killed_while_saving(folder, seed):
    run_processes(
        lambda: [write_latest(folder, step) for step in range(3) if me() == 0 or not meet(f"named {step}") or 1],
        3,
        1,
        seed,
        [kill(0, call=1 + seed % 6)],
        return_exceptions=True,
    )


@bug(FileNotFoundError, "step", prepare=killed_while_saving)
def a_stale_pointer_after_a_kill(folder):
    if (folder / "latest").exists():
        (folder / f"step.{(folder / 'latest').read_text()}").read_text()
    meet("restored")


# --- files that processes share


@bug(FileNotFoundError, "vocabulary")
def a_file_is_read_before_the_first_process_has_written_it(folder):
    meet("start")
    if me() == 0:
        (folder / "vocabulary").write_text("words")
    (folder / "vocabulary").read_text()
    meet("end")


@bug(FileExistsError, "cache")
def a_folder_is_made_by_each_process_that_misses_it(folder):
    meet("start")
    if not (folder / "cache").exists():
        pair_total(0, 1) if me() < 2 else None
        (folder / "cache").mkdir()


@bug(is_wrong=all_are_not(3))
def a_counter_in_a_file_loses_updates(folder):
    counter = folder / "counter"
    if me() == 0:
        counter.write_text("0")
    meet("start")
    before = int(counter.read_text())
    pair_total(0, 1) if me() < 2 else None
    counter.write_text(str(before + 1))
    meet("end")
    return int(counter.read_text())


@bug(is_wrong=all_are_not(0, 1, 2))
def lines_are_expected_in_the_order_of_processes(folder):
    meet("start")
    with (folder / "lines").open("a") as file:
        file.write(f"{me()}\n")
    meet("end")
    return [int(line) for line in (folder / "lines").read_text().split()]


@bug(FileNotFoundError, "old")
def an_old_file_is_removed_while_others_read_it(folder):
    if me() == 0:
        (folder / "old").write_text("1")
    meet("start")
    if me() == 0:
        (folder / "old").unlink()
    else:
        (folder / "old").read_text()


@bug(is_wrong=all_are_not(0))
def the_first_process_to_come_is_the_leader(folder):
    meet("start")
    try:
        (folder / "leader").mkdir()
        is_leader = True
    except FileExistsError:
        is_leader = False
    return multihost_utils.broadcast_one_to_all(np.array(me()), is_source=is_leader)


@bug(AssertionError, "the files differ")
def a_listing_taken_while_files_are_written(folder):
    meet("start")
    (folder / f"part.{me()}").write_text("")
    multihost_utils.assert_equal(len(list(folder.iterdir())), "the files differ")


def find(planted, folder):
    """The first schedule that shows the bug, and what it shows; None where none does."""
    for seed in range(SCHEDULES):
        shown = look(planted, seed, folder)
        if shown is not None:
            return seed, shown
    return None


def check_found_again(planted, folder):
    seed, shown = find(planted, folder)
    assert [look(planted, seed, folder) for _ in range(REPLAYS)] == [shown] * REPLAYS
    return seed


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found_and_found_again_by_its_seed(name, tmp_path):
    assert check_found_again(BUGS[name], tmp_path / "shared") < SCHEDULES


def test_there_are_enough_bugs():
    assert len(BUGS) >= 40
