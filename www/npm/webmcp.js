// @ts-check
// turnwheel/webmcp: the tools of the page for an agent, and an agent's tools for the page. Experimental, as WebMCP is.

export { expose } from "./webmcp/expose.js";
export { pageTools } from "./webmcp/page-tools.js";
