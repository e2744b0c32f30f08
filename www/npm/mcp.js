// @ts-check
// turnwheel/mcp: the tools of an MCP server.

export { jsonSchemaValidator, mcpTools } from "./mcp/mcp.js";
