# SPDX-License-Identifier: Apache-2.0
"""Right training steps whose shardings are annotations: XLA's partitioner writes the messages."""

import jax
import jax.numpy as jnp
from audit_steps import Step, constrain, descended, described, mesh_of, shardings, step
from expected_messages import Messages

LAYERS, BATCH, WIDTH, MIDDLE = 3, 32, 64, 128
UP, DOWN = (WIDTH, MIDDLE), (MIDDLE, WIDTH)


def squares(h, y):
    return jnp.mean((h - y) ** 2)


def perceptron(mesh, batch, up=None, remat=False):
    """A function of (h, layer) with one hidden layer; activations are sharded over `batch`, the middle over `up`."""

    def layer(h, w):
        h = constrain(mesh, jax.nn.relu(h @ w["up"]), batch, up)
        return constrain(mesh, h @ w["down"], batch, None)

    return jax.checkpoint(layer) if remat else layer


def scanned(layer):
    def loss(w, x, y):
        h, _ = jax.lax.scan(lambda h, one: (layer(h, one), None), x, w)
        return squares(h, y)

    return loss


def unrolled(layer):
    def loss(w, x, y):
        for one in w:
            x = layer(x, one)
        return squares(x, y)

    return loss


def descent(loss):
    def train(w, x, y):
        value, gradients = jax.value_and_grad(loss)(w, x, y)
        return descended(w, gradients), value

    return train


def trained(mesh, loss, w, batch, messages):
    """The step of `loss` with the weights `w`, whose results are sharded as they are."""
    x = described(mesh, (BATCH, WIDTH), batch)
    return Step(descent(loss), (w, x, x), (shardings(w), None), messages)


def stacked(mesh, up=(), down=()):
    return {
        "up": described(mesh, (LAYERS, *UP), None, *up),
        "down": described(mesh, (LAYERS, *DOWN), None, *down),
    }


@step
def data_parallel():
    """Each gradient is summed once."""
    mesh = mesh_of(data=8)
    w = [{"up": described(mesh, UP), "down": described(mesh, DOWN)} for _ in range(LAYERS)]
    messages = Messages(mesh.shape)
    messages.reduce("data", UP, times=LAYERS)
    messages.reduce("data", DOWN, times=LAYERS)
    messages.reduce("data", ())  # the loss
    return trained(mesh, unrolled(perceptron(mesh, "data")), w, "data", messages)


@step
def data_parallel_scan():
    """The gradients of a layer are summed in the loop of the backward pass."""
    mesh = mesh_of(data=8)
    messages = Messages(mesh.shape)
    messages.reduce("data", UP, runs=LAYERS)
    messages.reduce("data", DOWN, runs=LAYERS)
    messages.reduce("data", ())
    return trained(mesh, scanned(perceptron(mesh, "data")), stacked(mesh), "data", messages)


@step
def data_parallel_of_two_axes():
    """The batch is sharded over two axes: one sum over both."""
    mesh = mesh_of(pod=2, data=4)
    batch = ("pod", "data")
    messages = Messages(mesh.shape)
    messages.reduce(batch, UP, runs=LAYERS)
    messages.reduce(batch, DOWN, runs=LAYERS)
    messages.reduce(batch, ())
    return trained(mesh, scanned(perceptron(mesh, batch)), stacked(mesh), batch, messages)


@step
def tensor_parallel():
    """Forward: one sum after each layer. Backward: one before each layer but the first."""
    mesh = mesh_of(tensor=8)
    w = [{"up": described(mesh, UP, None, "tensor"), "down": described(mesh, DOWN, "tensor")} for _ in range(LAYERS)]
    messages = Messages(mesh.shape)
    messages.reduce("tensor", (BATCH, WIDTH), times=LAYERS + LAYERS - 1)
    return trained(mesh, unrolled(perceptron(mesh, None, "tensor")), w, None, messages)


@step
def tensor_and_data_parallel_scan():
    """A scan's backward pass also sums before the first layer: all turns are alike."""
    mesh = mesh_of(data=4, tensor=2)
    messages = Messages(mesh.shape)
    messages.reduce("tensor", (BATCH, WIDTH), ("data",), runs=LAYERS, times=2)
    messages.reduce("data", UP, (None, "tensor"), runs=LAYERS)
    messages.reduce("data", DOWN, ("tensor",), runs=LAYERS)
    messages.reduce("data", ())
    w = stacked(mesh, (None, "tensor"), ("tensor", None))
    return trained(mesh, scanned(perceptron(mesh, "data", "tensor")), w, "data", messages)


@step
def fully_sharded():
    """Weights are gathered before use; the backward pass uses the gathered values again."""
    mesh = mesh_of(data=8)
    w = [{"up": described(mesh, UP, "data"), "down": described(mesh, DOWN, "data")} for _ in range(LAYERS)]
    messages = Messages(mesh.shape)
    for shape in (UP, DOWN):
        messages.gather("data", shape, ("data",), times=LAYERS)
        messages.scatter_on_cpu("data", shape, ("data",), times=LAYERS)
    messages.reduce("data", ())
    return trained(mesh, unrolled(perceptron(mesh, "data")), w, "data", messages)


def fully_sharded_messages(mesh, gathers):
    """Weights of each layer are gathered in both loops: 2 of up and 2 of down."""
    messages = Messages(mesh.shape)
    for shape in (UP, DOWN):
        messages.gather("data", shape, ("data",), runs=LAYERS, times=gathers)
        messages.scatter_on_cpu("data", shape, ("data",), runs=LAYERS)
    messages.reduce("data", ())
    return messages


@step
def fully_sharded_scan():
    mesh = mesh_of(data=8)
    w = stacked(mesh, ("data", None), ("data", None))
    return trained(mesh, scanned(perceptron(mesh, "data")), w, "data", fully_sharded_messages(mesh, 2))


@step
def fully_sharded_remat():
    """The backward pass gathers `up` once, for the recomputation and for the derivative."""
    mesh = mesh_of(data=8)
    w = stacked(mesh, ("data", None), ("data", None))
    loss = scanned(perceptron(mesh, "data", remat=True))
    return trained(mesh, loss, w, "data", fully_sharded_messages(mesh, 2))


@step
def hybrid_sharded():
    """Weights are sharded inside a pod and replicated over pods."""
    mesh = mesh_of(pod=2, data=4)
    batch = ("pod", "data")
    w = stacked(mesh, ("data", None), ("data", None))
    messages = Messages(mesh.shape)
    for shape in (UP, DOWN):
        messages.gather("data", shape, ("data",), runs=LAYERS, times=2)
        messages.scatter_on_cpu("data", shape, ("data",), runs=LAYERS)
        messages.reduce("pod", shape, ("data",), runs=LAYERS)
    messages.reduce(batch, ())
    return trained(mesh, scanned(perceptron(mesh, batch)), w, batch, messages)


@step
def three_axes():
    mesh = mesh_of(data=2, fsdp=2, tensor=2)
    batch = ("data", "fsdp")
    w = stacked(mesh, ("fsdp", "tensor"), ("tensor", "fsdp"))
    messages = Messages(mesh.shape)
    messages.reduce("tensor", (BATCH, WIDTH), (batch,), runs=LAYERS, times=2)
    for shape, spec in ((UP, ("fsdp", "tensor")), (DOWN, ("tensor", "fsdp"))):
        messages.gather("fsdp", shape, spec, runs=LAYERS, times=2)
        messages.scatter_on_cpu("fsdp", shape, spec, runs=LAYERS)
        messages.reduce("data", shape, spec, runs=LAYERS)
    messages.reduce(batch, ())
    return trained(mesh, scanned(perceptron(mesh, batch, "tensor")), w, batch, messages)


@step
def sharded_optimizer():
    """ZeRO 1: the moment is sharded; new weights are gathered."""
    mesh = mesh_of(data=8)
    w = [{"up": described(mesh, UP), "down": described(mesh, DOWN)} for _ in range(LAYERS)]
    moments = [{"up": described(mesh, UP, "data"), "down": described(mesh, DOWN, "data")} for _ in range(LAYERS)]
    loss = unrolled(perceptron(mesh, "data"))

    def train(w, moments, x, y):
        value, gradients = jax.value_and_grad(loss)(w, x, y)
        gradients = jax.tree.map(lambda each: constrain(mesh, each, "data"), gradients)
        moments = jax.tree.map(lambda moment, gradient: 0.9 * moment + gradient, moments, gradients)
        w = jax.tree.map(lambda value, moment: constrain(mesh, value, "data") - 0.1 * moment, w, moments)
        return jax.tree.map(lambda each: constrain(mesh, each), w), moments, value

    messages = Messages(mesh.shape)
    for shape in (UP, DOWN):
        messages.scatter_on_cpu("data", shape, ("data",), times=LAYERS)
        messages.gather("data", shape, ("data",), times=LAYERS)
    messages.reduce("data", ())
    x = described(mesh, (BATCH, WIDTH), "data")
    return Step(train, (w, moments, x, x), (shardings(w), shardings(moments), None), messages)
