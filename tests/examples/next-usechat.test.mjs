// @ts-check
// The Next.js example without Next.js: both of its chats, with the AI SDK's own `Chat` in place of the page, and our own model
// server on loopback. tests/e2e/next-usechat.mjs builds it and uses it in Chromium.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { transform } from "esbuild";
import { calls, serve, textAnswer } from "../js/server.mjs";
import { clean, install } from "./kit.mjs";

after(clean);
const folder = await install("next-usechat");
const load = (/** @type {string} */ path) => import(pathToFileURL(join(folder, path)).href);

/** Orders a pizza, and asks again. @param {any} transport */
async function order(transport) {
  const chat = new Chat({ transport, sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  await chat.sendMessage({ text: "A pizza, please." });
  assert.equal(chat.error, undefined);
  const asked = /** @type {any} */ (chat.lastMessage?.parts.at(-1));
  assert.deepEqual([asked.type, asked.state, asked.input], ["tool-order_pizza", "approval-requested", { kind: "Margherita" }]);
  await chat.addToolApprovalResponse({ id: asked.approval.id, approved: true });
  const words = () => /** @type {any} */ (chat.lastMessage?.parts.at(-1)).text;
  while (chat.status !== "ready" || !words()) await new Promise((wake) => setTimeout(wake, 5));
  assert.equal(words(), "Enjoy it.");
  assert.equal(/** @type {any} */ (chat.lastMessage?.parts.at(-2)?.type === "step-start" ? chat.lastMessage?.parts.at(-3) : chat.lastMessage?.parts.at(-2)).output, "One Margherita is on its way.");
  await chat.regenerate();
  assert.equal(words(), "Again?");
  assert.equal(chat.messages.length, 2);
}

const script = () => [calls(["order_pizza", '{"kind":"Margherita"}']), textAnswer("Enjoy it."), textAnswer("Again?")];

test("the agent in the page", { timeout: 60_000 }, async (t) => {
  const server = await serve(t, script());
  process.env["NEXT_PUBLIC_MODEL_URL"] = server.baseUrl;
  const [{ newAgent }, { chatTransport }] = await Promise.all([load("lib/agent.js"), load("node_modules/turnwheel/ai-sdk.js")]);
  await order(chatTransport(newAgent()));
});

test("the agent behind the route", { timeout: 60_000 }, async (t) => {
  const server = await serve(t, script());
  process.env["NEXT_PUBLIC_MODEL_URL"] = server.baseUrl;
  const { POST } = await load("app/api/chat/route.js");
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => POST(new Request(new URL(url, "http://x"), init));
  await order(new DefaultChatTransport({ api: "/api/chat", fetch: /** @type {any} */ (fetch) }));
});

test("its pages compile", async () => {
  for (const path of ["app/layout.js", "app/page.js", "app/here/page.js", "app/server/page.js", "lib/Chat.js"]) {
    await transform(await readFile(join(folder, path), "utf8"), { loader: "jsx", sourcefile: path });
  }
});
