// @ts-check
// The code of docs/cloudflare.md: compiled with Cloudflare's types, and run in workerd, each program as a Worker of its own.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { ROOT, blocksOf, programsOf } from "../docs/blocks.mjs";
import { start } from "../durable/bundle.mjs";
import { calls, serve, textAnswer } from "../server.mjs";

const PAGE = "docs/cloudflare.md";
const folder = join(ROOT, "tests/out/docs-cloudflare");
const programs = programsOf(blocksOf(PAGE).filter(({ language }) => language === "ts"));

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const files = programs.map(({ source }, i) => {
  const file = join(folder, `${i}.ts`);
  // A Worker has to have something to answer with.
  if (source.includes("WorkflowEntrypoint")) source = source.replace("const { id } =", 'const [, status, of = ""] = new URL(request.url).pathname.split("/");\n    if (status === "status") return Response.json(await (await env.FLOW.get(of)).status());\n    const { id } =');
  writeFileSync(file, source.includes("export default") ? source : `${source}\nimport { route } from "turnwheel/cloudflare";\nexport default { fetch: (request: Request, env: any) => route(request, env.CHAT) };\n`);
  return file;
});

test("tsc agrees with the code of the page, by Cloudflare's types", async () => {
  const paths = Object.fromEntries(["", "/server", "/cloudflare"].map((part) => [`turnwheel${part}`, [join(ROOT, `www/npm/${part.slice(1) || "index"}.d.ts`)]]));
  const project = join(folder, "tsconfig.json");
  writeFileSync(project, JSON.stringify({ extends: "../../js/types/tsconfig.cloudflare.json", compilerOptions: { paths, typeRoots: [join(ROOT, "node_modules")] }, files }));
  const output = await promisify(execFile)(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "--project", project]).catch((error) => error);
  assert.equal(output.stdout, "");
});

/** What each program is asked, in their order. @type {((ask: (path: string, init?: any) => Promise<any>) => Promise<void>)[]} */
const ASKED = [
  // An agent per object, which asks before it pays.
  async (ask) => {
    const post = (/** @type {string} */ command, /** @type {unknown} */ body) => ask(`/agents/ada/${command}`, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
    assert.equal((await ask("/")).status, 404);
    assert.equal((await post("prompt", { input: "A refund" })).status, 202);
    const state = async () => (await ask("/agents/ada/state")).json();
    let now = await state();
    while (now.pendingApprovals.length === 0) now = await state();
    await post("resolve", { callId: now.pendingApprovals[0].callId, decision: "approve" });
    while (now.isRunning) now = await state();
    assert.deepEqual(now.messages.map((/** @type {any} */ { role }) => role), ["user", "assistant", "tool_result", "assistant"]);
    assert.equal(now.messages.at(-1).content[0].text, "It is paid.");
  },
  // Who may ask, by the name of the agent.
  async (ask) => {
    const heard = (/** @type {string} */ name, /** @type {string} */ token) => ask(`/agents/${name}/state`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal((await ask("/agents/ada/state")).status, 401);
    assert.equal((await heard("ada", "t")).status, 200);
    assert.equal((await heard("eve", "t")).status, 401);
    assert.equal((await ask("/")).status, 404);
  },
  // Who may ask, by command.
  async (ask) => {
    assert.equal((await ask("/agents/ada/state")).status, 200);
    assert.equal((await ask("/agents/ada/events")).status, 401);
    const heard = await ask("/agents/ada/events", { headers: { authorization: "Bearer t" } });
    assert.equal(heard.status, 200);
    await heard.body.cancel();
  },
  // From the Worker's own code.
  async (ask) => {
    const { runId, isTakenBack } = await (await ask("/")).json();
    assert.match(runId, /^[\da-f-]{36}$/);
    assert.equal(isTakenBack, true);
  },
  // In a Workflow.
  async (ask) => {
    const id = await (await ask("/", { method: "POST", body: "Rain" })).text();
    let status;
    do status = await (await ask(`/status/${id}`)).json();
    while (status.status !== "complete" && status.status !== "errored");
    assert.equal(status.output, "Done.", JSON.stringify(status));
  },
  // A plain Worker.
  async (ask) => assert.match(await (await ask("/", { method: "POST", body: "Rain?" })).text(), /It rains\./),
];

test("every program of the page is asked", () => assert.equal(programs.length, ASKED.length));

programs.forEach(({ name, source }, i) => {
  test(`the code at ${name}`, { timeout: 60_000 }, async (t) => {
    const { baseUrl } = await serve(t, [calls(["refund", '{"amount":5}']), textAnswer("It is paid.")]);
    const workflows = source.includes("class Research") ? { FLOW: { name: "flow", className: "Research" } } : {};
    const durableObjects = source.includes("class Chat") ? { CHAT: { className: "Chat", useSQLite: true } } : {};
    const worker = await start(`../../out/docs-cloudflare/${i}.ts`, { durableObjects, workflows, bindings: { OPENAI_API_KEY: "sk-test", TOKEN: "t", TOKENS: { ada: "t" }, BASE_URL: baseUrl } });
    t.after(() => worker.dispose());
    await ASKED[i]?.((path, init) => worker.dispatchFetch(`http://worker.example${path}`, init));
  });
});
