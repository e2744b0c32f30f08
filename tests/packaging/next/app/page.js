"use client";
import { useEffect, useRef } from "react";
import { newAgent } from "./agent.js";

/** Runs an agent in the browser. */
export default function Page() {
  const place = useRef(null);
  useEffect(() => {
    const output = place.current;
    (async () => {
      for await (const event of newAgent().prompt("What is 17 + 25?")) {
        if (event.type === "message_update" && event.delta.type === "text") output.append(event.delta.delta);
        if (event.type === "tool_execution_end") output.append(`(${event.result.content[0].text}) `);
        if (event.type === "agent_end" && event.error) output.append(event.error.message);
      }
      output.dataset.done = "";
    })();
  }, []);
  return <output ref={place} />;
}
