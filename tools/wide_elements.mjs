// SPDX-License-Identifier: Apache-2.0
// Finds what is too wide on the built site: `node tools/wide_elements.mjs CHROMIUM build/docs 1280 400` opens each page in
// windows of these widths, and prints a line for each page that scrolls sideways, and for each table and picture that is
// wider than its place. In windows below 800 pixels tables may scroll.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [chromium, site, ...widths] = process.argv.slice(2);
const DEVELOPERS = ["_modules/", "_sources/", "_static/", "genindex"]; // listings of code, and lists of names
const HEIGHT = 900;

// Runs in the page; a function without references to this file.
function wide_elements() {
  const found = [];
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) found.push(`the page is ${page.scrollWidth} px wide`);
  const may_scroll = page.clientWidth < 800;
  const scrolls = (place) => ["auto", "scroll"].includes(getComputedStyle(place).overflowX);
  for (const element of document.querySelectorAll("article table, article img, article svg")) {
    let place = element.parentElement;
    while (!scrolls(place) && !place.matches("section, article")) place = place.parentElement;
    const excess = Math.round(element.getBoundingClientRect().right - place.getBoundingClientRect().right);
    const is_table = element.tagName === "TABLE";
    if (excess > 1 && !(is_table && may_scroll && scrolls(place)))
      found.push(`${element.tagName.toLowerCase()} "${(element.alt || element.textContent).replace(/\s+/g, " ").trim().slice(0, 50)}" is ${excess} px too wide`);
  }
  return found;
}

const pages = readdirSync(site, { recursive: true })
  .filter((name) => name.endsWith(".html") && !DEVELOPERS.some((folder) => name.startsWith(folder)))
  .sort();
const profile = mkdtempSync(join(tmpdir(), "wide_elements_"));
const options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", `--user-data-dir=${profile}`];
const browser = spawn(chromium, [...options, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] });
const address = await new Promise((found, failed) => {
  let text = "";
  browser.stderr.on("data", (part) => {
    text += part;
    const match = text.match(/DevTools listening on (\S+)/);
    if (match) found(match[1]);
  });
  browser.on("exit", (code) => failed(new Error(`chromium ended with ${code}: ${text}`)));
});

const socket = new WebSocket(address);
await new Promise((opened) => socket.addEventListener("open", opened));
const answers = new Map();
let on_load = () => {};
socket.addEventListener("message", ({ data }) => {
  const message = JSON.parse(data);
  if (message.method === "Page.loadEventFired") on_load();
  answers.get(message.id)?.(message.result ?? { error: message.error });
});
let last = 0;
let session;
function call(method, params = {}) {
  const id = ++last;
  socket.send(JSON.stringify({ id, method, params, sessionId: session }));
  return new Promise((answered) => answers.set(id, answered));
}

const { targetId } = await call("Target.createTarget", { url: "about:blank" });
({ sessionId: session } = await call("Target.attachToTarget", { targetId, flatten: true }));
await call("Page.enable");
for (const name of pages) {
  const loaded = new Promise((done) => (on_load = done));
  await call("Page.navigate", { url: pathToFileURL(resolve(site, name)).href });
  await loaded;
  for (const width of widths.map(Number)) {
    await call("Emulation.setDeviceMetricsOverride", { width, height: HEIGHT, deviceScaleFactor: 1, mobile: false });
    const { result } = await call("Runtime.evaluate", { expression: `(${wide_elements})()`, returnByValue: true });
    for (const found of result.value) console.log(`${name} at ${width} px: ${found}`);
  }
}
await call("Browser.close");
socket.close();
await new Promise((ended) => (browser.exitCode === null ? browser.on("exit", ended) : ended()));
rmSync(profile, { recursive: true, force: true });
