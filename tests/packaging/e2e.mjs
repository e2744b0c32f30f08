// @ts-check
// The hosts whose tools must be downloaded first: each app in these folders is installed with what its
// package.json names, built and run.   node --test tests/packaging/e2e.mjs
// If the registry or a program is not available, the host is skipped, with the reason.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Miniflare } from "miniflare";
import { run, SAID, workshop } from "./kit.mjs";

const shop = await workshop();
before(async () => void (await shop.pack()));
after(() => shop.end());

/**
 * A test with the app of that name, installed.
 * @param {string} name @param {(at: string) => Promise<void>} body @param {string[]} [more] what else it needs
 */
function host(name, body, more = []) {
  test([name, ...more].join(" with "), { timeout: 400_000 }, async (context) => {
    let at;
    try {
      at = await shop.whole(name, more);
    } catch (error) {
      const why = /npm error (code E\w+|.*(?:ENOTFOUND|EAI_AGAIN|404|network).*)/.exec(String(/** @type {any} */ (error).stderr))?.[0];
      if (!why) throw error;
      return context.skip(`npm could not install it: ${why}`);
    }
    await body(at);
  });
}

for (const major of [22, 24, 26]) {
  host("node", async (at) => {
    const program = join(at, "node_modules/.bin/node");
    assert.match((await run(program, ["--version"])).stdout, new RegExp(`^v${major}\\.`));
    assert.equal((await run(program, ["app.js"], { cwd: at })).stdout.trim(), SAID);
    // The everyday tests run on the oldest Node, where this can only be compiled.
    if (major < 24) return;
    await writeFile(join(at, "using.js"), 'import { Agent, scripted } from "turnwheel";\nlet run;\n{\n  using agent = new Agent({ model: scripted([{ text: "late", delayMs: 60_000 }]) });\n  run = agent.prompt("Go");\n}\nconsole.log((await run).stopReason);\n');
    assert.equal((await run(program, ["using.js"], { cwd: at, timeout: 20_000 })).stdout.trim(), "aborted");
  }, [`node@${major}`]);
}

for (const name of ["webpack", "rollup"]) {
  host(name, async (at) => {
    await shop.npm(at, "build");
    const { said, complaints } = await shop.serve(join(at, "dist"));
    assert.deepEqual([said, complaints], [SAID, []]);
  });
}

// One script, and nothing else: no asset, no setting.
for (const name of ["inline-webpack", "inline-rollup"]) {
  host(name, async (at) => {
    await shop.npm(at, "build");
    assert.deepEqual((await readdir(join(at, "dist"))).filter((file) => !/LICENSE/.test(file)).sort(), ["app.js", "index.html"]);
    const { said, complaints, asked } = await shop.serve(join(at, "dist"));
    assert.deepEqual([said, complaints, asked.filter((path) => path.endsWith(".wasm"))], [SAID, [], []]);
  });
}

for (const name of ["inline-jest", "inline-vitest"]) {
  // It ends with 1 if a test failed.
  host(name, async (at) => void (await shop.npm(at, "test")));
}

host("next", async (at) => {
  await shop.npm(at, "build");
  const site = spawn(join(at, "node_modules/.bin/next"), ["start", "--port", "0"], { cwd: at, stdio: ["ignore", "pipe", "inherit"] });
  try {
    let told = "";
    const address = await new Promise((found, failed) => {
      site.on("exit", (code) => failed(new Error(`next ended with ${code}: ${told}`)));
      site.stdout.on("data", (data) => {
        told += data;
        const port = /http:\/\/localhost:(\d+)/.exec(told)?.[1];
        if (port) found(`http://127.0.0.1:${port}`);
      });
    });
    assert.deepEqual(await shop.open(`${address}/`), { said: SAID, complaints: [] });
    assert.equal(await (await fetch(`${address}/api`)).text(), "It is 42.");
  } finally {
    site.kill();
  }
});

for (const name of ["deno", "bun"]) {
  host(name, async (at) => {
    const { stdout } = await shop.npm(at, "start");
    assert.equal(stdout.trim(), SAID);
  });
}

host("cloudflare", async (at) => {
  // With the compiler, the types and the Wrangler that npm chose for this Node.
  await shop.npm(at, "check");
  await shop.npm(at, "build");
  const dist = join(at, "dist");
  const wasm = (await readdir(dist)).find((name) => name.endsWith(".wasm")) ?? "";
  const miniflare = new Miniflare({
    cf: false, compatibilityDate: "2026-04-01", durableObjects: { CHAT: { className: "Chat", useSQLite: true } },
    modules: [
      { type: "ESModule", path: "worker.js", contents: await readFile(join(dist, "worker.js"), "utf8") },
      { type: "CompiledWasm", path: wasm, contents: await readFile(join(dist, wasm)) },
    ],
  });
  try {
    assert.equal(await (await miniflare.dispatchFetch("http://worker.example/")).text(), "I add. It is 42.");
  } finally {
    await miniflare.dispose();
  }
});
