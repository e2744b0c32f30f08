// @ts-check
// turnwheel/webmcp: the tools of the page for an agent. Experimental, as WebMCP is.

export { pageTools } from "./webmcp/page-tools.js";
