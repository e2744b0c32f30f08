// @ts-check
// Converts an MCP result to a tool result: what a model can be shown becomes blocks, and everything stays in
// `details`.

import { isBase64, MIME_TYPE } from "../shared.js";

/** @param {any} answer @returns {any} */
export function resultOf(answer) {
  // The result format of servers before 2025.
  if ("toolResult" in answer && !answer.content) return answer.toolResult;
  const { content = [], structuredContent, isError } = answer;
  const meta = metaOf(answer._meta);
  const shown = content.map(blockOf);
  if (shown.length === 0 && structuredContent !== undefined) shown.push({ type: "text", text: JSON.stringify(structuredContent) });
  const hidden = content.filter((/** @type {any} */ block) => block.type !== "text" && block.type !== "image");
  const details = {
    ...(structuredContent !== undefined && { structuredContent }),
    ...(hidden.length > 0 && { content: hidden }),
    ...(meta !== undefined && { meta }),
  };
  return { content: shown, isError: isError === true, ...(Object.keys(details).length > 0 && { details }) };
}

/** What a server says of a result, without what the protocol says in each: the name of the server. @param {object | undefined} meta */
function metaOf(meta = {}) {
  const own = Object.entries(meta).filter(([name]) => !name.startsWith("io.modelcontextprotocol/"));
  return own.length > 0 ? Object.fromEntries(own) : undefined;
}

/** @param {any} block */
export function blockOf(block) {
  switch (block.type) {
    case "text":
      return text(block.text);
    case "image":
      return imageOf(block.mimeType, block.data) ?? text(`[image, ${block.mimeType}, ${sizeOf(block.data)}]`);
    case "audio":
      return text(`[audio, ${block.mimeType}, ${sizeOf(block.data)}]`);
    case "resource_link":
      return text(`[${[block.title ?? block.name, block.uri, block.mimeType, block.description].filter(Boolean).join(", ")}]`);
    case "resource": {
      const { uri, mimeType, text: words, blob } = block.resource;
      if (words !== undefined) return text(`[${uri}]\n${words}`);
      return (mimeType?.startsWith("image/") && imageOf(mimeType, blob)) || text(`[${[uri, mimeType, sizeOf(blob)].filter(Boolean).join(", ")}]`);
    }
    default:
      return text(JSON.stringify(block));
  }
}

/** An image, unless its type or its content is none. @param {any} mimeType @param {any} data */
const imageOf = (mimeType, data) => (MIME_TYPE.test(mimeType) && isBase64(data) ? { type: "image", mimeType, data } : undefined);

/** @param {string} given */
const text = (given) => ({ type: "text", text: given });

/** The size of base64 data. @param {unknown} data */
const sizeOf = (data) => `${Math.floor((String(data ?? "").replace(/=+$/, "").length * 3) / 4)} bytes`;

/** @typedef {{ progress: number, total?: number, message?: string }} Progress */

/** Converts a progress notification to a tool update. @param {Progress} notification */
export function updateOf({ progress, total, message }) {
  const share = total === undefined ? String(progress) : `${progress} of ${total}`;
  return { content: [text(message === undefined ? share : `${message} (${share})`)], details: { progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) } };
}
