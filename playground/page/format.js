// SPDX-License-Identifier: Apache-2.0
// Numbers as the library's texts have them, and elements of the page.
"use strict";

const bytesText = (bytes) => {
  if (bytes < 1024) return `${bytes} bytes`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let value = bytes / 1024, unit = 0;
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${value.toFixed(1)} ${units[unit]}`;
};

const fourDigits = (value) => String(Number(value.toPrecision(4)));

const secondsText = (seconds) => {
  if (seconds === 0) return "0 s";
  for (const [scale, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "us"]])
    if (seconds >= 0.99995 * scale) return `${seconds < 9999.5 ? fourDigits(seconds / scale) : Math.round(seconds).toLocaleString("en")} ${unit}`;
  return `${fourDigits(seconds / 1e-9)} ns`;
};

const rateText = (value, unit) => {
  if (unit === "s") return secondsText(value);
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let prefix = 0;
  for (; value >= 1000 && prefix + 1 < prefixes.length; ++prefix) value /= 1000;
  return `${fourDigits(value)} ${prefixes[prefix]}${unit}`;
};

const countText = (value) => {
  for (const [scale, word] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]])
    if (value >= scale) return `${Number((value / scale).toPrecision(3))} ${word}`;
  return Math.round(value).toLocaleString("en");
};

/** An element; children are elements or texts. */
const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};

const table = (head, rows) =>
  element("div", { class: "scroll", tabindex: 0 },
    element("table", {},
      element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", { scope: "col" }, cell)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell)))))));

/** A picture of the library, whose texts are escaped there. A narrow page scrolls it once its labels are small. */
const picture = (svg) => {
  const figure = element("figure", { class: "scroll", tabindex: 0 });
  figure.innerHTML = svg;
  const drawn = figure.firstElementChild;
  drawn.style.minWidth = `${0.75 * Number(drawn.getAttribute("width"))}px`;
  return figure;
};

const fact = (name, value, more = "", kind = "") =>
  element("div", {}, element("dt", {}, name),
    element("dd", kind ? { class: kind } : {}, value, ...(more ? [element("small", {}, more)] : [])));
