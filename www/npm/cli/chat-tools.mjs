// @ts-check
// The tools of `npx turnwheel chat`, and the script that --scripted plays.

import { readFileSync, readdirSync, realpathSync } from "node:fs";
import { resolve, sep } from "node:path";
import { scripted, tool } from "../entry/node.js";

/** @import { ModelRequest, ScriptItem, ToolDefinition } from "../index.js" */

export const clock = tool({
  name: "clock", description: "The date and time in a time zone, such as Europe/Oslo", idempotent: true,
  parameters: { type: "object", properties: { zone: { type: "string" } } },
  execute: ({ zone = "UTC" }) => new Date().toLocaleString("en-GB", { timeZone: String(zone), dateStyle: "full", timeStyle: "short" }),
});

/** The real path, if it is in this folder: a path comes from the model, and a link may lead out. @param {string} path */
function inside(path) {
  const folder = realpathSync(".");
  const real = realpathSync(resolve(path));
  if (real !== folder && !real.startsWith(folder + sep)) throw new Error(`${path} is not in this folder`);
  return real;
}

const path = { type: "string", description: "A path in this folder" };

/** They read only, and each call is asked about: what is read goes to the model's server. @type {ToolDefinition[]} */
export const fileTools = [
  tool({
    name: "list_files", description: "Lists the files of a folder", idempotent: true, requiresApproval: true,
    parameters: { type: "object", properties: { path } },
    execute: ({ path = "." }) => readdirSync(inside(String(path))).join("\n"),
  }),
  tool({
    name: "read_file", description: "Reads a text file", idempotent: true, requiresApproval: true, maxResultBytes: 50_000,
    parameters: { type: "object", properties: { path }, required: ["path"] },
    execute: ({ path }) => readFileSync(inside(String(path)), "utf8"),
  }),
];

/** More than anybody asks. */
const STEPS = 10_000;

/** A model that plays a script: it streams, calls a tool, and calls one that is asked about. */
export const rehearsed = () => scripted(Array.from({ length: STEPS }, () => reply));

/** @param {ModelRequest} request @returns {ScriptItem} */
function reply({ messages }) {
  const last = messages.at(-1);
  const content = /** @type {{ content?: unknown } | undefined} */ (last)?.content;
  const said = Array.isArray(content) ? content.map(({ text = "" }) => text).join("") : String(content ?? "");
  if (last?.role === "tool_result") return { text: pieces(`The tool says: ${said}`) };
  if (/\btime|clock\b/i.test(said)) return { text: "I look at the clock.", toolCalls: [{ toolName: "clock", arguments: { zone: "UTC" } }] };
  if (/\bfiles?\b/i.test(said)) return { text: "I ask for the files.", toolCalls: [{ toolName: "list_files", arguments: {} }] };
  return { text: pieces(`You said: ${said} This is a script. Say “time”, and it calls a tool; say “files”, and you are asked first.`) };
}

/** @param {string} text */
const pieces = (text) => text.match(/\S+\s*|\s+/g) ?? [text];
