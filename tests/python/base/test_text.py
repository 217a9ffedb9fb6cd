# SPDX-License-Identifier: Apache-2.0
"""Texts of bytes, seconds, rates and sets of CPUs; tables of text."""

import pytest
from artifex_devices._base.text import (
    alternatives,
    bytes_text,
    count_text,
    cpu_list,
    parse_cpu_list,
    rate_text,
    seconds_text,
    table_lines,
    wrapped,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (2, "2 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (2**20 - 1, "1024.0 KiB"),
        (2**20, "1.0 MiB"),
        (3 * 2**29, "1.5 GiB"),
        (2**40, "1.0 TiB"),
        (2**50, "1.0 PiB"),
        (2**60, "1.0 EiB"),
        (2**71, "2048.0 EiB"),  # the largest unit
    ],
)
def test_bytes_have_the_largest_unit_that_leaves_one_or_more(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "texts"),
    [
        (0, ["0 s", "0 s", "0 s"]),
        (1, ["1 s", "1 s", "1 s"]),
        (0.99995, ["1 s", "1 s", "1 s"]),
        (0.99994, ["999.9 ms", "1 s", "1 s"]),
        (0.00099995, ["1 ms", "1 ms", "1 ms"]),
        (0.00099994, ["999.9 us", "1 ms", "1 ms"]),
        (0.99996e-6, ["1 us", "1 us", "1 us"]),
        (1.2345, ["1.234 s", "1.23 s", "1.2 s"]),
        (0.9e-6, ["900 ns", "900 ns", "9e+02 ns"]),
        (0.5e-9, ["0.5 ns", "0.5 ns", "0.5 ns"]),
        (59.9951, ["60 s", "60 s", "60 s"]),
        (9999.4, ["9999 s", "9,999 s", "9,999 s"]),
        (9999.5, ["10,000 s", "10,000 s", "10,000 s"]),
        (1234567, ["1,234,567 s", "1,234,567 s", "1,234,567 s"]),
    ],
)
def test_seconds_are_rounded_before_their_unit_is_chosen(seconds, texts):
    assert [seconds_text(seconds), seconds_text(seconds, 3), seconds_text(seconds, 2)] == texts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B/s"),
        (999, "999 B/s"),
        (1000, "1 kB/s"),
        (12345, "12.35 kB/s"),
        (1e6, "1 MB/s"),
        (1e9, "1 GB/s"),
        (1e12, "1 TB/s"),
        (1e15, "1 PB/s"),
        (1e18, "1 EB/s"),
        (1.5e21, "1500 EB/s"),
    ],
)
def test_rates_have_units_of_a_thousand_and_four_digits(value, text):
    assert rate_text(value, "B/s") == text


def test_counts_have_four_digits_and_a_unit_of_a_thousand():
    found = [count_text(value) for value in (9999, 10_000, 999_999, 1e6, 1e9, 1e12, 999_999_999_999_999, 1e15, 1e18, 0)]
    assert found == ["9999", "10k", "1000k", "1M", "1G", "1T", "1000T", "1P", "1000P", "0"]
    assert [count_text(value) for value in (float("inf"), -5e6, 0.123456)] == ["inf", "-5e+06", "0.1235"]


def test_columns_are_as_wide_as_their_widest_text():
    rows = [("name", "bytes"), ("a gather", "64"), ("b", "")]
    assert table_lines(rows) == ["name      bytes", "a gather  64", "b"]
    assert table_lines(rows, right=[1]) == ["name      bytes", "a gather     64", "b"]
    assert table_lines([]) == []
    assert table_lines([("a line of its own",), ("a", "b")]) == ["a line of its own", "a  b"]
    assert table_lines([("a line of its own",), ("a", "b")], width=10) == ["a line of", "  its own", "a  b"]


_STEPS = [
    ("step", "bytes", "what it does"),
    ("a", "1,024", "gathers the rows of every device"),
    ("bb", "64", "a very/long/path/of/words"),
]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            45,
            [
                "step  bytes  what it does",
                "a     1,024  gathers the rows of every device",
                "bb       64  a very/long/path/of/words",
            ],
        ),
        (
            44,
            [
                "step  bytes  what it does",
                "a     1,024  gathers the rows of every",
                "             device",
                "bb       64  a very/long/path/of/words",
            ],
        ),
        (
            25,
            [
                "step  bytes  what it does",
                "a     1,024  gathers the",
                "             rows of",
                "             every device",
                "bb       64  a",
                "             very/long/path/of/words",
            ],
        ),
        (
            24,
            [
                "a  bytes: 1,024  what it",
                "    does: gathers the",
                "    rows of every device",
                "bb  bytes: 64  what it",
                "    does: a",
                "    very/long/path/of/words",
            ],
        ),
    ],
)
def test_a_table_becomes_narrower_by_wrapped_texts_and_then_by_paragraphs(width, lines):
    assert table_lines(_STEPS, right=[1], width=width) == lines


def test_texts_of_twelve_characters_are_not_wrapped():
    rows = [("name", "value"), ("twelve chars", "twelve chars"), ("thirteen chars", "thirteen chars")]
    assert table_lines(rows, width=22) == [
        "name          value",
        "twelve chars  twelve chars",
        "thirteen      thirteen",
        "chars         chars",
    ]


def test_lines_begin_with_the_first_text_and_then_with_the_rest():
    assert wrapped("a-b c-d", 4, "> ", "  ") == ["> a-b", "  c-d"]
    assert wrapped("", 5) == [""]


@pytest.mark.parametrize(
    ("cpus", "text"), [([], ""), ([3], "3"), ([1, 0], "0-1"), ([0, 1, 2, 4, 6, 7], "0-2,4,6-7"), ([5, 3, 3], "3,5")]
)
def test_neighbouring_cpus_are_one_range(cpus, text):
    assert cpu_list(cpus) == text
    assert parse_cpu_list(text) == set(cpus)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("a,1", {1}),
        (" 2 , 4-5", {2, 4, 5}),
        ("5-3", set()),
        ("1-", {1}),
        ("-1", set()),
        ("3-x", set()),
        ("1048575", {1048575}),
        ("1048576", set()),
        ("0-1048576", set()),
    ],
)
def test_what_is_not_a_range_of_cpus_is_skipped(text, cpus):
    assert parse_cpu_list(text) == cpus


def test_the_last_alternative_follows_an_or():
    assert alternatives(["a"]) == "'a'"
    assert alternatives([1, "b", None]) == "1, 'b' or None"
