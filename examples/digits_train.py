# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits over 8 CPU devices, in plain NumPy.

    python examples/digits_train.py                          data parallel over all devices
    python examples/digits_train.py --mesh data=4,model=2    the hidden layer is sharded over two of them
    mpiexec -n 2 python examples/digits_train.py             the same in two processes, each with its own devices
    python examples/digits_train.py --checkpoint runs/1      saves every 100 steps; goes on from the last checkpoint

Batches are sharded and prefetched by DevicePlacement, each device computes the gradients of its rows, `lax.pmean`
averages them, parameters are replicated (or sharded over "model"). The result is checked against the same training in
ordinary NumPy: the exit code is 1 if parameters differ by more than 1e-5 or the test accuracy is 95 % or less.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import artifex_devices as ad
import numpy as np
from artifex_devices import P, checkpoint, distributed, lax, multihost_utils
from artifex_devices.batch_placement import batch_share
from artifex_devices.sharding import NamedSharding

Params = dict[str, Any]
BATCH, HIDDEN, CLASSES, STEP, SAVE_EVERY = 64, 64, 10, 0.1, 100


def load_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test images (rows of 64 pixels, 0 to 1) and their labels, of 1,797 digits."""
    try:
        from sklearn.datasets import load_digits as load
    except ImportError:
        raise SystemExit("scikit-learn is missing: pip install scikit-learn") from None
    digits = cast(Any, load())
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = digits.data[order] / 16.0, digits.target[order]
    return images[:1472], labels[:1472], images[1472:], labels[1472:]


def first_parameters() -> Params:
    """Weights of a network of one hidden layer."""
    random = np.random.default_rng(1)
    return {
        "hidden": random.normal(0, np.sqrt(2 / 64), (64, HIDDEN)),
        "hidden_bias": np.zeros(HIDDEN),
        "out": random.normal(0, np.sqrt(2 / HIDDEN), (HIDDEN, CLASSES)),
        "out_bias": np.zeros(CLASSES),
    }


def batches(
    images: np.ndarray, labels: np.ndarray, epochs: int, share: slice = slice(None)
) -> Iterator[dict[str, np.ndarray]]:
    """All rows in a new order in each epoch; of each batch only `share`, the rows of this process."""
    random = np.random.default_rng(2)
    for _ in range(epochs):
        order = random.permutation(len(labels))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH][share]
            yield {"images": images[rows], "labels": labels[rows]}


def gradients(
    params: Params, batch: dict[str, np.ndarray], over_model: Callable[[np.ndarray], np.ndarray]
) -> tuple[float, Params]:
    """Mean loss of the rows and its gradients; `over_model` sums over the parts of the hidden layer."""
    images, labels = batch["images"], batch["labels"]
    hidden = np.maximum(images @ params["hidden"] + params["hidden_bias"], 0)
    scores = over_model(hidden @ params["out"]) + params["out_bias"]
    scores = scores - scores.max(1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(chances[rows, labels]).mean()
    chances[rows, labels] -= 1
    chances /= len(labels)
    back = (chances @ params["out"].T) * (hidden > 0)
    return float(loss), {
        "hidden": images.T @ back,
        "hidden_bias": back.sum(0),
        "out": hidden.T @ chances,
        "out_bias": chances.sum(0),
    }


def train_on_devices(
    mesh: ad.Mesh, data: Iterator[dict[str, np.ndarray]], manager: checkpoint.Manager | None = None
) -> tuple[Params, list[float]]:
    """Trains over the mesh; returns the parameters as NumPy arrays and the loss of each step.

    With a manager, the training goes on from its latest checkpoint, under any mesh.
    """
    model = "model" if "model" in mesh.axis_names else None
    specs = {"hidden": P(None, model), "hidden_bias": P(model), "out": P(model, None), "out_bias": P()}

    def step(params: Params, batch: dict[str, np.ndarray]) -> tuple[Params, np.ndarray]:
        def over_model(scores: np.ndarray) -> np.ndarray:
            return lax.psum(scores, "model") if model else scores

        loss, slope = gradients(params, batch, over_model)
        mean = lax.pmean({"loss": np.asarray(loss), **slope}, "data")
        return {name: params[name] - STEP * mean[name] for name in params}, mean["loss"]

    mapped = ad.shard_map(step, mesh=mesh, in_specs=(specs, P("data")), out_specs=(specs, P()))
    shardings = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    latest = manager.latest_step() if manager else None
    losses: list[float] = []
    if manager and latest is not None:
        saved = manager.restore(latest, {"params": shardings, "losses": ad.ShapeDtypeStruct((latest,), np.float64)})
        params, losses = saved["params"], saved["losses"].tolist()
    else:
        params = ad.device_put(first_parameters(), shardings)
    data = itertools.islice(data, len(losses), None)  # the batches that are not used yet
    placement = ad.DevicePlacement()
    for batch in placement.prefetch_to_device(data, NamedSharding(mesh, P("data"))):
        params, loss = mapped(params, batch)
        losses.append(float(loss))
        if manager and len(losses) % SAVE_EVERY == 0:
            manager.save(len(losses), {"params": params, "losses": np.array(losses)})
    return multihost_utils.process_allgather(params, tiled=True), losses


def train_in_numpy(data: Iterator[dict[str, np.ndarray]]) -> Params:
    """The same training without devices."""
    params = first_parameters()
    for batch in data:
        _, slope = gradients(params, batch, lambda scores: scores)
        params = {name: params[name] - STEP * slope[name] for name in params}
    return params


def accuracy(params: Params, images: np.ndarray, labels: np.ndarray) -> float:
    """Share of correct predictions."""
    hidden = np.maximum(images @ params["hidden"] + params["hidden_bias"], 0)
    return float(((hidden @ params["out"] + params["out_bias"]).argmax(1) == labels).mean())


def curve(losses: list[float], width: int = 64, height: int = 8) -> str:
    """The losses as a text plot; each column is the mean of equally many steps."""
    columns = [float(np.mean(part)) for part in np.array_split(losses, min(width, len(losses)))]
    top = max(columns)
    lines: list[str] = []
    for row in range(height, 0, -1):
        mark = "".join("█" if value / top * height >= row - 0.5 else " " for value in columns)
        lines.append(f"{top * row / height:6.2f} |{mark}")
    return "\n".join([*lines, f"       +{'-' * len(columns)} {len(losses)} steps"])


def parse_mesh(text: str) -> ad.Mesh:
    """A mesh of axes "data" and "model" from "data=4,model=2"."""
    try:
        axes = {name: int(size) for name, size in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise SystemExit(f"--mesh: expected data=4,model=2, got {text!r}") from None
    if set(axes) - {"data", "model"} or "data" not in axes:
        raise SystemExit(f"--mesh: expected the axes data and model, got {text!r}")
    count = math.prod(axes.values())
    if min(axes.values()) < 1 or count > ad.device_count():
        raise SystemExit(
            f"--mesh: expected sizes for at most {ad.device_count()} devices, got {text!r}; "
            "JAX_NUM_CPU_DEVICES=8 in the environment makes 8"
        )
    return ad.Mesh(np.array(ad.devices()[:count]).reshape(tuple(axes.values())), tuple(axes))


def main() -> int:
    """Trains, draws the losses, compares with one device."""
    if distributed.is_launched():
        distributed.initialize()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mesh", default=f"data={ad.device_count()}", help="axes, say data=4,model=2")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--checkpoint", metavar="DIR", help="folder of checkpoints; training goes on from the last one")
    options = parser.parse_args()
    mesh = parse_mesh(options.mesh)
    images, labels, test_images, test_labels = load_digits()
    began = time.perf_counter()
    share = batch_share(NamedSharding(mesh, P("data")), BATCH)
    manager = checkpoint.Manager(options.checkpoint, max_to_keep=2) if options.checkpoint else None
    params, losses = train_on_devices(mesh, batches(images, labels, options.epochs, share), manager)
    took_s = time.perf_counter() - began
    reference = train_in_numpy(batches(images, labels, options.epochs))
    furthest = max(float(np.abs(params[name] - reference[name]).max()) for name in reference)
    right = accuracy(params, test_images, test_labels)
    if ad.process_index() == 0:
        print(f"Trained on {mesh} in {took_s:.1f} s, {took_s / len(losses) * 1e3:.2f} ms a step (measured); the loss:")
        print(curve(losses))
        print(f"Test accuracy {right:.1%}; largest difference from one device {furthest:.1e}")
    if right <= 0.95 or furthest > 1e-5:
        print("NOT as expected: over 95 % and at most 1e-5")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
