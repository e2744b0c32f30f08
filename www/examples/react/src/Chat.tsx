import { memo, useState, type FormEvent } from "react";
import type { Agent } from "turnwheel";
import { useAgent, type AgentCall, type AgentView, type ShownMessage } from "turnwheel/react";

export function Chat({ agent }: { agent: Agent }) {
  const view = useAgent(agent);
  return (
    <main>
      <div className="messages" role="log">
        <Messages messages={view.messages} />
        {view.calls.map((call) => <Call key={call.callId} call={call} approve={view.approve} deny={view.deny} />)}
        {view.queued.map(({ input }, i) => <p key={i} className="queued">{String(input)} (not read yet)</p>)}
        {view.status === "submitted" && <p className="hint">…</p>}
        {view.error && <p className="error" role="alert">{view.error.message}</p>}
      </div>
      <Composer isRunning={view.isRunning} send={view.send} steer={view.steer} stop={view.stop} />
      <footer>{view.usage.total} tokens</footer>
    </main>
  );
}

export const Messages = ({ messages }: { messages: readonly ShownMessage[] }) => messages.map((message, i) => <Message key={i} message={message} />);

/** Rendered only when it changed: while an answer streams, that is the last message. */
const Message = memo(function Message({ message }: { message: ShownMessage }) {
  if (message.role === "custom" || message.role === "tool_result") return null;
  return (
    <article className={message.role} aria-busy={message.streaming}>
      {message.content.map((block, i) => {
        if (block.type === "text") return <p key={i}>{block.text}</p>;
        if (block.type === "thinking") return <details key={i}><summary>Thinking</summary>{block.thinking}</details>;
        if (block.type === "tool_call") return <code key={i}>{block.toolName}({JSON.stringify(block.arguments)})</code>;
        return null;
      })}
    </article>
  );
});

const Call = memo(function Call({ call, approve, deny }: { call: AgentCall } & Pick<AgentView, "approve" | "deny">) {
  return (
    <section className="call" data-state={call.state}>
      <strong>{call.toolName}</strong> {call.state}
      {call.state === "approval" && (
        <span>
          <button onClick={() => approve(call.callId)}>Allow</button>
          <button onClick={() => deny(call.callId, "The person refused.")}>Refuse</button>
        </span>
      )}
    </section>
  );
});

const Composer = memo(function Composer({ isRunning, send, steer, stop }: Pick<AgentView, "isRunning" | "send" | "steer" | "stop">) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() === "") return;
    void (isRunning ? steer(text) : send(text));
    setText("");
  };
  return (
    <form onSubmit={submit}>
      <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
      <button type="submit">{isRunning ? "Steer" : "Send"}</button>
      {isRunning && <button type="button" onClick={() => stop()}>Stop</button>}
    </form>
  );
});
