// @ts-check
// Values as Node's console writes them, as far as the docs print any: what a block says in `// →` is what its button shows.

/** A line of the console. @param {unknown[]} words */
export const lineOf = (words) => words.map((word) => (typeof word === "string" ? word : inspect(word))).join(" ");

/** @param {unknown} value @param {number} [depth] @param {number} [indent] @returns {string} */
export function inspect(value, depth = 0, indent = 0) {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return value.name ? `[Function: ${value.name}]` : "[Function (anonymous)]";
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : String(value);
  if (value instanceof Error) return value.stack?.includes(value.message) ? `${value.name}: ${value.message}` : String(value);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Promise) return "Promise {}";
  const isList = Array.isArray(value);
  if (depth > 2) return isList ? "[Array]" : "[Object]";
  const of = (/** @type {unknown} */ inner) => inspect(inner, depth + 1, indent + 2);
  if (value instanceof Map) return shown(`Map(${value.size}) `, [...value].map(([key, inner]) => `${of(key)} => ${of(inner)}`), "{}", indent);
  if (value instanceof Set) return shown(`Set(${value.size}) `, [...value].map(of), "{}", indent);
  if (isList) return shown("", value.map(of), "[]", indent);
  const kind = Object.getPrototypeOf(value)?.constructor?.name ?? "[Object: null prototype]";
  return shown(kind === "Object" ? "" : `${kind} `, Object.entries(value).map(([key, inner]) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key)}: ${of(inner)}`), "{}", indent);
}

/** On one line where it fits, as Node does. @param {string} kind @param {string[]} parts @param {string} braces @param {number} indent */
function shown(kind, parts, braces, indent) {
  const [open, close] = braces;
  if (parts.length === 0) return kind + braces;
  const isShort = parts.length <= 6 || braces === "{}";
  const length = parts.reduce((sum, part) => sum + part.length + 2, kind.length);
  if (isShort && length <= 76 && !parts.some((part) => part.includes("\n"))) return `${kind}${open} ${parts.join(", ")} ${close}`;
  const space = " ".repeat(indent + 2);
  return `${kind}${open}\n${parts.map((part) => space + part).join(",\n")}\n${" ".repeat(indent)}${close}`;
}

/** With the quotes that need no backslash. @param {string} text */
function quoted(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  return quote + JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll(quote, `\\${quote}`) + quote;
}
