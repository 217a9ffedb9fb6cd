# SPDX-License-Identifier: Apache-2.0
"""measure_batch_size on steps with known knees and known memory: exact on a clock of its own, without sleeping."""

import contextlib
import doctest
import json
import math
import random

import artifex_devices as ad
import pytest
from artifex_devices.batch_measurement.memory import MemoryUse, fit_memory, predicted_peak
from artifex_devices.batch_measurement.throughput import fit_throughput
from hypothesis import given
from hypothesis import strategies as st
from synthetic_steps import Bench, sizes_of


def affine(fixed, rate):
    return lambda size, call: fixed + size / rate


def by_size(found):
    return {probe.batch_size: probe for probe in found.evidence}


@pytest.mark.parametrize(("target", "size"), [(0.5, 16), (0.75, 48), (0.8, 64), (0.95, 304)])
def test_the_target_chooses_the_share_of_the_throughput(target, size):
    assert Bench(affine(1.0, 16)).measure(target=target).recommended_batch_size == size


@pytest.mark.parametrize(("multiple_of", "size"), [(1, 144), (8, 144), (10, 150), (100, 200)])
def test_sizes_are_multiples(multiple_of, size):
    found = Bench(affine(1.0, 16)).measure(multiple_of=multiple_of)
    assert found.recommended_batch_size == size
    assert all(each % multiple_of == 0 for each in sizes_of(found))


def test_a_probe_that_misses_the_target_gives_way_to_the_smallest_size_that_reaches_it():
    found = Bench(lambda size, call: (1 + size / 16) * (1 if size.bit_count() == 1 else 2)).measure(max_batch_size=1024)
    assert sizes_of(found)[-1] == 144
    assert (found.recommended_batch_size, found.recommended_by) == (128, "measured")
    assert found.notes[0] == (
        "The model reaches 90% at a batch of 144, a probe of it did not: 128 is the smallest with 90% of what was "
        "measured."
    )


def test_warming_up_is_not_counted():
    seen = set()

    def seconds(size, call):
        is_first = size not in seen
        seen.add(size)
        return 100.0 if is_first else 1.0 + size / 16

    found = Bench(seconds).measure()
    assert found.recommended_batch_size == 144
    assert {probe.first_call_s for probe in found.evidence} == {100.0}
    assert by_size(found)[16].median_s == by_size(found)[16].best_s == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("seconds", "spread"),
    [((1.0, 4.0, 2.0), 3 / 2), ((4.0, 1.0, 3.0, 2.0), 1.5 / 2.5), ((5.0, 1.0, 4.0, 2.0, 3.0), 2 / 3)],
)
def test_the_spread_is_that_of_the_middle_half_of_the_calls(seconds, spread):
    calls = iter(seconds * 10)
    found = Bench(lambda size, call: next(calls)).measure(
        warmup_calls=0, min_calls=len(seconds), probe_seconds=0.0, max_batch_size=1
    )
    assert found.evidence[0].calls == len(seconds)
    assert found.evidence[0].spread == pytest.approx(spread)


def test_times_that_jump_between_neighbours_give_low_confidence():
    # As threads of a BLAS library that wait for each other: 170 times as long from 128 on.
    found = Bench(lambda size, call: (1.0 + size / 16) * (170 if size >= 128 else 1)).measure()
    assert found.confidence == "low"
    assert (
        f"the best time of 128 is {170 * 9 / 5:.3g} times that of 64: other programs or BLAS threads may have"
        in found.confidence_because
    )


def test_times_that_fall_as_the_batch_grows_give_low_confidence():
    found = Bench(lambda size, call: (1.0 + size / 16) * (1.5 if size == 64 else 1)).measure()
    assert found.confidence == "high"  # 7.5 s, then 9
    found = Bench(lambda size, call: (1.0 + size / 16) * (3 if size == 64 else 1)).measure()
    assert found.confidence == "low"
    assert "the best time of 128 is 0.6 times that of 64" in found.confidence_because  # 9 / 15


def test_single_wrong_times_change_nothing():
    found = Bench(lambda size, call: (1.0 + size / 16) * (30 if call % 6 == 0 else 1)).measure()
    assert found.recommended_batch_size == 144


@given(
    fixed=st.floats(1e-5, 1.0),
    knee=st.integers(2, 2000),
    noise=st.floats(0, 0.1),
    seed=st.integers(0, 2**32),
)
def test_known_knees_are_found_under_noise(fixed, knee, noise, seed):
    # Stated tolerance at calls that vary by up to 10 %: a share of 82 to 94 % instead of 90 %, the knee within a third.
    generator = random.Random(seed)
    bench = Bench(lambda size, call: (fixed + size * fixed / knee) * (1 + generator.uniform(0, noise)))
    found = bench.measure(min_calls=9, probe_seconds=0.0)
    rate = knee / fixed
    assert found.critical_batch_size == pytest.approx(knee, rel=0.34, abs=1)
    true_share = found.recommended_batch_size / (fixed * rate + found.recommended_batch_size)
    assert 0.82 <= true_share <= 0.94
    assert found.recommended_batch_size <= max(probe.batch_size for probe in found.evidence)


@given(floor=st.floats(1e-4, 1.0), knee=st.integers(30, 5000), noise=st.floats(0, 0.03), seed=st.integers(0, 2**32))
def test_known_floors_are_found_under_noise(floor, knee, noise, seed):
    generator = random.Random(seed)
    bench = Bench(lambda size, call: max(floor, size * floor / knee) * (1 + generator.uniform(0, noise)))
    found = bench.measure(min_calls=9, probe_seconds=0.0)
    assert found.critical_batch_size == pytest.approx(knee, rel=0.15)
    assert 0.8 * knee <= found.recommended_batch_size <= 1.15 * knee


# Memory.


@given(
    base=st.integers(0, 10**9),
    each=st.integers(1, 10**7),
    room=st.integers(1, 5000),
    memory_and_power=st.sampled_from(
        [("cpu:0", 0.5), ("cpu:0", 1.0), ("host", 0.5), ("host", 1.0), ("host", 1.5), ("host", 2.0)]
    ),
    multiple_of=st.sampled_from([1, 3, 8]),
)
def test_no_batch_beyond_the_bound_is_ever_made(base, each, room, memory_and_power, multiple_of):
    memory, power = memory_and_power

    def peak(size):
        return base + int(each * size**power)

    bound = peak(multiple_of) + room * each  # the first batch fits
    bench = Bench(lambda size, call: 1.0, peak=peak, bound=bound, memory=memory)
    found = bench.measure(multiple_of=multiple_of, max_batch_size=20_000)
    assert bench.highest <= bound
    if (memory, power) == ("cpu:0", 1.0) and found.max_memory_batch_size < 20_000:
        assert peak(found.max_memory_batch_size) <= bound
        if len(found.evidence) > 1:
            assert peak(found.max_memory_batch_size + multiple_of) > bound


def test_running_out_of_memory_is_evidence_and_the_search_goes_down():
    bench = Bench(
        lambda size, call: 1.0,
        raises=lambda size: (
            ad.errors.ResourceExhaustedError(f"no room for {size}\nsecond line") if size > 100 else None
        ),
    )
    found = bench.measure()
    tried = by_size(found)
    assert tried[128].outcome == "out of memory"
    assert tried[128].error == "ResourceExhaustedError: no room for 128"
    assert tried[128].median_s is None
    assert sizes_of(found) == [1, 2, 4, 8, 16, 32, 64, 128, 96]
    assert found.max_memory_batch_size == found.recommended_batch_size == 96
    assert "A batch of 128 ran out of memory; larger ones were not tried." in found.notes


# Sizes that raise.


def test_sizes_that_raise_are_evidence_and_show_the_multiple():
    bench = Bench(affine(1.0, 16), raises=lambda size: ValueError(f"{size} rows on 8 devices") if size % 8 else None)
    found = bench.measure()
    assert [probe.outcome for probe in found.evidence[:4]] == ["raised", "raised", "raised", "measured"]
    assert found.evidence[0].error == "ValueError: 1 rows on 8 devices"
    assert found.recommended_batch_size == 144
    assert "The step raised for sizes that are not multiples of 8; multiple_of=8 saves these probes." in found.notes


def test_a_largest_size_that_works():
    bench = Bench(lambda size, call: 1.0, raises=lambda size: ValueError("too many") if size > 100 else None)
    found = bench.measure()
    assert sizes_of(found) == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert found.recommended_batch_size == 64
    assert "Not tried beyond 256: the step raised for 2 sizes in a row." in found.notes


@pytest.mark.parametrize("error", [TypeError("no batch"), NameError("x"), AttributeError("y"), ImportError("z")])
def test_mistakes_of_the_program_pass_through(error):
    bench = Bench(lambda size, call: 1.0, raises=lambda size: error)
    with pytest.raises(type(error)) as raised:
        bench.measure()
    assert raised.value is error
    assert bench.made == [1]


def _generate(batch):
    yield batch


async def _await(batch):
    return batch


@pytest.mark.parametrize(
    ("step", "kind"), [(_generate, "generator"), (_await, "coroutine"), (lambda batch: map(abs, batch), "map")]
)
def test_a_step_that_does_not_begin_its_work_is_a_mistake(step, kind):
    with pytest.raises(
        TypeError, match=rf"returned work that has not begun and cannot be timed; expected a result, got {kind};"
    ):
        ad.measure_batch_size(step, lambda size: [1] * size, max_seconds=1, progress=False)


def test_an_iterator_is_not_a_batch_for_several_calls():
    with pytest.raises(TypeError, match=r"make_batch returned an iterator, .* got list_iterator; return a list or an"):
        ad.measure_batch_size(sum, lambda size: iter([1] * size), max_seconds=1, progress=False)
    lengths = set()
    found = ad.measure_batch_size(
        lambda batch: lengths.add(len(list(batch[0]))),
        lambda size: (iter([1] * size), size),
        max_batch_size=1 << 12,
        max_seconds=1,
        progress=False,
        reuse_batch=False,
    )
    assert lengths == {probe.batch_size for probe in found.evidence}


# Time.


def test_seconds_are_kept_to_about_a_call():
    for seconds in (10, 50, 300):
        bench = Bench(affine(1.0, 16))
        found = bench.measure(max_seconds=seconds)
        assert bench.now <= seconds + found.model.seconds(max(bench.made)) if found.model else True
        assert bench.now <= 1.5 * seconds
        assert any("ime" in note for note in found.notes)
        assert found.seconds == bench.now


def test_the_first_probe_needs_two_calls():
    bench = Bench(lambda size, call: 10.0)
    message = r"no call could be timed on a batch of 1 before time ran out; expected max_seconds for make_batch \(0 s"
    with pytest.raises(RuntimeError, match=message):
        bench.measure(max_seconds=5)
    assert bench.calls == 1
    found = bench.measure(max_seconds=25)
    assert (found.recommended_batch_size, found.confidence) == (1, "low")
    assert found.evidence[0].calls == 1


def test_calls_of_a_probe():
    found = Bench(lambda size, call: 0.001).measure(max_batch_size=1, probe_seconds=0.05, min_calls=3, warmup_calls=2)
    assert found.evidence[0].calls == 50
    found = Bench(lambda size, call: 0.5).measure(max_batch_size=1, probe_seconds=0.05, min_calls=3)
    assert found.evidence[0].calls == 3
    found = Bench(lambda size, call: 1e-9).measure(max_batch_size=1)
    assert found.evidence[0].calls == 200


def test_a_new_batch_for_each_call():
    bench = Bench(lambda size, call: 0.5)
    bench.measure(max_batch_size=1, min_calls=3, reuse_batch=False)
    assert bench.made == [1, 1, 1, 1]


# What comes out.


def test_the_result_as_json_and_as_the_documents_record():
    found = Bench(affine(1.0, 16), peak=lambda size: 1000 + 10 * size, bound=100_000).measure()
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["recommended_batch_size"] == 144
    assert data["evidence"][4]["examples_per_s"] == pytest.approx(8)
    assert data["evidence"][4]["memory"]["cpu:0"] == {"before": 0, "peak": 1160, "after": 0, "source": "synthetic"}
    assert data["memory"][0]["max_batch_size"] == 9900
    assert data["recommended_range"] == [144, 144]
    advice = found.to_recommendation()
    assert isinstance(advice, ad.BatchSizeRecommendation)
    assert advice.min_batch_size == 16  # half the throughput
    assert advice.critical_batch_size == 16
    assert advice.optimal_batch_size == 144
    assert advice.max_memory_batch_size == 9900
    assert advice.notes.startswith(
        f"Measured {found.measured_at} (function synthetic_steps.Bench.step, devices 8 x cpu"
    )


def test_the_table():
    bench = Bench(
        affine(1e-3, 16_000),
        peak=lambda size: 1024 * size,
        bound=1 << 20,
        raises=lambda n: ValueError("odd") if n == 1 else None,
    )
    found = bench.measure()
    lines = str(found).splitlines()
    assert (
        lines[0] == "Recommended batch size 144 (90% of the throughput; by the fitted model, and a probe of it agrees)"
    )
    assert lines[2] == "Fastest         1,024: 15,754 examples/s (measured)"
    assert lines[3].startswith("Knee            16: smaller batches also cost 1 ms a call, larger ones approach 16,000")
    assert lines[4].startswith("Memory          1,024 is the largest batch that fits (it ran): cpu:0 takes 0")
    blank = [number for number, line in enumerate(lines) if not line]  # around the table
    assert lines[blank[0] + 1].split()[:2] == ["batch", "examples/s"]
    assert lines[blank[1] + 1].startswith("- ")
    assert blank[1] - blank[0] - 2 == len(found.evidence)
    text = "\n".join(lines)
    assert "144      14,400    10 ms    10 ms    0.0%     10    144.0 KiB          -  recommended" in text
    assert "ValueError: odd" in text
    assert "- Device peak: synthetic; of 1, the highest." in text


def test_probes_are_reported_as_they_end():
    probes = []
    found = Bench(affine(1.0, 16)).measure(on_probe=probes.append)
    assert tuple(probes) == found.evidence

    def stop(probe):
        if probe.batch_size == 4:
            raise KeyboardInterrupt

    bench = Bench(affine(1.0, 16))
    with pytest.raises(KeyboardInterrupt):
        bench.measure(on_probe=stop)
    assert bench.made == [1, 2, 4]


def test_progress_in_lines(capsys):
    Bench(affine(1.0, 16)).measure(max_batch_size=2, progress=True)
    assert capsys.readouterr().err.splitlines() == [
        "measure_batch_size: batch 1: 0.941 examples/s, 1.06 s a call (spread 0.0%), peak of a device -, of the host -",
        "measure_batch_size: batch 2: 1.78 examples/s, 1.12 s a call (spread 0.0%), peak of a device -, of the host -",
    ]
    Bench(affine(1.0, 16)).measure(max_batch_size=2, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"target": 1.0}, ValueError, "target is 1.0; expected more than 0 and less than 1"),
        (
            {"target": math.nan, "max_seconds": -1},
            ValueError,
            "target is nan; .*; max_seconds is -1; expected a finite",
        ),
        ({"multiple_of": 0, "min_calls": 0}, ValueError, "multiple_of is 0; expected 1 or more; .*; min_calls is 0"),
        (
            {"min_batch_size": 10, "max_batch_size": 5},
            ValueError,
            "the range of batch sizes is empty; .* got 1, 10 and 5",
        ),
        ({"multiple_of": 8, "max_batch_size": 7}, ValueError, "the range of batch sizes is empty"),
        ({"min_batch_size": 1.5}, TypeError, "min_batch_size is 1.5"),
        ({"max_seconds": "1"}, TypeError, "max_seconds is '1'"),
        ({"max_seconds": math.inf}, ValueError, "finite"),
    ],
)
def test_bad_arguments(options, error, text):
    with pytest.raises(error, match=text):
        Bench(affine(1.0, 16)).measure(**options)


def test_on_probe_must_be_a_function():
    with pytest.raises(TypeError, match=r"on_probe is 5 \(int\); expected a function of one BatchProbe, or None"):
        Bench(affine(1.0, 16)).measure(on_probe=5)


def test_no_functions():
    with pytest.raises(TypeError, match=r"step_fn is 3 \(int\); expected a function"):
        ad.measure_batch_size(3, lambda size: size)
    with pytest.raises(TypeError, match="make_batch is None"):
        ad.measure_batch_size(lambda batch: batch, None)


def test_throughput_that_falls_from_the_start_has_no_model():
    found = Bench(lambda size, call: float(size**2)).measure()
    assert (found.recommended_batch_size, found.model, found.confidence) == (1, None, "low")
    assert "Throughput falls beyond a batch of 1: larger batches take longer per example." in found.notes
    assert "Fewer than 3 sizes up to the fastest: no model, the fastest that ran is recommended." in found.notes


def test_making_batches_counts_for_the_time_that_is_left_alone():
    bench = Bench(affine(1.0, 16))
    bench.make_seconds = 10.0
    found = bench.measure(max_seconds=2000)
    assert found.evidence[3].make_batch_s == pytest.approx(80.0)
    assert found.evidence[3].first_call_s == pytest.approx(1.5)
    assert bench.now <= 2000
    assert sizes_of(found) == [1, 2, 4, 8, 16, 32, 64]
    again = Bench(affine(1.0, 16))
    again.make_seconds = 10.0
    again.measure(max_seconds=2000, reuse_batch=False)
    assert again.now <= 2000


def test_the_example_of_the_docstring():
    from artifex_devices.batch_measurement import measure

    done = doctest.testmod(measure)
    assert (done.attempted, done.failed) == (4, 0)


def test_a_busy_machine_changes_little():
    # All but a few calls are slowed by other programs, up to tenfold.
    generator = random.Random(5)
    found = Bench(
        lambda size, call: (1.0 + size / 16) * (1 if generator.random() < 0.3 else generator.uniform(1, 10))
    ).measure(min_calls=20)
    assert found.recommended_batch_size == pytest.approx(144, rel=0.02)
    assert found.confidence == "low"  # the spread is large


@given(
    data=st.data(),
    multiple_of=st.sampled_from([1, 2, 5, 8]),
    smallest=st.integers(1, 300),
    factor=st.integers(1, 5000),
    target=st.floats(0.05, 0.99),
    seconds=st.floats(1.0, 1e4),
)
def test_whatever_the_step_does_the_answer_is_among_what_ran(data, multiple_of, smallest, factor, target, seconds):
    outcome = {}

    def raises(size):
        if size not in outcome:
            outcome[size] = data.draw(
                st.sampled_from(
                    [None] * 6 + [ValueError("odd"), MemoryError(), ad.errors.ResourceExhaustedError("full")]
                )
            )
        return outcome[size]

    times = st.floats(1e-9, 10.0)
    bench = Bench(
        lambda size, call: data.draw(times),
        peak=lambda size: size * 100,
        bound=data.draw(st.integers(0, 10**6)),
        raises=raises,
    )
    largest = max(multiple_of, smallest) * factor + multiple_of
    options = {"multiple_of": multiple_of, "min_batch_size": smallest, "max_batch_size": largest, "target": target}
    found = None
    with contextlib.suppress(MemoryError, RuntimeError):  # where no size worked
        found = bench.measure(**options, max_seconds=seconds, min_calls=2, probe_seconds=0.0)
    if found is None:
        assert all(error is not None for error in outcome.values()) or bench.now >= seconds / 2
        return
    sizes = sizes_of(found)
    assert len(set(sizes)) == len(sizes) < 60
    assert all(size % multiple_of == 0 and size <= largest for size in sizes)
    ran = [probe.batch_size for probe in found.evidence if probe.outcome == "measured"]
    assert min(ran) <= found.recommended_batch_size <= max(ran)
    assert found.recommended_batch_size % multiple_of == 0
    assert found.recommended_by == "model" or found.recommended_batch_size in ran
    if found.max_memory_batch_size is not None:
        assert found.max_memory_batch_size >= max(ran)
    json.dumps(found.to_dict(), allow_nan=False)
    assert str(found).startswith("Recommended batch size ")
    assert found.to_recommendation().optimal_batch_size == found.recommended_batch_size


@pytest.mark.parametrize(
    ("peaks", "bound", "multiple_of", "expected"),
    [
        ([(1, 110), (2, 120), (4, 140)], 165, 1, (100, 10, 0, 6)),
        ([(4, 140), (1, 110), (2, 120)], 165, 4, (100, 10, 0, 4)),
        ([(1, 110), (2, 120)], 160, 1, (100, 10, 0, 6)),  # just as much as is allowed
        ([(1, 110), (2, 120)], 90, 1, (100, 10, 0, 0)),
        ([(1, 110), (2, 120)], None, 1, (100, 10, 0, None)),
        ([(1, 100), (2, 100), (4, 100)], 165, 1, (100, 0, 0, None)),  # the batch takes nothing
        ([(1, 110), (2, 120), (3, 190), (4, 140)], 165, 1, (100, 10, 60, 6)),  # one size is out of line
    ],
)
def test_the_memory_of_a_batch_is_a_line(peaks, bound, multiple_of, expected):
    fit = fit_memory("cpu:0", peaks, bound, multiple_of, "counted")
    assert (fit.base_bytes, fit.bytes_per_example, fit.residual_bytes, fit.max_batch_size) == expected
    assert (fit.memory, fit.bound_bytes, fit.source) == ("cpu:0", bound, "counted")
    assert fit_memory("cpu:0", peaks[:1], bound, multiple_of, "counted") is None


@pytest.mark.parametrize(
    ("peaks", "size", "of_device", "of_host"),
    [
        # All above what was in use before grows; on the host with the square.
        ([(1, 110)], 2, 50 + 2 * 60, 50 + 4 * 60),
        ([(1, 110), (2, 90)], 2, 110, 110),
        ([(1, 110), (2, 90), (4, 200)], 1, 200, 200),
        ([(1, 110), (2, 120)], 4, 120 + 2 * 10, 120 + 12 * 10 / 3),
        ([(1, 100), (2, 110), (4, 150)], 8, 150 + 4 * 20 + 4 * 6 * 10 / 3, 150 + 4 * 20 + 4 * 6 * 10 / 3),
        # Growth that slows down goes on as the fitted line 80 + 20 * batch, from which 2 is 20 away.
        ([(1, 100), (2, 140), (4, 160)], 8, 80 + 8 * 20 + 20, 80 + 8 * 20 + 20),
    ],
)
def test_the_peak_of_the_next_batch_is_rather_too_large(peaks, size, of_device, of_host):
    uses = [(count, MemoryUse(50, peak, 50, "counted")) for count, peak in peaks]
    assert predicted_peak(uses, size, is_host=False) == of_device
    assert predicted_peak(uses, size, is_host=True) == of_host


def test_a_floor_may_extend_to_all_but_two_sizes():
    model = fit_throughput([(1, 1.0), (2, 1.4), (3, 1.0), (8, 2.4), (16, 4.8)])
    assert model is not None
    assert model.floor_s == 1.0
    assert model.examples_per_s == pytest.approx(1 / 0.3)
