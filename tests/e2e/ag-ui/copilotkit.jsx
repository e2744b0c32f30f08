// A page with CopilotKit and nothing in between: its chat talks to the server itself.
import React from "react";
import { createRoot } from "react-dom/client";
import { HttpAgent } from "@ag-ui/client";
import { CopilotChat, CopilotKitProvider, useInterrupt } from "@copilotkit/react-core/v2";

const agent = new HttpAgent({ url: "/agent" });

function Chat() {
  useInterrupt({
    render: ({ interrupts, resolve, cancel }) => (
      <div>
        {interrupts.map(({ id, toolCallId, message }) => (
          <div key={id} className="question">
            {toolCallId}: {message}
            <button onClick={() => resolve({ approved: true }, id)}>Yes</button>
            <button onClick={() => cancel(id)}>No</button>
          </div>
        ))}
      </div>
    ),
  });
  return <CopilotChat />;
}

createRoot(document.getElementById("root")).render(
  <CopilotKitProvider selfManagedAgents={{ default: agent }}>
    <Chat />
  </CopilotKitProvider>,
);
