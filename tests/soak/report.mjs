// @ts-check
// The ledger as a person reads it: what happened, what was promised, and what of that did not hold.

/** What the soak promises, and the kinds of faults that break it. @type {[string, string[]][]} */
export const CLAIMS = [
  ["all runs ended as the server's script has it", ["a wrong end", "a run did not end", "an agent ended twice", "a wrong result", "an agent complains"]],
  ["no message was lost, doubled or changed", ["a lost message", "a changed message"]],
  ["no call ran twice", ["a call ran twice", "a call that did not run as often as it should"]],
  ["no call of a cut answer ran", ["a cut call ran", "a cut answer counts", "an unknown call ran"]],
  ["no key and no prompt went elsewhere", ["leak of a key", "wrong key"]],
  ["no rejection was unhandled", ["an unhandled rejection", "an uncaught exception"]],
  ["nothing was left open", ["an open socket", "something is left open", "a dead agent asks"]],
  ["memory was flat", ["a leak"]],
  ["the soak itself worked", ["the soak itself failed"]],
];

const SHOWN = 5;
const mb = (/** @type {number} */ bytes) => `${(bytes / 1_048_576).toFixed(2)} MB`;

/** What a server said may be anything; a terminal shall not have to bear it. @param {string} text */
const readable = (text) => text.slice(0, 1500).replace(/[\u0000-\u001f\u007f\ufffd]+/g, " ");

/** The claims with what broke each; an unknown kind of fault belongs to the soak itself. @param {import("./ledger.mjs").Fault[]} faults */
export function broken(faults) {
  const known = new Set(CLAIMS.flatMap(([, kinds]) => kinds));
  return CLAIMS.map(([claim, kinds], i) => ({ claim, faults: faults.filter(({ kind }) => kinds.includes(kind) || (i === CLAIMS.length - 1 && !known.has(kind))) }));
}

/**
 * The whole of it.
 * @param {import("./ledger.mjs").Ledger} ledger
 * @param {{ host: string, windows: any[], flat: ReturnType<typeof import("./memory.mjs").flatness> }[]} memory
 * @param {(id: string) => string} play the command that plays one life alone
 */
export function report(ledger, memory, play) {
  const lines = [];
  const { counts } = ledger;
  lines.push(`seed ${ledger.seed}: ${Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ")}`, "");
  const rows = [...ledger.scenarios].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, { lives, ends }] of rows) lines.push(`${name.padEnd(10)}${String(lives).padStart(7)}  ${[...ends].map(([end, times]) => `${end} ${times}`).join(", ")}`);
  lines.push("");
  for (const { host, windows, flat } of memory) {
    for (const { name, middle, end, lives, flat: isFlat } of flat) lines.push(`${host} ${name}: ${mb(middle)} in the middle, ${mb(end)} at the end, ${lives} lives later${isFlat ? "" : ": NOT FLAT"}`);
    if (flat.length === 0) lines.push(`${host}: ${windows.length} windows are too few to compare memory`);
  }
  lines.push("");
  const claims = broken(ledger.faults);
  for (const { claim, faults } of claims) {
    lines.push(`${faults.length === 0 ? "ok    " : "FAILED"} ${claim}${faults.length ? `: ${faults.length} times not` : ""}`);
    for (const { kind, id, text } of faults.slice(0, SHOWN)) lines.push(`       ${kind}${id ? ` (${id})` : ""}: ${readable(text)}`, ...(id ? [`         alone: ${play(id)}`] : []));
  }
  const failed = claims.filter(({ faults }) => faults.length > 0).length;
  lines.push("", `${claims.length - failed} passed, ${failed} failed`);
  return { text: lines.join("\n"), failed };
}
