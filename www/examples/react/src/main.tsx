import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import type { Agent, AgentMessage } from "turnwheel";
import type { StoredAgent } from "turnwheel/stores";
import { agentOf, listChats, messagesOf } from "./agent";
import { Chat, Messages } from "./Chat";
import "./style.css";

function App() {
  const [id, open] = useState(() => location.hash.slice(1) || crypto.randomUUID());
  const [before, setBefore] = useState<readonly AgentMessage[]>([]);
  const [agent, setAgent] = useState<Agent>();
  useEffect(() => {
    let isShown = true;
    location.hash = id;
    setAgent(undefined);
    messagesOf(id).then((messages) => isShown && setBefore(messages));
    agentOf(id).then((opened) => isShown && setAgent(opened));
    return () => void (isShown = false);
  }, [id]);
  return (
    <>
      <Chats key={id} agent={agent} open={open} />
      {agent ? <Chat key={id} agent={agent} /> : <main><div className="messages"><Messages messages={before} /></div></main>}
    </>
  );
}

/** The list of chats; it changes when a run has ended. */
function Chats({ agent, open }: { agent: Agent | undefined; open: (id: string) => void }) {
  const [chats, setChats] = useState<StoredAgent[]>([]);
  useEffect(() => {
    const list = () => void listChats().then(setChats);
    list();
    return agent?.subscribe(({ type }) => type === "agent_end" && list());
  }, [agent]);
  return (
    <nav aria-label="Chats">
      <button onClick={() => open(crypto.randomUUID())}>New chat</button>
      {chats.map(({ id, title }) => <button key={id} className="chat" onClick={() => open(id)}>{title || "New chat"}</button>)}
    </nav>
  );
}

createRoot(document.getElementById("root")!).render(<StrictMode><App /></StrictMode>);
