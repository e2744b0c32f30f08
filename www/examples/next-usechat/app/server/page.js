"use client";
import { DefaultChatTransport } from "ai";
import { useState } from "react";
import { Chat } from "../../lib/Chat.js";

export default function Page() {
  const [transport] = useState(() => new DefaultChatTransport({ api: "/api/chat" }));
  return <Chat transport={transport} />;
}
