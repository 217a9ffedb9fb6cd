# SPDX-License-Identifier: Apache-2.0
"""No program hangs: whatever participants do, the caller gets a result or an error, and the next call works."""

import contextlib
import contextvars
import dataclasses
import gc
import os
import re
import subprocess
import sys
import textwrap
import threading
import weakref

import artifex_devices as ad
import numpy as np
import optree
import pytest
from artifex_devices import lax
from artifex_devices._core import internal
from artifex_devices._spmd import cooperative, specs, threaded, watchdog
from artifex_devices._spmd.session import _current
from artifex_devices.errors import CollectiveError
from polling import wait_until
from spmd_programs import EXECUTORS, launch


@pytest.fixture(params=EXECUTORS)
def executor(request):
    yield request.param
    assert launch(lambda i: lax.psum(i, "i"), request.param) == [i * 8 for i in range(8)], "the next call works"


def child(code, **options):
    """Runs code in a process of its own; fails with its output when it takes longer than 60 s.

    A crash writes the stacks of all threads to its stderr.
    """
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        **options,
    )


class OwnError(Exception):
    pass


def test_a_participants_exception_is_the_callers(executor):
    raised = OwnError("mine")

    def body(i):
        lax.psum(np.ones(3), "i")
        if i == 5:
            raise raised
        lax.psum(np.ones(3), "i")

    with pytest.raises(OwnError) as caught:
        launch(body, executor)
    assert caught.value is raised
    (note,) = caught.value.__notes__
    assert re.search(r"cpu:5: raised after psum float64\(3,\) over i at \S*test_programs.py:\d+ \(collective 1\)", note)


def test_exceptions_that_refuse_notes(executor):
    @dataclasses.dataclass(frozen=True)
    class FrozenError(Exception):
        number: int

    def body(i):
        raise FrozenError(i)

    with pytest.raises(FrozenError):
        launch(body, executor)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_exceptions_that_are_not_errors(kind, executor):
    def body(i):
        lax.psum(1.0 * np.ones(1), "i")
        if i == 3:
            raise kind("stop")
        lax.psum(np.ones(1), "i")

    with pytest.raises(kind):
        launch(body, executor)


def test_an_early_return(executor):
    with pytest.raises(CollectiveError, match=r"a participant returned while others wait[\s\S]*cpu:2: finished"):
        launch(lambda i: None if i == 2 else lax.psum(np.ones(1), "i"), executor)


@pytest.mark.parametrize(
    ("other", "reports"),
    [
        (lambda: lax.pmax(np.ones(3, np.float32), "i"), r"in pmax float32\(3,\)"),
        (lambda: lax.psum(np.ones(4, np.float32), "i"), r"in psum float32\(4,\)"),
        (lambda: lax.psum(np.ones(3, np.float64), "i"), r"in psum float64\(3,\)"),
        (lambda: lax.all_gather(np.ones(3, np.float32), "i", axis=1), r"axis=1"),
    ],
)
def test_mismatches_name_both_sides(other, reports, executor):
    def body(i):
        return other() if i == 4 else lax.psum(np.ones(3, np.float32), "i")

    with pytest.raises(CollectiveError, match="different collectives") as caught:
        launch(body, executor)
    assert "in psum float32(3,) over i" in str(caught.value)
    assert re.search(reports, str(caught.value))


@pytest.mark.parametrize("several", [("rows", "columns"), ["rows", "columns"]])
def test_mismatches_name_axes_in_full(several, executor):
    def body(i):
        return lax.psum(np.ones(3), "rows" if i == 0 else several)

    with pytest.raises(CollectiveError) as caught:
        launch(body, executor, {"rows": 2, "columns": 4})
    assert "in psum float64(3,) over rows at " in str(caught.value)
    assert "in psum float64(3,) over rows, columns at " in str(caught.value)


def test_participants_that_wait_for_each_other_deadlock(executor):
    def body(i):
        # 0 waits for 4 along x, 4 for 5 along y, 5 for 1 along x, 1 for 0 along y.
        names = ("x", "y") if i in (0, 5) else ("y", "x")
        for name in names:
            lax.psum(np.ones(1), name)

    with pytest.raises(CollectiveError, match="wait for each other and none can go on"):
        launch(body, executor, {"x": 2, "y": 4})


def test_a_different_number_of_collectives(executor):
    def body(i):
        for _ in range(3 if i else 2):
            lax.psum(np.ones(1), "i")

    with pytest.raises(CollectiveError, match="returned while others wait"):
        launch(body, executor)


def test_a_result_that_a_swallowed_ctrl_c_left_behind_is_not_the_next_collectives(executor):
    def leave_before_taking(x):  # as psum does, up to where a Ctrl-C may come
        internal.arrive("psum", "i", x)()

    def body(i):
        x = np.array([float(i)])
        first = lax.psum(x, "i")
        leave_before_taking(x * 10)
        return first.tolist() + lax.psum(x * 100, "i").tolist()

    assert launch(body, executor) == [[28.0, 2800.0]] * 8


def test_bodies_that_catch_every_exception(executor):
    def body(i):
        if i == 0:
            raise OwnError("mine")
        for _ in range(3):
            with contextlib.suppress(BaseException):
                lax.psum(np.ones(1), "i")
        return i

    with pytest.raises(OwnError):
        launch(body, executor)


def test_an_error_inside_a_collective_reaches_every_member(executor):
    seen = []

    def body(i):
        try:
            lax.pmax(np.array([1j]), "i")
        except TypeError as error:
            seen.append(error)
            raise

    with pytest.raises(TypeError, match="complex"):
        launch(body, executor)
    assert seen
    assert len(set(map(id, seen))) == len(seen)  # threads that raise one object at once can crash Python 3.13t
    assert {str(error) for error in seen} == {str(seen[0])}


def test_programs_inside_programs(executor):
    def body(i):
        inner = launch(lambda k: int(lax.psum(np.array(k + i), "j")), executor, {"j": 4})
        return int(lax.psum(np.array(inner[0]), "i"))

    assert launch(body, executor) == [sum(6 + 4 * i for i in range(8))] * 8


def test_a_failing_program_inside_a_program(executor):
    def body(i):
        with pytest.raises(CollectiveError):
            launch(lambda k: lax.psum(np.ones(1), "j") if k else None, executor, {"j": 3})
        return int(lax.psum(np.array(i), "i"))

    assert launch(body, executor) == [28] * 8


def test_collectives_belong_to_the_bodys_thread(executor):
    def body(i):
        reports = []

        def elsewhere():
            try:
                lax.psum(np.ones(1), "i")
            except RuntimeError as error:
                reports.append(str(error))

        thread = threading.Thread(target=contextvars.copy_context().run, args=(elsewhere,))
        thread.start()
        thread.join()
        return reports

    for reports in launch(body, executor):
        assert "on a thread that a participant started" in reports[0]


def test_each_participant_has_a_context_of_its_own(executor):
    variable = contextvars.ContextVar("variable", default="outside")
    variable.set("caller")

    def body(i):
        seen = [variable.get()]
        variable.set(i)
        lax.psum(np.ones(1), "i")
        seen.append(variable.get())
        with np.errstate(divide="raise" if i == 0 else "ignore"):
            lax.psum(np.ones(1), "i")
            try:
                np.ones(1) / np.zeros(1)
            except FloatingPointError:
                seen.append("raised")
        return seen

    got = launch(body, executor)
    assert got[0] == ["caller", 0, "raised"]
    assert got[1:] == [["caller", i] for i in range(1, 8)]
    assert variable.get() == "caller"
    assert _current.get() is None


def test_a_foreign_tree_map_with_one_collective_per_call(executor):
    def body(i):
        total = optree.tree_map(lambda leaf: lax.psum(leaf, "i"), {"a": np.array(i)})
        return int(lax.psum(total["a"] + i, "i"))

    assert launch(body, executor) == [28 * 8 + 28] * 8


def test_a_foreign_tree_map_with_two_collectives():
    def body(i):
        return optree.tree_map(lambda leaf: lax.psum(leaf + i, "i"), [np.array(0), np.array(1)])

    assert [int(leaf) for leaf in launch(body, "threads")[0]] == [28, 36]
    with pytest.raises(CollectiveError, match='executor="threads"'):
        launch(body, "cooperative")
    assert launch(lambda i: int(lax.psum(np.array(i), "i")), "cooperative") == [28] * 8


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_foreign_calls_may_follow_collectives_outside_of_them(executor):
    def body(i):
        alone = int(lax.psum(np.array(i), "i"))
        inside = optree.tree_map(lambda leaf: lax.psum(leaf, "i"), {"a": np.array(i)})
        return alone, int(inside["a"]), int(lax.psum(np.array(2 * i), "i"))

    assert launch(body, executor) == [(28, 28, 56)] * 8


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_foreign_calls_of_some_participants_only(executor):
    def body(i):
        found = []
        for step in range(3):
            x = np.array(i + step)
            inside = optree.tree_map(lambda leaf: lax.psum(leaf, "i"), x) if i % 3 == step % 3 else lax.psum(x, "i")
            found += [int(inside), int(lax.psum(x, "i"))]
        return found

    assert launch(body, executor) == [[28, 28, 36, 36, 44, 44]] * 8


def test_a_foreign_call_in_a_loop_needs_a_collective_outside():
    begun, ended = [], []  # the foreign calls: a participant, and its number among its calls

    def body(i):
        for number in range(2):

            def add(leaf, number=number):
                begun.append((i, number))
                try:
                    return lax.psum(leaf, "i")
                finally:
                    ended.append((i, number))

            optree.tree_map(add, np.array(i))

    with pytest.raises(CollectiveError, match=r"launch: cpu:6 waits at \S+ inside a function of a pybind11 extension"):
        launch(body, "cooperative")
    assert begun == [*((i, 0) for i in range(8)), *((i, 1) for i in range(7, -1, -1))]
    assert ended == [(i, number) for i in range(7, -1, -1) for number in range(2)]  # before those that began earlier
    assert launch(body, "threads") == [None] * 8


def test_an_interrupt_between_two_participants_leaves_nothing_of_their_contexts(monkeypatch):
    variable = contextvars.ContextVar("variable")
    values = []

    class Value:
        pass

    def interrupted(executor):
        executor.scheduler.enter()
        value = Value()
        variable.set(value)
        values.append(weakref.ref(value))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cooperative, "_work", interrupted)
        with pytest.raises(KeyboardInterrupt):
            launch(lambda i: i, "cooperative")
    gc.collect()
    assert [value() for value in values] == [None]
    assert variable.get(None) is None
    assert launch(lambda i: variable.get(i), "cooperative") == list(range(8))


def test_our_own_tree_map_has_no_such_limit(executor):
    from artifex_devices import tree

    def body(i):
        return tree.map(lambda leaf: lax.psum(leaf + i, "i"), [np.array(0), np.array(1)])

    assert [int(leaf) for leaf in launch(body, executor)[0]] == [28, 36]


def test_a_lock_held_over_a_collective_needs_threads():
    lock = threading.Lock()

    def body(i):
        # One participant of each row holds the lock until its row has met; the other row's then takes it.
        with lock if i in (0, 4) else contextlib.nullcontext():
            return int(lax.psum(np.array(i), "y"))

    assert launch(body, "threads", {"x": 2, "y": 4}) == [6] * 4 + [22] * 4


def test_a_deadline_ends_a_wait():
    gate = threading.Event()

    def body(i):
        if i == 0:
            gate.wait()
        lax.psum(np.ones(1), "i")

    try:
        with pytest.raises(CollectiveError, match=r"collective_timeout_s = 0\.2[\s\S]*cpu:0: running"):
            launch(body, "threads", timeout_s=0.2)
    finally:
        gate.set()


@pytest.mark.parametrize("raises", [False, True])
def test_a_body_that_blocks_forever_is_abandoned(raises):
    gate = threading.Event()

    def body(i):
        if i == 2:
            gate.wait()
        if i == 3 and raises:
            raise OwnError
        lax.psum(np.ones(1), "i")

    before = set(threading.enumerate())
    try:
        with pytest.raises(OwnError if raises else CollectiveError) as caught:
            launch(body, "threads", timeout_s=30.0 if raises else 0.2)
        reports = caught.value.__notes__[0] if raises else str(caught.value)
        assert "cpu:2: running (collective 0)" in reports
        assert launch(lambda i: int(lax.psum(np.array(i), "i")), "threads") == [28] * 8
    finally:
        gate.set()
    for thread in before ^ set(threading.enumerate()):
        if thread.name == "artifex-participant" and not any(thread is kept.thread for kept in threaded._idle):
            thread.join(30)
            assert not thread.is_alive()


def test_a_finalizer_may_run_a_program_at_every_line_of_another():
    done = child("""
        import sys
        import numpy as np
        from artifex_devices import lax
        from artifex_devices._spmd import threaded, watchdog
        from artifex_devices._spmd.executors import run
        from artifex_devices._spmd.session import Session

        lines = set()

        def program():
            made = Session(("i",), (2,), ["cpu:0", "cpu:1"], operation="program")
            assert run(made, lambda i: int(lax.psum(np.array(i), "i")), [3, 4], "threads", 30.0) == [7, 7]

        def trace(frame, event, _):
            if frame.f_code.co_filename not in (threaded.__file__, watchdog.__file__):
                return None
            if event == "line" and (frame.f_code.co_name, frame.f_lineno) not in lines:
                lines.add((frame.f_code.co_name, frame.f_lineno))
                program()  # as garbage collection would
            return trace

        sys.settrace(trace)
        program()
        threaded.shutdown()
        watchdog.shutdown()
        sys.settrace(None)
        program()
        print(sorted({name for name, _ in lines}))
    """)
    assert done.returncode == 0, done.stderr
    for name in ("_take", "run", "start", "shutdown"):
        assert f"'{name}'" in done.stdout


def test_failing_calls_leave_no_thread_and_no_memory(settled, executor):
    def body(i):
        if i == 3:
            raise OwnError
        lax.psum(np.ones(1000), "i")

    def fail():
        with pytest.raises(OwnError):
            launch(body, executor)

    for _ in range(20):
        fail()
    gc.collect()
    threads, objects = threading.active_count(), len(gc.get_objects())
    for _ in range(1000):
        fail()
    gc.collect()
    assert wait_until(lambda: threading.active_count() <= threads)  # a thread that was let go of
    assert len(gc.get_objects()) < objects + 200


def test_ctrl_c_ends_a_program_of_threads():
    done = child(
        """
        import os, signal, time, numpy as np
        from artifex_devices import lax
        from spmd_programs import launch
        def body(i):
            if i == 0:  # the main thread waits for it, in `launch`
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(50)  # a slow body
            lax.psum(np.ones(1), "i")
        begin = time.monotonic()
        try:
            launch(body, "threads")
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - begin < 40)
        print(launch(lambda i: int(lax.psum(np.array(i), "i")), "threads")[0])
        """
    )
    assert done.stdout.split() == ["interrupted", "True", "28"], done.stderr
    assert done.returncode == 0, done.stderr


def test_ctrl_c_ends_a_cooperative_program():
    done = child(
        """
        import os, signal, threading, numpy as np
        from artifex_devices import lax
        from spmd_programs import launch
        def body(i):
            if i == 0:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            while True:
                lax.psum(np.ones(1), "i")
        try:
            launch(body, "cooperative")
        except KeyboardInterrupt:
            print("interrupted")
        print(launch(lambda i: int(lax.psum(np.array(i), "i")), "cooperative")[0])
        """
    )
    assert done.stdout.split() == ["interrupted", "28"], done.stderr


@pytest.mark.parametrize("executor", EXECUTORS)
def test_ctrl_c_at_any_time_leaves_nothing_behind(executor):
    if "SANITIZED_CORE" in os.environ and executor != "threads":
        pytest.skip("the address sanitizer ends in its own unwinding on stacks that greenlet moves amid signals")
    done = child(
        f"""
        import random, signal, sys, threading, time, threadpoolctl, numpy as np
        from artifex_devices import lax
        from polling import wait_until
        from spmd_programs import launch
        def program():
            return launch(lambda i: int(lax.psum(np.array(i), "i")), {executor!r})
        def repeat(work, condition):  # CPython 3.13 lets Ctrl-C at the end of a `while` loop escape a `try` around it
            while condition():
                work()
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        blas = [library["num_threads"] for library in threadpoolctl.threadpool_info()]
        program()
        threads = threading.active_count()
        interrupted = 0
        dropped = []  # Python drops interrupts that come inside a __del__
        sys.unraisablehook = lambda what: dropped.append(what.exc_type.__name__)
        for _ in range(60):
            end_s, seen = time.monotonic() + 5, len(dropped)
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.01))
                repeat(program, lambda: time.monotonic() < end_s and len(dropped) == seen)
            except KeyboardInterrupt:
                interrupted += 1
            assert program() == [28] * 8
        same = [library["num_threads"] for library in threadpoolctl.threadpool_info()] == blas
        print(interrupted + dropped.count("KeyboardInterrupt"), interrupted > 30)
        # Threads of interrupted programs end by themselves.
        print(wait_until(lambda: threading.active_count() <= threads, 20), same)
        """
    )
    assert (done.returncode, done.stdout.split()) == (0, ["60", "True", "True", "True"]), done.stderr


def test_the_watchdog_shows_a_body_that_blocks():
    done = child(
        """
        import os, signal, sys, threading, numpy as np
        from artifex_devices import lax
        from spmd_programs import launch
        lock = threading.Lock()
        class Recorder:
            def write(self, text):
                sys.__stderr__.write(text)
                os.kill(os.getpid(), signal.SIGINT)
        sys.stderr = Recorder()
        def body(i):
            with lock:  # held over the collective: the next participant cannot take it
                lax.psum(np.ones(1), "i")
        try:
            launch(body, "cooperative", timeout_s=0.5)
        except BaseException as error:
            print(type(error).__name__)
        """
    )
    assert "runs longer than collective_timeout_s = 0.5" in done.stderr
    assert "needs executor='threads'" in done.stderr
    assert "cpu:0: waiting in psum float64(1,) over i" in done.stderr
    assert done.stdout.split() == ["KeyboardInterrupt"], done.stderr


def test_the_watchdog_has_no_reference_to_a_program(executor, monkeypatch):
    programs, polls, poll = [], threading.Semaphore(0), watchdog._poll
    monkeypatch.setattr(watchdog, "_poll", lambda: poll() or polls.release())

    def body(i):
        if i == 0:
            programs.append(weakref.ref(_current.get().session))
            assert polls.acquire(timeout=30)  # the watchdog has looked at it
        return lax.psum(i, "i")

    launch(body, executor)
    gc.collect()
    assert [kept() for kept in programs] == [None]


def test_the_watchdog_starts_with_the_first_program_that_has_a_deadline(executor):
    watchdog.shutdown()
    names = []

    def body(i):
        if i == 0:
            names.append([thread.name for thread in threading.enumerate()].count("artifex-watchdog"))
            names.append(len(watchdog._sessions))

    launch(body, executor, timeout_s=None)
    launch(body, executor, timeout_s=30.0)
    launch(body, executor, timeout_s=None)
    assert names == [0, 0, 1, 1, 1, 0]


def test_the_process_exits_with_participants_at_work():
    done = child(
        """
        import sys, time, threading, numpy as np
        from artifex_devices import lax
        from spmd_programs import launch
        is_at_work = threading.Event()
        def body(i):
            if i == 0:
                is_at_work.set()
                time.sleep(20)  # a slow body, which outlasts the process
            lax.psum(np.ones(1), "i")
        threading.Thread(target=lambda: launch(body, "threads"), daemon=True).start()
        is_at_work.wait()
        sys.exit(7)
        """
    )
    assert (done.returncode, done.stderr) == (7, "")


def test_a_forked_child_can_run_programs():
    done = child(
        """
        import os, numpy as np
        from artifex_devices import lax
        from spmd_programs import launch
        for executor in ("threads", "cooperative"):
            launch(lambda i: lax.psum(np.ones(1), "i"), executor)
        pid = os.fork()
        if pid == 0:
            sums = [launch(lambda i: int(lax.psum(np.array(i), "i")), e) for e in ("threads", "cooperative")]
            os._exit(0 if sums == [[28] * 8] * 2 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )
    assert done.stdout.split() == ["0"], done.stderr


def test_a_forked_child_watches_its_own_programs():
    done = child(
        """
        import os, sys, threading
        from artifex_devices import lax
        from artifex_devices._spmd import watchdog
        from spmd_programs import launch
        def names(i):
            lax.psum(i, "i")
            return [thread.name for thread in threading.enumerate()].count("artifex-watchdog")
        launch(names, "cooperative")
        if os.fork() == 0:
            print(len(watchdog._running), set(launch(names, "cooperative")), flush=True)
            os._exit(0)
        os.wait()
        """
    )
    assert done.stdout.split() == ["0", "{1}"], done.stderr


def test_shutdown_ends_the_threads_of_participants(settled):
    import artifex_devices as ad

    launch(lambda i: lax.psum(np.ones(1), "i"), "threads")
    ad.shutdown()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("artifex-")]
    assert launch(lambda i: int(lax.psum(np.array(i), "i")), "threads") == [28] * 8


@pytest.mark.parametrize("executor", ["cooperative", "unwatched"])
def test_greenlets_end_with_their_thread(executor):
    kept = []

    def body(i):
        total = lax.psum(np.array(i), "i")
        if i == 1:
            raise OwnError
        return lax.psum(total, "i")

    def work():
        for count in (8, 3, 64):
            with pytest.raises(OwnError):
                launch(body, executor, {"i": count})
            launch(lambda i: lax.psum(np.array(i), "i"), executor, {"i": count - 1})
        kept.extend(weakref.ref(switch.__self__) for switch, _ in cooperative._fibers.idle)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(kept) == 64

    def have_ended():
        gc.collect()
        return not any(each() for each in kept)

    assert wait_until(have_ended)


@pytest.mark.parametrize("executor", ["cooperative", "unwatched"])
def test_a_thread_that_ended_leaves_no_greenlet_to_be_collected_elsewhere(executor):
    """Such garbage ended the process now and then, where another thread collected it as its own thread ended."""
    done = child(
        f"""
        import gc, threading, greenlet, numpy as np
        from artifex_devices import lax
        from spmd_programs import launch
        gc.collect()
        gc.disable()
        gc.freeze()
        def body(i):
            lax.psum(np.ones(1), "i")
            if i == 5:
                raise ValueError
            lax.psum(np.ones(1), "i")
        def work():
            for _ in range(3):
                try:
                    launch(body, {executor!r})
                except ValueError:
                    pass
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        owners = [getattr(each, "__self__", None) for each in gc.garbage]
        print(sum(type(each) is ValueError for each in gc.garbage))
        print([each for each in [*gc.garbage, *owners] if isinstance(each, greenlet.greenlet)])
        """
    )
    assert done.stdout.splitlines() == ["3", "[]"], done.stderr


@pytest.mark.thread_unsafe(reason="other threads push its layouts out of the cache")
def test_the_memory_for_layouts_of_meshes_is_bounded():
    device = ad.devices()[:1]
    for number in range(300):
        mesh = ad.Mesh(np.array(device), (f"axis{number}",))
        grid = specs.grid_of(mesh, (f"axis{number}",))
        assert grid is specs.grid_of(mesh, (f"axis{number}",))
        assert 1 <= len(specs._grids) <= 256
