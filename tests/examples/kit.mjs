// @ts-check
// The examples as a user has them: the folder copied, the packed package installed into it.

import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const run = promisify(execFile);
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html", ".css": "text/css" };

/** @type {Promise<{ home: string, packed: string }> | undefined} */
let packing;

async function pack() {
  const home = await mkdtemp(join(tmpdir(), "turnwheel-examples-"));
  const { stdout } = await run("npm", ["pack", join(ROOT, "pkg"), "--json", "--pack-destination", home], { cwd: home });
  return { home, packed: join(home, JSON.parse(stdout)[0].filename) };
}

/**
 * Sets up one example with its own node_modules. Nothing is downloaded: its other dependencies are taken from
 * where they are installed already, or left out.
 * @param {string} name @param {Record<string, string>} [others] their folders by name
 */
export async function install(name, others = {}) {
  const { home, packed } = await (packing ??= pack());
  const folder = join(home, name);
  await cp(join(ROOT, "www/examples", name), folder, { recursive: true, filter: (path) => !path.includes("node_modules") });
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const taken = Object.entries(manifest.dependencies).map(([name]) => [name, name === "turnwheel" ? packed : others[name]]).filter(([, place]) => place);
  await writeFile(join(folder, "package.json"), JSON.stringify({ ...manifest, dependencies: {} }));
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--no-package-lock", ...taken.map(([, place]) => place)], { cwd: folder });
  return folder;
}

/** An empty folder and the packed package, for a start from scratch. */
export async function nothing() {
  const { home, packed } = await (packing ??= pack());
  return { folder: await mkdtemp(join(home, "empty-")), packed };
}

/** Cleans up after the tests. */
export async function clean() {
  if (packing) await rm((await packing).home, { recursive: true, force: true });
}

/** The names of the examples. */
export const names = () => readdir(join(ROOT, "www/examples"));

/** Serves a folder as static files. @param {string} root @param {{ after(end: () => void): void }} test */
export async function site(root, test) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://x");
    const file = normalize(join(root, pathname.endsWith("/") ? `${pathname}index.html` : pathname));
    const bytes = file.startsWith(root) ? await readFile(file).catch(() => undefined) : undefined;
    if (!bytes) return void response.writeHead(404).end();
    response.setHeader("content-type", /** @type {any} */ (TYPES)[extname(file)] ?? "application/octet-stream").end(bytes);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
}
