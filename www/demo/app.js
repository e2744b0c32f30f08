// @ts-check
// The page: one agent, what the user does with it, and the view of it.

import { explain } from "./advice.js";
import { agentOptions } from "./agent.js";
import { Announcer } from "./announcer.js";
import { Chooser } from "./chooser.js";
import { Conversation } from "./conversation.js";
import { browsersOwn } from "./device.js";
import { byId, h } from "./dom.js";
import { HeardRun, eventsOf } from "./elsewhere.js";
import { loadInPage, loadInspector, loadStores, loadTabs } from "./engine.js";
import { Loading, NOT_KEPT } from "./loading.js";
import { Heard } from "./heard.js";
import { Memory } from "./memory.js";
import { FIRST_CHOICE, isOnDevice, nameOf, modelsToTry, rowOf, whatLeaves, whereOf } from "./models.js";
import { workOffline } from "./offline.js";
import { Opening } from "./opening.js";
import { Place } from "./place.js";
import { LABEL } from "./rehearsal.js";
import { siteOf } from "./site.js";
import { suggestionsFor } from "./suggestions.js";
import { Together } from "./together.js";
import { Trace, duration } from "./trace.js";
import { UsageView } from "./usage.js";
import { WhatIf } from "./whatif.js";

/** What another tab said longer ago than this is shown at its own time. */
const LATE_MS = 300;

/** @typedef {import("../npm/index.js").Agent} Agent */
/** @typedef {import("../npm/index.js").AgentMessage} AgentMessage */
/** @typedef {Pick<import("../npm/index.js").AgentRun, "abort" | "partialArguments" | typeof Symbol.asyncIterator> & { readonly result: Promise<{ stopReason: string, error?: unknown }> }} AgentRun */
/** @typedef {import("../npm/index.js").Checkpoint} Checkpoint */
/** @typedef {import("./engine.js").Turnwheel} Turnwheel */
/** @typedef {import("./models.js").Choice} Choice */

class App {
  /** @param {Turnwheel} turnwheel @param {import("./engine.js").Stores} stores @param {typeof import("../npm/tabs.js")} tabs @param {import("./engine.js").InspectorModule} inspection */
  constructor(turnwheel, stores, tabs, { InspectorLog }) {
    this.turnwheel = turnwheel;
    this.InspectorLog = InspectorLog;
    this.memory = new Memory(stores);
    this.together = new Together(tabs, stores, {
      options: () => agentOptions(turnwheel, this.#settings(), { pace: () => this.#pace(), rename: (title) => this.#rename(title), device: this.#device }),
      mayContinue: (isOpen) => this.#mayContinue(isOpen),
      onRole: (role, tookMs) => this.#showRole(role, tookMs),
      onEvent: (event) => this.#hear(event),
      who: () => whoOf(this.chooser.choice),
      onWho: (who) => this.#showOther(who),
      onOther: () => void this.#forget(() => this.together.follow()),
      onError: (error) => this.#failed(error),
    });
    /** The recorded time while the page replays what it showed before. @type {number | undefined} */
    this.replayTime = undefined;
    this.title = document.title;
    this.log = byId("log", HTMLElement);
    this.box = byId("box", HTMLTextAreaElement);
    this.composer = byId("composer", HTMLFormElement);
    this.buttons = { send: byId("send", HTMLButtonElement), followUp: byId("follow-up", HTMLButtonElement), stop: byId("stop", HTMLButtonElement), reset: byId("reset", HTMLButtonElement) };
    this.hold = byId("hold", HTMLInputElement);
    /** `?hold=4` holds the tools four times as long, for an audience and for tests. */
    this.holdFactor = Number(new URLSearchParams(location.search).get("hold")) || 1;
    this.inFlight = byId("in-flight", HTMLSelectElement);
    this.place = new Place(() => {
      this.#discardAgent();
      this.#updateControls();
    });
    /**
     * The messages of the conversation in the Worker, for the next agent to continue from.
     * @type {readonly AgentMessage[] | undefined}
     */
    this.history = undefined;
    this.usage = new UsageView();
    this.announcer = new Announcer(byId("live", HTMLElement));
    this.inspector = /** @type {import("../npm/inspector.js").TurnwheelInspector} */ (byId("inspector", HTMLElement));
    /** Everything that happened, for the inspector, and the history that goes with it. */
    this.events = new InspectorLog();
    this.heard = new Heard();
    this.opening = new Opening(this.inspector, InspectorLog, this.box);
    // What is shown: of the page's runs, or of the one that is recorded.
    this.whatIf = new WhatIf({ turnwheel, InspectorLog, log: () => this.inspector.log ?? this.events, howToGoOn: () => this.#whatIf() });
    this.conversation = new Conversation(byId("messages", HTMLElement), {
      now: () => this.#now(),
      announce: (text) => void (this.replayTime === undefined && this.announcer.say(text)),
      decide: (callId, isAllowed, changed) => this.#decide(callId, isAllowed, changed),
      answer: (id, answer, callId) => this.#answer(id, answer, callId),
      argumentsOf: (callId) => this.run?.partialArguments(callId),
    });
    this.budget = byId("budget", HTMLSelectElement);
    this.chooser = new Chooser({ onChoice: (choice) => this.#useModel(choice), onLoad: (choice, file) => void this.loading.load({ row: choice.row, file, weights: this.chooser.weights }) });
    this.loading = new Loading({
      announce: (text) => this.announcer.say(text),
      onReady: ({ row, device }) => {
        this.chooser.choice = { ...FIRST_CHOICE, row, model: device.name };
        this.#useModel(this.chooser.choice);
        if (this.waiting?.who.row === row) this.#resume();
        this.box.focus({ preventScroll: true });
      },
    });
    /** @type {Trace[]} one per run */
    this.traces = [];
    /** @type {AgentRun | undefined} the run in progress */
    this.run = undefined;
    /** Who answered before the reload. @type {import("./memory.js").Who | undefined} */
    this.who = undefined;
    /** Lets a run from before the reload go on, while it waits for somebody to say so. @type {(() => void) | undefined} */
    this.goOn = undefined;
    /** Who answers in the tab that owns the agent, if that is another. @type {import("./memory.js").Who | undefined} */
    this.other = undefined;
    /** Who began the run that waits, and the words that say so. @type {{ who: import("./memory.js").Who, root: HTMLElement } | undefined} */
    this.waiting = undefined;
    this.onWaiting = () => {};
    this.lastPrompt = "";
    this.isStopped = false;
    this.isOver = false;
    /** When the last event was, on the page's clock. */
    this.heardAt = 0;
    this.isFramed = false;
    /** Whether the end of the conversation is in view. */
    this.isAtEnd = true;
    this.isCalm = matchMedia("(prefers-reduced-motion: reduce)");
  }

  async start() {
    const { box, composer, buttons } = this;
    composer.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit("steer");
    });
    this.#keepAtEnd();
    buttons.followUp.addEventListener("click", () => this.#submit("follow_up"));
    buttons.stop.addEventListener("click", () => this.#stop());
    buttons.reset.addEventListener("click", () => void this.#reset());
    box.addEventListener("keydown", (event) => this.#key(event));
    box.addEventListener("input", () => (this.opening.isOpen ? this.#updateControls() : this.#updateBox()));
    document.addEventListener("keydown", (event) => {
      // An open dialog handles Escape itself.
      if (event.key === "Escape" && this.run && !event.isComposing && !event.defaultPrevented && !document.querySelector("dialog[open]")) this.#stop();
    });
    byId("choose-model", HTMLButtonElement).addEventListener("click", () => this.chooser.open());
    this.budget.addEventListener("change", () => this.#discardAgent());
    this.inFlight.addEventListener("change", () => (this.place.isElsewhere ? this.#discardAgent() : void this.#idle().then(() => this.together.remake())));
    for (const offer of document.querySelectorAll("button[data-row]")) offer.addEventListener("click", () => this.chooser.open(/** @type {HTMLElement} */ (offer).dataset["row"]));
    for (const example of document.querySelectorAll("button[data-text]")) example.addEventListener("click", () => this.#example(String(/** @type {HTMLElement} */ (example).dataset["text"])));
    this.hold.addEventListener("change", () => this.place.conversation?.pace(this.#pace()));
    const site = await siteOf();
    await this.place.find(site.worker);
    this.chooser.know({ weights: site.weights });
    this.inspector.addEventListener("turnwheel-fork", ({ detail }) => this.whatIf.open(detail.n));
    byId("widen", HTMLButtonElement).addEventListener("click", ({ currentTarget }) => this.#widen(/** @type {HTMLElement} */ (currentTarget)));
    this.#useModel(this.chooser.choice);
    try {
      await this.#recall();
    } catch {
      // Data that another version of the page stored, or that somebody edited, must not keep
      // this page from starting.
      this.replayTime = undefined;
      await this.#reset();
    }
    this.#updateControls();
    this.#scheduleDraw();
    if (this.traces.length === 0) this.opening.begin();
    else this.#leaveOpening();
    this.#updateControls();
    if (matchMedia("(pointer: fine)").matches) box.focus({ preventScroll: true });
    box.setSelectionRange(box.value.length, box.value.length);
    document.documentElement.dataset["ready"] = "true";
    workOffline(site);
    void browsersOwn().then((own) => this.chooser.know({ own }));
  }

  /** The page shows its own runs from now on. */
  #leaveOpening() {
    this.opening.end();
    this.inspector.source = this.events;
  }

  /** @param {string} text */
  #example(text) {
    this.#ask(text);
    this.box.focus({ preventScroll: true });
  }

  /** Sends the text, or, during a run, steers or queues it. @param {"steer" | "follow_up"} kind */
  #submit(kind) {
    const text = this.box.value.trim();
    if (!text) return;
    this.box.value = "";
    this.#updateBox();
    if (this.run) this.#interject(text, kind);
    else this.#ask(text);
  }

  /** @param {string} text */
  async #ask(text) {
    if (this.goOn) this.#resume();
    if (this.run) return this.#interject(text, "steer");
    this.announcer.clear();
    let run;
    try {
      const agent = await this.#agentToAsk();
      // Another tab was faster.
      if (this.run) return this.#interject(text, "steer");
      run = agent.prompt(text);
    } catch (error) {
      this.conversation.addPrompt(text);
      return this.#failed(error);
    }
    this.memory.note({ at: this.#now(), said: text });
    this.#begin(text);
    this.#run(run);
    this.#save();
  }

  /** Shows a message and the start of a run. @param {string} text */
  #begin(text) {
    this.lastPrompt = text;
    for (const id of ["welcome", "start"]) byId(id, HTMLElement).hidden = true;
    document.documentElement.dataset["asked"] = "true";
    if (this.opening.isOpen) this.#leaveOpening();
    this.conversation.addPrompt(text);
    this.conversation.begin();
    this.traces.push(new Trace(this.#now()));
    this.heard.say(text, this.#time());
    this.usage.begin();
  }

  /** Shows an event. @param {import("../npm/index.js").AgentEvent} event */
  #showEvent(event) {
    this.heardAt = this.#now();
    this.traces.at(-1)?.push(event, this.heardAt);
    if (event.type === "turn_start" && this.replayTime === undefined && this.agent) this.heard.read(this.agent.messages);
    this.events.push(event, { at: this.#time(), messages: this.heard.push(event) });
    this.conversation.push(event);
    this.usage.push(event);
  }

  /** Milliseconds since 1970, of what is shown. */
  #time() {
    return performance.timeOrigin + this.#now();
  }

  /** Marks a moment of the run. @param {"steer" | "follow_up" | "stop"} kind @param {string} text @param {number} at on the page's clock */
  #mark(kind, text, at) {
    this.traces.at(-1)?.mark(kind, text, at);
    this.events.mark(kind, text, performance.timeOrigin + at);
  }

  #now() {
    return this.replayTime ?? performance.now();
  }

  /** @param {AgentRun} run */
  #run(run) {
    this.run = run;
    this.isStopped = this.isOver = false;
    this.#updateControls();
    this.#scrollToEnd();
    this.#follow(run).catch((error) => this.#failed(error));
  }

  /** Shows the events of a run until it has ended. @param {AgentRun} run */
  async #follow(run) {
    const trace = /** @type {Trace} */ (this.traces.at(-1));
    try {
      for await (const event of run) {
        // What is heard late was said when it was said.
        const isLate = run instanceof HeardRun && (run.isBehind || ("at" in event && performance.timeOrigin + performance.now() - event.at > LATE_MS));
        this.replayTime = isLate ? ("at" in event ? event.at - performance.timeOrigin : this.heardAt) : undefined;
        this.#showEvent(event);
        this.memory.note({ at: this.#now(), event });
        this.replayTime = undefined;
        // The Worker replays what it has sent, so only the end must not be missed.
        if (!this.place.conversation || event.type === "agent_end") this.#save();
        this.#scheduleDraw();
      }
      const result = await run.result;
      if (result.error && result.stopReason === "error") this.#failed(result.error);
      // A message that came too late for this run must not wait for the next one unseen.
      this.isOver = result.stopReason === "completed" && !this.isStopped;
      void this.agent?.clearQueues();
    } finally {
      trace.endedAt ??= performance.now() - trace.startedAt;
      this.run = undefined;
      this.usage.end(trace);
      this.#updateControls();
      this.#scheduleDraw();
    }
  }

  /** Sends a message into the current run. @param {string} text @param {"steer" | "follow_up"} kind */
  #interject(text, kind) {
    const { agent } = this;
    if (!agent) return;
    this.lastPrompt = text;
    const message = this.conversation.addMessage(text, kind);
    const number = this.memory.shown.length;
    this.memory.note({ at: this.#now(), sent: text, kind });
    this.#mark(kind, text, performance.now());
    this.#scrollToEnd();
    const receipt = kind === "steer" ? agent.steer(text) : agent.followUp(text);
    this.#save();
    receipt.then(async (outcome) => {
      if (outcome.delivered) {
        this.memory.note({ at: this.#now(), heard: [number, outcome.turnIndex] });
        return message.markDelivered(outcome.turnIndex);
      }
      await this.#idle();
      if (this.isOver) {
        // The run was over before the message arrived, so it becomes the next prompt.
        message.root.remove();
        delete this.memory.shown[number]?.sent;
        return this.#ask(text);
      }
      message.markLost("not delivered, the run is over");
      if (!this.box.value) {
        this.box.value = text;
        this.#updateBox();
      }
    }).catch((error) => this.#failed(error));
  }

  /** Waits until the loop over the run's events has ended too. */
  async #idle() {
    while (this.run) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  #stop() {
    if (!this.run || this.isStopped) return;
    // Only a run that goes on can be stopped.
    if (this.goOn) this.#resume();
    this.isStopped = true;
    this.#mark("stop", "stopped by you", performance.now());
    this.run.abort(new DOMException("stopped by the user", "AbortError"));
    this.announcer.say("Stopped.");
    this.box.focus({ preventScroll: true });
  }

  async #reset() {
    this.#stop();
    await this.#forget(() => this.together.begin());
  }

  /** Shows nothing of this conversation any more, and another one. @param {() => Promise<unknown>} another */
  async #forget(another) {
    if (this.run instanceof HeardRun) this.run.end({ stopReason: "aborted" });
    await this.#idle();
    this.place.leave();
    this.history = this.goOn = undefined;
    document.title = this.title;
    await this.memory.forget();
    this.conversation.clear();
    this.traces = [];
    this.events = new this.InspectorLog();
    this.heard = new Heard();
    this.usage.clear();
    for (const id of ["welcome", "start"]) byId(id, HTMLElement).hidden = false;
    delete document.documentElement.dataset["asked"];
    this.opening.begin();
    this.#updateControls();
    this.box.focus({ preventScroll: true });
    await another();
    this.together.listen();
    this.#updateControls();
  }

  /** The agent of this conversation, in this page's tabs or in the Worker. */
  get agent() {
    return this.place.conversation?.agent ?? this.together.agent;
  }

  /** The same, once it is there to be asked. */
  async #agentToAsk() {
    if (this.place.isElsewhere) {
      const messages = () => this.history ?? this.together.agent?.messages ?? [];
      const agent = this.place.conversation?.agent ?? this.place.begin({ settings: this.#settings(), messages, hold: this.#pace() }, (error) => this.#failed(error));
      this.history = undefined;
      if (agent) return agent;
    }
    const { history } = this;
    this.history = undefined;
    if (!history && this.together.agent) return this.together.agent;
    const agent = await (history ? this.together.begin(history) : this.together.join());
    this.together.listen();
    return agent;
  }

  #settings() {
    return { choice: this.chooser.choice, inFlight: this.inFlight.value, budget: this.budget.value };
  }

  /** The model of this page that is chosen, if one is. */
  get #device() {
    return this.loading.of(this.chooser.choice.row);
  }

  /** How a run that is lived again goes on: as it is set now, or with another model. What it would do to the page, it does not do. */
  #whatIf() {
    const pace = () => Math.min(1, this.#pace());
    const device = this.#device;
    const { budget: _, ...options } = agentOptions(this.turnwheel, this.#settings(), { pace, rename: () => {}, device });
    return { options: { ...options, approval: { mode: /** @type {const} */ ("bypassed") } }, models: modelsToTry(this.turnwheel, this.chooser.choice, { pace, device }) };
  }

  /** Gives the inspector more of the page, or less. @param {HTMLElement} button */
  #widen(button) {
    const isWide = document.documentElement.toggleAttribute("data-wide");
    button.setAttribute("aria-pressed", String(isWide));
  }

  #pace() {
    return this.hold.checked ? this.holdFactor : 0;
  }

  /** @param {string} title */
  #rename(title) {
    document.title = title;
  }

  /** @param {string} callId @param {boolean} isAllowed @param {{ [name: string]: import("../npm/index.js").JsonValue }} [changed] other arguments than the model's */
  #decide(callId, isAllowed, changed) {
    // A failure is reported later.
    const resolve = async () => this.agent?.resolveTool(callId, isAllowed ? this.#allowed(callId, changed) : { action: "reject", reason: "The person refused it." });
    resolve().catch((error) => this.#failed(error));
    this.#leaveQuestion();
  }

  /** An answer to a question of a run that waits for its model says nothing about which is to go on: that is asked next. */
  #leaveQuestion() {
    const next = this.waiting?.root.querySelector("button");
    (next ?? this.box).focus({ preventScroll: !next });
  }

  /**
   * Answers another question than whether a tool may run: one of a budget, or of a tool.
   * @param {string} id @param {import("../npm/index.js").Answer} answer @param {string} [callId]
   */
  #answer(id, answer, callId) {
    // A Worker cannot rename this page, so the page does it.
    const asked = this.place.conversation && callId ? this.agent?.pendingQuestions.find((question) => question.id === id) : undefined;
    const title = typeof answer === "object" && "content" in answer ? /** @type {any} */ (answer.content)?.title : undefined;
    if (asked && typeof title === "string" && asked.toolName === "rename_page") this.#rename(title.trim());
    const resolve = async () => this.agent?.resolve(id, answer);
    resolve().catch((error) => this.#failed(error));
    this.#leaveQuestion();
  }

  /**
   * Returns the decision to allow a call. A Worker cannot rename this page, so the page does it and returns
   * the result in place of the tool.
   * @param {string} callId @param {{ [name: string]: import("../npm/index.js").JsonValue }} [changed] @returns {import("../npm/index.js").ToolDecision}
   */
  #allowed(callId, changed) {
    const call = this.place.conversation && this.agent?.pendingApprovals.find((pending) => pending.callId === callId);
    if (call?.toolName !== "rename_page") return changed ? { action: "approve", arguments: changed } : "approve";
    const title = String((changed ?? call.arguments)["title"]).trim();
    this.#rename(title);
    return { action: "result", content: `The page is called “${title}” now.` };
  }

  /** Stores what is shown: in the tab that owns the agent, or wherever a Worker has it. */
  #save() {
    const { agent, place, together } = this;
    if (!agent || (!place.conversation && together.isFollower)) return;
    // Whoever has no other store of its history can continue without it.
    const needsHistory = place.conversation !== undefined || together.agent?.role === "alone";
    const messages = needsHistory ? [...agent.messages] : [];
    const checkpoint = new this.turnwheel.Agent({ model: this.turnwheel.scripted([]), messages }).checkpoint();
    this.memory.save(checkpoint, this.chooser.choice, place.conversation?.id);
  }

  /** Shows what the page showed before it was reloaded, or what another tab shows, and continues. */
  async #recall() {
    const found = await this.memory.recall(performance.now());
    if (found?.conversation) return this.#recallElsewhere(found.conversation, found);
    if (found && !found.who) throw new Error("another version of this page stored it");
    this.who = found?.who;
    const waiting = new Promise((resolve) => (this.onWaiting = () => resolve(undefined)));
    const joined = this.together.join(found && this.#messagesOf(found.checkpoint)).then(() => this.#showTogether());
    // The rest of the page does not wait for somebody to say that a run may go on.
    await Promise.race([joined, waiting]);
    joined.catch((error) => this.#failed(error));
  }

  /** @param {Checkpoint} checkpoint */
  #messagesOf(checkpoint) {
    return this.turnwheel.peek(checkpoint).messages;
  }

  /** Shows the conversation of all tabs, and from then on what happens. */
  #showTogether() {
    const { memory, together } = this;
    this.who = undefined;
    const { isRunning } = together;
    this.#showStored({ withOpenRun: isRunning });
    // The end of the run came while no tab was there to show it.
    if (memory.isOpen && !isRunning && together.agent) this.#showMissed(together.agent.messages);
    together.listen();
    this.conversation.draw(performance.now());
    if (this.traces.length > 0) this.#scrollToEnd();
  }

  /** Shows what is stored of the conversation. @param {{ withOpenRun: boolean }} options */
  #showStored({ withOpenRun }) {
    this.#clear();
    if (!withOpenRun) this.memory.forgetOpenRun();
    this.#replay();
  }

  #clear() {
    this.conversation.clear();
    this.traces = [];
    this.events = new this.InspectorLog();
    this.heard = new Heard();
    this.usage.clear();
    if (!this.opening.isOpen) this.inspector.source = this.events;
  }

  /**
   * Keys are not stored, so the model that began a run may not be available when it could go on: somebody has to say so.
   * @param {boolean} isOpen whether a run is in progress
   */
  async #mayContinue(isOpen) {
    if (!isOpen) return;
    const who = this.who ?? this.other ?? (await this.memory.who());
    const { row, model } = this.chooser.choice;
    if (!who || (row === who.row && model === who.model)) return;
    // What another tab has begun is shown already.
    if (this.who) this.#replay();
    await new Promise((resolve) => {
      this.goOn = () => resolve(undefined);
      this.#askBeforeResuming(who);
      this.conversation.draw(performance.now());
      this.onWaiting();
    });
  }

  /** Something happened to the agent that all tabs share. @param {import("../npm/index.js").AgentEvent} event */
  #hear(event) {
    if (this.run instanceof HeardRun) return this.run.push(event);
    // The run of this tab is listened to as a run.
    if (event.type === "agent_end" || this.run || !this.together.agent) return;
    // All of the run is told again, not only how it goes on.
    if (event.type === "agent_start" && this.memory.isOpen) this.#showStored({ withOpenRun: false });
    const run = new HeardRun(this.together.agent);
    run.push(event);
    if (!this.memory.isOpen) {
      const said = this.together.agent.messages.findLast(({ role }) => role === "user");
      const text = said?.role === "user" ? said.content.map((block) => (block.type === "text" ? block.text : "")).join("") : "";
      this.memory.note({ at: this.#now(), said: text });
      this.#begin(text);
    }
    this.#run(run);
  }

  /** @param {import("../npm/tabs.js").TabRole} role @param {number} tookMs */
  #showRole(role, tookMs) {
    const before = document.documentElement.dataset["role"];
    const gone = role === "owner" && this.other && this.other.row !== this.chooser.choice.row ? ` ${nameOf({ ...this.other, apiKey: "" })} answered there; here ${nameOf(this.chooser.choice)} does.` : "";
    if (role !== "follower") this.#showOther(undefined);
    document.documentElement.dataset["role"] = role;
    const text = role === "follower" ? "Another tab runs this conversation. This one shows it, and may speak." : role === "owner" && before === "follower" ? `The other tab has left: this one took over in ${Math.round(tookMs)} ms.${gone}` : role === "alone" || this.together.isForgetful ? "This browser stores nothing for this page: the conversation ends with this tab." : "";
    const note = byId("role", HTMLElement);
    note.textContent = text;
    note.hidden = text === "";
    this.conversation.howResumed = before === "follower" ? "The other tab was closed and this one took over" : "The page was reloaded";
    if (text) this.announcer.say(text);
    this.#updateControls();
    this.#save();
  }

  /** Who answers is what the tab that owns the agent has chosen. @param {import("./memory.js").Who | undefined} who */
  #showOther(who) {
    this.other = who;
    byId("model-name", HTMLElement).textContent = nameOf({ ...(who ?? this.chooser.choice), apiKey: "" });
    this.#updateControls();
  }

  /** Shows the stored conversation again. */
  #replay() {
    /** @type {Map<number, ReturnType<Conversation["addMessage"]>>} */
    const messages = new Map();
    const heardIn = this.#heardByTurn();
    let prompts = 0;
    this.memory.shown.forEach(({ at, said, sent, kind, heard, event }, number) => {
      this.replayTime = at;
      if (said !== undefined) this.#begin(said);
      if (said !== undefined) prompts += 1;
      if (event?.type === "turn_start") for (const text of heardIn.get(`${prompts} ${event.turnIndex}`) ?? []) this.heard.say(text, this.#time());
      if (sent !== undefined && kind) messages.set(number, this.conversation.addMessage(sent, kind));
      if (sent !== undefined && kind) this.#mark(kind, sent, at);
      if (heard) messages.get(heard[0])?.markDelivered(heard[1]);
      if (heard) messages.delete(heard[0]);
      if (event) this.#showEvent(event);
      if (event?.type === "agent_end") this.usage.end(/** @type {Trace} */ (this.traces.at(-1)));
    });
    this.replayTime = undefined;
    for (const message of messages.values()) this.traces.at(-1)?.stopReason === undefined ? message.markKept() : message.markLost("not delivered, the run is over");
  }

  /** What was sent into the runs, by the run and the turn that read it. */
  #heardByTurn() {
    /** @type {Map<string, string[]>} */
    const texts = new Map();
    let prompts = 0;
    for (const { said, heard } of this.memory.shown) {
      if (said !== undefined) prompts += 1;
      if (!heard) continue;
      const key = `${prompts} ${heard[1]}`;
      texts.set(key, [...(texts.get(key) ?? []), this.memory.shown[heard[0]]?.sent ?? ""]);
    }
    return texts;
  }

  /**
   * Returns to a conversation in the Worker. Its run went on without this page; the Worker replays the run
   * from its beginning, or reports how it ended.
   * @param {string} id @param {{ checkpoint: Checkpoint, who: import("./memory.js").Who }} found
   */
  async #recallElsewhere(id, { checkpoint, who }) {
    const isOpen = this.memory.forgetOpenRun();
    this.#replay();
    const restored = await this.place.comeBack(id);
    if (restored) {
      if (restored.agent.isRunning) this.#run(restored.run);
      else {
        restored.run.leave();
        if (isOpen) this.#showMissed(restored.agent.messages);
      }
    } else {
      this.history = this.#messagesOf(checkpoint);
      if (isOpen) this.#showLostRun();
    }
    const { row, model } = this.chooser.choice;
    // Keys are not stored, so the model chosen now answers next.
    if (this.agent && !(row === who.row && model === who.model)) this.#discardAgent();
    this.conversation.draw(performance.now());
    this.#scrollToEnd();
  }

  /** Shows the end of a run that came while the page was away. @param {readonly AgentMessage[]} messages */
  #showMissed(messages) {
    const promptIndex = messages.findLastIndex(({ role }) => role === "user");
    for (const event of eventsOf(messages.slice(promptIndex + 1), "")) {
      this.#showEvent(event);
      this.memory.note({ at: this.#now(), event });
    }
    this.usage.end(/** @type {Trace} */ (this.traces.at(-1)));
    this.#save();
  }

  /** The Worker was restarted, and with it the run is lost. */
  #showLostRun() {
    /** @type {import("../npm/index.js").AgentEvent} */
    const end = { type: "agent_end", runId: "", messages: [], stopReason: "aborted", usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }, turns: 0 };
    this.#showEvent(end);
    this.memory.note({ at: this.#now(), event: end });
    this.usage.end(/** @type {Trace} */ (this.traces.at(-1)));
    this.conversation.showFailure({ title: "The Worker was started anew.", advice: ["It had this run in its memory. What was said before is here: the next message goes on from it."] });
  }

  /** Lets the run from before the reload go on. */
  #resume() {
    const { goOn, waiting } = this;
    this.goOn = this.waiting = undefined;
    waiting?.root.remove();
    goOn?.();
  }

  /**
   * The model that began the run may not be there: keys are not stored, and what a page has loaded goes with it.
   * @param {import("./memory.js").Who} who
   */
  #askBeforeResuming(who) {
    const [name, row] = [nameOf({ ...who, apiKey: "" }), rowOf(who.row)];
    const why = isOnDevice(row) ? ", which went with its page" : row.key !== "none" ? ", whose key this page does not keep" : "";
    const again = isOnDevice(row) ? "Load it here" : "Choose that model again under “Model”";
    const weights = who.row === "small" && this.chooser.weights?.name === who.model ? this.chooser.weights : null;
    const load = () => (weights || who.row === "browser" ? void this.loading.load({ row: who.row, file: undefined, weights }) : this.chooser.open(who.row));
    const actions = h("p", { class: "actions" },
      isOnDevice(row) && h("button", { type: "button", testid: "load-again", onclick: load }, "Load it"),
      h("button", { type: "button", testid: "go-on", onclick: () => this.#resume() }, `Go on with ${nameOf(this.chooser.choice)}`));
    const root = this.conversation.showFailure({ title: "A run waits to go on.", advice: [`It was begun with ${name}${why}. ${again}, or go on with the one that is chosen.`] }, undefined, actions);
    this.waiting = { who, root };
    if (document.documentElement.dataset["role"] === "follower") byId("role", HTMLElement).textContent = "The tab that ran this conversation has left.";
    this.announcer.say(`A run of ${name} waits to go on.`);
    this.#scrollToEnd();
  }

  /** What is set holds from the next message on: for the agent of the tabs, or for a new one, which continues the conversation. */
  #discardAgent() {
    if (this.run) {
      void this.#idle().then(() => this.#discardAgent());
      return;
    }
    if (!this.place.conversation) return this.together.apply();
    this.history = this.place.conversation.agent.messages;
    this.place.leave();
  }

  /** @param {Choice} choice */
  #useModel(choice) {
    if (!this.other) byId("model-name", HTMLElement).textContent = nameOf(choice);
    const isRehearsal = choice.row === FIRST_CHOICE.row;
    byId("rehearsal-note", HTMLElement).hidden = !isRehearsal;
    document.documentElement.dataset["model"] = choice.row;
    if (isOnDevice(rowOf(choice.row))) this.place.stayHere();
    this.usage.isByToken = isOnDevice(rowOf(choice.row));
    this.usage.label(!isRehearsal ? "" : "The rehearsal has no tokens; these are estimates, four characters to one.");
    this.#discardAgent();
    this.#updateControls();
  }

  /** @param {unknown} error */
  #failed(error) {
    const { AgentError } = this.turnwheel;
    const info = AgentError.isInstance(error) ? error.info : { code: /** @type {const} */ ("unknown"), message: error instanceof Error ? error.message : String(error), retryable: false };
    const { row } = this.chooser.choice;
    const action = isOnDevice(rowOf(row)) ? h("button", { type: "button", testid: "rehearse", onclick: () => this.#rehearse() }, "Let the rehearsal answer")
      : row !== FIRST_CHOICE.row && h("button", { type: "button", onclick: () => this.chooser.open() }, "Model settings");
    this.conversation.showFailure(explain(info, whereOf(this.chooser.choice, location.origin, this.place.conversation !== undefined)), info.message, action || undefined);
    this.#scrollToEnd();
  }

  /** What works everywhere takes over from a model of this page that failed. */
  #rehearse() {
    this.chooser.choice = FIRST_CHOICE;
    this.#useModel(FIRST_CHOICE);
    void this.#ask(this.lastPrompt);
  }

  /** Updates the buttons for a running or an idle agent. */
  #updateControls() {
    const { buttons, composer } = this;
    const isRunning = this.run !== undefined;
    const name = nameOf(this.chooser.choice);
    composer.dataset["mode"] = isRunning ? "running" : "idle";
    byId("box-label", HTMLElement).textContent = isRunning ? "Steer the run" : "Your message";
    this.box.placeholder = isRunning ? "Change your mind" : "Ask something";
    buttons.send.textContent = isRunning ? "Steer" : this.opening.isOffered ? "Run it" : "Send";
    buttons.followUp.hidden = buttons.stop.hidden = !isRunning;
    buttons.reset.disabled = this.traces.length === 0;
    this.place.fix(this.goOn !== undefined || isOnDevice(rowOf(this.chooser.choice.row)));
    byId("hint-keys", HTMLElement).textContent = isRunning ? "Enter steers now, Alt+Enter sends it after this run, Escape stops." : this.opening.isOffered ? "Enter runs it live." : "Enter sends, Shift+Enter begins a new line.";
    const who = `${this.chooser.choice.row === FIRST_CHOICE.row ? `${name}: ${LABEL}.` : `${name} answers.`} ${whatLeaves(this.chooser.choice)}${this.#device?.isKept === false ? ` ${NOT_KEPT}` : ""}`;
    byId("hint-who", HTMLElement).textContent = isRunning ? "" : this.other ? `${nameOf({ ...this.other, apiKey: "" })} answers, in the other tab. ${whatLeaves({ ...this.other, apiKey: "" })}` : this.place.isElsewhere ? `${who} The loop runs in a Worker on this machine; this page listens.` : who;
    this.#suggest(isRunning);
    this.#updateBox();
  }

  /** @param {boolean} isRunning */
  #suggest(isRunning) {
    const place = byId("suggestions", HTMLElement);
    const texts = this.traces.length === 0 ? [] : suggestionsFor(isRunning, [...(this.traces.at(-1)?.calls.values() ?? [])], this.#device?.takesTools ?? true);
    place.hidden = texts.length === 0;
    place.replaceChildren(...texts.map((text) => h("button", { type: "button", testid: "suggestion", onclick: () => this.#example(text) }, text)));
  }

  #updateBox() {
    const { box, buttons } = this;
    buttons.send.disabled = buttons.followUp.disabled = box.value.trim() === "";
    box.style.setProperty("height", "auto");
    box.style.setProperty("height", `${Math.min(box.scrollHeight, 180)}px`);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#submit(event.altKey ? "follow_up" : "steer");
    } else if (event.key === "ArrowUp" && this.box.value === "" && this.lastPrompt) {
      event.preventDefault();
      this.box.value = this.lastPrompt;
      this.#updateBox();
    }
  }

  /** Draws in the next animation frame, once for all events before it. */
  #scheduleDraw() {
    if (this.isFramed) return;
    this.isFramed = true;
    requestAnimationFrame(() => {
      this.isFramed = false;
      this.#draw();
      // A running picture grows by itself; with reduced motion it grows in steps.
      if (this.run) setTimeout(() => this.#scheduleDraw(), this.isCalm.matches ? 400 : 0);
    });
  }

  #draw() {
    const now = performance.now();
    if (this.conversation.draw(now) && this.isAtEnd) this.#scrollToEnd();
    if (this.opening.isOpen) return;
    const trace = this.traces.at(-1);
    byId("elapsed", HTMLElement).textContent = trace ? duration(trace.endedAt ?? now - trace.startedAt) : "";
  }

  #scrollToEnd() {
    this.isAtEnd = true;
    this.log.scrollTop = this.log.scrollHeight;
  }

  /** Whoever is at the end stays there, also when what is below takes some of the room. */
  #keepAtEnd() {
    this.log.addEventListener("scroll", () => (this.isAtEnd = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80));
    new ResizeObserver(() => this.traces.length > 0 && this.isAtEnd && this.#scrollToEnd()).observe(this.log);
  }
}

/** Whoever answers, without the key. @param {Choice} choice @returns {import("./memory.js").Who} */
function whoOf({ row, model, baseUrl }) {
  return { row, model, baseUrl };
}

try {
  const [turnwheel, stores, tabs, inspection] = await Promise.all([loadInPage(), loadStores(), loadTabs(), loadInspector()]);
  await new App(turnwheel, stores, tabs, inspection).start();
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  byId("messages", HTMLElement).append(h("div", { class: "failure", role: "alert" }, h("strong", {}, "The package could not be loaded."),
    h("ul", {}, h("li", {}, "Serve this page with ", h("code", {}, "cargo xtask demo"), ": it builds the package first."), h("li", {}, message))));
}
