// @ts-check
// The tools of the demo. They are real: each computes its answer here, on this
// machine, and nothing is made up.

import { calculate, numberText } from "./calculator.js";
import { ARTICLES, searchLibrary } from "./library.js";
import { pause } from "./pause.js";
import { placeNamed, similarPlaces } from "./places.js";
import { KINDS, convert } from "./units.js";

/** @typedef {import("../npm/index.js").ToolDefinition} ToolDefinition */
/** @typedef {import("../npm/index.js").ToolContext} ToolContext */
/** @typedef {import("./pause.js").Pause} Pause */

/**
 * @typedef {object} ToolsOptions
 * @property {<Args>(definition: import("../npm/index.js").ToolDefinition<Args>) => ToolDefinition} [tool] the package's `tool`
 * @property {Pause} [sleep] how a tool waits
 * @property {() => number} [now] milliseconds since 1970
 * @property {(title: string) => void} [rename] gives the page a title; without it there is no page and no `rename_page`
 * @property {boolean} [brief] describes them in few words, for models that read slowly
 * @property {() => number} [pace] 1 holds every tool long enough to be watched, 0 lets it answer at once, more holds it longer
 */

const MOST_PRIMES = 20_000_000;
const SLICES = 40;

/**
 * The five tools: `calculator`, `clock`, `convert_units`, `search_library`, `count_primes`, and on a page
 * `rename_page`, which asks first.
 *
 * Four of them answer in less than a millisecond. `pace` holds them for a moment, so that a person can watch
 * them run; their answers do not depend on it.
 *
 * @param {ToolsOptions} [options]
 * @returns {ToolDefinition[]}
 */
export function demoTools({ tool: make = (definition) => definition, sleep = pause, now = Date.now, pace = () => 1, rename, brief = false } = {}) {
  // All of them are safe to run twice, so a call that a reload interrupts may run again.
  const tool = (/** @type {ToolDefinition} */ { description, ...definition }) => make({ ...definition, description: brief ? (/^[^.:]+/.exec(description)?.[0] ?? "") : description, idempotent: true });
  const hold = (/** @type {number} */ ms, /** @type {ToolContext} */ { signal }) => sleep(ms * pace(), signal);

  const calculator = tool({
    name: "calculator",
    description: "Works out an arithmetic expression: + - * / ^ ! ( ), % for the remainder, functions such as sqrt, round, sin, ln, log, min, max, avg, and pi and e.",
    parameters: object({ expression: { type: "string", minLength: 1, description: "for example 2 * (3 + 4)^2" } }, ["expression"]),
    execute: async (/** @type {{ expression: string }} */ { expression }, context) => {
      await hold(450, context);
      const value = calculate(expression);
      const text = numberText(value);
      const exact = Number.isSafeInteger(value) || text.length < 15;
      return answer(`${expression.trim()} ${exact ? "=" : "≈"} ${text}`, { value });
    },
  });

  const clock = tool({
    name: "clock",
    description: "Tells the current time and date in a city, a country with one time zone, or an IANA time zone such as Europe/Oslo.",
    parameters: object({ place: { type: "string", description: "a city or a time zone; left out, the zone of this machine" } }, []),
    execute: async (/** @type {{ place?: string }} */ { place }, context) => {
      await hold(800, context);
      const zone = zoneOf(place);
      const { time, date, offset } = wallClock(now(), zone.zone);
      return answer(`${zone.name}: ${time} on ${date} (${zone.zone}, ${offset})`, { place: zone.name, zone: zone.zone, time, date, offset });
    },
  });

  const convertUnits = tool({
    name: "convert_units",
    description: `Converts a value between units of ${KINDS.join(", ")}.`,
    parameters: object({
      value: { type: "number" },
      from: { type: "string", minLength: 1, description: "a unit, for example km or miles" },
      to: { type: "string", minLength: 1, description: "a unit of the same kind" },
    }, ["value", "from", "to"]),
    execute: async (/** @type {{ value: number, from: string, to: string }} */ args, context) => {
      await hold(600, context);
      const { value, from, to } = convert(args.value, args.from, args.to);
      const text = numberText(value, 8);
      const exact = Math.abs(Number(text) - value) <= Math.abs(value) * 1e-14;
      return answer(`${numberText(args.value)} ${from.symbol} ${exact ? "=" : "≈"} ${text} ${to.symbol}`, { value, unit: to.symbol });
    },
  });

  const search = tool({
    name: "search_library",
    description: `Searches a bundled collection of short articles and gives the best passages. Topics: ${ARTICLES.map(({ topics }) => topics).join("; ")}.`,
    parameters: object({
      query: { type: "string", minLength: 1, description: "a few words" },
      limit: { type: "integer", minimum: 1, maximum: 5, description: "how many passages, 3 if left out" },
    }, ["query"]),
    execute: async (/** @type {{ query: string, limit?: number }} */ { query, limit = 3 }, context) => {
      await hold(1000, context);
      const hits = searchLibrary(query, limit);
      if (hits.length === 0) return answer(`No article mentions “${query}”.`, { hits: 0 });
      return answer(hits.map(({ article, passage }, index) => `${index + 1}. ${article.title}: ${passage}`).join("\n"), { hits: hits.length });
    },
  });

  const countPrimes = tool({
    name: "count_primes",
    description: "Counts the prime numbers below a limit with a sieve. Takes some seconds, reports its progress and can be cancelled.",
    parameters: object({ below: { type: "integer", minimum: 10, maximum: MOST_PRIMES, description: "the limit, itself not counted" } }, ["below"]),
    execute: async (/** @type {{ below: number }} */ { below }, context) => {
      const sieve = primeSieve(below);
      for (let slice = 1; slice <= SLICES; slice += 1) {
        await sleep(200 * pace(), context.signal);
        sieve.upTo(Math.ceil((below * slice) / SLICES));
        const text = `${Math.round((100 * slice) / SLICES)} %, ${grouped(sieve.count)} primes so far`;
        context.update({ content: [{ type: "text", text }], details: { progress: slice / SLICES } });
      }
      return answer(`There are ${sieve.count} primes below ${below}; the largest is ${sieve.largest}.`, { count: sieve.count, largest: sieve.largest });
    },
  });

  const renamePage = rename && tool({
    name: "rename_page",
    description: "Gives this page another title, the one in the browser's tab. A person is asked before it happens, and asked for the title if there is none.",
    parameters: object({ title: { type: "string", minLength: 1, maxLength: 80 } }, []),
    // Who is asked for the title need not be asked twice.
    requiresApproval: (/** @type {{ title?: string }} */ { title }) => title !== undefined,
    execute: async (/** @type {{ title?: string }} */ { title: given }, context) => {
      const title = (given ?? (await titleFrom(context))).trim();
      if (!title) throw new Error("the person gave no title");
      await hold(300, context);
      rename(title);
      return answer(`The page is called “${title}” now.`, { title });
    },
  });

  return [calculator, clock, convertUnits, search, countPrimes, ...(renamePage ? [renamePage] : [])];
}

/** Asks the person for a title. @param {ToolContext} context */
async function titleFrom({ ask }) {
  const schema = object({ title: { type: "string", title: "Title", minLength: 1, maxLength: 80 } }, ["title"]);
  const reply = await ask({ message: "What shall this page be called?", schema });
  return reply.action === "accept" ? String(/** @type {{ title?: unknown }} */ (reply.content).title ?? "") : "";
}

/** @param {{ [name: string]: import("../npm/index.js").JsonSchema }} properties @param {string[]} required */
function object(properties, required) {
  return { type: "object", properties, required, additionalProperties: false };
}

/** @param {string} text @param {import("../npm/index.js").JsonValue} details */
function answer(text, details) {
  return { content: [{ type: /** @type {const} */ ("text"), text }], details };
}

/** @param {string | undefined} place */
function zoneOf(place) {
  if (!place?.trim()) {
    const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    return { name: "Here", zone };
  }
  const found = placeNamed(place);
  if (found) return found;
  const similar = similarPlaces(place);
  const help = similar.length > 0 ? `did you mean ${similar.join(" or ")}?` : "give a larger city nearby, or an IANA zone such as Europe/Oslo";
  throw new Error(`no time zone known for \`${place}\`; ${help}`);
}

/** @param {number} at @param {string} timeZone */
function wallClock(at, timeZone) {
  /** @param {Intl.DateTimeFormatOptions} wanted */
  const format = (wanted) => new Intl.DateTimeFormat("en-GB", { timeZone, ...wanted });
  const time = format({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(at);
  const parts = format({ weekday: "long", day: "numeric", month: "long", year: "numeric" }).formatToParts(at);
  const part = (/** @type {string} */ type) => parts.find((candidate) => candidate.type === type)?.value ?? "";
  const offset = format({ timeZoneName: "longOffset" }).formatToParts(at).find(({ type }) => type === "timeZoneName")?.value ?? "";
  return { time, date: `${part("weekday")}, ${part("day")} ${part("month")} ${part("year")}`, offset: offset.replace("GMT", "UTC") };
}

/** Counts in slices, and stores only the primes up to the square root of the limit. @param {number} below */
function primeSieve(below) {
  const roots = smallPrimes(Math.floor(Math.sqrt(below)) + 1);
  return {
    reached: 2,
    count: 0,
    largest: 0,
    /** @param {number} end counts on to `end`, itself not counted */
    upTo(end) {
      const start = this.reached;
      if (end <= start) return;
      const composite = new Uint8Array(end - start);
      for (const prime of roots) {
        for (let multiple = Math.max(prime * prime, Math.ceil(start / prime) * prime); multiple < end; multiple += prime) composite[multiple - start] = 1;
      }
      composite.forEach((crossed, index) => {
        if (crossed) return;
        this.count += 1;
        this.largest = start + index;
      });
      this.reached = end;
    },
  };
}

/** @param {number} most */
function smallPrimes(most) {
  /** @type {number[]} */
  const primes = [];
  for (let candidate = 2; candidate <= most; candidate += 1) {
    if (primes.every((prime) => prime * prime > candidate || candidate % prime !== 0)) primes.push(candidate);
  }
  return primes;
}

/** 1234567 as 1,234,567. @param {number} value */
export function grouped(value) {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}
