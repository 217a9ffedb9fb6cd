# SPDX-License-Identifier: Apache-2.0
"""Progress bars, statistics of timings, suggestions for names, caches and recorded options."""

import builtins
import gc
import io
import sys

import artifex_devices as ad
import pytest
from artifex_devices._base import progress as progress_module
from artifex_devices._base.clearable_cache import WorldCache, remember
from artifex_devices._base.nearest_name import did_you_mean, nearest
from artifex_devices._base.progress import progress_bar
from artifex_devices._base.recorded_options import RECORDED
from artifex_devices._base.timing import Repeats, without_garbage_collection


class Terminal(io.StringIO):
    def isatty(self):
        return True


def without_rich(monkeypatch):
    real = builtins.__import__

    def fail(name, *rest):
        if name.startswith("rich"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", fail)


@pytest.fixture
def clock(monkeypatch):
    """The clock of progress bars: a list with the seconds."""
    seconds = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: seconds[0])
    return seconds


def test_a_bar_appears_after_two_seconds(monkeypatch, clock):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    without_rich(monkeypatch)
    with progress_bar("reading", 100) as show:
        show(1)
        clock[0] = 101.9
        show(2)
        assert stream.getvalue() == ""
        clock[0] = 102.0
        show(3)
        assert stream.getvalue() == "\rreading: 3 %"
    assert stream.getvalue() == "\rreading: 3 %\r\x1b[K"


def test_a_bar_is_removed_after_an_error_and_never_drawn_for_short_work(monkeypatch, clock):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    without_rich(monkeypatch)

    def interrupted():
        with progress_bar("reading", 100) as show:
            clock[0] = 103.0
            show(3)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue() == "\rreading: 3 %\r\x1b[K"
    stream.truncate(0)
    with progress_bar("reading", 100) as show:
        show(100)
    assert stream.getvalue() == ""


def test_a_line_of_progress_is_written_when_its_percent_change(monkeypatch):
    monkeypatch.setattr(progress_module, "_DELAY_S", 0.0)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    without_rich(monkeypatch)
    with progress_bar("reading", 400) as show:
        for done in (0, 3, 4, 200, 400, 500):
            show(done)
        assert stream.getvalue() == "\rreading: 0 %\rreading: 1 %\rreading: 50 %\rreading: 100 %"
    assert stream.getvalue().endswith("100 %\r\x1b[K")


def test_bytes_have_a_rate_and_the_time_left(monkeypatch, clock):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    without_rich(monkeypatch)
    with progress_bar("convert", 10 << 20, is_bytes=True) as show:
        show(2 << 20)  # of an earlier process
        clock[0] = 104.0
        show(6 << 20)
    assert stream.getvalue() == "\rconvert: 60 %, 1.0 MiB/s, 4 s left\x1b[K\r\x1b[K"


def test_progress_is_shown_on_terminals_only_and_when_it_is_wanted(monkeypatch):
    without_rich(monkeypatch)
    for stream, total, is_wanted, is_shown in [
        (Terminal(), 1, True, True),
        (Terminal(), 0, True, False),
        (Terminal(), 1, False, False),
        (io.StringIO(), 1, True, False),
        (None, 1, True, False),
    ]:
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_bar("reading", total, is_wanted=is_wanted) as show:
            assert (show is not None) == is_shown
        if stream is not None and not is_shown:
            assert stream.getvalue() == ""


def test_progress_ends_without_an_error_when_standard_error_is_closed(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress_module, "_DELAY_S", 0.0)
    without_rich(monkeypatch)
    with progress_bar("reading", 2) as show:
        monkeypatch.setattr(sys, "stderr", None)
        show(1)
    assert stream.getvalue() == "\r\x1b[K"


def test_rich_draws_the_bar_where_it_is_installed(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_module, "_DELAY_S", 0.0)
    with progress_bar("reading", 2) as show:
        show(2)
    assert "reading" in stream.getvalue()
    assert "100%" in stream.getvalue()


def test_the_collector_is_disabled_in_the_block_and_then_as_before():
    assert gc.isenabled()
    with without_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with without_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_repeated_timings_have_quartiles():
    repeats = Repeats([5.0, 1.0, 2.0, 3.0, 4.0])
    assert (repeats.count, repeats.seconds, repeats.median, repeats.spread) == (5, 2.0, 3.0, 2.0)
    two = Repeats([1.0, 2.0])
    assert (two.count, two.seconds, two.median, two.spread) == (2, 1.25, 1.5, 0.5)
    one = Repeats([7.0])
    assert (one.count, one.seconds, one.median, one.spread) == (1, 7.0, 7.0, 0.0)


def test_a_misspelt_name_is_compared_with_names_and_then_with_their_beginnings():
    models = ["llama-2-7b", "llama-2-70b", "Mixtral-8x7b"]
    assert nearest("MIXTRAL-8x7", models) == "Mixtral-8x7b"
    assert nearest("lla", models) == "llama-2-7b"
    assert nearest("mix", models) == "Mixtral-8x7b"
    assert nearest("ll", models) is None
    assert nearest("llx", models) is None
    assert did_you_mean("ll", models) == ""
    assert did_you_mean("llamb", models) == " (did you mean llama-2-7b?)"


def test_a_full_cache_is_emptied_before_it_grows():
    cache = {}
    for key in range(256):
        assert remember(cache, key, -key) == -key
    assert len(cache) == 256
    remember(cache, "last", 1)
    assert cache == {"last": 1}


def test_a_world_cache_has_at_most_four_worlds_and_256_entries():
    cache = WorldCache()
    for world in range(6):
        for key in range(2):
            assert cache.remember(world, (world, key), -world) == -world
    assert cache == {(world, key): -world for world in (2, 3, 4, 5) for key in range(2)}
    for key in range(248):
        cache.remember(5, key, key)
    assert len(cache) == 256
    cache.remember(5, "one more", 1)
    assert cache == {"one more": 1}
    ad.clear_caches()
    assert cache == {}


@pytest.mark.parametrize("name", [name for name, option in RECORDED.items() if option.values is not None])
def test_each_accepted_value_of_a_recorded_option_is_read_back(name):
    before = ad.config.read(name)
    try:
        for value in RECORDED[name].values:
            ad.config.update(name, value)
            assert ad.config.read(name) is value
    finally:
        ad.config.update(name, before)


@pytest.mark.parametrize("name", ["jax_debug_infs", "jax_debug_nans"])
def test_checks_of_programs_are_refused(name):
    with pytest.raises(NotImplementedError, match=f"{name} cannot be True; expected False: nothing is compiled"):
        ad.config.update(name, True)
