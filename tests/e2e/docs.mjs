// @ts-check
// The code of the docs that needs more than the everyday tests have: what the page about
// pi shows of pi runs on pi.

import { join } from "node:path";
import { test } from "node:test";
import { PAGES, ROOT, blocksOf, programsOf } from "../js/docs/blocks.mjs";
import { prepare, run } from "../js/docs/program.mjs";
import { packagesOf } from "./npm.mjs";

const { folder: peers, missing } = packagesOf("pi", ["@earendil-works/pi-agent-core@0.87.1", "@earendil-works/pi-ai@0.87.1"]);
if (missing !== undefined) test("the code of the pages about pi", { skip: missing });
else {
  const names = ["@earendil-works/pi-agent-core", "@earendil-works/pi-ai"];
  const folder = prepare(join(ROOT, "tests/out/docs-e2e"), Object.fromEntries(names.map((name) => [name, join(peers, "node_modules", name)])));
  for (const page of PAGES) {
    for (const program of programsOf(blocksOf(page).filter((block) => block.language === "js"))) {
      if (program.inE2e) test(`the code at ${program.name}`, { timeout: 60_000 }, () => run(folder, program));
    }
  }
}
