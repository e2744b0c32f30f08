// @ts-check
// What a tool may return that acts: addresses that are fetched, and handing over. It counts only if it is made here: a tool that
// passes on what an API has answered must not fetch or hand over because that looks the same.

import { misuse } from "../errors/errors.js";
import { checkNames, kindOf } from "../errors/names.js";
import { readBlock } from "../messages/input.js";
import { MADE } from "../messages/tool-result.js";

/** @import { FileBlock, ImageBlock, Transfer } from "../index.js" */

/**
 * An image at an address, for the result of a tool.
 * @param {string} url @param {{ mimeType?: string }} [options] @returns {ImageBlock}
 */
export function imageAt(url, options = {}) {
  checkNames("imageAt: unknown option", options, ["mimeType"]);
  return made(readBlock({ ...options, type: "image", url: String(url) }, "imageAt", "tool_result"));
}

/**
 * A file at an address, for the result of a tool.
 * @param {string} url @param {{ mimeType: string, name?: string }} options @returns {FileBlock}
 */
export function fileAt(url, options) {
  checkNames("fileAt: unknown option", options ?? {}, ["mimeType", "name"]);
  return made(readBlock({ ...options, type: "file", url: String(url) }, "fileAt", "tool_result"));
}

/**
 * Hands over to another agent: the run ends with the stop reason `transfer`.
 * @param {string} to @param {{ reason?: string, content?: Transfer["content"] }} [options] @returns {Transfer}
 */
export function transferTo(to, options = {}) {
  if (typeof to !== "string") throw misuse(`transferTo needs the name of an agent, got ${kindOf(to)}`);
  checkNames("transferTo: unknown option", options, ["reason", "content"]);
  const { reason, content } = options;
  if (reason !== undefined && typeof reason !== "string") throw misuse(`transferTo: the \`reason\` must be a text, got ${kindOf(reason)}`);
  return made({ transfer: { to, ...(reason !== undefined && { reason }) }, ...(content && { content }) });
}

/** The mark goes along where the value is spread, and not into JSON. @template {object} T @param {T} value @returns {T} */
const made = (value) => Object.assign(value, { [MADE]: true });
