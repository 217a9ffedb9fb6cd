# SPDX-License-Identifier: Apache-2.0
"""One function in several threads at once."""

import gc
import sys
import sysconfig
import threading

THREADS = 8
IS_FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
# Whether a new thread begins in a copy of its starter's context, as in free-threaded builds of Python 3.14.
INHERITS_CONTEXT = bool(getattr(sys.flags, "thread_inherit_context", False))


def collect_of_other_threads():
    """Releases objects that objects of other threads held until a collection, in free-threaded builds."""
    for _ in range(2 if IS_FREE_THREADED else 0):
        gc.collect()


def together(work, threads=THREADS):
    """Runs work(number) in all threads at once, and returns the results; raises what the first of them raised."""
    start = threading.Barrier(threads)
    results = [None] * threads
    errors = []

    def run(number):
        start.wait()
        try:
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    all_threads = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results
