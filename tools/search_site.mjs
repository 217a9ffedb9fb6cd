// SPDX-License-Identifier: Apache-2.0
// Searches the built site as a browser does: `node tools/search_site.mjs build/docs WORDS ...` prints the first page for each argument.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [site, ...queries] = process.argv.slice(2);
const page = {
  readyState: "loading", // the scripts wait for the page, which is not there
  addEventListener: () => {},
  getElementById: () => ({ children: [], replaceChildren: () => {} }),
  documentElement: { dataset: {} },
};
const browser = vm.createContext({ document: page, window: {}, localStorage: { setItem: () => {} }, _ready: () => {}, console });
for (const script of ["documentation_options", "doctools", "language_data", "sphinx_highlight", "searchtools"])
  vm.runInContext(readFileSync(join(site, "_static", `${script}.js`), "utf8"), browser);
vm.runInContext(readFileSync(join(site, "searchindex.js"), "utf8"), browser);
for (const query of queries) {
  browser.query = query;
  const found = vm.runInContext("Search._performSearch(...Search._parseQuery(query))", browser);
  console.log(found.length ? found.at(-1)[0] : "-");
}
