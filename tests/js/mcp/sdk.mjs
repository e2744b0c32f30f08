// @ts-check
// Preloaded to run a test of turnwheel/mcp with the lowest version of the SDK that is supported:
//   node --import ./tests/js/mcp/sdk.mjs --test tests/js/mcp/tools.test.mjs

import { register } from "node:module";

process.env["MCP_SDK"] = "lowest";
const hook = `export const resolve = (name, context, next) => next(name.replace(/^@modelcontextprotocol\\/sdk\\//, "mcp-sdk-lowest/"), context);`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);
