// @ts-check
// A tool's result as a UI wants it.

import { joinTexts } from "../shared.js";

/** @import { ToolResultMessage } from "../index.js" */

/** As a value, if the tool returned one. @param {ToolResultMessage} result @returns {unknown} */
export function valueOf({ content }) {
  if (content.some(({ type }) => type !== "text")) return content;
  const text = joinTexts(content);
  if (!/^\s*[{[]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
