// SPDX-License-Identifier: Apache-2.0
// The Python code that gives the same answers.
"use strict";

const tuple = (values) => `(${values.join(", ")}${values.length === 1 ? "," : ""})`;
const quoted = (text) => JSON.stringify(text);
const specCode = (spec) => `ad.${spec.replaceAll("'", '"')}`;
const meshArguments = (axes) => `${tuple(axes.map(([, size]) => size))}, ${tuple(axes.map(([name]) => quoted(name)))}`;
const deviceCount = (axes) => axes.reduce((product, [, size]) => product * size, 1);

const clusterCode = (chip, pod, nodes) =>
  pod ? `cluster.tpu(${quoted(chip)}, ${tuple(pod.split("x"))}${nodes > 1 ? `, slices=${nodes}` : ""})`
      : `cluster.gpus(${quoted(chip)}${nodes > 1 ? `, nodes=${nodes}` : ""})`;

// The same as a text that planners take.
const clusterText = (chip, pod, nodes) =>
  pod ? `tpu ${chip} ${pod}${nodes > 1 ? ` slices=${nodes}` : ""}` : `${nodes * GPUS[chip]} x ${chip}`;

const shardingCode = (question, answer) => `import artifex_devices as ad

with ad.simulate(${answer.devices}):
    mesh = ad.make_mesh(${meshArguments(answer.axes)})
    sharding = ad.NamedSharding(mesh, ${specCode(answer.spec)})
    print(sharding.shard_shape(${tuple(answer.shape)}))
    print(sharding.devices_indices_map(${tuple(answer.shape)}))
    picture = ad.render.sharding_svg(sharding, ${tuple(answer.shape)})  # a notebook draws it
`;

const reshardCode = (question, answer) => {
  const plan = (indent) => `${indent}before = ad.NamedSharding(mesh, ${specCode(answer.spec)})
${indent}after = ad.NamedSharding(mesh, ${specCode(answer.to_spec)})
${indent}plan = plan_reshard(${tuple(answer.shape)}, ${quoted(question.dtype)}, before, after)
${indent}print(plan)
${indent}picture = plan.to_svg()  # a notebook draws it
`;
  if (!question.chip) return `import artifex_devices as ad
from artifex_devices.planner import plan_reshard

with ad.simulate(${deviceCount(answer.axes)}):
    mesh = ad.make_mesh(${meshArguments(answer.axes)})
${plan("    ")}`;
  const sizes = answer.axes.map(([, size]) => size).join(", ");
  const names = tuple(answer.axes.map(([name]) => quoted(name)));
  return `import numpy as np
import artifex_devices as ad
from artifex_devices import cluster
from artifex_devices.planner import plan_reshard

devices = ${clusterCode(question.chip, question.pod, question.nodes)}.devices()[:${deviceCount(answer.axes)}]
mesh = ad.Mesh(np.array(devices).reshape(${sizes}), ${names})
${plan("")}`;
};

const trainingCode = (question) => {
  const values = { batch: question.batch, sequence: question.sequence, tensor: question.tensor,
    sequence_parallel: question.tensor > 1 ? "True" : 0, context: question.context, pipeline: question.pipeline,
    expert: question.expert, microbatch: question.microbatch, zero: question.zero,
    recompute: quoted(question.recompute), optimizer: quoted(question.optimizer) };
  const usual = { tensor: 1, sequence_parallel: 0, context: 1, pipeline: 1, expert: 1, microbatch: 1, zero: 0,
    recompute: '"none"', optimizer: '"adamw-fp32-master"' };
  const given = Object.entries(values).filter(([name, value]) => value !== usual[name]);
  return `from artifex_devices.planner import plan_training

plan = plan_training(
    ${quoted(question.model.name)}, ${quoted(clusterText(question.chip, question.pod, question.nodes))},
${given.map(([name, value]) => `    ${name}=${value},\n`).join("")})
print(plan)
print(plan.seconds, plan.memory)
picture = plan.to_svg()  # a notebook draws it
`;
};
