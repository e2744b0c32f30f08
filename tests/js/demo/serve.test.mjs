// `cargo xtask demo`: what its server gives out, and what it does not.
import assert from "node:assert/strict";
import { get } from "node:http";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { servePage } from "../../../www/demo/serve.mjs";

const { url, end } = await servePage(fileURLToPath(new URL("../../../pkg", import.meta.url)), 0);
after(end);

/** Asks for a target as it is: fetch would tidy it. @returns {Promise<{ status: number, type: string, body: string }>} */
const ask = (target) => new Promise((resolve, reject) => {
  const { hostname, port } = new URL(url);
  get({ host: hostname, port, path: target }, (answer) => {
    let body = "";
    answer.setEncoding("latin1").on("data", (piece) => (body += piece)).on("end", () => resolve({ status: answer.statusCode, type: answer.headers["content-type"], body }));
  }).on("error", reject);
});

test("the page, the package and llama.cpp are served with their types", async () => {
  for (const [target, type] of [["/", "text/html"], ["/?model=x", "text/html"], ["/page.js", "text/javascript"], ["/payer.js", "text/javascript"], ["/site.json", "application/json"], ["/style.css", "text/css"], ["/icon.svg", "image/svg+xml"], ["/pkg/entry/web.js", "text/javascript"], ["/pkg/turnwheel-server.wasm", "application/wasm"], ["/wllama/wasm/wllama.wasm", "application/wasm"]]) {
    const answer = await ask(target);
    assert.equal(answer.status, 200, target);
    assert.ok(answer.type.startsWith(type), `${target}: ${answer.type}`);
  }
});

test("nothing outside the folders is served", async () => {
  for (const target of ["/../../Cargo.toml", "/%2e%2e/%2e%2e/Cargo.toml", "/..%2f..%2fCargo.toml", "/pkg/../../Cargo.toml", "/pkg/%2e%2e/Cargo.toml", "/wllama/../../../Cargo.toml", "//etc/passwd", "/pkg//etc/passwd", "/nowhere"]) {
    const { status, body } = await ask(target);
    assert.ok(status === 404 || !/\[package\]|\[workspace\]|root:/.test(body), `${target}: ${status} ${body.slice(0, 80)}`);
    assert.ok(!body.includes("[workspace"), target);
  }
});
