"use client";
import { useState } from "react";
import { chatTransport } from "turnwheel/ai-sdk";
import { newAgent } from "../../lib/agent.js";
import { Chat } from "../../lib/Chat.js";

/** The agent lives as long as the page. */
export default function Page() {
  const [transport] = useState(() => chatTransport(newAgent()));
  return <Chat transport={transport} />;
}
