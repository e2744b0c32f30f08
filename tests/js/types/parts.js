import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
// React and MCP as a user writes them, with the types of React and of the official SDK. Compiled, never run.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { memo } from "react";
import { Agent, scripted, tool } from "turnwheel";
import { jsonSchemaValidator, mcpTools } from "turnwheel/mcp";
import { RemoteAgent } from "turnwheel/remote";
import { useAgent } from "turnwheel/react";
const is = (value) => value;
const Row = memo(function Row({ message }) {
    // @ts-expect-error: a message that streams has no reason yet why it stopped
    void (message.role === "assistant" && message.stopReason);
    const stopped = message.role === "assistant" && !message.streaming ? message.stopReason : undefined;
    if (message.role === "custom")
        return _jsx("i", { children: message.kind });
    return _jsx("p", { "aria-busy": message.streaming, title: stopped, children: message.content.map((block) => (block.type === "text" ? block.text : block.type)) });
});
export function Chat({ shared }) {
    const options = { events: 10, schedule: (work) => (work(), () => { }) };
    const own = useAgent((earlier) => new Agent({ model: scripted([]), ...earlier }), options);
    const view = useAgent(shared);
    is(useAgent(() => new RemoteAgent({ url: "/agents/7" })).agent).connection;
    // The agent is the one that was given, with all that it can do.
    is(own.agent).reset();
    is(view.agent).systemPrompt = "";
    const status = view.status;
    const sent = view.send([{ type: "text", text: "hi" }], { runId: "a" });
    const receipts = [view.steer("a"), view.followUp("b")];
    const error = view.error;
    const partial = view.streaming;
    // @ts-expect-error: what is shown is not to be changed
    view.history.push();
    // @ts-expect-error: an input is no number
    void view.send(1);
    // @ts-expect-error: an agent has to be one
    useAgent({ prompt() { } });
    void [status, sent, receipts, error, partial, view.usage.total, view.stopReason, view.outbox, view.resume()];
    return (_jsxs("main", { children: [view.messages.map((message, i) => _jsx(Row, { message: message }, i)), view.calls.map((call) => _jsx(Call, { call: call, view: view }, call.callId)), view.queued.map(({ kind, input }, i) => _jsxs("p", { children: [kind, ": ", typeof input === "string" ? input : "…"] }, i)), view.events.map((event) => (event.type === "retry_attempt" ? event.delayMs : null)), _jsx("button", { onClick: () => view.stop("enough"), children: "Stop" })] }));
}
function Call({ call, view }) {
    const more = () => view.approve(call.callId, { ...call.arguments, more: true });
    return _jsxs("p", { onClick: more, onBlur: () => view.deny(call.callId, "no"), children: [call.toolName, " ", call.state, " ", String(call.arguments["a"]), " ", call.result?.isError] });
}
export async function tools() {
    const client = new Client({ name: "a", version: "1" }, { jsonSchemaValidator });
    const transport = new StdioClientTransport({ command: "a" });
    const options = { prefix: true, name: ({ name }) => name, only: ["a"], approval: ({ annotations }) => annotations?.destructiveHint ?? true, timeoutMs: 1, totalTimeoutMs: 2, maxResultBytes: 3, onError() { }, clientInfo: { name: "a", version: "1" } };
    const all = [await mcpTools(client, options), await mcpTools(transport), await mcpTools(new StreamableHTTPClientTransport(new URL("http://a"))), await mcpTools("http://a", { prefix: "b", approval: "writes", only: () => true }), await mcpTools(new URL("http://a"))];
    const server = is(all[0]);
    const own = tool({ name: "a", description: "", parameters: { type: "object" }, execute: () => "" });
    const agent = new Agent({ model: scripted([]), tools: [...server, own] });
    const stop = server.onChange((changed) => void (agent.tools = [...changed, own]));
    const told = [server.tools, server.name, server.isConnected, server.client];
    stop();
    await server.refresh();
    await server[Symbol.asyncDispose]();
    const like = [agent, transport];
    // @ts-expect-error: no such word
    void mcpTools(client, { approval: "sometimes" });
    return [told, like];
}
