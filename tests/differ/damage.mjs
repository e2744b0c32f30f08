// @ts-check
// Checkpoints that are not as they were written.

/** @param {string} text @param {number} kind 0: as it is @returns {any} */
export function damaged(text, kind) {
  const it = JSON.parse(text);
  const own = it.metadata?.turnwheel ?? {};
  switch (kind) {
    case 0: return text;
    case 1: return it;
    case 2: return text.slice(0, text.length / 2);
    case 3: return { ...it, version: 2 };
    case 4: return { ...it, messages: it.messages.slice(0, -1) };
    case 5: return { ...it, messages: [...it.messages, { role: "nobody" }] };
    case 6: return { ...it, metadata: { ...it.metadata, turnwheel: { ...own, state: "odd" } } };
    case 7: return { ...it, metadata: {} };
    case 8: return { ...it, metadata: { ...it.metadata, turnwheel: Object.fromEntries(Object.entries(own).slice(1)) } };
    default: return undefined;
  }
}
