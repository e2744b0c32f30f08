// A folder of the demo as `cargo xtask demo --out` makes it, served under a path as any web host does.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serveFiles } from "./site.mjs";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

/** @param {string} out @param {string[]} words @returns {{ status: number | null, said: string }} */
export function makeFolder(out, words = []) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [here("../../www/demo/folder.mjs"), out, here("../../pkg"), ...words], { encoding: "utf8" });
  return { status, said: `${stdout}${stderr}` };
}

/**
 * Makes a folder and serves it, compressed, under `/some/path/`.
 * @param {string[]} [words] for the command
 */
export async function servedFolder(words = []) {
  const out = mkdtempSync(join(tmpdir(), "turnwheel-demo-"));
  const { status, said } = makeFolder(out, words);
  if (status !== 0) throw new Error(said);
  /** @type {string[]} */
  const asked = [];
  const server = await serveFiles((path) => {
    asked.push(path);
    if (!path.startsWith("/some/path/")) throw new Error("outside");
    return join(out, path.slice("/some/path/".length) || "index.html");
  }, { compressed: true });
  return {
    url: `${server.url}some/path/`, out, asked,
    /** Ends the server: from then on there is no network. */
    stop: () => server.end(),
    async end() {
      await server.end().catch(() => {});
      rmSync(out, { recursive: true, force: true });
    },
  };
}
