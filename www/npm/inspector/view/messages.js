// @ts-check
// Messages as elements. One that does not change is drawn once.

import { blockText, messageText, textOf } from "../model/words.js";
import { h, longText } from "./dom.js";

/** @import { AgentMessage, AssistantMessage } from "../../index.js" */
/** @import { InspectorFrame } from "../../inspector.js" */
/** @import { Call } from "../model/state.js" */

/** @type {WeakMap<object, HTMLElement>} */
const drawn = new WeakMap();

/** @param {AgentMessage} message */
export function messageElement(message) {
  const known = drawn.get(message);
  if (known) return known;
  const made = make(message);
  drawn.set(message, made);
  return made;
}

/** @param {AgentMessage} message */
function make(message) {
  switch (message.role) {
    case "user":
      return h("article", { class: "message user" }, h("p", { class: "head" }, "user"), longText(messageText(message)));
    case "assistant":
      return answer(message.content, { name: [message.provider, message.model].filter(Boolean).join(" · "), error: message.error?.message });
    case "tool_result": {
      const state = message.isError ? "failed" : "done";
      return h("article", { class: `message result ${state}` }, h("p", { class: "head" }, h("code", {}, message.toolName || message.callId), message.cause ? ` ${message.cause.replaceAll("_", " ")}` : message.isError ? " failed" : ""), longText(textOf(message), { most: 1500 }));
    }
    default:
      return h("article", { class: "message custom" }, h("p", { class: "head" }, `custom · ${message.kind}`), longText(textOf(message.data), { most: 1500 }));
  }
}

/**
 * @param {readonly AssistantMessage["content"][number][]} content
 * @param {{ name?: string, error?: string | undefined, isOpen?: boolean }} [about] `isOpen`: it still arrives
 */
export function answer(content, { name = "", error, isOpen = false } = {}) {
  const blocks = content.map((block) => {
    if (block.type === "thinking") return h("details", { class: "thinking", open: isOpen }, h("summary", {}, "thinking"), longText(blockText(block), { isEnd: isOpen }));
    if (block.type === "tool_call") return h("div", { class: "call" }, h("code", {}, block.toolName), " ", longText(JSON.stringify(block.arguments, null, 1).replace(/\n\s*/g, " "), { most: 1500, isEnd: isOpen, tag: "pre" }));
    if (block.type === "raw") return longText(blockText(block), { most: 400, tag: "pre" });
    return longText(blockText(block), { isEnd: isOpen, most: 8000 });
  });
  return h("article", { class: isOpen ? "message assistant open" : "message assistant" }, h("p", { class: "head" }, "assistant", name && h("span", {}, ` ${name}`)), ...blocks, error && h("p", { class: "error" }, error));
}

const STATES = { proposed: "will run", asked: "waits for a person", running: "runs", done: "done", failed: "failed" };

/** A call of the open turn. @param {Call} call */
export function callElement({ toolName, arguments: given, state, update, result }) {
  const said = result ? textOf(result) : textOf(update);
  return h("article", { class: `message result ${state}` }, h("p", { class: "head" }, h("code", {}, toolName), ` ${STATES[state]}`), h("pre", { class: "long" }, JSON.stringify(given)), said && longText(said, { most: 1500 }));
}

/** What there is to show below the history at a moment. @param {InspectorFrame} frame */
export function openElements(frame) {
  const elements = [];
  if (frame.streaming) elements.push(answer(frame.streaming, { isOpen: true }));
  const known = new Set();
  for (let index = frame.messageCount - 1; index >= 0; index--) {
    const message = frame.message(index);
    if (message?.role !== "tool_result") break;
    known.add(message.callId);
  }
  for (const call of frame.calls) if (!known.has(call.callId)) elements.push(callElement(call));
  for (const { path, phase, text } of frame.inside) {
    elements.push(h("div", { class: "inside", "data-depth": Math.min(path.length, 3) }, h("p", { class: "head" }, `inside ${frame.calls.find(({ callId }) => callId === path[0])?.toolName ?? path[0]} · ${phase}`), answer(text, { isOpen: true })));
  }
  return elements;
}
