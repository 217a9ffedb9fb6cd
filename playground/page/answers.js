// SPDX-License-Identifier: Apache-2.0
// Answers as elements of the page.
"use strict";

const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

const codeBlock = (code) => {
  const button = element("button", { type: "button" }, "Copy");
  button.addEventListener("click", () => copy(code, button));
  return [element("div", { class: "code" }, element("h2", {}, "The same in Python"), button),
    element("pre", { tabindex: 0 }, element("code", {}, code))];
};

const copy = async (text, button) => {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "The browser does not allow it";
  }
  setTimeout(() => (button.textContent = before), 1500);
};

/** The library's own sentence. */
const errorElements = (answer) => [element("p", { class: "error", role: "alert" }, element("b", {}, answer.raises), `: ${answer.error}`)];

const sourceList = (sources) => sources.length === 0 ? [] : [element("details", {},
  element("summary", {}, "Sources of the published numbers"),
  element("ul", {}, ...sources.map(({ id, title, address }) =>
    element("li", {}, `[${id}] `, address ? element("a", { href: address, rel: "noreferrer" }, title) : title))))];

const ratesText = (rates) => rates.map(({ name, value, unit, source }) => `${name} ${rateText(value, unit)} [${source}]`).join(", ");

const slices = (box) => `[${box.map(([begin, end]) => `${begin}:${end}`).join(", ")}]`;

const shardingElements = (question, answer) => {
  const { devices, tiles, replicas, held } = answer;
  const copies = replicas === 1 ? "each part is on one device" : `each part is on ${replicas} devices`;
  return [
    element("p", { class: "lead" }, `${answer.spec} cuts the array into ${plural(tiles, "part")} of ${tuple(answer.shard_shape)}; ${copies}.`),
    element("dl", { class: "facts" }, fact("devices", devices.toLocaleString("en")), fact("array", bytesText(answer.bytes)),
      fact("on each device", bytesText(answer.shard_bytes)), fact("on all devices", bytesText(answer.shard_bytes * devices))),
    picture(answer.svg),
    element("details", {}, element("summary", {}, "Which device holds what"),
      table(["device", "holds", "copy"], held.map(({ device, box, replica }) => [device, slices(box), String(replica)])),
      ...(held.length < devices ? [element("p", { class: "source" }, `${devices - held.length} more devices`)] : [])),
    ...codeBlock(shardingCode(question, answer)),
  ];
};

const STRATEGIES = { copies: "Direct copies", collectives: "Collectives" };
const stepRow = (step) => [step.text, String(step.devices), bytesText(step.bytes_received), bytesText(step.busiest_bytes),
  step.estimate ? secondsText(step.estimate.latency + step.estimate.transfer) : "not known", step.estimate ? step.estimate.algorithm : ""];

const reshardElements = (question, answer) => {
  const { plan, other, seconds } = answer;
  const missing = plan.steps.map((step) => step.why_no_estimate).find((why) => why) ?? "";
  const source = seconds === null ? `No seconds: ${missing}.`
    : `Expected seconds: model; its error is not known. Bound: ${secondsText(answer.bound)} at published rates, ${ratesText(answer.rates ?? [])}. No strategy can be faster than ${secondsText(answer.lower_bound.estimate_seconds ?? 0)}.`;
  const otherTime = answer.other_seconds === null ? "" : `, ${secondsText(answer.other_seconds)}`;
  return [
    element("p", { class: "lead" }, plan.steps.length === 0 ? "Nothing to send: every device has its part."
      : seconds === null || !other ? `${STRATEGIES[plan.way]}: ${bytesText(plan.bytes_received)} are sent.`
      : `${STRATEGIES[plan.way]} are faster here: ${bytesText(plan.bytes_received)} are sent.`),
    element("dl", { class: "facts" },
      fact("seconds", seconds === null ? "not known" : secondsText(seconds), seconds === null ? "" : `expected; bound ${secondsText(answer.bound)}`),
      fact("bytes that all receive", bytesText(plan.bytes_received), `at least ${bytesText(answer.lower_bound.total_bytes)}`),
      fact("busiest device receives", bytesText(plan.steps.reduce((sum, step) => sum + step.busiest_bytes, 0)), `at least ${bytesText(answer.lower_bound.busiest_bytes)}`),
      fact("memory of a device", bytesText(plan.peak_bytes), "at most, while it runs")),
    element("p", { class: "source" }, source),
    picture(answer.svg),
    table(["step", "devices", "all receive", "busiest receives", "seconds", "how"], plan.steps.map(stepRow)),
    element("p", { class: "source" }, other
      ? `The other strategy: ${STRATEGIES[other.way].toLowerCase()}, ${bytesText(other.bytes_received)}${otherTime}.` : answer.why_no_other),
    ...(answer.xla_gathers ? [element("p", { class: "source" }, "XLA gathers the global array on each device here (involuntary full rematerialization).")] : []),
    ...codeBlock(reshardCode(question, answer)),
    ...sourceList(answer.sources ?? []),
  ];
};

const trainingElements = (question, answer) => {
  const { plan } = answer;
  const needed = plan.reserved + plan.runtime;
  const room = plan.available - needed;
  return [
    element("p", { class: "lead" }, `${question.model.name} (${countText(answer.parameters.total)} parameters) on ${plural(plan.devices, "device")} of ${answer.cluster}: `
      + `data ${answer.data} x tensor ${question.tensor} x context ${question.context} x pipeline ${question.pipeline}, ${plural(plan.microbatches, "microbatch").replace("microbatchs", "microbatches")}.`),
    element("dl", { class: "facts" },
      fact("expected step", secondsText(answer.seconds), `model; at least ${secondsText(plan.roofline.total)}`),
      fact("memory of a device", bytesText(needed), `${bytesText(plan.memory)} allocated; ${answer.fits ? "fits in" : "does not fit in"} ${bytesText(plan.available)}${plan.close ? ", but close" : ""}`, answer.fits ? "good" : "bad"),
      fact("tokens per second", countText(answer.tokens_per_second), "all devices"),
      fact("model FLOPs utilisation", `${(100 * answer.mfu).toFixed(1)} %`, `bubble ${(100 * plan.bubble_fraction).toFixed(1)} %`)),
    element("p", { class: "source" }, `Seconds: model, with published rates (${ratesText(answer.rates)}) and the factors below. `
      + `Memory: model, ${room < 0 ? `${bytesText(-room)} too much` : `${bytesText(room)} free`}.`),
    picture(answer.waterfall),
    picture(answer.memory),
    ...codeBlock(trainingCode(question)),
    element("details", {}, element("summary", {}, "Factors of the expected seconds"),
      table(["factor", "value", "source"], answer.factors.map(({ name, value, source }) => [name, fourDigits(value), source]))),
    ...sourceList(answer.sources),
    element("p", { class: "source" }, `Sizes of the model: ${question.model.source}.`),
  ];
};
