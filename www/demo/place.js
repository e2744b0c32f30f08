// @ts-check
// Where the loop runs, on this page or in the Worker: the user's choice, and the conversation in the Worker.

import { byId } from "./dom.js";
import { RemoteConversation } from "./elsewhere.js";
import { loadRemote } from "./engine.js";

const KEY = {
  page: "Kept in this page's memory, sent to the address above and nowhere else.",
  worker: "Sent to the Worker on this machine, which sends it to the address above. Both keep it in memory, and nowhere else.",
};

export class Place {
  /** @param {() => void} onChange called when the user chose the other place */
  constructor(onChange) {
    this.fields = byId("places", HTMLFieldSetElement);
    this.choice = byId("place-worker", HTMLInputElement);
    /** The address of the Worker, if there is one. @type {string | undefined} */
    this.worker = undefined;
    /** The module that talks to it. @type {typeof import("../npm/remote.js") | undefined} */
    this.remote = undefined;
    /** The conversation in the Worker. @type {RemoteConversation | undefined} */
    this.conversation = undefined;
    this.fields.addEventListener("change", () => {
      this.#showChoice();
      onChange();
    });
  }

  /** Without a Worker the loop can only run on the page. @param {string | null} worker its address */
  async find(worker) {
    this.worker = worker ?? undefined;
    this.choice.disabled = this.worker === undefined;
    if (this.worker) this.remote = await loadRemote();
    // A page from a folder has none, and does not speak of it.
    this.fields.hidden = this.worker === undefined;
    if (!this.worker) this.choice.parentElement?.setAttribute("title", "This page came without its Worker: serve it with “cargo xtask demo”.");
  }

  get isElsewhere() {
    return this.choice.checked;
  }

  /** A model of this page answers in this page. */
  stayHere() {
    byId("place-page", HTMLInputElement).checked = true;
    this.#showChoice();
  }

  #showChoice() {
    const name = this.isElsewhere ? "worker" : "page";
    document.documentElement.dataset["place"] = name;
    byId("key-note", HTMLElement).textContent = KEY[name];
  }

  /** Fixes the choice: a run that waits continues where it was started. @param {boolean} isFixed */
  fix(isFixed) {
    this.fields.disabled = isFixed;
  }

  /**
   * Starts a conversation in the Worker, if that was chosen.
   * @param {{ settings: import("./agent.js").Settings, messages: () => readonly import("../npm/index.js").AgentMessage[], hold: number }} begin
   * @param {(error: unknown) => void} onError
   */
  begin({ settings, messages, hold }, onError) {
    if (!this.isElsewhere || !this.remote || !this.worker) return;
    this.conversation = new RemoteConversation(this.remote, this.worker, { onError, begin: { settings, messages: messages(), hold } });
    return this.conversation.agent;
  }

  /**
   * Returns to the conversation from before the reload, and to its run if one is in progress. Returns nothing
   * if the Worker has forgotten it.
   * @param {string} id
   */
  async comeBack(id) {
    this.choice.checked = this.worker !== undefined;
    this.#showChoice();
    if (!this.remote || !this.worker) return;
    const conversation = new RemoteConversation(this.remote, this.worker, { id, onError: (error) => void (conversation.agent.isRunning || run.end({ stopReason: "error", error })) });
    const run = conversation.attach();
    try {
      await conversation.agent.ready();
    } catch {
      return conversation.leave();
    }
    this.conversation = conversation;
    return { agent: conversation.agent, run };
  }

  /** Gives up the conversation in the Worker. */
  leave() {
    this.conversation?.leave();
    this.conversation = undefined;
  }
}
