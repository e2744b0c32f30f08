// @ts-check
// As much of a page as the docs need that show one: WebMCP with a tool, a storage, an address. The real behaviour is tested
// in Chromium: tests/js/browser/webmcp.test.mjs, tests/js/browser/mcp-login.test.mjs.

const kept = new Map();
/** @type {Map<string, any>} */
const tools = new Map();
const events = new EventTarget();
const modelContext = Object.assign(events, {
  async registerTool(/** @type {any} */ tool, /** @type {any} */ { signal } = {}) {
    tools.set(tool.name, tool);
    signal?.addEventListener("abort", () => void tools.delete(tool.name));
  },
  getTools: async () => [...tools.values()].map((tool) => ({ ...tool, origin: "https://app.example.com", window: globalThis })),
  executeTool: async (/** @type {any} */ { name }, /** @type {any} */ input, /** @type {any} */ info) => {
    const answer = await tools.get(name).execute(input, info);
    return typeof answer === "string" ? answer : JSON.stringify(answer);
  },
});
await modelContext.registerTool({ name: "cart.read", description: "What is in the cart", inputSchema: { type: "object", properties: {} }, annotations: { readOnlyHint: true }, execute: () => ({ items: ["a book"] }) });

export const page = {
  document: { modelContext }, window: globalThis,
  localStorage: { getItem: (/** @type {string} */ key) => kept.get(key) ?? null, setItem: (/** @type {string} */ key, /** @type {string} */ value) => void kept.set(key, value) },
  location: { href: "https://app.example.com/", origin: "https://app.example.com", search: "", assign: (/** @type {URL} */ url) => console.log("to the login:", url.origin + url.pathname) },
};
for (const [name, value] of Object.entries(page)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
