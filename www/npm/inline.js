// @ts-check
// The package as one script, with the engine inside. The build joins all of it into a file that imports nothing, as a module and
// for `require`: bundlers, tests and single executables take it as it is. The servers' entries wait for no file either.
import { use, useJudge, useLinear, useRest } from "./core.js";
import { broken, textOf } from "./shared.js";
import { PACKED, SIZE } from "./boundary/inlined.js";
import { checkOf, excessOf, Judge } from "./tools/judge.js";
import { compile, statesOf } from "./linear.js";
import { REST } from "./rest.js";

useJudge({ checkOf, excessOf, Judge });
useLinear({ compile, statesOf });
useRest(REST);
use(async () => compiled(await unpacked()), true);

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function compiled(bytes) {
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    // A page's policy has a message of its own. Otherwise it is the host that refuses: the bytes have passed their checksum.
    if (/\bCSP\b|content.security|memory/i.test(textOf(error))) throw error;
    throw refused("compiles no WebAssembly from bytes", error);
  }
}

/** @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function unpacked() {
  const text = atob(PACKED);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  if (typeof DecompressionStream === "function") return inflated(packed);
  // Bun before 1.3.3 has none.
  const zlib = typeof process === "undefined" ? undefined : process.getBuiltinModule?.("node:zlib");
  if (!zlib) throw refused("has no DecompressionStream");
  return new Uint8Array(zlib.inflateSync(packed));
}

/** @param {Uint8Array<ArrayBuffer>} packed */
async function inflated(packed) {
  const { readable, writable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  // What goes wrong is told to the reader, too.
  const ignore = () => {};
  writer.write(packed).catch(ignore);
  writer.close().catch(ignore);
  const bytes = new Uint8Array(SIZE);
  const reader = readable.getReader();
  for (let at = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return bytes;
    bytes.set(value, at);
    at += value.length;
  }
}

/** @param {string} why @param {unknown} [cause] */
function refused(why, cause) {
  const detail = cause === undefined ? "" : ` (${textOf(cause)})`;
  return broken(`this host ${why}, so turnwheel/inline cannot run here. Take turnwheel/slim, and import turnwheel/turnwheel.wasm, which is compiled when you deploy: import { Agent, use } from "turnwheel/slim"; import wasm from "turnwheel/turnwheel.wasm"; use(() => wasm). On Cloudflare Workers, turnwheel itself does that${detail}`, cause);
}

export * from "./index.js";
