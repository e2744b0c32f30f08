// @ts-check
// The browser's side of WebMCP: `document.modelContext`.

import { misuse } from "../shared.js";

/** @import { PageAnnotations } from "../webmcp.js" */
/**
 * A tool as the browser lists it.
 * @typedef {{ name: string, title?: string, description: string, inputSchema?: unknown, annotations?: PageAnnotations, origin: string, window: object }} RegisteredTool
 */
/**
 * @typedef {EventTarget & { __isWebMCPPolyfill?: boolean, getTools(options?: object): Promise<RegisteredTool[]>, executeTool(tool: RegisteredTool, input: unknown, options?: object): Promise<unknown> }} ModelContext
 */

/** @returns {ModelContext} */
export function modelContext() {
  const context = /** @type {any} */ (globalThis.document)?.modelContext;
  if (typeof context?.getTools === "function") return context;
  const why = context ? "the browser's WebMCP has no getTools" : "there is no WebMCP here";
  throw misuse(`pageTools: ${why}; start Chromium with --enable-features=WebMCP, or load @mcp-b/webmcp-polyfill before`);
}
