// The page for react.test.mjs: components that use `useAgent`, driven by the test through `globalThis`.

import { Profiler, StrictMode, memo, useEffect, version } from "react";
import { createRoot, hydrateRoot } from "react-dom/client";
import { flushSync } from "react-dom";
import { Agent, custom, scripted } from "turnwheel";
import { useAgent } from "turnwheel/react";

const textOf = (message) => message.content.map((block) => block.text ?? "").join("");
/** How often each thing was rendered, and in which frame. */
const seen = { frame: 0, renders: [], rows: {}, made: 0, subscribed: 0, errors: [] };
const frames = () => requestAnimationFrame(() => ((seen.frame += 1), frames()));
frames();
addEventListener("error", (event) => seen.errors.push(event.message));
addEventListener("unhandledrejection", (event) => seen.errors.push(String(event.reason)));
const { error } = console;
console.error = (...words) => (seen.errors.push(words.join(" ")), error(...words));

/** A model that gives `count` pieces as fast as it can, a macrotask after every hundred. */
const fast = (count) => custom("fast", async function* () {
  yield { type: "text_start", contentIndex: 0 };
  for (let i = 0; i < count; i += 1) {
    yield { type: "text_delta", contentIndex: 0, delta: "x" };
    if (i % 100 === 99) await new Promise((resolve) => setTimeout(resolve));
  }
  yield { type: "done", stopReason: "stop" };
});
const pay = { name: "pay", description: "Pays", parameters: { type: "object" }, requiresApproval: true, execute: () => "paid" };
const slow = { name: "slow", description: "Slow", parameters: { type: "object" }, execute: (_, { update, signal }) => (update("half"), new Promise((resolve) => signal.addEventListener("abort", () => resolve("cut")))) };

/** An agent that counts who listens to it. */
function counted(options) {
  const agent = new Agent(options);
  seen.made += 1;
  const subscribe = agent.subscribe.bind(agent);
  agent.subscribe = (listener) => {
    seen.subscribed += 1;
    const stop = subscribe(listener);
    return () => ((seen.subscribed -= 1), stop());
  };
  return agent;
}

const Row = memo(function Row({ message, place }) {
  seen.rows[place] = (seen.rows[place] ?? 0) + 1;
  return <li data-role={message.role} aria-busy={message.streaming}>{textOf(message)}</li>;
});

function Chat({ agent, options }) {
  const view = useAgent(agent, options);
  globalThis.view = view;
  return (
    <main data-status={view.status}>
      <ul>{view.messages.map((message, i) => <Row key={i} place={i} message={message} />)}</ul>
      <p id="calls">{view.calls.map(({ toolName, state, update }) => `${toolName} ${state} ${update ?? ""}`).join()}</p>
      <p id="queued">{view.queued.length}</p>
      <p id="error">{view.error?.message}</p>
      {view.pendingApprovals.map(({ callId }) => <button key={callId} onClick={() => view.approve(callId)}>Allow</button>)}
    </main>
  );
}

let root;
const rendered = () => seen.renders.push(seen.frame);
const show = (agent, { isStrict = false, options } = {}) => {
  Object.assign(seen, { renders: [], rows: {}, made: 0, subscribed: 0 });
  const app = <Profiler id="chat" onRender={rendered}><Chat agent={agent} options={options} /></Profiler>;
  root = createRoot(document.getElementById("root"));
  flushSync(() => root.render(isStrict ? <StrictMode>{app}</StrictMode> : app));
};
const later = () => new Promise((resolve) => setTimeout(resolve, 5));

Object.assign(globalThis, {
  seen, later, version,
  stream: (count, settings) => show(counted({ model: fast(count), messages: [{ role: "user", content: [{ type: "text", text: "before" }], timestamp: 1 }] }), settings),
  own: (settings) => show(() => counted({ model: fast(1_000_000) }), settings),
  tools: () => show(counted({ model: scripted([{ toolCalls: [{ toolName: "slow" }] }, "as you wish", { toolCalls: [{ toolName: "pay" }] }, "it is paid"]), tools: [slow, pay], steering: { when: "immediate" } })),
  failing: () => show(counted({ model: scripted([{ error: { code: "auth", message: "no key" } }]) })),
  /** Two that look at one agent, then another agent in place of the first. */
  exchange() {
    const [one, two] = ["one", "two"].map((text) => counted({ model: scripted([]), messages: [{ role: "user", content: [{ type: "text", text }], timestamp: 1 }] }));
    show(one);
    const said = [document.querySelector("li").textContent];
    flushSync(() => root.render(<Chat agent={two} />));
    said.push(document.querySelector("li").textContent);
    return said;
  },
  /** A run that begins in an effect, as StrictMode calls it twice. */
  effect(settings) {
    const agent = counted({ model: scripted(["hello", "never"]) });
    function Begin() {
      const { isRunning, history, send } = useAgent(agent);
      useEffect(() => {
        if (!agent.isRunning && history.length === 0) void send("Go");
      }, []);
      return <p id="effect">{String(isRunning)} {history.length}</p>;
    }
    root = createRoot(document.getElementById("root"));
    root.render(<StrictMode><Begin /></StrictMode>);
  },
  hydrate(html) {
    const place = document.getElementById("root");
    place.innerHTML = html;
    root = hydrateRoot(place, <Chat agent={() => new Agent({ model: scripted(["hello"]), messages: [{ role: "user", content: [{ type: "text", text: "before" }], timestamp: 1 }] })} />);
  },
  gone: async () => {
    root.unmount();
    await later();
    return seen.subscribed;
  },
});
document.documentElement.dataset.ready = "";
