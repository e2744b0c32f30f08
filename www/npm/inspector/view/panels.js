// @ts-check
// What stands below the lanes: the conversation, the request and the state at the moment that is shown, all events, and the
// lanes as a table. A panel draws only while it is in sight.

import { maskedJson, maskText } from "../model/mask.js";
import { cost, counted, duration, grouped, inWords, messageText, short, summary } from "../model/words.js";
import { fill, h, longText, say } from "./dom.js";
import { keeping } from "./keep.js";
import { RowsInSight } from "./list.js";
import { kindInWords, markInWords } from "./look.js";
import { messageElement, openElements } from "./messages.js";

/** @import { InspectorFrame } from "../../inspector.js" */
/** @import { InspectorLog } from "../model/log.js" */
/** @import { Mark, Span, Turn } from "../model/lanes.js" */
/** @typedef {{ log: InspectorLog, frame: InspectorFrame }} Shown */
/** @typedef {{ id: string, name: string, root: HTMLElement, show: (shown: Shown) => void }} Panel */

/** How many messages are drawn at once; there is a button for more. */
const MESSAGES = 12;
const ROW = 26;

export class ConversationPanel {
  id = "conversation";
  name = "Conversation";

  constructor() {
    this.most = MESSAGES;
    this.list = h("div", { class: "messages" });
    this.root = h("div", { class: "panel scrolls", tabindex: 0 }, this.list);
    this.earlier = h("button", { type: "button", class: "more", onclick: () => this.#more() }, "");
    this.nothing = h("p", { class: "nothing" }, "Nothing has been said.");
    /** @type {Shown | undefined} */
    this.shown = undefined;
  }

  #more() {
    this.most += 4 * MESSAGES;
    const { scrollHeight, scrollTop } = this.root;
    if (this.shown) this.show(this.shown);
    this.root.scrollTop = scrollTop + this.root.scrollHeight - scrollHeight;
  }

  /** @param {Shown} shown */
  show(shown) {
    const { root, list, earlier } = this;
    const { frame } = shown;
    const isAtEnd = root.scrollHeight - root.scrollTop - root.clientHeight < 60 || shown.frame.n !== this.shown?.frame.n;
    this.shown = shown;
    const from = Math.max(0, frame.messageCount - this.most);
    const elements = [];
    for (let index = from; index < frame.messageCount; index++) {
      const message = frame.message(index);
      if (message) elements.push(messageElement(message));
    }
    say(earlier, `${counted(from, "earlier message")}`);
    const all = [...(from > 0 ? [earlier] : []), ...elements, ...openElements(frame)];
    keeping(root, () => fill(list, all.length > 0 ? all : [this.nothing]));
    if (isAtEnd) root.scrollTop = root.scrollHeight;
  }
}

export class RequestPanel {
  id = "request";
  name = "Request";

  constructor() {
    this.root = h("div", { class: "panel scrolls", tabindex: 0 });
    this.key = "";
  }

  /** @param {Shown} shown */
  show({ frame, log }) {
    const { request } = frame;
    const key = request ? `${log.first} ${request.n} ${request.model} ${request.messages.length}` : `none ${frame.n > 0}`;
    if (key === this.key && this.log === log) return;
    this.key = key;
    this.log = log;
    keeping(this.root, () => this.#draw(request));
  }

  /** @param {InspectorFrame["request"]} request */
  #draw(request) {
    if (!request) {
      this.root.replaceChildren(h("p", { class: "nothing" }, "No request is known at this moment. An agent tells them with ", h("code", {}, "includeRequests: true"), "."));
      return;
    }
    const { messages, model, systemPrompt, n, ...rest } = request;
    const last = messages.slice(-MESSAGES);
    const json = h("details", {}, h("summary", {}, "As JSON"));
    json.addEventListener("toggle", () => {
      if (json.open && json.children.length === 1) json.append(longText(maskedJson({ model, systemPrompt, ...rest, messages }), { most: 20_000, tag: "pre" }));
    });
    this.root.replaceChildren(
      h("p", { class: "fine" }, `Sent to ${model} at event ${grouped(n ?? 0)}: ${counted(messages.length, "message")}.`),
      h("p", { class: "head" }, "System prompt"), systemPrompt ? longText(maskText(systemPrompt), { most: 2000 }) : h("p", { class: "nothing" }, "none"),
      ...(rest.tools ? [h("p", { class: "head" }, "Tools"), h("p", {}, rest.tools.map(({ name }) => name).join(", ") || "none")] : []),
      h("p", { class: "head" }, "Messages"), ...(messages.length > last.length ? [h("p", { class: "fine" }, `The last ${last.length} of ${grouped(messages.length)}; all of them are in the JSON.`)] : []),
      h("ol", { class: "sent", start: messages.length - last.length + 1 }, ...last.map((message) => h("li", {}, h("code", {}, message.role), " ", longText(maskText(messageText(message)), { most: 600, tag: "div" })))),
      json,
    );
  }
}

export class StatePanel {
  id = "state";
  name = "State";

  constructor() {
    this.root = h("div", { class: "panel scrolls", tabindex: 0 });
  }

  /** @param {Shown} shown */
  show({ frame, log }) {
    const { usage } = frame;
    /** @type {[string, string | undefined][]} */
    const rows = [
      ["phase", frame.phase], ["run", frame.runId], ["turn", frame.isRunning ? String(frame.turnIndex) : undefined], ["messages", grouped(frame.messageCount)],
      ["ended", frame.stopReason && inWords(frame.stopReason)], ["error", frame.error && `${frame.error.code}: ${frame.error.message}`],
      ["tokens in", grouped(usage.input + usage.cacheRead + usage.cacheWrite)], ["of a cache", usage.cacheRead ? grouped(usage.cacheRead) : undefined], ["tokens out", grouped(usage.output)],
      ["for thinking", usage.reasoning ? grouped(usage.reasoning) : undefined], ["cost", usage.cost === undefined ? undefined : cost(usage.cost)], ["estimated", usage.estimated ? "in part" : undefined],
      ["time", frame.n > log.first ? duration(frame.at - log.lanes.from) : undefined],
    ];
    const list = h("dl", {}, ...rows.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    const calls = frame.calls.map(({ toolName, state, callId }) => h("li", {}, h("code", {}, toolName), ` ${state} `, h("span", { class: "fine" }, callId)));
    const questions = frame.pendingQuestions.map((question) => {
      const inside = question.path?.length ? ", inside another agent" : "";
      if (question.kind !== "tool" && question.kind !== "tool_call") return h("li", {}, question.message, inside);
      const [before, after] = question.kind === "tool" ? ["May ", ` run${inside}? `] : ["Waits for the result of ", `${inside} `];
      return h("li", {}, before, h("code", {}, question.toolName), after, h("pre", { class: "long" }, short(JSON.stringify(question.arguments), 600)));
    });
    const inside = frame.inside.map(({ path, phase, turnIndex }) => h("li", {}, h("code", {}, path.join(" › ")), ` ${phase}, turn ${turnIndex}`));
    /** @type {[string, HTMLElement[]][]} */
    const parts = [["Open questions", questions], ["Calls of this turn", calls], ["Agents inside calls", inside]];
    keeping(this.root, () => this.root.replaceChildren(list, ...parts.filter(([, items]) => items.length > 0).flatMap(([name, items]) => [h("p", { class: "head" }, name), h("ul", {}, ...items)])));
  }
}

export class EventsPanel {
  id = "events";
  name = "Events";

  /** @param {(n: number) => void} seek @param {(event: KeyboardEvent) => void} key */
  constructor(seek, key) {
    this.body = h("div", { class: "rows" });
    this.scroller = h("div", { class: "scrolls", tabindex: 0, role: "listbox", "aria-label": "Events", onkeydown: key }, this.body);
    this.json = h("div", { class: "json scrolls", tabindex: 0, role: "region", "aria-label": "The event as JSON" });
    this.root = h("div", { class: "panel split" }, this.scroller, this.json);
    this.seek = seek;
    this.n = -1;
    this.rows = new RowsInSight({ scroller: this.scroller, body: this.body, spacer: "div", rowHeight: ROW, make: (index) => this.#row(index) });
  }

  /** @param {number} index */
  #row(index) {
    const log = /** @type {InspectorLog} */ (this.log);
    const n = log.first + index + 1;
    const event = /** @type {import("../../index.js").AgentEvent} */ (log.event(n));
    return h("div", { class: "row", role: "option", id: `event-${n}`, "aria-selected": n === this.n ? "true" : "false", "aria-setsize": this.rows.count, "aria-posinset": index + 1, onclick: () => this.seek(n) },
      h("span", { class: "number" }, grouped(n)), h("span", { class: "time" }, duration(log.at(n) - log.lanes.from)), h("span", { class: `type ${event.type}` }, event.type), h("span", { class: "what" }, short(summary(event))));
  }

  /** @param {Shown} shown */
  show({ log, frame }) {
    const { n } = frame;
    const isOther = this.log !== log || this.first !== log.first;
    this.log = log;
    this.first = log.first;
    const moved = n !== this.n;
    const before = this.body.querySelector(`#event-${this.n}`);
    this.n = n;
    this.rows.show(log.end - log.first, isOther);
    if (!moved && !isOther) return;
    this.rows.reveal(n - log.first - 1);
    before?.setAttribute("aria-selected", "false");
    const chosen = this.body.querySelector(`#event-${n}`);
    chosen?.setAttribute("aria-selected", "true");
    if (chosen) this.scroller.setAttribute("aria-activedescendant", chosen.id);
    else this.scroller.removeAttribute("aria-activedescendant");
    const { event } = frame;
    // What a request says stands in its own panel.
    const draw = () => this.json.replaceChildren(!event ? h("p", { class: "nothing" }, "Before the first event.") : event.type === "before_llm_call" ? h("p", { class: "nothing" }, `${summary(event)}: see “Request”.`) : longText(maskedJson(withoutHistory(event)), { most: 6000, tag: "pre" }));
    keeping(this.json, draw);
  }
}

/** @param {import("../../index.js").AgentEvent} event */
const withoutHistory = (event) => (event.type === "agent_end" ? { ...event, messages: `${counted(event.messages.length, "message")}` } : event);

export class TablePanel {
  id = "table";
  name = "Table";

  /** @param {(n: number) => void} seek */
  constructor(seek) {
    this.seek = seek;
    /** What the rows were made of. @type {InspectorLog | undefined} */
    this.log = undefined;
    this.end = this.length = -1;
    this.body = h("tbody");
    this.table = h("table", {}, h("caption", {}, "The lanes as a table"), h("thead", {}, h("tr", { "aria-rowindex": 1 }, ...["From", "Took", "What", "Which"].map((name) => h("th", { scope: "col" }, name)))), this.body);
    this.root = h("div", { class: "panel scrolls", tabindex: 0 }, this.table);
    this.rows = new RowsInSight({ scroller: this.root, body: this.body, spacer: "tr", rowHeight: ROW, make: (index) => this.#row(index) });
  }

  /** @param {number} index */
  #row(index) {
    const log = /** @type {InspectorLog} */ (this.log);
    const row = /** @type {Span | Mark | Turn} */ (log.lanes.rows[index]);
    const { from } = log.lanes;
    const [at, took, what, which] = "lane" in row ? [row.start, row.end === Infinity ? "open" : duration(row.end - row.start), `${row.lane.key.split("\n").slice(0, row.lane.depth).map((name) => `${name} › `).join("")}${row.lane.name}`, `${kindInWords(row.kind)}; ${row.detail}`]
      : "at" in row ? [row.at, "–", markInWords(row.kind), row.text] : [row.end, "–", `turn ${row.index} ends`, inWords(row.reason)];
    return h("tr", { "aria-rowindex": index + 2 }, h("td", {}, duration(at - from)), h("td", {}, took), h("th", { scope: "row" }, h("button", { type: "button", class: "plain", onclick: () => this.seek(row.n) }, what)), h("td", { title: which }, which));
  }

  /** @param {Shown} shown */
  show({ log }) {
    const { length } = log.lanes.rows;
    // Spans that were open may have ended, or changed their places.
    const isOther = this.log !== log || this.end !== log.end || this.length !== length;
    Object.assign(this, { log, end: log.end, length });
    this.table.setAttribute("aria-rowcount", String(length + 1));
    keeping(this.root, () => this.rows.show(length, isOther));
  }
}
