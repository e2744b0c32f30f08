"use client";
import { useChat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { useState } from "react";

/** A chat over any transport. */
export function Chat({ transport }) {
  const { messages, sendMessage, regenerate, stop, status, error, addToolApprovalResponse } = useChat({
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const [text, setText] = useState("");
  const isBusy = status === "submitted" || status === "streaming";
  const submit = (event) => {
    event.preventDefault();
    if (text.trim() !== "") sendMessage({ text });
    setText("");
  };
  return (
    <main data-status={status}>
      {messages.map((message) => (
        <article key={message.id} className={message.role}>
          {message.parts.map((part, i) => <Part key={i} part={part} onDecide={addToolApprovalResponse} />)}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={submit}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <button>Send</button>
        {isBusy ? <button type="button" onClick={stop}>Stop</button> : <button type="button" onClick={() => regenerate()}>Again</button>}
      </form>
    </main>
  );
}

function Part({ part, onDecide }) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (part.type === "reasoning") return <details><summary>Thinking</summary>{part.text}</details>;
  if (!part.type.startsWith("tool-")) return null;
  return (
    <section data-state={part.state}>
      <strong>{part.type.slice("tool-".length)}</strong> {JSON.stringify(part.input)} {part.output ?? part.errorText}
      {part.state === "approval-requested" && (
        <span>
          <button onClick={() => onDecide({ id: part.approval.id, approved: true })}>Allow</button>
          <button onClick={() => onDecide({ id: part.approval.id, approved: false, reason: "The person refused." })}>Refuse</button>
        </span>
      )}
    </section>
  );
}
