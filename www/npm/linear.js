// @ts-check
// Regular expressions in linear time. The hosts' own engines go back and try again, which for some patterns takes as
// many steps as there are ways to divide the text: centuries. This one follows all ways at once (Thompson 1968), so a
// text of n characters takes at most n times as many steps as the pattern has states. It knows the language of the flag
// `u`: what one character may be is left to the host's engine, and what stands around a place (lookahead, lookbehind) is
// found for all places beforehand, from the end or from the start. It says whether there is a match, not where.
//
// Loaded when the first schema has such a pattern.

/** More states than a pattern may have; each turn of a counted repetition has its own. */
const MAX_STATES = 5000;
/** How many parts a pattern may come to, a part once for each turn of what repeats it: not every part makes a state. */
const MAX_PARTS = 10 * MAX_STATES;
/** How deep its groups may be nested. A host with little stack has room for twice as many. */
const MAX_NESTED = 250;

/**
 * A part of a pattern. One that takes no character holds at a place or does not, however often it is repeated.
 * @typedef {{ kind: "char", source: string } | { kind: "place", source: string } | { kind: "all", parts: Part[] } | { kind: "any", parts: Part[] }
 *   | { kind: "repeat", part: Part, min: number, max: number } | { kind: "look", part: Part, isAhead: boolean, isNegative: boolean }} Part
 */

/** What is there everywhere, and makes no state. @type {Part} */
const NOTHING = { kind: "all", parts: [] };

/** The parts that may take a character. @type {WeakSet<Part>} */
const taking = new WeakSet();

/** @template {Part} P @param {P} part @param {Part[]} inner those in it */
function made(part, inner) {
  if (part.kind === "char" || inner.some((one) => taking.has(one))) taking.add(part);
  return part;
}

/** Reads a pattern that the host's engine accepts. */
class Reader {
  /** @param {string} source */
  constructor(source) {
    this.source = source;
    this.at = 0;
    this.depth = 0;
  }

  /** Takes what a sticky expression finds here. @param {RegExp} what */
  take(what) {
    what.lastIndex = this.at;
    const found = what.exec(this.source);
    if (found) this.at = what.lastIndex;
    return found;
  }

  /** @returns {Part} */
  either() {
    const parts = [this.sequence()];
    while (this.take(/\|/y)) parts.push(this.sequence());
    // Nothing once is as good as nothing many times.
    const others = parts.filter((part) => part !== NOTHING);
    if (others.length === 0) return NOTHING;
    if (parts.length > others.length) others.push(NOTHING);
    return others.length === 1 ? /** @type {Part} */ (others[0]) : made({ kind: "any", parts: others }, others);
  }

  /** @returns {Part} */
  sequence() {
    /** @type {Part[]} */
    const parts = [];
    while (this.at < this.source.length && !/[|)]/.test(/** @type {string} */ (this.source[this.at]))) {
      const part = this.repeated(this.atom());
      if (part !== NOTHING) parts.push(part);
    }
    if (parts.length === 0) return NOTHING;
    return parts.length === 1 ? /** @type {Part} */ (parts[0]) : made({ kind: "all", parts }, parts);
  }

  /** @returns {Part} */
  atom() {
    const place = this.take(/\^|\$|\\[bB]/y);
    if (place) return { kind: "place", source: place[0] };
    const group = this.take(/\((?:\?(?:(<?)([=!])|:|<[^>]*>))?/y);
    if (!group) return made({ kind: "char", source: this.character() }, []);
    if (this.source[this.at] === "?") throw new Error("it changes its flags inside");
    if (++this.depth > MAX_NESTED) throw new Error(`its groups are nested deeper than ${MAX_NESTED}`);
    const part = this.either();
    this.depth--;
    this.at++;
    return group[2] ? { kind: "look", part, isAhead: group[1] === "", isNegative: group[2] === "!" } : part;
  }

  /** The source of what stands for one character. */
  character() {
    const found = this.take(/\[(?:\\[^]|[^\]\\])*\]|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\(?:[pPu]\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|[^])|[^]/uy);
    return /** @type {RegExpExecArray} */ (found)[0];
  }

  /** @param {Part} part @returns {Part} */
  repeated(part) {
    const found = this.take(/(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y);
    if (!found) return part;
    const [, sign, from, comma, to] = found;
    const min = sign ? Number(sign === "+") : Number(from);
    const max = sign ? (sign === "?" ? 1 : Infinity) : comma ? Number(to || Infinity) : min;
    if (max === 0 || part === NOTHING) return NOTHING;
    if (taking.has(part)) return made({ kind: "repeat", part, min, max }, [part]);
    // It takes nothing: what holds here once holds here any number of times, and what need not hold says nothing.
    return min > 0 ? part : NOTHING;
  }
}

/** What it costs to ask the host's engine about a character, and to have it compile a source, in steps. */
const [ASKING, COMPILING] = [20, 2_000];
/** Of how many characters beyond ASCII a source remembers whether it stands for them. */
const MOST_KNOWN = 4_096;

/** Tells whether a character is one of those that a source stands for. What was asked is remembered. @param {string} source */
function charTest(source) {
  const own = new RegExp(`^(?:${source})$`, "u");
  /** @type {(boolean | undefined)[]} */
  const known = [];
  /** @type {Map<number, boolean>} */
  const others = new Map();
  let isCompiled = false;
  return (/** @type {number} */ code, /** @type {(steps: number) => void} */ count) => {
    const found = code < 128 ? known[code] : others.get(code);
    if (found !== undefined) return found;
    // The host's engine compiles a source when it is first asked, and is slower than what is remembered.
    count(isCompiled ? ASKING : COMPILING);
    isCompiled = true;
    if (code < 128) return (known[code] = own.test(String.fromCharCode(code)));
    const isOne = own.test(String.fromCodePoint(code));
    if (others.size >= MOST_KNOWN) others.clear();
    others.set(code, isOne);
    return isOne;
  };
}

/**
 * A state: it takes a character, holds at some places only, leads on in several ways, or is the end.
 * @typedef {{ id: number, takes?: (code: number, count: (steps: number) => void) => boolean, holds?: (text: Text, at: number) => boolean, next: State[] }} State
 */
/** @typedef {{ codes: number[], looks: Uint8Array[] }} Text */

const tooMany = () => new Error(`its repetitions come to more than ${MAX_STATES} states`);

/** @param {number | undefined} code */
const isWord = (code) => code !== undefined && code < 128 && /\w/.test(String.fromCharCode(code));

/** @type {Record<string, (text: Text, at: number) => boolean>} */
const PLACES = {
  "^": (_, at) => at === 0,
  $: ({ codes }, at) => at === codes.length,
  "\\b": ({ codes }, at) => isWord(codes[at - 1]) !== isWord(codes[at]),
  "\\B": ({ codes }, at) => isWord(codes[at - 1]) === isWord(codes[at]),
};

/** The states of a pattern, and of what it looks at around a place. */
class Program {
  constructor() {
    this.size = 0;
    /** How many parts were built so far. */
    this.built = 0;
    /** The number of each look; it is the same wherever the part that has it is repeated. @type {Map<Part, number>} */
    this.known = new Map();
    /** The inner ones first. @type {{ start: State, end: State, isAhead: boolean }[]} */
    this.looks = [];
    /** @type {Map<string, (code: number, count: (steps: number) => void) => boolean>} */
    this.tests = new Map();
  }

  /** @param {Partial<State>} [state] @returns {State} */
  state(state) {
    if (this.size >= MAX_STATES) throw tooMany();
    return { next: [], ...state, id: this.size++ };
  }

  /** Makes the states of a part that lead on to another. @param {Part} part @param {State} next @param {boolean} isBackward @returns {State} */
  build(part, next, isBackward) {
    if (++this.built > MAX_PARTS) throw tooMany();
    switch (part.kind) {
      case "char": {
        const takes = this.tests.get(part.source) ?? charTest(part.source);
        this.tests.set(part.source, takes);
        return this.state({ takes, next: [next] });
      }
      case "place":
        return this.state({ holds: PLACES[part.source], next: [next] });
      case "all":
        return (isBackward ? part.parts : part.parts.toReversed()).reduce((after, one) => this.build(one, after, isBackward), next);
      case "any":
        return this.state({ next: [...new Set(part.parts.map((one) => this.build(one, next, isBackward)))] });
      case "repeat":
        return this.#repeat(part, next, isBackward);
      case "look": {
        const look = this.known.get(part) ?? this.look(part.part, part.isAhead);
        this.known.set(part, look);
        return this.state({ holds: ({ looks }, at) => (looks[look]?.[at] === 1) !== part.isNegative, next: [next] });
      }
    }
  }

  /** @param {Extract<Part, { kind: "repeat" }>} part @param {State} next @param {boolean} isBackward */
  #repeat({ part, min, max }, next, isBackward) {
    let start = next;
    if (max === Infinity) {
      start = this.state({ next: [next] });
      start.next.push(this.build(part, start, isBackward));
    } else for (let i = min; i < max; i++) start = this.state({ next: [next, this.build(part, start, isBackward)] });
    for (let i = 0; i < min; i++) start = this.build(part, start, isBackward);
    return start;
  }

  /** Adds what is looked for at every place; returns its number. @param {Part} part @param {boolean} isAhead whether behind the place, read from the end */
  look(part, isAhead) {
    const end = this.state();
    return this.looks.push({ start: this.build(part, end, isAhead), end, isAhead }) - 1;
  }

  /**
   * Finds all places where a look holds: where something that it describes ends, or begins if it is read backward.
   * @param {Text} text @param {{ start: State, end: State, isAhead: boolean }} look @param {(steps: number) => void} count
   */
  find(text, { start, end, isAhead }, count) {
    const { codes } = text;
    const found = new Uint8Array(codes.length + 1);
    /** At which place each state was last seen. */
    const seen = new Int32Array(this.size).fill(-1);
    count(this.size / 8);
    /** @type {State[]} */
    let states = [];
    for (let i = 0; i <= codes.length; i++) {
      const at = isAhead ? codes.length - i : i;
      const code = codes[isAhead ? at : at - 1];
      const open = [start];
      for (const { takes, next } of states) if (code !== undefined && takes?.(code, count)) open.push(/** @type {State} */ (next[0]));
      let steps = 1 + states.length;
      states = [];
      for (let state; (state = open.pop()); ) {
        steps++;
        if (seen[state.id] === at) continue;
        seen[state.id] = at;
        if (state === end) found[at] = 1;
        if (state.takes) states.push(state);
        else if (!state.holds || state.holds(text, at)) for (const next of state.next) open.push(next);
      }
      count(steps);
    }
    return found;
  }
}

/**
 * How many states a pattern has, found without making them.
 * @param {string} pattern
 */
export function statesOf(pattern) {
  /** @type {Set<Part>} */
  const looks = new Set();
  let parts = 0;
  /** The states of a part that is built so many times. @param {Part} part @param {number} times @returns {number} */
  const sizeOf = (part, times) => {
    parts += times;
    switch (part.kind) {
      case "all":
      case "any":
        return part.parts.reduce((sum, one) => sum + sizeOf(one, times), part.kind === "any" ? times : 0);
      case "repeat": {
        const isOpen = part.max === Infinity;
        const more = isOpen ? 1 : part.max - part.min;
        return times * more + sizeOf(part.part, times * (part.min + more));
      }
      case "look":
        // What it looks for is built once, wherever it stands.
        if (looks.has(part)) return times;
        looks.add(part);
        return times + 1 + sizeOf(part.part, 1);
      default:
        return times;
    }
  };
  const states = 1 + sizeOf(new Reader(pattern).either(), 1);
  if (states > MAX_STATES || parts > MAX_PARTS) throw tooMany();
  return states;
}

/**
 * Prepares a pattern, which must be one with the flag `u`. Returns a function that tells whether a text has a match;
 * it counts its steps.
 * @param {string} pattern
 */
export function compile(pattern) {
  const reader = new Reader(pattern);
  const program = new Program();
  // The whole is the last look: where does a match end?
  program.look(reader.either(), false);
  return (/** @type {string} */ text, /** @type {(steps: number) => void} */ count) => {
    /** @type {Text} */
    const read = { codes: Array.from(text, (char) => /** @type {number} */ (char.codePointAt(0))), looks: [] };
    for (const look of program.looks) read.looks.push(program.find(read, look, count));
    return /** @type {Uint8Array} */ (read.looks.at(-1)).includes(1);
  };
}
