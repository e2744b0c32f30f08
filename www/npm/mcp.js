// @ts-check
// turnwheel/mcp: the tools of an MCP server.

export { jsonSchemaValidator } from "./mcp/json-schema.js";
export { mcpTools } from "./mcp/mcp.js";
