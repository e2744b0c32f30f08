// @ts-check
// npx turnwheel inspect FILE: the inspector with a tape, on loopback.

import { randomBytes } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { Tape } from "../tape.js";
import { complain, parsed, refuse, say, textOf } from "./terminal.mjs";
import { usageOf } from "./usage.mjs";

const FOLDER = fileURLToPath(new URL("..", import.meta.url));
/** @type {Record<string, string>} */
const TYPES = { js: "text/javascript", wasm: "application/wasm" };

const POLICY = [
  "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "style-src 'self'", "connect-src 'self'",
  "img-src data: blob:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
];
const HEADERS = {
  "content-security-policy": POLICY.join("; "),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};

const STYLE = `:root { color-scheme: light dark; }
html, body { margin: 0; height: 100%; background: Canvas; color: CanvasText; font: 14px system-ui, sans-serif; }
body { display: flex; flex-direction: column; box-sizing: border-box; padding: 10px; }
h1 { margin: 0 0 8px; font-size: 1rem; }
turnwheel-inspector { flex: 1; min-height: 0; }
`;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export async function inspect(args) {
  let given;
  try {
    given = parsed(args, []);
  } catch (error) {
    return refuse(`${textOf(error)}\n\n${usageOf("inspect")}`);
  }
  const { values, positionals: [file, ...more] } = given;
  if (values.help) return say(usageOf("inspect"));
  if (file === undefined || more.length > 0) return refuse(`inspect takes one tape: npx turnwheel inspect FILE\n\n${usageOf("inspect")}`);
  let text;
  try {
    text = readFileSync(file, "utf8");
    Tape.parse(text);
  } catch (error) {
    return complain(`${file} cannot be shown: ${textOf(error)}; a tape is what a recorder of turnwheel/tape writes`);
  }
  const { url, ended } = await served(text, basename(file));
  say(`${file} is shown at\n  ${url}\nCtrl-C ends it.`);
  await ended;
  return 0;
}

/**
 * Serves a page under a path that nobody guesses: other users of this machine reach its ports, too.
 * @param {string} tape @param {string} name
 */
async function served(tape, name) {
  const pages = pagesOf(tape, name);
  const begin = `/${randomBytes(16).toString("hex")}/`;
  let port = 0;
  const server = createServer(({ method = "", url = "", headers: { host } }, response) => {
    const end = (/** @type {number} */ status, /** @type {string | Buffer} */ body, type = "text/plain; charset=utf-8") =>
      response.writeHead(status, { ...HEADERS, "content-type": type }).end(method === "HEAD" ? "" : body);
    // A site whose name leads to this address would be of another origin here, and read the tape.
    if (host !== `127.0.0.1:${port}` && host !== `localhost:${port}`) return end(403, "this server answers 127.0.0.1 alone");
    if (method !== "GET" && method !== "HEAD") return end(405, "there is nothing but reading here");
    // Looked up, not read from the disk: no path leads anywhere else.
    const page = url.startsWith(begin) ? pages.get(url.slice(begin.length)) : undefined;
    if (page === undefined) return end(404, "there is nothing here");
    end(200, page.body(), page.type);
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", () => resolve(undefined)));
  port = /** @type {import("node:net").AddressInfo} */ (server.address()).port;
  const ended = new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => {
      server.closeAllConnections();
      server.close(resolve);
    });
  });
  return { url: `http://127.0.0.1:${port}${begin}`, ended };
}

/** All that the server has: the page, the tape, and the scripts and modules of the package. @param {string} tape @param {string} name */
function pagesOf(tape, name) {
  const title = name.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · turnwheel</title>
<link rel="stylesheet" href="page.css">
<script type="module" src="page.js"></script>
<h1>${title}</h1>
<turnwheel-inspector actions="save open"></turnwheel-inspector>
</html>
`;
  /** @type {Map<string, { type: string, body: () => string | Buffer }>} */
  const pages = new Map([
    ["", { type: "text/html; charset=utf-8", body: () => page }],
    ["page.css", { type: "text/css; charset=utf-8", body: () => STYLE }],
    ["page.js", { type: "text/javascript", body: () => readFileSync(`${FOLDER}cli/inspect-page.mjs`) }],
    ["tape", { type: "text/plain; charset=utf-8", body: () => tape }],
  ]);
  for (const folder of ["", "entry/"]) for (const file of readdirSync(`${FOLDER}${folder}`)) {
    const type = TYPES[file.slice(file.lastIndexOf(".") + 1)];
    if (type) pages.set(`package/${folder}${file}`, { type, body: () => readFileSync(`${FOLDER}${folder}${file}`) });
  }
  return pages;
}
