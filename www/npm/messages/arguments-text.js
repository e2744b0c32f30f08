// @ts-check
// The arguments of a call as the text that a model would have written.

const [HUGE, NONE] = ["\u0001huge", "\u0001none"];

/**
 * Writes arguments as JSON. A number that is not finite, which JSON would make `null`, becomes a text that the engine refuses by name.
 * @param {unknown} value
 */
export function argumentsText(value) {
  let isOdd = false;
  const text = JSON.stringify(value, (_, item) => {
    if (typeof item !== "number" || Number.isFinite(item)) return item;
    isOdd = true;
    return Number.isNaN(item) ? NONE : item > 0 ? HUGE : `-${HUGE}`;
  });
  if (!isOdd) return text;
  return text.replaceAll(/"(-?)\\u0001(huge|none)"/g, (_, sign, kind) => (kind === "huge" ? `${sign}1e999` : "NaN"));
}
