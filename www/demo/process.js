// @ts-check
// The page's side of the agent's process: starts it, ends it, and is its network. The bank and a model of the page are reached
// through here, and nothing gets through while the page is switched offline.

/** @typedef {import("./providers.js").Choice} Choice */
/**
 * What a process gets when it begins.
 * @typedef {{ run: string, prompts: string[], version: number, offset: number, pace: number, choice: Choice, isOffline: boolean, isArmed: boolean, fork?: { text: string, at: number } }} Start
 */
/** @typedef {{ pay(order: import("./invoices.js").Payment): Promise<import("./invoices.js").Payment>, all(): Promise<import("./invoices.js").Payment[]> }} AnyBank */
/**
 * @typedef {object} Means
 * @property {() => Start} start
 * @property {AnyBank} bank
 * @property {() => void} onBank the books have changed, or are about to
 * @property {() => import("./device.js").OnDevice | undefined} device the model of the page, if one is chosen
 * @property {(message: any) => void} onMessage
 */

/** How long an order is on its way to the bank, and the answer on its way back, in milliseconds. */
const TRAVEL_MS = 700;
const ENDED = "the process has just ended: press again once the next one runs";

export class Process {
  /** @param {Means} means */
  constructor(means) {
    this.means = means;
    this.isOver = false;
    /** Whether it has an agent, as far as the page knows: before that it takes no answers and has no tape. */
    this.isSpeaking = false;
    /** @type {Map<number, { resolve: (text: string) => void, reject: (error: Error) => void }>} */
    this.tapes = new Map();
    this.count = 0;
    const { pace, isOffline, fork } = means.start();
    this.pace = pace;
    this.isOffline = isOffline;
    /** Called when the network is back. */
    this.backOnline = new Set();
    this.aborter = new AbortController();
    this.worker = new Worker(new URL("./payer.js", document.baseURI), { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.#receive(data));
    this.worker.addEventListener("error", ({ message }) => this.#report({ kind: "failed", message: message || "its script could not be loaded; was the page served with “cargo xtask demo”?" }));
    if (fork) this.send({ kind: "begin", ...means.start() });
    else this.send({ kind: "claim" });
  }

  /** @param {object} message */
  send(message) {
    this.worker.postMessage(message);
  }

  /** Ends the process where it stands. */
  kill() {
    this.isOver = true;
    this.worker.terminate();
    for (const { reject } of this.tapes.values()) reject(new Error(ENDED));
    // A request of a model ends with who asked; an order that is on its way to the bank is not called back.
    this.aborter.abort(new DOMException("the process has ended", "AbortError"));
  }

  /** @param {boolean} isOffline */
  switch(isOffline) {
    this.isOffline = isOffline;
    this.send({ kind: "offline", isOffline });
    if (!isOffline) for (const go of [...this.backOnline]) go();
  }

  /** The tape of the run so far. @returns {Promise<string>} */
  tape() {
    return new Promise((resolve, reject) => {
      if (this.isOver) return reject(new Error(ENDED));
      this.tapes.set(++this.count, { resolve, reject });
      this.send({ kind: "tape", n: this.count });
    });
  }

  /** @param {any} message */
  #report(message) {
    if (this.isOver) return;
    this.isSpeaking ||= message.kind === "event" || message.kind === "questions";
    this.means.onMessage(message);
  }

  /** @param {any} message */
  #receive(message) {
    const { bank } = this.means;
    switch (message.kind) {
      case "owner":
        // Another tab may have gone on meanwhile: what is to be done is read now.
        this.send({ kind: "begin", ...this.means.start() });
        return this.#report(message);
      case "pay":
        return void this.#answer(message.n, () => this.#order(message.order));
      case "payments":
        return void this.#answer(message.n, async () => (await this.#network(), bank.all()));
      case "model":
        return void this.#model(message);
      case "tape":
        this.tapes.get(message.n)?.resolve(message.text);
        return void this.tapes.delete(message.n);
      default:
        return this.#report(message);
    }
  }

  /** An order on its way to the bank and back. It arrives even if its sender ends meanwhile. @param {import("./invoices.js").Payment} order */
  async #order(order) {
    const { bank, onBank } = this.means;
    await this.#network();
    await this.#travel();
    const payment = await bank.pay(order);
    onBank();
    await this.#travel();
    await this.#network();
    return payment;
  }

  #travel() {
    return new Promise((resolve) => setTimeout(resolve, TRAVEL_MS * this.pace));
  }

  /** Waits while the page is offline. */
  async #network() {
    while (this.isOffline) {
      await new Promise((resolve) => {
        const go = () => (this.backOnline.delete(go), resolve(undefined));
        this.backOnline.add(go);
      });
    }
  }

  /** @param {number} n @param {() => Promise<unknown>} work */
  async #answer(n, work) {
    try {
      const value = await work();
      if (!this.isOver) this.send({ kind: "answer", n, value });
    } catch (error) {
      if (!this.isOver) this.send({ kind: "answer", n, error: error instanceof Error ? error.message : String(error) });
    }
  }

  /** @param {{ n: number, request: any }} message */
  async #model({ n, request }) {
    const { signal } = this.aborter;
    try {
      const device = this.means.device();
      if (!device) throw new Error("the model of this page is not loaded: choose it again");
      const { model, takesTools, streamOptions } = device;
      const fitting = { ...request, tools: takesTools ? request.tools : [], options: { ...request.options, ...streamOptions } };
      const context = /** @type {any} */ ({ signal, runId: "page", sessionId: "page", turnIndex: 0 });
      for await (const event of model.streamFn(fitting, context)) if (!this.isOver) this.send({ kind: "answer", n, value: event });
    } catch (error) {
      if (!this.isOver) this.send({ kind: "answer", n, error: error instanceof Error ? error.message : String(error) });
    }
  }
}
