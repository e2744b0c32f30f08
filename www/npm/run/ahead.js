// @ts-check
// The first request of a run, sent before the engine is there. The first half of the engine, in an instance that is thrown
// away, plays the run up to this request. The run itself begins once everything is there, and when it asks for the very same
// request, it gets the response that is on its way. Whatever is different (a rule that must be asked, a key to fetch, a
// letter that came in between) ends this quietly: the run then sends its own request.

import { Engine, Scope } from "../boundary/engine.js";
import * as KIND from "../boundary/protocol.js";
import { requestOf, send } from "../effects/http.js";
import { quietly, Slot } from "../effects/slot.js";

/** @import { Driver } from "./driver.js" */
/** @import { HttpEffect } from "../effects/http.js" */

/** How often the engine may be asked to go on before it wants a request. */
const STEPS = 8;

export class Ahead {
  /** @param {HttpEffect} effect @param {Uint8Array} body @param {Slot} state @param {Promise<Response>} response */
  constructor(effect, body, state, response) {
    this.effect = effect;
    this.body = body;
    this.state = state;
    this.response = response;
    // Nobody may ever ask for it.
    response.catch(() => {});
  }

  /** Whether a request is the one that was sent. @param {HttpEffect} effect @param {Uint8Array} body */
  is(effect, body) {
    const { url, model, headers } = this.effect;
    const isSame = url === effect.url && model === effect.model && JSON.stringify(headers) === JSON.stringify(effect.headers);
    return isSame && body.length === this.body.length && body.every((byte, i) => byte === this.body[i]);
  }

  /** Nobody wants the response. @param {unknown} reason */
  drop(reason) {
    this.state.abort(reason);
    this.response.then((response) => quietly(() => response.body?.cancel()), () => {});
  }
}

/**
 * Sends the first request of a run, if it can be known.
 * @param {Driver} run @param {WebAssembly.Module} first @param {string | undefined} prompts JSON @returns {Ahead | undefined}
 */
export function sendAhead(run, first, prompts) {
  const { core } = run;
  // What a checkpoint or a command says is the engine's business.
  if (run.origin.restored || core.registration.state || core.registration.waiting.length > 0 || run.abortion.isAsked) return;
  try {
    const found = play(run, new Engine({ module: first }, new Scope()), prompts);
    // What a request refers to may have to be fetched before.
    if (!found || found.effect.hasLinks) return;
    const state = new Slot();
    return new Ahead(found.effect, found.body, state, send(requestOf(core, found.effect, found.body), state));
  } catch {
    // The first half lacks something that this run needs.
  }
}

/** Plays the run up to its first request. @param {Driver} run @param {Engine} engine @param {string | undefined} prompts */
function play({ core, runId, options }, engine, prompts) {
  const { glue } = engine;
  const now = core.host.now();
  const agent = glue.agent_new(core.settings.toJson(), core.history.toJson(), NOBODY);
  const handle = glue.run_new(agent, prompts ?? "", runId, /** @type {string} */ (core.session.id), options, 0, now);
  for (let step = 0; step < STEPS; step++) {
    const more = glue.run_poll(handle, 0, 0, now);
    for (const [kind, number, piece] of more === 0 ? [] : entries(engine)) {
      if (kind === KIND.HTTP) return { effect: /** @type {HttpEffect} */ (JSON.parse(piece)), body: glue.take_body(handle, number) };
      // A time limit may run beside the request; anything else comes before it.
      if (kind === KIND.TOOL || (kind === KIND.EFFECT && JSON.parse(piece).kind !== "sleep")) return;
    }
    if (more !== 2) return;
  }
}

/** What lies in the engine's outbox. @param {Engine} engine @returns {[kind: number, number: number, piece: string][]} */
function entries(engine) {
  const table = engine.read();
  const { kind, number, text } = engine;
  if (!table) return [[kind, number, text]];
  /** @type {[number, number, string][]} */
  const list = [];
  for (let i = 0, at = 0; i < table.length; i += 3) {
    const [kind, number, length] = /** @type {[number, number, number]} */ (table.slice(i, i + 3));
    list.push([kind, number, text.substring(at, (at += length))]);
  }
  return list;
}

/** In place of what the engine calls: the host's rules are asked once, by the run itself. */
const NOBODY = { wake() {}, forget() {}, rule: refuse, validate: refuse, random: refuse, id: refuse };

/** @returns {never} */
function refuse() {
  throw new Error("not before the run begins");
}
