import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { before, openAgent } from "./agent";
import { Chat, Messages } from "./Chat";
import "./style.css";

const root = createRoot(document.getElementById("root")!);
root.render(<main><div className="messages"><Messages messages={before} /></div></main>);
openAgent().then((agent) => root.render(<StrictMode><Chat agent={agent} /></StrictMode>));
