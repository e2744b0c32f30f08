// @ts-check
// Cuts the result of a tool that is longer than allowed, before it is copied into the engine's memory. Loaded when the
// first one comes.

import { LONGEST_DETAILS, LONGEST_RESULT } from "../core.js";

/** @import { Result } from "./tool-result.js" */

/** How many blocks a result may have. */
const MOST_BLOCKS = 10_000;

/**
 * Cuts the texts of a result that are longer than allowed; the engine cuts what is only a little longer. What cannot be
 * cut is an error of the call.
 * @template {string | Result} T @param {T} result @param {number} [limit] in bytes @returns {T | { failed: string }}
 */
export function limitResult(result, limit = LONGEST_RESULT) {
  if (typeof result === "string") return result.length > limit ? /** @type {T} */ (cutText(result, limit)) : result;
  let { content } = result;
  let length = 0;
  let media = 0;
  if (content.length > MOST_BLOCKS) return { failed: `the result has ${content.length} blocks; at most ${MOST_BLOCKS} are taken` };
  for (const block of content) {
    if (block.type !== "text") media += (block.data?.length ?? 0) + (block.url?.length ?? 0) + (block.mimeType?.length ?? 0) + (block.type === "file" ? (block.name?.length ?? 0) : 0);
    if (block.type === "text") length += block.text?.length ?? 0;
    else if ((block.data?.length ?? 0) > LONGEST_RESULT) return { failed: `${block.type === "file" ? "a file" : "an image"} of the result is longer than ${LONGEST_RESULT} characters` };
  }
  const most = Math.max(limit, LONGEST_RESULT);
  if (media > most) return { failed: `the images and files of the result have ${media} characters together; at most ${most} are taken: raise \`maxResultBytes\` of the tool, or give their addresses` };
  if (result.details !== undefined && JSON.stringify(result.details)?.length > LONGEST_DETAILS) {
    return { failed: `the \`details\` of the result are longer than ${LONGEST_DETAILS} characters; keep them outside and give their address` };
  }
  if (length <= limit) return result;
  let left = limit;
  content = content.map((block) => {
    if (block.type !== "text") return block;
    const text = block.text.length > left || bytesOf(block.text) > left ? cutText(block.text, left) : block.text;
    left = text === block.text ? left - bytesOf(text) : 0;
    return { ...block, text };
  });
  return { .../** @type {any} */ (result), content };
}

/** Cuts a text at the end of a character, with a note. @param {string} text @param {number} limit in bytes */
function cutText(text, limit) {
  const { read, written } = new TextEncoder().encodeInto(text, new Uint8Array(limit));
  return `${text.slice(0, read)}\n[truncated: ${written} of ${bytesOf(text)} bytes shown]`;
}

/** The length of a text in UTF-8. Counted in pieces, because a copy of a long text is what must not be made. @param {string} text */
function bytesOf(text) {
  const encoder = new TextEncoder();
  const room = new Uint8Array(1 << 16);
  let bytes = 0;
  for (let at = 0; at < text.length; ) {
    const { read, written } = encoder.encodeInto(text.slice(at, at + (1 << 14)), room);
    // A half of a character at the end of a piece is counted with its other half.
    const isHalf = read > 1 && at + read < text.length && (text.charCodeAt(at + read - 1) & 0xfc00) === 0xd800;
    bytes += isHalf ? written - 3 : written;
    at += isHalf ? read - 1 : read;
  }
  return bytes;
}
