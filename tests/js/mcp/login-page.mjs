// The page for browser/mcp-login.test.mjs: it uses a server that wants a login.

import { Agent, scripted } from "turnwheel";
import { mcpTools } from "turnwheel/mcp";
import { LocalLogin } from "./local-login.mjs";

const parameters = new URLSearchParams(location.search);
const authProvider = new LocalLogin("login", `${location.origin}/`);
const authorizationCode = parameters.get("code") ?? undefined;
if (authorizationCode !== undefined && parameters.get("state") !== authProvider.read("state")) throw new Error("this is not the login that was begun");
// The server's address comes from the test; while the login is elsewhere it is kept.
const address = parameters.get("mcp") ?? authProvider.read("mcp");
authProvider.write("mcp", address);
try {
  const server = await mcpTools(address, { authProvider, ...(authorizationCode !== undefined && { authorizationCode }) });
  if (authorizationCode !== undefined) history.replaceState(null, "", "/");
  const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "secret", arguments: {} }] }, "done"]), tools: [...server], approval: { mode: "bypassed" } });
  for (const message of (await agent.prompt("Go")).messages) if (message.role === "tool_result") document.documentElement.dataset.said = message.content[0].text;
} catch (error) {
  // The page is on its way to the login.
  if (error.code !== "auth") document.documentElement.dataset.said = error.stack;
}
