// SPDX-License-Identifier: Apache-2.0
// Inputs, the address, and the calls into WebAssembly.
"use strict";

const DEFAULTS = {
  mesh: "data=4, model=2", shape: "4096, 4096", dtype: "bfloat16", spec: 'P("data", "model")', to: 'P("model", "data")',
  chip: "h100", pod: "2x4", nodes: "1",
  model: "llama-3-70b", train_chip: "h100", train_pod: "16x16", train_nodes: "16", batch: "512", sequence: "8192", microbatch: "1",
  tensor: "8", pipeline: "4", context: "1", expert: "1", zero: "1", recompute: "selective", optimizer: "adamw-fp32-master",
};
const FIELDS = {  // of the address, by question
  sharding: ["mesh", "shape", "dtype", "spec"],
  reshard: ["mesh", "shape", "dtype", "spec", "to", "chip", "pod", "nodes"],
  training: ["model", "train_chip", "train_pod", "train_nodes", "batch", "sequence", "microbatch", "tensor", "pipeline", "context",
    "expert", "zero", "recompute", "optimizer"],
};
const ELEMENTS = { sharding: shardingElements, reshard: reshardElements, training: trainingElements };
const DTYPES = ["float32", "bfloat16", "float16", "float64", "float8_e4m3fn", "float8_e5m2", "int8", "int32", "int64", "uint8", "bool", "complex64"];

const state = { ...DEFAULTS };
let question = "sharding";
let wasm = null;
const inputs = Object.fromEntries([...document.querySelectorAll("[name]")].map((input) => [input.name, input]));
const tabs = [...document.querySelectorAll("[role=tab]")];
const panel = document.getElementById("answer");

const fillLists = () => {
  const options = (name, rows) => inputs[name].replaceChildren(...rows.map(([value, text]) => element("option", { value }, text)));
  const plain = (values) => values.map((value) => [value, value]);
  const chips = [...Object.keys(GPUS).map((gpu) => [gpu, `${gpu.toUpperCase()}, nodes of ${GPUS[gpu]}`]), ...Object.keys(TPUS).map((tpu) => [tpu, `TPU ${tpu}`])];
  options("dtype", plain(DTYPES));
  options("chip", [["", "CPU devices, no network"], ...chips]);
  options("train_chip", chips);
  options("model", plain(Object.keys(MODELS)));
  options("recompute", plain(["none", "selective", "full"]));
  options("optimizer", plain(["adamw-fp32-master", "adam", "sgd", "adafactor", "muon"]));
  for (const input of document.querySelectorAll("[data-powers]")) [input.min, input.max] = input.dataset.powers.split(" ");
};

/** Slices are those of the chosen TPU; GPUs have none. */
const fillPods = (chip, pod) => {
  const pods = TPUS[state[chip]] ?? [];
  inputs[pod].replaceChildren(...pods.map((value) => element("option", { value }, value)));
  if (pods.length > 0 && !pods.includes(state[pod])) state[pod] = pods[Math.min(3, pods.length - 1)];
  inputs[pod].closest("label").hidden = pods.length === 0;
};

/** Where a slider stands. Most sliders choose powers of two. */
const sliderPlace = (input, value) => ("powers" in input.dataset ? Math.log2(Number(value)) : Number(value));

const show = () => {
  fillPods("chip", "pod");
  fillPods("train_chip", "train_pod");
  inputs.nodes.closest("label").hidden = state.chip === "";
  inputs.expert.closest("label").hidden = MODELS[state.model].experts === 0;
  for (const [name, input] of Object.entries(inputs)) {
    const value = input.type === "range" ? String(sliderPlace(input, state[name])) : state[name];
    if (input.value !== value) input.value = value;
    const text = input.parentElement.querySelector(".value");
    if (text) text.textContent = Number(state[name]).toLocaleString("en");
  }
  for (const part of document.querySelectorAll("[data-in]")) part.hidden = !part.dataset.in.split(" ").includes(question);
  for (const tab of tabs) {
    const isChosen = tab.getAttribute("aria-controls") === question;
    tab.setAttribute("aria-selected", isChosen);
    tab.tabIndex = isChosen ? 0 : -1;
    if (isChosen) panel.setAttribute("aria-labelledby", tab.id);
  }
};

const questionOf = () => {
  if (question === "training") {
    const numbers = Object.fromEntries(["batch", "sequence", "microbatch", "tensor", "pipeline", "context", "zero"].map((name) => [name, Number(state[name])]));
    const model = MODELS[state.model];
    return { question, model, chip: state.train_chip, pod: state.train_chip in TPUS ? state.train_pod : "", nodes: Number(state.train_nodes),
      ...numbers, expert: model.experts === 0 ? 1 : Number(state.expert), recompute: state.recompute, optimizer: state.optimizer };
  }
  const array = { question, mesh: state.mesh, shape: state.shape, dtype: state.dtype, spec: state.spec };
  if (question === "sharding") return array;
  return { ...array, to_spec: state.to, chip: state.chip, pod: state.chip in TPUS ? state.pod : "", nodes: Math.max(1, Math.trunc(Number(state.nodes)) || 1) };
};

/** The library's answer to a question, both as JSON. */
const ask = (json) => {
  const text = wasm.stringToNewUTF8(json);
  try {
    return wasm.UTF8ToString(wasm._answer(text));
  } finally {
    wasm._free(text);
  }
};

const answer = () => {
  if (wasm === null) return;
  const asked = questionOf();
  const found = JSON.parse(ask(JSON.stringify(asked)));
  panel.replaceChildren(..."error" in found ? errorElements(found) : ELEMENTS[question](asked, found));
  panel.setAttribute("aria-busy", "false");
  if (document.documentElement.dataset.firstAnswer === undefined) document.documentElement.dataset.firstAnswer = String(performance.now());
};

const address = () => `#${question}?${new URLSearchParams(FIELDS[question].map((name) => [name, state[name]]))}`;

const readAddress = () => {
  const [name, fields] = location.hash.slice(1).split("?", 2);
  if (name in FIELDS) question = name;
  for (const [field, value] of new URLSearchParams(fields ?? "")) if (FIELDS[question].includes(field)) state[field] = value;
  for (const [field, input] of Object.entries(inputs)) {  // what a list or a slider cannot show has its default
    const isListed = input.tagName === "SELECT" && !field.endsWith("pod");
    if (isListed && ![...input.options].some((option) => option.value === state[field])) state[field] = DEFAULTS[field];
    if (input.type !== "range") continue;
    const position = sliderPlace(input, state[field]);
    if (!Number.isInteger(position) || position < input.min || position > input.max) state[field] = DEFAULTS[field];
  }
};

const changed = () => {
  show();
  history.replaceState(null, "", address());
  answer();
};

const choose = (name) => {
  question = name;
  changed();
};

for (const [name, input] of Object.entries(inputs)) {
  input.addEventListener("input", () => {
    state[name] = "powers" in input.dataset ? String(2 ** Number(input.value)) : input.value;
    changed();
  });
}
for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => choose(tab.getAttribute("aria-controls")));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: tabs.length - 1 }[event.key];
    if (step === undefined) return;
    const next = tabs[(i + step) % tabs.length];
    next.focus();
    choose(next.getAttribute("aria-controls"));
  });
}
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("share").addEventListener("click", (event) => copy(location.href, event.target));
window.addEventListener("hashchange", () => {
  readAddress();
  show();
  answer();
});

fillLists();
readAddress();
show();
createPlayground().then((module) => {
  wasm = module;
  answer();
}, (error) => panel.replaceChildren(element("p", { class: "error", role: "alert" }, `This browser cannot run the page: ${error.message}`)));
