# SPDX-License-Identifier: Apache-2.0
"""The playground in Chromium: its answers are those of the library, bit for bit. `make playground` runs these tests."""

import json
import random
import subprocess
from pathlib import Path

import artifex_devices as ad
import chromium
import pytest
from artifex_devices import cluster, models

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "playground" / "site" / "playground"
NATIVE = ROOT / "build" / "python" / "playground" / "playground_answers"
ANSWERED = "document.documentElement.dataset.firstAnswer"
COUNT = 200
CHIPS = (("h100", ""), ("b200", ""), ("mi300x", ""), ("gb200", ""), ("v5e", "8x8"), ("v5p", "4x4x4"))
POWERS = {"microbatch": 1, "tensor": 3, "pipeline": 2, "context": 1, "expert": 3}  # exponents of random numbers
CONTRAST = """(() => {
  const light = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const page = light(getComputedStyle(document.body).backgroundColor);
  return Math.min(...[...document.querySelectorAll("p, label, small, dt, dd, th, td, summary, a")].map((each) => {
    const text = light(getComputedStyle(each).color);
    return (Math.max(page, text) + 0.05) / (Math.min(page, text) + 0.05);
  }));
})()"""

pytestmark = [
    pytest.mark.skipif(not SITE.exists(), reason="the playground is not built: `make playground` needs Emscripten"),
    pytest.mark.skipif(chromium.program() is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser():
    opened = chromium.Chromium()
    opened.resize(1280)
    yield opened
    opened.close()


@pytest.fixture
def page(browser):
    browser.open(f"{SITE.as_uri()}/index.html", until=ANSWERED)
    return browser


def open_question(browser, question, **fields):
    """Opens the page at the address of a question."""
    address = f"{SITE.as_uri()}/index.html"
    fragment = browser.run(f"'#{question}?' + new URLSearchParams({json.dumps(fields)})")
    browser.open(address + fragment, until=ANSWERED)


def array_question(draw):
    """A mesh, an array and a spec that mostly fit each other."""
    sizes = [draw.choice((1, 2, 2, 3, 4, 4, 8)) for _ in range(draw.randint(1, 3))]
    names = ["data", "model", "größe"][: len(sizes)]
    axes = draw.sample([*names, "None", "None"], draw.randint(0, 3))
    if len(names) > 2 and draw.random() < 0.5:
        axes = [f"('{names[0]}', '{names[2]}')", "None", names[1]]
    if draw.random() < 0.05:
        axes.append("rows")
    shape = [draw.choice((48, 96, 192, 1536, 4608, 100)) for _ in range(len(axes) + draw.randint(0, 1))]
    return {
        "mesh": ", ".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True)),
        "shape": str(tuple(shape)),
        "dtype": draw.choice(("float32", "bfloat16", "float64", "int8", "float8_e4m3fn", "int4")),
        "spec": f"P({', '.join(axes)})",
        "to_spec": f"P({', '.join(draw.sample(axes, len(axes)))})",
    }


def devices_question(draw):
    """A chip of the catalogue and a number of its nodes or slices."""
    chip, pod = draw.choice(CHIPS)
    return {"chip": chip, "pod": pod, "nodes": draw.choice((1, 2, 4, 16))}


def questions():
    """Returns random questions of each kind as JSON, the same in every run."""
    draw = random.Random(43)
    asked = []
    for number in range(COUNT):
        kind = ("sharding", "reshard", "training")[number % 3]
        if kind == "training":
            model = dict(vars(draw.choice(list(models.SHAPES.values()))))
            powers = {name: 2 ** draw.randint(0, most) for name, most in POWERS.items()}
            if not model["experts"]:
                powers["expert"] = 1
            question = {
                "model": model,
                **devices_question(draw),
                **powers,
                "batch": 2 ** draw.randint(8, 12),
                "sequence": 2 ** draw.randint(10, 14),
                "zero": draw.randint(0, 3),
                "recompute": draw.choice(("none", "selective", "full")),
                "optimizer": draw.choice(("adamw-fp32-master", "adam", "muon", "adafactor")),
            }
        else:
            question = array_question(draw)
            if kind == "reshard" and draw.random() < 0.8:
                question |= devices_question(draw)
        asked.append(json.dumps({"question": kind, **question}))
    return asked


def native_answers(asked):
    run = subprocess.run([NATIVE], input="\n".join(asked), capture_output=True, text=True, check=True, timeout=300)
    return run.stdout.splitlines()


def test_answers_are_the_native_ones(page):
    asked = questions()
    expected = native_answers(asked)
    found = page.run(f"{json.dumps(asked)}.map(ask)")
    assert len(found) == len(expected) == COUNT
    for question, here, native in zip(asked, found, expected, strict=True):
        assert here == native, question
    kinds = {
        (json.loads(question)["question"], "error" in json.loads(answer))
        for question, answer in zip(asked, found, strict=True)
    }
    assert kinds == {(kind, fails) for kind in ("sharding", "reshard", "training") for fails in (False, True)}
    assert sum('"error"' not in answer for answer in found) > COUNT / 2


def answer_to(page, **fields):
    """Returns the answer to a question about a sharding."""
    usual = {"mesh": "data=4, model=2", "shape": "16, 8", "dtype": "float32", "spec": "data, model"}
    return json.loads(page.run(f"ask({json.dumps(json.dumps({'question': 'sharding', **usual, **fields}))})"))


def test_notations_of_the_same_sharding(page):
    expected = answer_to(page)
    assert expected["shard_shape"] == [4, 4]
    for fields in (
        {"mesh": '{"data": 4, "model": 2}'},
        {"mesh": " data = 4 ,model=2, "},
        {"shape": "(16, 8)"},
        {"shape": "[16, 8,]"},
        {"shape": "16x8"},
        {"spec": "P('data', 'model')"},
        {"spec": 'PartitionSpec("data", ("model",))'},
        {"spec": "P(['data'], model)"},
    ):
        assert answer_to(page, **fields) == expected, fields
    assert answer_to(page, spec="P(None, ('model', 'data'))")["shard_shape"] == [16, 1]
    assert answer_to(page, shape="", spec="")["shard_shape"] == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (
            {"mesh": "data"},
            'mesh: "data" has no size; expected axes and their sizes, as in data=4, model=2, got "data"; write data=2',
        ),
        (
            {"mesh": ""},
            "mesh: there is no axis; expected axes and their sizes, as in data=4, model=2; write data=4, model=2",
        ),
        (
            {"mesh": "data=many"},
            'mesh: "many" is not a size; expected axes and their sizes, as in data=4, model=2, got "data=many"; '
            "write a number below 2**63",
        ),
        (
            {"mesh": "data=4096, model=8"},
            "mesh: 'data': 4096, 'model': 8 has 32768 devices; expected at most 16384 in this page; use smaller sizes",
        ),
        (
            {"spec": "P('data'"},
            'spec: the last parenthesis is missing; expected P("data", None), got "P(\'data\'"; close it',
        ),
        (
            {"dtype": "int4"},
            'dtype: "int4" is not a dtype of whole bytes; expected a name such as float32 or bfloat16; correct it',
        ),
    ],
)
def test_texts_that_the_page_cannot_read(page, fields, error):
    assert answer_to(page, **fields) == {"error": error, "raises": "ValueError"}


def code_of(browser):
    return browser.run("document.querySelector('pre').textContent")


def answer_of(browser):
    return json.loads(browser.run("ask(JSON.stringify(questionOf()))"))


def test_the_code_of_a_sharding_gives_its_answer(browser):
    open_question(
        browser, "sharding", mesh="data=4, model=2", shape="16, 8", dtype="float32", spec='P("model", "data")'
    )
    names, answer = {}, answer_of(browser)
    exec(code_of(browser), names)
    assert list(names["sharding"].shard_shape((16, 8))) == answer["shard_shape"] == [8, 2]
    assert str(names["picture"]) == answer["svg"]
    indices = names["sharding"].devices_indices_map((16, 8))
    assert [[[part.start, part.stop] for part in index] for index in indices.values()] == [
        held["box"] for held in answer["held"]
    ]


@pytest.mark.parametrize("chip", ["", "h100", "v5e"])
def test_the_code_of_a_reshard_gives_its_answer(browser, chip):
    fields = {
        "mesh": "data=4, model=2",
        "shape": "4096, 1024",
        "dtype": "bfloat16",
        "spec": "data, model",
        "to": "None, data",
    }
    open_question(browser, "reshard", chip=chip, pod="2x4", nodes="1", **fields)
    names, answer = {}, answer_of(browser)
    exec(code_of(browser), names)
    plan = names["plan"]
    assert plan.way == answer["plan"]["way"]
    assert plan.bytes_received == answer["plan"]["bytes_received"]
    assert str(names["picture"]) == answer["svg"]
    if chip:
        assert plan.seconds == answer["seconds"]
    else:
        assert answer["seconds"] is None


def test_the_code_of_a_training_run_gives_its_answer(browser):
    for model, chip in (("llama-3-70b", "h100"), ("deepseek-v3", "v5p")):
        fields = {"batch": "1024", "tensor": "4", "zero": "1", "pipeline": "2", "expert": "8", "train_pod": "8x8x8"}
        open_question(browser, "training", model=model, train_chip=chip, train_nodes="8", **fields)
        names, answer = {}, answer_of(browser)
        exec(code_of(browser), names)
        plan = names["plan"]
        assert (plan.seconds, plan.memory, plan.mfu) == (answer["seconds"], answer["plan"]["memory"], answer["mfu"])
        assert plan.roofline.total == answer["plan"]["roofline"]["total"]


def test_an_error_is_the_sentence_of_the_library(browser):
    open_question(browser, "sharding", mesh="data=4", shape="15", dtype="float32", spec="data")
    with ad.simulate(4):
        sharding = ad.NamedSharding(ad.make_mesh((4,), ("data",)), ad.P("data"))
        with pytest.raises(ValueError, match="does not divide") as raised:
            sharding.shard_shape((15,))
    assert browser.run("document.querySelector('#answer').textContent") == f"ValueError: {raised.value}"
    assert browser.run("document.querySelector('#answer [role=alert]') !== null")


def test_the_address_holds_the_inputs(page):
    for question in ("sharding", "reshard", "training"):
        page.run(f"document.getElementById('tab-{question}').click()")
        typed = {"mesh": "x=2, y=3", "spec": 'P("x", "y")', "to": "None, ('x', 'y')", "shape": "12 x 6", "chip": "v5e"}
        for name, value in typed.items():
            page.run(f"inputs.{name}.value = {json.dumps(value)}; inputs.{name}.dispatchEvent(new Event('input'))")
        page.run("inputs.batch.value = 7; inputs.batch.dispatchEvent(new Event('input'))")
        before = page.run("[location.href, document.querySelector('#answer').innerHTML]")
        page.open(before[0], until=ANSWERED)
        assert page.run("[location.href, document.querySelector('#answer').innerHTML]") == before
        shown = page.run("Object.fromEntries(FIELDS[question].map((name) => [name, state[name]]))")
        assert shown.get("batch", "128") == "128"
        assert shown.get("mesh", "x=2, y=3") == "x=2, y=3"


def test_an_address_with_values_that_the_page_lacks(browser):
    open_question(browser, "training", model="no-such-model", tensor="3", zero="9")
    assert browser.run("[state.model, state.tensor, 'error' in JSON.parse(ask(JSON.stringify(questionOf())))]") == [
        "llama-3-70b",
        "8",
        False,
    ]


@pytest.mark.parametrize("question", ["sharding", "reshard", "training"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_of_400_pixels_does_not_scroll_sideways(browser, question, scheme):
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.resize(400)
    open_question(browser, question)
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.run(CONTRAST) >= 4.5  # WCAG 2.1
    browser.resize(1280)


def test_the_numbers_stay_in_sight_below_the_sliders_of_a_narrow_page(browser):
    browser.resize(400, 800)
    open_question(browser, "training")
    rows = "document.querySelector('.facts').getBoundingClientRect()"
    assert browser.run(f"{rows}.top > 0 && {rows}.bottom <= innerHeight")
    assert browser.run("document.documentElement.scrollHeight > 2 * innerHeight")
    browser.resize(1280)


def test_keys_choose_the_question(page):
    page.run("document.getElementById('tab-sharding').focus()")
    for key, expected in (
        ("ArrowRight", "reshard"),
        ("ArrowRight", "training"),
        ("ArrowRight", "sharding"),
        ("ArrowLeft", "training"),
    ):
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key=key)
        assert page.run("[question, document.activeElement.id]") == [expected, f"tab-{expected}"]


def test_every_input_has_a_label(page):
    assert (
        page.run("[...document.querySelectorAll('input, select')].filter((input) => input.labels.length !== 1).length")
        == 0
    )


def test_the_first_answer_comes_within_3_seconds(page):
    assert 0 < float(page.run(ANSWERED)) < 3000


def test_the_page_is_below_3_megabytes_and_asks_no_other_host(page):
    assert sum(file.stat().st_size for file in SITE.iterdir()) < 3_000_000
    parts = page.run("[...document.querySelectorAll('[src], link')].map((each) => each.src || each.href)")
    assert sorted(parts) == sorted(each.as_uri() for each in SITE.iterdir() if each.suffix in (".js", ".css"))


def test_every_slice_of_the_lists_exists(page):
    for generation, pods in page.run("TPUS").items():
        assert len(pods) >= 8
        for pod in pods:
            assert cluster.tpu(generation, tuple(map(int, pod.split("x")))).device_count >= 1
