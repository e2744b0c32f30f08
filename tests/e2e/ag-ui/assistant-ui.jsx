// A page with assistant-ui and nothing in between: its runtime talks to the server itself.
import React, { useState } from "react";
import { createRoot } from "react-dom/client";
import { HttpAgent } from "@ag-ui/client";
import { AssistantRuntimeProvider, ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { useAgUiInterrupts, useAgUiRuntime, useAgUiSubmitInterruptResponses } from "@assistant-ui/react-ag-ui";

const agent = new HttpAgent({ url: "/agent" });

function Questions() {
  const interrupts = useAgUiInterrupts();
  const submit = useAgUiSubmitInterruptResponses();
  const [answers, setAnswers] = useState({});
  // A run goes on once all of its questions are answered.
  const answer = (interruptId, response) => {
    const all = { ...answers, [interruptId]: { interruptId, ...response } };
    setAnswers(all);
    const responses = interrupts.map(({ id }) => all[id]);
    if (responses.every(Boolean)) submit(responses);
  };
  return interrupts.filter(({ id }) => !answers[id]).map(({ id, toolCallId, message }) => (
    <div key={id} className="question">
      {toolCallId}: {message}
      <button onClick={() => answer(id, { status: "resolved", payload: { approved: true } })}>Yes</button>
      <button onClick={() => answer(id, { status: "cancelled" })}>No</button>
    </div>
  ));
}

const Message = () => <MessagePrimitive.Root><MessagePrimitive.Parts /></MessagePrimitive.Root>;

function App() {
  const runtime = useAgUiRuntime({ agent });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Viewport>
          <ThreadPrimitive.Messages components={{ Message }} />
          <Questions />
        </ThreadPrimitive.Viewport>
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById("root")).render(<App />);
