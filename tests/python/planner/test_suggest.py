# SPDX-License-Identifier: Apache-2.0
"""Suggestions: the best of everything that plan_step can price, found again one by one; and why."""

import itertools
import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from artifex_devices import cluster, mesh_utils, models
from artifex_devices.accelerators import source_notes
from artifex_devices.planner import Efficiency, plan_step, suggest
from artifex_devices.sharding import Mesh
from notebook_pages import Page


def lab(tmp_path, dims, wraps, memory_bytes):
    """A torus of v5e chips with another memory."""
    path = tmp_path / "lab.toml"
    path.write_text(
        f'[chip]\nname = "TPU v5e"\nmemory_bytes = {memory_bytes}\n'
        f"[slice]\ndims = {dims}\nwraps = {str(wraps).lower()}\nbandwidth = 4.5e10\nlatency = 1e-6\n"
    )
    return cluster.from_toml(path)


def factorisations(count, most):
    """Every ordered product, by trying all."""
    sizes = [size for size in range(2, count + 1) if count % size == 0]
    return [
        shape
        for length in range(1, most + 1)
        for shape in itertools.product(sizes, repeat=length)
        if math.prod(shape) == count
    ]


def orders(pod, shape):
    """Ids by position: in order of id, and JAX's where it is another one."""
    devices = pod.devices()
    found = [np.arange(len(devices))]
    try:
        mesh = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
        ids = np.array([device.id for device in mesh.flat])
    except NotImplementedError:
        return found
    return found if np.array_equal(ids, found[0]) else [*found, ids]


def brute_force(model, pod, most, axes, overlap, top):
    """All options by plan_step, one by one: the best as (meaning, rank), how many there are of each kind."""
    counts = {"options": 0, "meshes": 0, "rules_unfit": 0, "without_network": 0, "too_large": 0, "fit": 0}
    best = {}
    too_large = []
    devices = np.array(pod.devices())
    for shape in factorisations(pod.device_count, most):
        names = tuple(f"m{place}" for place in range(len(shape)))
        subsets = [
            tuple(name for place, name in enumerate(names) if bits >> place & 1) for bits in range(2 ** len(shape))
        ]
        for ids in orders(pod, shape):
            mesh = Mesh(devices[ids].reshape(shape), names)
            counts["meshes"] += 1
            for cuts in itertools.product(subsets, repeat=len(axes)):
                counts["options"] += 1
                rules = dict(zip(axes, cuts, strict=True))
                try:
                    plan = plan_step(model, mesh, rules)
                except ValueError as error:
                    kind = "without_network" if "not a box" in str(error) else "rules_unfit"
                    counts[kind] += 1
                    continue
                seconds = [plan.seconds, plan.expected.serial]
                rank = [np.float32(each) for each in (seconds if overlap else seconds[::-1])]
                rank += [np.float32(plan.memory.total), len(shape), sum(map(len, cuts))]
                if not plan.fits:
                    counts["too_large"] += 1
                    too_large.append(rank)
                    continue
                counts["fit"] += 1
                meaning = meaning_of(dict(zip(names, shape, strict=True)), rules)
                best[meaning] = min(best.get(meaning, rank), rank)
    ranked = sorted(best.items(), key=lambda each: each[1])[:top]
    return ranked, counts, min(too_large, default=None)


def meaning_of(sizes, rules):
    """Number of parts of each set of logical axes."""
    parts = {}
    for name, size in sizes.items():
        cut = frozenset(logical for logical, axes in rules.items() if name in axes)
        parts[cut] = parts.get(cut, 1) * size
    return frozenset(parts.items())


MLP = models.mlp(embed=4096, mlp=12288, layers=4, tokens=2**12)
AXES = ("batch", "activation_embed", "embed", "mlp")
EXPERTS = models.transformer(
    models.TransformerShape("small", 2, 256, 512, 4, 4, 64, 1024, experts=8, experts_per_token=2), batch=16, sequence=64
)


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize(
    ("model", "dims", "wraps", "memory", "most", "axes"),
    [
        (MLP, [2, 4], [False, False], 16 << 30, 2, AXES),
        (MLP, [2, 4], [False, False], 1 << 30, 2, AXES),
        (MLP, [2, 3, 2], [False, True, False], 1 << 30, 2, AXES),
        (MLP, [8], [True], 2 << 30, 3, ("batch", "mlp", "embed")),
        (EXPERTS, [2, 4], [False, False], 27 << 20, 2, ("batch", "experts", "expert_batch", "mlp")),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_the_search_is_exhaustive(model, dims, wraps, memory, most, axes, overlap, tmp_path):
    pod = lab(tmp_path, dims, wraps, memory)
    ranked, counts, too_large = brute_force(model, pod, most, axes, overlap, 8)
    found = suggest(model, pod, top=8, max_axes=most, axes=axes, overlap=overlap)
    for fewer in (1, 3):  # what is not priced because it cannot be among the best changes nothing
        again = suggest(model, pod, top=fewer, max_axes=most, axes=axes, overlap=overlap)
        assert [option.rules for option in again.options] == [option.rules for option in found.options[:fewer]]
        assert again.space == found.space
    assert {name: getattr(found.space, name) for name in counts} == counts
    assert found.space.options > 500
    assert found.space.fit > 0
    for option, (_, rank) in zip(found.options, ranked, strict=True):
        seconds = [option.plan.seconds, option.plan.expected.serial]
        assert [np.float32(each) for each in (seconds if overlap else seconds[::-1])] == rank[:2]
        assert np.float32(option.plan.memory.total) == rank[2]
        assert (option.mesh.devices.ndim, sum(map(len, option.rules.values()))) == (rank[3], rank[4])
    meanings = {meaning_of(option.plan.mesh_shape, option.rules) for option in found.options}
    assert len(meanings) == len(found.options)
    if len(dims) == 1:
        assert counts["without_network"] > 0
    if found.too_large is not None:
        assert np.float32(getattr(found.too_large.plan.expected, "overlapped" if overlap else "serial")) == too_large[0]


def test_each_option_is_the_plan_of_its_mesh_and_rules():
    pod = cluster.tpu("v4", (4, 4, 8))
    found = suggest(models.transformer("llama-2-7b", batch=64, sequence=2048), pod, top=10)
    assert {option.order for option in found.options} == {"id", "jax"}
    for option in found.options:
        again = plan_step(found.model, option.mesh, option.rules)
        assert again.to_json() == option.plan.to_json()
        assert sorted(device.id for device in option.mesh.devices.flat) == list(range(128))
        if option.order == "id":
            assert [device.id for device in option.mesh.devices.flat] == list(range(128))
    times = [option.plan.seconds for option in found.options]
    assert all(later >= earlier * (1 - 1e-6) for earlier, later in itertools.pairwise(times))


# --- Known optima ---


def test_small_models_shard_the_batch_only():
    pod = cluster.tpu("v5e", (4, 4))
    forward = suggest(models.mlp(embed=1024, mlp=4096, layers=4, tokens=2**16, optimizer=None), pod).options[0]
    assert (forward.rules, dict(forward.plan.mesh_shape)) == ({"batch": ("data",)}, {"data": 16})
    assert forward.plan.roofline.network == 0
    # In training gradients are added up in any case, and weights and moments that are cut too are updated faster.
    training = suggest(models.mlp(embed=1024, mlp=4096, layers=4, tokens=2**16), pod)
    assert dict(training.options[0].plan.mesh_shape) == {"data": 16}
    assert training.options[0].rules == {"batch": ("data",), "embed": ("data",)}


def test_large_models_shard_two_axes():
    found = suggest(models.transformer("llama-2-70b", batch=128, sequence=4096), cluster.tpu("v5p", (8, 8, 8)))
    best = found.options[0]
    assert dict(best.plan.mesh_shape) == {"data": 128, "model": 4}
    assert best.rules == {"embed": ("data", "model"), "batch": ("data",), "sequence": ("model",)}
    assert best.plan.limit == "compute"
    # All 512 chips along the batch do not even divide it.
    alone = suggest(found.model, found.cluster, max_axes=1)
    assert all(option.plan.seconds > best.plan.seconds for option in alone.options)


def test_small_batches_need_data_and_tensor_parallelism():
    # https://jax-ml.github.io/scaling-book/training: on three axes FSDP alone is bound by communication below
    # 2550 / 3 = 850 tokens a chip; FSDP with tensor parallelism reaches below it.
    pod = cluster.tpu("v5p", (8, 8, 8))

    def best(tokens, axes=None):
        model = models.mlp(embed=8192, mlp=32768, layers=4, tokens=512 * tokens)
        return suggest(model, pod, top=1, axes=axes).options[0]

    assert (best(900).rules, best(900).plan.limit) == ({"batch": ("data",), "embed": ("data",)}, "compute")
    assert exposed(best(900).plan.expected) == 0
    small = best(400)
    assert small.rules == {"batch": ("data",), "embed": ("data",), "mlp": ("model",)}
    assert small.plan.seconds < 0.85 * best(400, ("batch", "embed")).plan.seconds
    assert best(50).plan.limit == "network"
    assert exposed(best(50).plan.expected) > 0.2 * best(50).plan.seconds


# --- Why ---


TIME = re.compile(r"([\d,.]+) ([num]?s)\b")


def check_why(option, text, *seconds):
    """The reason is this text with times in the place of #, and their seconds are these."""
    assert TIME.sub("#", option.why).startswith(text)
    units = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    found = [float(number.replace(",", "")) * units[unit] for number, unit in TIME.findall(option.why)]
    assert found[: len(seconds)] == pytest.approx(seconds, rel=1e-3)


def check_reasons(found, overlap):
    """Each option's reason has the seconds by which its parts differ from the option before."""
    plans = [option.plan for option in found.options]
    total = "overlapped" if overlap else "serial"
    for option, now, before in zip(found.options[1:], plans[1:], plans, strict=False):
        more = getattr(now.expected, total) - getattr(before.expected, total)
        if more > 1e-7 * getattr(before.expected, total):
            check_why(option, "# more: ", more)


def exposed(expected):
    return expected.activations + expected.weights - expected.hidden


def test_the_reason_is_the_difference_to_the_one_before():
    pod = cluster.tpu("v5e", (16, 16))
    found = suggest(models.transformer("llama-2-7b", batch=64, sequence=4096), pod, top=4)
    first = found.options[0].plan.expected
    parts = (first.overlapped - exposed(first), exposed(first), first.weights + first.activations)
    check_why(found.options[0], "# on each device, then # of collectives that nothing hides (# in all)", *parts)
    check_reasons(found, True)


def test_options_that_overlap_alike_differ_by_what_is_hidden():
    found = suggest(models.mlp(embed=1024, mlp=4096, layers=4, tokens=2**16), cluster.tpu("v5e", (4, 4)), top=2)
    first, second = (option.plan.expected for option in found.options)
    check_why(found.options[0], "# on each device, which hides all # of collectives", first.overlapped)
    check_why(found.options[1], "# more: # more on each device", second.overlapped - first.overlapped)


def test_without_overlap_all_seconds_count():
    found = suggest(MLP, cluster.tpu("v5e", (2, 4)), top=4, overlap=False)
    first = found.options[0].plan.expected
    network = first.weights + first.activations
    check_why(found.options[0], "# on each device, then # of collectives", first.serial - network, network)
    check_reasons(found, False)


def test_factors_change_the_seconds_and_not_the_bounds():
    model, pod = models.transformer("llama-2-7b", batch=8, sequence=2048), cluster.dgx("h100")
    found = suggest(model, pod, top=1)
    assert found.options[0].plan.efficiency == Efficiency.of(pod)
    ideal = plan_step(model, found.options[0].mesh, found.options[0].rules, efficiency=Efficiency.ideal())
    assert found.options[0].plan.seconds > ideal.seconds
    assert found.options[0].plan.roofline == ideal.roofline
    slow = suggest(model, pod, top=1, efficiency=Efficiency.ideal().replaced(links=0.001)).options[0].plan
    assert slow.seconds > suggest(model, pod, top=1, efficiency=Efficiency.ideal()).options[0].plan.seconds


def test_where_nothing_fits_the_smallest_is_shown():
    found = suggest(models.transformer("llama-2-70b", batch=16, sequence=4096), cluster.tpu("v5e", (4, 4)))
    assert (found.fits, found.options, found.space.fit) == (False, (), 0)
    assert found.smallest.plan.memory.total < found.too_large.plan.memory.total
    assert found.smallest.why == "does not fit: 105.4 of 16.0 GiB"
    assert "no sharding fits in memory" in str(found)
    assert json.loads(found.to_json())["options"] == []


def test_where_nothing_fits_the_largest_batch_that_does_is_named():
    pod = cluster.tpu("v5e", (16, 16))
    found = suggest(models.transformer("llama-3-70b", batch=64, sequence=4096), pod, progress=False)
    assert (found.fits, found.fits_with) == (False, ("batch=55",))
    assert "no sharding fits in memory; one fits with batch=55\n" in str(found)
    for batch, fits in ((55, True), (56, False)):
        assert (
            suggest(models.transformer("llama-3-70b", batch=batch, sequence=4096), pod, top=1, progress=False).fits
            is fits
        )


# --- Text, space ---


def test_the_text_describes_the_search_space():
    found = suggest(MLP, cluster.tpu("v5e", (2, 4)), top=3)
    text = str(found)
    assert (
        text.splitlines()[0] == f"{MLP.name} on TPU v5e 2x4: best 3 of {found.space.fit:,} shardings that fit in memory"
    )
    assert f"searched  {found.space.options:,} options: {found.space.meshes} meshes of up to 2 axes" in text
    assert "pipeline parallelism (layers with devices of their own)" in text
    for option in found.options:
        assert option.why in text
        assert option.why in Page(found._repr_html_()).letters
    content = json.loads(found.to_json())
    assert [each["why"] for each in content["options"]] == [option.why for option in found.options]
    assert content["options"][0]["plan"].items() <= json.loads(found.options[0].plan.to_json()).items()
    factors = " ".join(found.options[0].plan.efficiency.sources.values())
    assert content["sources"] == source_notes(found.options[0].plan.seconds_from.text + factors)
    assert content["space"]["options"] == found.space.options


def test_the_guide_shows_what_is_printed():
    page = (Path(__file__).resolve().parents[3] / "docs" / "how_to" / "choose_a_sharding.md").read_text(
        encoding="utf-8"
    )
    shown = page.partition("```text\n")[2].partition("```")[0]
    model = models.transformer("llama-2-7b", batch=64, sequence=4096)
    assert shown == f"{suggest(model, cluster.tpu('v5e', (16, 16)), top=3)}\n"


def test_axes_outside_products_are_sharded_only_on_request():
    model = models.transformer("llama-2-7b", batch=16, sequence=512)
    found = suggest(model, cluster.tpu("v5e", (4, 4)), top=1, max_axes=1)
    assert "norm" not in found.space.axes
    assert "sharding of norm" in found.space.excluded
    every = suggest(model, cluster.tpu("v5e", (4, 4)), top=1, max_axes=1, axes=model.logical_axes)
    assert "norm" in every.space.axes


def test_one_device_has_one_option():
    found = suggest(models.mlp(embed=128, mlp=256, layers=1, tokens=64), cluster.tpu("v5e", (1, 1)), max_axes=1)
    assert (found.space.fit, found.options[0].rules, dict(found.options[0].plan.mesh_shape)) == (1, {}, {"spare": 1})


def test_axes_may_be_any_iterable():
    pod = cluster.tpu("v5e", (4, 4))
    found = suggest(MLP, pod, top=1, axes=(axis for axis in ("batch", "mlp")))
    assert found.space == suggest(MLP, pod, top=1, axes=["batch", "mlp"]).space
    assert found.space.axes == ("batch", "mlp")


def test_suggestions_are_pickled():
    found = suggest(MLP, cluster.tpu("v5e", (2, 4)), top=2)
    again = pickle.loads(pickle.dumps(found))
    assert again.to_json() == found.to_json()
    for one, other in zip(again.options, found.options, strict=True):
        assert (one.mesh.devices.shape, one.mesh.axis_names) == (other.mesh.devices.shape, other.mesh.axis_names)
        assert [device.id for device in one.mesh.devices.flat] == [device.id for device in other.mesh.devices.flat]
        assert plan_step(again.model, one.mesh, one.rules).to_json() == other.plan.to_json()


def test_slices_and_nodes():
    model = models.transformer("llama-2-13b", batch=32, sequence=4096)
    nodes = suggest(model, cluster.dgx("h100", nodes=2), top=1)
    assert {option.order for option in nodes.options} == {"id"}
    slices = suggest(model, cluster.tpu("v5e", (4, 4), slices=2), top=50)
    assert slices.space.meshes > len(factorisations(32, 2))


def test_jax_has_an_order_of_slices_only_where_they_divide_the_first_axis():
    found = suggest(MLP, cluster.tpu("v5e", (2, 2), slices=3))
    assert found.space.meshes == 8  # 12, 6x2, 3x4 in two orders; 4x3, 2x6 in that of the ids


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda pod: suggest(3, pod), TypeError, r"model is 3 \(int\); expected a name, an id"),
        (lambda pod: suggest(MLP, "v5e"), ValueError, "cluster: 'v5e' has no size"),
        (lambda pod: suggest(MLP, pod, top=0), ValueError, "top is 0; expected 1 to 1000"),
        (lambda pod: suggest(MLP, pod, top=2.5), TypeError, "top is 2.5"),
        (lambda pod: suggest(MLP, pod, max_axes=5), ValueError, "max_axes is 5; expected 1 to 4"),
        (lambda pod: suggest(MLP, pod, max_axes=True), TypeError, "max_axes is True"),
        (lambda pod: suggest(MLP, pod, axes="batch"), TypeError, "axes is 'batch'"),
        (lambda pod: suggest(MLP, pod, axes=("bach",)), ValueError, r"no logical axes 'bach' \(did you mean batch\?\)"),
        (lambda pod: suggest(MLP, pod, axes=5), TypeError, r"axes is 5 \(int\); expected a sequence of logical axes"),
        (lambda pod: suggest(MLP, pod, axes=("mlp", 1)), TypeError, r"axes is \('mlp', 1\)"),
        (lambda pod: suggest(MLP, pod, overlap="no"), TypeError, r"overlap is 'no' \(str\); expected True or False"),
        (lambda pod: suggest(MLP, pod, progress=7), TypeError, r"progress is 7 \(int\); expected True or False"),
        (lambda pod: suggest(MLP, cluster.this_machine()), RuntimeError, "memory bandwidth"),
        (
            lambda pod: suggest(models.transformer("mixtral-8x7b", batch=64, sequence=4096), pod, max_axes=4),
            ValueError,
            r"the space has \d+ candidates; expected at most 50000000; allow fewer axes",
        ),
    ],
)
def test_searches_that_are_too_large_raise(call, error, text):
    with pytest.raises(error, match=text):
        call(cluster.tpu("v5e", (4, 4)))


# --- Progress, Ctrl-C ---


class Terminal:
    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text
        return len(text)

    def flush(self):
        pass

    encoding = "utf-8"


@pytest.mark.parametrize("has_rich", [True, False])
def test_progress_is_shown_on_a_terminal(has_rich, monkeypatch):
    if has_rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("artifex_devices._base.progress._DELAY_S", 0.0)
    model = models.transformer("llama-2-7b", batch=16, sequence=512)
    quiet = suggest(model, cluster.tpu("v5e", (4, 4)), top=1, max_axes=1, progress=False)
    assert screen.text == ""
    shown = suggest(model, cluster.tpu("v5e", (4, 4)), top=1, max_axes=1)
    assert "suggest" in screen.text
    if not has_rich:
        assert screen.text == "\rsuggest: 0 %\r\x1b[K"
    assert str(shown) == str(quiet)


INTERRUPTED = """
import artifex_devices.planner as planner
from artifex_devices import cluster, models
print("begin", flush=True)
try:
    planner.suggest(models.transformer("llama-2-7b", batch=64, sequence=4096), cluster.tpu("v5e", (16, 16)), max_axes=3)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_long_search():
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as child:
        assert child.stdout.readline() == "begin\n"
        threading.Timer(0.5, child.send_signal, (signal.SIGINT,)).start()
        assert child.stdout.readline() == "interrupted\n"
        assert child.wait(timeout=30) == 0
