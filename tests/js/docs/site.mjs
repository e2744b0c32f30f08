// @ts-check
// The site in a folder, as `cargo xtask site --out` makes it, and served under a path as any web host does.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveFiles } from "../../demo/site.mjs";
import { ROOT } from "./blocks.mjs";

/** @param {string} out @param {string[]} [words] */
export function makeSite(out, words = []) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, "www/site/build.mjs"), out, join(ROOT, "pkg"), ...words], { encoding: "utf8" });
  return { status, said: `${stdout}${stderr}` };
}

/** Makes a site and serves it under `/some/path/`. */
export async function servedSite() {
  const out = mkdtempSync(join(tmpdir(), "turnwheel-site-"));
  const { status, said } = makeSite(out);
  if (status !== 0) throw new Error(said);
  const server = await serveFiles((path) => {
    if (!path.startsWith("/some/path/")) throw new Error("outside");
    return join(out, path.slice("/some/path/".length).replace(/(^|\/)$/, "$1index.html"));
  });
  return {
    url: `${server.url}some/path/`, out, said,
    /** Ends the server: from then on there is no network. */
    stop: () => server.end(),
    async end() {
      await server.end().catch(() => {});
      rmSync(out, { recursive: true, force: true });
    },
  };
}
