import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
import { memo, useState } from "react";
import { useAgent } from "turnwheel/react";
import { makeAgent } from "./agent";
export function Chat() {
    const view = useAgent(makeAgent);
    return (_jsxs("main", { children: [_jsxs("div", { className: "messages", role: "log", children: [view.messages.map((message, i) => _jsx(Message, { message: message }, i)), view.calls.map((call) => _jsx(Call, { call: call, approve: view.approve, deny: view.deny }, call.callId)), view.queued.map(({ input }, i) => _jsxs("p", { className: "queued", children: [String(input), " (not read yet)"] }, i)), view.status === "submitted" && _jsx("p", { className: "hint", children: "\u2026" }), view.error && _jsx("p", { className: "error", role: "alert", children: view.error.message })] }), _jsx(Composer, { isRunning: view.isRunning, send: view.send, steer: view.steer, stop: view.stop }), _jsxs("footer", { children: [view.usage.total, " tokens"] })] }));
}
/** Rendered only when it changed: while an answer streams, that is the last message. */
const Message = memo(function Message({ message }) {
    if (message.role === "custom" || message.role === "tool_result")
        return null;
    return (_jsx("article", { className: message.role, "aria-busy": message.streaming, children: message.content.map((block, i) => {
            if (block.type === "text")
                return _jsx("p", { children: block.text }, i);
            if (block.type === "thinking")
                return _jsxs("details", { children: [_jsx("summary", { children: "Thinking" }), block.thinking] }, i);
            if (block.type === "tool_call")
                return _jsxs("code", { children: [block.toolName, "(", JSON.stringify(block.arguments), ")"] }, i);
            return null;
        }) }));
});
const Call = memo(function Call({ call, approve, deny }) {
    return (_jsxs("section", { className: "call", "data-state": call.state, children: [_jsx("strong", { children: call.toolName }), " ", call.state, call.state === "approval" && (_jsxs("span", { children: [_jsx("button", { onClick: () => approve(call.callId), children: "Allow" }), _jsx("button", { onClick: () => deny(call.callId, "The person refused."), children: "Refuse" })] }))] }));
});
const Composer = memo(function Composer({ isRunning, send, steer, stop }) {
    const [text, setText] = useState("");
    const submit = (event) => {
        event.preventDefault();
        if (text.trim() === "")
            return;
        void (isRunning ? steer(text) : send(text));
        setText("");
    };
    return (_jsxs("form", { onSubmit: submit, children: [_jsx("input", { "aria-label": "Message", value: text, onChange: (event) => setText(event.target.value) }), _jsx("button", { type: "submit", children: isRunning ? "Steer" : "Send" }), isRunning && _jsx("button", { type: "button", onClick: () => stop(), children: "Stop" })] }));
});
