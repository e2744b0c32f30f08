// @ts-check
// Passes values between JavaScript and the wasm module. This replaces the script that wasm-bindgen generates:
// it binds one instance and uses the views of its engine. The build compares the names and calls with those
// of the generated script, and shortens the module's import names to letters (xtask/src/rework.rs).

import { discardInstance } from "./engine.js";

const encoder = new TextEncoder();

/**
 * The name under which the module imports this script. The build derives it from the module's bytes, so it
 * is unique to this module.
 */
export const NAME = "./turnwheel_bg.js";

/**
 * Instantiates the module and returns its exports as functions that take and return strings.
 * @param {import("./engine.js").Engine} engine @param {WebAssembly.Module} module
 */
export function instantiate(engine, module) {
  /** The length of the text or bytes written to the memory last. */
  let length = 0;

  /**
   * Writes a text to the memory and returns its address. Most texts are ASCII; any other gets
   * room for three bytes per UTF-16 unit.
   * @param {string} text
   */
  const put = (text) => {
    const units = text.length;
    let at = wasm.__wbindgen_malloc(units, 1) >>> 0;
    engine.refresh();
    const { bytes } = engine;
    let i = 0;
    for (; i < units; i++) {
      const unit = text.charCodeAt(i);
      if (unit > 127) break;
      bytes[at + i] = unit;
    }
    if (i < units) {
      const room = i + (units - i) * 3;
      at = wasm.__wbindgen_realloc(at, units, room, 1) >>> 0;
      engine.refresh();
      i += encoder.encodeInto(text.slice(i), engine.bytes.subarray(at + i, at + room)).written;
      at = wasm.__wbindgen_realloc(at, room, i, 1) >>> 0;
    }
    length = i;
    return at;
  };

  /** @param {Uint8Array} bytes */
  const putBytes = (bytes) => {
    length = bytes.length;
    const at = wasm.__wbindgen_malloc(length, 1) >>> 0;
    engine.refresh();
    engine.bytes.set(bytes, at);
    return at;
  };

  /** @param {number} at @param {number} length */
  const text = (at, length) => {
    engine.refresh();
    return engine.textAt(at >>> 0, length);
  };

  /**
   * Writes a text, or its absence, where the engine expects a result.
   * @param {number} at @param {unknown} value
   */
  const putResult = (at, value) => {
    const address = typeof value === "string" ? put(value) : 0;
    engine.refresh();
    engine.words[at >>> 2] = address;
    engine.words[(at >>> 2) + 1] = length;
  };

  /** Like `putResult`, but stores an exception for the engine. @param {number} at @param {() => unknown} work */
  const putResultOrError = (at, work) => {
    try {
      putResult(at, work());
    } catch (error) {
      const index = wasm.__externref_table_alloc();
      wasm.__wbindgen_externrefs.set(index, error);
      wasm.__wbindgen_exn_store(index);
    }
  };

  /**
   * Unwraps the result of a call. The last value says whether the call failed; if so, the
   * one before it is the error.
   * @param {any[]} values
   */
  const unwrap = (values) => {
    if (values.pop() === 0) return values[0];
    const index = values.pop();
    const reason = wasm.__wbindgen_externrefs.get(index);
    wasm.__externref_table_dealloc(index);
    throw reason;
  };

  /**
   * Wraps a closure of the engine for a timer. If the instance has died, calling it does nothing.
   * @param {number} a @param {number} b
   */
  const closure = (a, b) => {
    // A closure may be released while it runs; then it is destroyed when it returns.
    let holders = 1;
    const release = () => {
      if (--holders === 0) wasm.__wbindgen_destroy_closure(a, b);
    };
    const work = () => {
      if (engine.dead || holders === 0) return;
      holders++;
      try {
        wasm._closure(a, b);
        release();
      } catch (error) {
        discardInstance(engine, error);
      }
    };
    return Object.assign(work, { release });
  };

  /** @type {Record<string, (...given: any[]) => any>} */
  const imports = {
    ___wbindgen_string_get: putResult,
    ___wbindgen_throw(at, length) {
      throw new Error(text(at, length));
    },
    __wbindgen_init_externref_table() {
      const table = wasm.__wbindgen_externrefs;
      table.set(0, undefined);
      [undefined, null, true, false].forEach((value, i) => table.set(1024 + i, value));
    },
    __wbg_cb_unref: (work) => work.release(),
    _cast_closure: closure,
    _cast_text: text,
    _setTimeout: (work, ms) => setTimeout(work, ms),
    _clearTimeout: (timer) => clearTimeout(timer),
    _random: (host) => host.random(),
    _timing: (host, isOn) => host.timing(isOn),
    _wake: (host, run) => host.wake(run),
    _rule: (at, host, name, nameLength, input, inputLength) => putResultOrError(at, () => host.rule(text(name, nameLength), text(input, inputLength))),
    _validate: (at, host, id, idLength, name, nameLength, args, argsLength) => putResultOrError(at, () => host.validate(text(id, idLength), text(name, nameLength), text(args, argsLength))),
  };

  /** @type {any} */
  const wasm = new WebAssembly.Instance(module, { [NAME]: imports }).exports;
  wasm.__wbindgen_start();

  // Functions that only take and return numbers are exported as they are.
  return /** @type {Record<string, (...given: any[]) => any> & { memory: WebAssembly.Memory }} */ ({
    memory: wasm.memory,
    agent_drop: wasm.agent_drop,
    control: wasm.control,
    feed_end: wasm.feed_end,
    has_waiting: wasm.has_waiting,
    input: wasm.input,
    run_drop: wasm.run_drop,
    run_poll: wasm.run_poll,
    run_started: wasm.run_started,
    agent_new: (settings, history, host) => unwrap(wasm.agent_new(put(settings), length, put(history), length, host)),
    agent_configure: (agent, settings) => unwrap(wasm.agent_configure(agent, put(settings), length)),
    agent_reset: (agent) => unwrap(wasm.agent_reset(agent)),
    agent_restore: (agent, state) => unwrap(wasm.agent_restore(agent, put(state), length)),
    checkpoint(agent, run, endEmitted, now) {
      const result = wasm.checkpoint(agent, run, endEmitted, now);
      const [at, size] = result;
      unwrap(result);
      const state = text(at, size);
      wasm.__wbindgen_free(at, size, 1);
      return state;
    },
    clear_queues: (agent) => unwrap(wasm.clear_queues(agent)),
    feed_refusal: (run, slot, status, headers, body, now) => wasm.feed_refusal(run, slot, status, put(headers), length, putBytes(body), length, now),
    post_decisions: (agent, decisions, all) => unwrap(wasm.post_decisions(agent, put(decisions), length, all)),
    post_message: (agent, followUp, message) => unwrap(wasm.post_message(agent, followUp, put(message), length)),
    reject: (run, slot, reason) => wasm.reject(run, slot, put(reason), length),
    resolve: (run, slot, answer, isText) => wasm.resolve(run, slot, put(answer), length, isText),
    run_abort: (run, reason) => wasm.run_abort(run, put(reason), length),
    run_new: (agent, prompts, id, session, now) => unwrap(wasm.run_new(agent, put(prompts), length, put(id), length, put(session), length, now)),
    set_state: (run, slot, key, value) => wasm.set_state(run, slot, put(key), length, put(value), length),
    stream_delta: (run, slot, kind, index, delta) => wasm.stream_delta(run, slot, kind, index, put(delta), length),
    stream_event: (run, slot, event) => wasm.stream_event(run, slot, put(event), length),
    subagent_event: (run, slot, event) => wasm.subagent_event(run, slot, put(event), length),
    take_body(run, slot) {
      const [at, size] = wasm.take_body(run, slot);
      engine.refresh();
      const body = engine.bytes.slice(at >>> 0, (at >>> 0) + size);
      wasm.__wbindgen_free(at, size, 1);
      return body;
    },
    update: (run, slot, update) => wasm.update(run, slot, put(update), length),
  });
}
