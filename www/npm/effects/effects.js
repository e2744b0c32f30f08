// @ts-check
// Carries out what the engine asks for: model calls, tools, approvals, timers. Each effect has a slot, and its
// answer goes back to that slot. The Rust half is ports.rs of the engine.

import { late } from "../boundary/rest.js";
import { setupOf } from "../models/setup.js";
import { fetchAnswer } from "./http.js";
import { Slot } from "./slot.js";

/** @import { Driver } from "../run/driver.js" */
/** @import { EffectKind } from "../boundary/protocol.js" */
/**
 * An effect as the engine describes it; the members depend on the kind.
 * @typedef {{ kind: EffectKind } & Record<string, any>} Effect
 */

/** Starts an effect. @param {Driver} run @param {number} slot @param {Effect} effect */
export function startEffect(run, slot, effect) {
  const state = new Slot();
  const { engineRun } = run;
  engineRun.slots.set(slot, state);
  // The request of an attempt is made inside `wrapModel`.
  const { attempt } = run;
  if (attempt && (effect.kind === "http" || effect.kind === "stream")) return attempt.start(() => state.aborted || perform(run, slot, effect, state));
  perform(run, slot, effect, state);
}

/** @param {Driver} run @param {number} slot @param {Effect} effect @param {Slot} state */
function perform(run, slot, effect, state) {
  const { engineRun } = run;
  const work = performOf(run, effect.kind)(run, slot, effect, state);
  // A value that is not JSON counts as a failure like any other.
  const when = effect.kind === "tool" ? "soon" : "now";
  if (work) work.then((answer) => engineRun.resolve(slot, answer, when)).catch((error) => engineRun.reject(slot, error, effect.kind === "key"));
}

/** @param {Driver} run @param {EffectKind} kind @returns {Perform} */
const performOf = ({ ports }, kind) => /** @type {Perform} */ (ports?.effects[kind] ?? EFFECTS[kind] ?? late.rest.EFFECTS[kind]);

/** @typedef {(run: Driver, slot: number, effect: any, state: Slot) => Promise<unknown> | void} Perform */

/** What a run may ask for until its first answer ends; the others are in rest-effects.js. @type {Partial<Record<EffectKind, Perform>>} */
export const EFFECTS = {
  http: fetchAnswer,

  async key(run, _slot, { provider, model }) {
    const { core } = run;
    const { getApiKey } = core.options;
    // The model's own key function; another model's key must not reach this model's server. A key given as
    // a string is known to the engine.
    const modelKey = setupOf(core.settings.models.known[model]).apiKey;
    const keys = run.memory.keysOf(run.fold.turn);
    const key = keys.has(provider) ? keys.get(provider) : await getApiKey?.(provider, run.about());
    keys.set(provider, key);
    return key ?? (typeof modelKey === "function" && !run.abortion.isAsked ? await modelKey(run.about()) : null) ?? null;
  },

  async sleep(run, _slot, { ms, backOff }, { signal }) {
    const { core } = run;
    const until = core.host.now() + ms;
    await core.host.sleep(ms, signal, run.memory.names.name(run, backOff ? "sleep" : "limit", "/"));
    // If the host's own sleep ended too early, the engine sleeps again; other tasks must get to run in between.
    if (core.options.host.sleep && !signal.aborted && core.host.now() < until) await new Promise((wake) => setTimeout(wake));
    return null;
  },
};
