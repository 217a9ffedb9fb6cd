# SPDX-License-Identifier: Apache-2.0
"""Values of a calibration: fits find what samples are made of, texts, JSON and pickles."""

from __future__ import annotations

import dataclasses
import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from artifex_devices.calibration import TERMS, Calibration, Link, ProcessLink
from artifex_devices.planner.calibration.parts import fitted
from calibrations import COEFFICIENTS, CONDITIONS, made


def timed(seconds):
    return SimpleNamespace(seconds=seconds, spread=0.0, count=1)


def test_the_terms_are_those_of_the_model():
    assert set(COEFFICIENTS) == set(TERMS)


def test_a_fit_finds_the_coefficients_that_times_are_made_of():
    random = np.random.default_rng(3)
    terms = []
    for i in range(80):
        scale = {name: 10.0 ** random.integers(0, 8) for name in TERMS}
        chosen = [TERMS[i % len(TERMS)], *random.choice(TERMS, 3)]
        terms.append({name: scale[name] for name in chosen})
    seconds = [sum(COEFFICIENTS[name] * count for name, count in each.items()) for each in terms]
    repeats = [timed(each) for each in seconds]
    coefficients, samples = fitted([f"sample {i}" for i in range(80)], terms, repeats)
    for name in TERMS:
        assert coefficients[name] == pytest.approx(COEFFICIENTS[name], rel=1e-6), name
    assert [sample.seconds for sample in samples] == seconds
    assert max(abs(sample.error) for sample in samples) < 1e-6
    assert samples[7].name == "sample 7"
    assert samples[7].terms == terms[7]


def test_a_fit_needs_a_sample_of_each_term():
    with pytest.raises(ValueError, match=r"^calibrate: no sample has calls, calls on workers, .*measure more$"):
        fitted(["a"], [{"copies": 1.0}], [timed(1.0)])


def test_seconds_are_the_sum_over_terms():
    assert made().seconds_of({"calls": 2, "alone": 1e6}) == pytest.approx(4e-6 + 2e-4)
    assert made().seconds_of({}) == 0
    with pytest.raises(ValueError, match=r"^seconds_of: 'bytes' is not a term; expected some of calls, "):
        made().seconds_of({"bytes": 1})


def test_rates_and_text():
    found = made()
    assert found.rates["memory"] == pytest.approx(2e9)
    assert found.rates["added in caches"] == pytest.approx(1e11)
    assert found.fit_error == pytest.approx(0.1)
    text = str(found)
    assert text.startswith(
        "a processor, 2 workers, 1 memory node; measured 2026-11-22T14:00:00+00:00 in 4.0 s, 10 rounds\n"
    )
    assert "copied from memory to memory             2 GB/s" in text
    assert "a program, threads                       40 us and 50 us a participant" in text
    assert "fit                                      1 samples, median error 10.0 %" in text
    assert "memory node 0 to 0" not in text  # of several memories only
    free = dict(COEFFICIENTS, warm=0.0)
    assert "warm" not in made(coefficients=free).rates
    between = ProcessLink(2, 1, "an MPI", 1e-4, 3e9, 2e-4, 4e9, True)
    text = str(made(links=(Link(0, 0, 2e9), Link(0, 1, 1e9)), processes=between,
                    conditions=dataclasses.replace(CONDITIONS, memory_nodes=2)))  # fmt: skip
    assert "memory node 0 to 1                       1 GB/s" in text
    assert "between 2 processes                      3 GB/s, 100 us (an MPI)" in text
    assert "sums of theirs, in shared memory         4 GB/s, 200 us" in text


def test_values_are_immutable_and_go_through_json_and_pickle():
    found = made(processes=ProcessLink(2, 1, "an MPI", 1e-4, 3e9, 2e-4, 4e9, True), notes=("a note",))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.notes = ()
    with pytest.raises(TypeError):
        found.coefficients["calls"] = 0.0
    content = json.loads(found.to_json())
    assert content.pop("notes") == ["a note"]
    assert content.pop("from_cache") is False
    again = Calibration.from_dict(content)
    assert again.to_dict() == found.to_dict()
    copied = pickle.loads(pickle.dumps(found))
    assert (copied.to_dict(), copied.notes) == (found.to_dict(), found.notes)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("coefficients", {}, "coefficients does not have the entries"),
        ("coefficients", dict(COEFFICIENTS, calls=-1.0), "calls is not a number from 0"),
        ("coefficients", dict(COEFFICIENTS, calls=float("nan")), "calls is not a number from 0"),
        ("links", [], "links is not a list"),
        ("links", [{"source": -1, "destination": 0, "rate": 1e9}], "source is not an integer from 0"),
        ("fresh_page_seconds", "1", "fresh_page_seconds is not a number"),
        ("processes", {"processes": 2}, "processes does not have the entries"),
        ("samples", [{"name": "a"}], "a sample does not have the entries"),
        (
            "samples",
            [{**made().to_dict()["samples"][0], "terms": {"bytes": 1.0}}],
            "terms do not match the model's",
        ),
        ("samples", [{**made().to_dict()["samples"][0], "terms": []}], "terms do not match the model's"),
        ("conditions", {}, "conditions does not have the entries"),
        (
            "conditions",
            {**made().to_dict()["conditions"], "date": "yesterday"},
            "Invalid isoformat string: 'yesterday'",
        ),
    ],
)
def test_impossible_measurements_are_refused(key, value, message):
    with pytest.raises(ValueError, match=message):
        Calibration.from_dict({**made().to_dict(), key: value})
