// @ts-check
// Preloaded to run a test of turnwheel/mcp with the lowest versions of the SDK and of its successor that are supported:
//   node --import ./tests/js/mcp/sdk.mjs --test tests/js/mcp/tools.test.mjs

import { register } from "node:module";

process.env["MCP_SDK"] = "lowest";
const hook = `export const resolve = (name, context, next) => next(name.replace(/^@modelcontextprotocol\\/sdk\\//, "mcp-sdk-lowest/").replace(/^@modelcontextprotocol\\/client(?=\\/|$)/, "mcp-client-lowest"), context);`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);
