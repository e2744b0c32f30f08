// @ts-check
// Reads a question by rules: what a message asks for, part by part, and which tool each part needs. Simple
// English only, and no more understanding than is written here.

import { wordsOf } from "./library.js";
import { placeNamed } from "./places.js";
import { unitNamed } from "./units.js";

/** @typedef {{ name: string, description: string }} OfferedTool */
/** @typedef {{ [name: string]: import("../npm/index.js").JsonValue }} Arguments */

/**
 * What an earlier result offers as the meaning of "that".
 * @typedef {{ value?: number, unit?: string, text: string }} Earlier
 */

/**
 * One thing that a message asks for.
 *
 * - `tool`: a call. `refers` says that it needs an earlier result; `fill` makes the arguments from it, or says
 *   why it cannot.
 * - `talk`: something that is answered without a tool.
 * - `unknown`: words that no rule fits.
 *
 * @typedef {{ kind: "tool", toolName: string, words: string, why: string, refers: boolean, fill: (earlier?: Earlier) => Arguments | string }} ToolWish
 * @typedef {{ kind: "talk", topic: Topic, words: string }} Talk
 * @typedef {{ kind: "unknown", words: string }} Unknown
 * @typedef {ToolWish | Talk | Unknown} Wish
 * @typedef {"hello" | "thanks" | "who" | "help" | "results" | "questions"} Topic
 */

/**
 * A message as read: its wishes, and what it says about the work in hand.
 *
 * @typedef {object} Reading
 * @property {Wish[]} wishes
 * @property {boolean} drops "stop that", "instead": open wishes are given up
 * @property {boolean} resumes "go on", "try again": wishes that were cut short are resumed
 * @property {boolean} adds "also": open wishes remain
 * @property {boolean} brief "just the number"
 */

/** A longer message is only read up to here. */
const MAX_LENGTH = 2000;

/**
 * Reads one message.
 *
 * @param {string} text
 * @param {readonly OfferedTool[]} tools
 * @param {readonly ToolWish[]} [earlierWishes] earlier wishes, oldest first: they give `And in Tokyo?` a meaning
 * @returns {Reading}
 */
export function readMessage(text, tools, earlierWishes = []) {
  /** @type {Reading} */
  const reading = { wishes: [], drops: false, resumes: false, adds: false, brief: false };
  for (const part of sentences(text.slice(0, MAX_LENGTH)).flatMap(parts)) {
    const words = stripMarkers(part, reading);
    if (!words) continue;
    const isContinuation = reading.wishes.length > 0 || /^(?:and|or|what about|how about)\b/i.test(part);
    const wish = wishOf(words, { tools, earlierWishes: [...earlierWishes, ...reading.wishes.filter(isToolWish)], isContinuation, previous: reading.wishes.at(-1) });
    if (wish === "joined") continue;
    reading.wishes.push(wish);
  }
  return reading;
}

/** @param {Wish} wish @returns {wish is ToolWish} */
export function isToolWish(wish) {
  return wish.kind === "tool";
}

/**
 * The context of a part of a message.
 * @typedef {{ tools: readonly OfferedTool[], earlierWishes: ToolWish[], isContinuation: boolean, previous: Wish | undefined }} PartContext
 */

/** @param {string} text */
function sentences(text) {
  return arithmetic(text.replace(/\s*\n\s*/g, ". ").replace(/[’‘]/g, "'"))
    .split(/[?!;]+(?=\s|$)|\.(?=\s|$)|:(?=\s)/)
    .map((sentence) => sentence.trim())
    .filter(Boolean);
}

/** @param {string} sentence */
function parts(sentence) {
  // An explicit call keeps its JSON in one piece.
  if (/\{.*\}/s.test(sentence)) return [sentence];
  return sentence
    .split(/,?\s+(?:and\s+then|then|and)\s+(?=\S)|,\s+(?:and\s+)?(?:then\s+)?/i)
    .map((part) => part.trim())
    .filter(Boolean);
}

const DROPS = /^(?:no,?\s+)?(?:stop|never ?mind|forget|cancel|drop|abort|leave (?:it|that)|don'?t bother|skip|quit)\b(?:\s+(?:it|that|this|about|counting|the|all|everything|everybody|primes?|search|count|tool|job|work|task|please|now|immediately|of))*$/i;
const RESUMES = /^(?:yes\s+)?(?:please\s+)?(?:go on|continue|carry on|resume|keep going|finish (?:it|that)|retry|again|once more|(?:try|do|run|start) (?:it |that |this |them )?(?:once )?(?:again|over))(?:\s+(?:please|with (?:it|that)|counting))?$/i;
const BRIEF = /\b(?:(?:please )?be brief|briefly|keep it short|short answer|in (?:one|a|1) (?:word|line)|(?:just|only) the (?:number|result|answer|time)s?)\b/i;
const POLITE = /^(?:(?:please|hey|ok|okay|so|well|now|oh|alright|also|and|then|but|first|next|finally|afterwards|after that|actually|no|wait|hm+|could you|can you|would you|will you|i'?d like to know|i want to know|i wonder|do you know|let me know|quickly|kindly)\b[\s,]*)+/i;

/**
 * Takes out what concerns the work in progress, and the polite words; returns the rest.
 * @param {string} part @param {Reading} reading
 */
function stripMarkers(part, reading) {
  let words = part;
  if (/^(?:and\s+)?also\b|\b(?:also|too|as well|meanwhile|additionally|besides)\b/i.test(words)) reading.adds = true;
  words = words.replace(/\s*\b(?:too|as well|meanwhile|additionally|besides)\b/gi, "");
  if (/\b(?:instead|rather)\b/i.test(words)) reading.drops = true;
  words = words.replace(/\s*\b(?:instead|rather)\b(?:\s+of (?:it|that|this))?/gi, "");
  if (BRIEF.test(words)) reading.brief = true;
  words = words.replace(BRIEF, "").trim();
  const plain = words.replace(POLITE, "").trim();
  if (DROPS.test(plain)) reading.drops = true;
  else if (RESUMES.test(plain)) reading.resumes = true;
  else return unwrapped(plain.replace(/\s*\b(?:please|right now|for me)$/i, "").trim());
  return "";
}

/** @param {string} words @param {PartContext} context @returns {Wish | "joined"} */
function wishOf(words, context) {
  return explicitCall(words, context.tools) ?? renaming(words, context.tools) ?? talk(words) ?? primes(words) ?? conversion(words) ?? clock(words) ?? calculation(words)
    ?? continued(words, context) ?? search(words, context) ?? unknown(words, context.previous);
}

/**
 * Neighbouring words that no rule fits become one remark.
 * @param {string} words @param {Wish | undefined} previous @returns {Unknown | "joined"}
 */
function unknown(words, previous) {
  if (previous?.kind !== "unknown") return { kind: "unknown", words };
  previous.words += `, ${words}`;
  return "joined";
}

/** `call calculator {"expression":"1+1"}`, `use clock with place=Oslo`. @param {string} words @param {readonly OfferedTool[]} tools @returns {Wish | undefined} */
function explicitCall(words, tools) {
  const found = /^(?:call|use|run|ask)\s+(?:the\s+)?(?:tool\s+)?[`"']?([\w.-]+)[`"']?(?:\s+tool)?(?:\s+(?:with|for|on))?\s*(.*)$/is.exec(words);
  const named = tools.find(({ name }) => name.toLowerCase() === found?.[1]?.toLowerCase());
  if (!found || !named) return undefined;
  const given = explicitArguments(found[2] ?? "");
  if (!given) return undefined;
  return toolWish(named.name, words, `\`${named.name}\` is named outright`, given);
}

/** `rename this page to Turning`, or without a title: then the tool asks for it. @param {string} words @param {readonly OfferedTool[]} tools @returns {Wish | undefined} */
function renaming(words, tools) {
  const [isMeant, title] = /^(?:rename|retitle|call)\s+(?:this|the)\s+(?:page|tab)(?:\s+(?:to\s+|as\s+)?["“]?(.+?)["”]?)?$/i.exec(words) ?? [];
  if (!isMeant || (!title && /^call/i.test(words)) || !tools.some(({ name }) => name === "rename_page")) return undefined;
  return toolWish("rename_page", words, "that renames the page, if you allow it", title ? { title } : {});
}

/** @param {string} text @returns {Arguments | undefined} */
function explicitArguments(text) {
  if (!text.trim()) return {};
  if (text.trim().startsWith("{")) {
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }
  const pairs = [...text.matchAll(/([\w-]+)\s*[=:]\s*("[^"]*"|\S+)/g)];
  if (pairs.length === 0) return undefined;
  return Object.fromEntries(pairs.map(([, key = "", value = ""]) => [key, plainValue(value.replace(/,$/, ""))]));
}

/** @param {string} text */
function plainValue(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Maps a topic to the words that ask for it. @type {[Topic, RegExp][]} */
const TALK = [
  ["hello", /^(?:hello|hi|hey|good (?:morning|afternoon|evening)|moin|hallo)(?: there| turnwheel)?$/i],
  ["thanks", /^(?:thanks?(?: you)?(?: (?:very|so) much| a lot)?|great|nice|cool|perfect|good job|well done|wonderful)$/i],
  ["who", /^(?:who|what) are you|are you (?:an? )?(?:real |large )?(?:ai|llm|model|language model|robot|human|person|chatgpt|gpt|claude)|what(?:'s| is) (?:your name|rehearsal|the rehearsal model)/i],
  ["help", /^(?:help|what can you do|what (?:else )?(?:can|could|should) (?:i|we) (?:ask|try|do)|(?:what|which) tools|list (?:the |your )?tools|show (?:me )?(?:the |your )?tools|examples?)\b/i],
  ["questions", /what (?:did|have) i (?:ask|say|want|type)|(?:what was|repeat) my (?:first|last|previous)? ?(?:question|message)/i],
  ["results", /^(?:what (?:was|were|is|are) (?:the|your|all) (?:last |previous |first |earlier )?(?:results?|answers?|numbers?)(?: so far| again)?|what did you (?:find|get|say|answer)|repeat (?:it|that|the results?|yourself|everything)|say (?:it|that) again|summari[sz]e|sum up|remind me|what have (?:we|you) (?:got|found|done))/i],
];

/** @param {string} words @returns {Talk | undefined} */
function talk(words) {
  const found = TALK.find(([, pattern]) => pattern.test(words));
  return found && { kind: "talk", topic: found[0], words };
}

/** @param {string} words @returns {ToolWish | undefined} */
function primes(words) {
  if (!/\bprimes?\b/i.test(words)) return undefined;
  const limit = /(below|under|less than|smaller than|before|up to|through|until|till|to)?\s*(?<![\w.])(\d+)(?![\w.])/i.exec(words);
  if (!limit && !/\b(?:count|how many|find all|number of)\b/i.test(words)) return undefined;
  if (limit && /^is\b/i.test(words)) return undefined;
  const below = limit ? Number(limit[2]) + (/up to|through/i.test(limit[1] ?? "") ? 1 : 0) : 2_000_000;
  const why = limit ? "that is a count of primes" : "that is a count of primes, without a limit: I take two million";
  return toolWish("count_primes", words, why, { below });
}

const NUMBER = String.raw`-?\d+(?:\.\d+)?(?:e[+-]?\d+)?`;
const THAT = String.raw`(?:that|it|this|those|the (?:last |previous |first )?(?:result|answer|number|total|value|one))`;

/** @param {string} words @returns {ToolWish | undefined} */
function conversion(words) {
  const verb = /^(?:convert|change|turn|express)\b/i.test(words);
  const rest = words.replace(/^(?:convert|change|turn|express|what(?:'s| is| are)|how much (?:is|are)|give me|show me|tell me|calculate)\s+/i, "");
  const unitsAreKnown = (/** @type {(string | undefined)[]} */ ...names) => verb || names.every((name) => name && unitNamed(name));

  const howMany = new RegExp(String.raw`^how many\s+(.+?)\s+(?:are |is |make |go )?(?:there )?(?:in|into|to|per)\s+(?:(${NUMBER}|an?|one)\s*)?(.+)$`, "i").exec(words);
  if (howMany && unitNamed(howMany[1] ?? "") && unitNamed(howMany[3] ?? "")) return conversionWish(words, howMany[2] ?? "1", howMany[3] ?? "", howMany[1] ?? "");

  const direct = new RegExp(String.raw`^(${NUMBER}|an?\b|one\b)\s*(?:degrees?\s+)?(\D.*?)\s+(?:to|in|into|as)\s+(?:degrees?\s+)?(.+)$`, "i").exec(rest);
  if (direct && unitsAreKnown(direct[2], direct[3])) return conversionWish(words, direct[1] ?? "1", direct[2] ?? "", direct[3] ?? "");

  const referring = new RegExp(String.raw`^${THAT}(?:\s+from\s+(.+?))?\s+(?:to|in|into|as)\s+(.+)$`, "i").exec(rest);
  if (!referring || !unitsAreKnown(referring[2])) return undefined;
  const [, from, to = ""] = referring;
  return {
    ...toolWish("convert_units", words, "that converts an earlier result", {}),
    refers: true,
    fill: (earlier) => {
      if (earlier?.value === undefined) return "the earlier result is no number";
      const unit = from ?? earlier.unit;
      return unit ? { value: earlier.value, from: unit, to } : `I do not know the unit of ${earlier.value}; say “from … to ${to}”`;
    },
  };
}

/** @param {string} words @param {string} value @param {string} from @param {string} to */
function conversionWish(words, value, from, to) {
  const number = Number.isNaN(Number(value)) ? 1 : Number(value);
  return toolWish("convert_units", words, "that converts units", { value: number, from: from.trim(), to: to.trim() });
}

const TIME = /\b(?:what(?:'s| is)? (?:the )?(?:exact |local |current )?time|what day|which day|(?:what(?:'s| is)? )?(?:the |today'?s )?date|time (?:is it|in|at|for|difference|zone in)|(?:current|local) time|clock in|time now)\b|^time$|\btime$/i;

/** @param {string} words @returns {ToolWish | undefined} */
function clock(words) {
  if (!TIME.test(words)) return undefined;
  const tidy = words.replace(/\s*\b(?:right now|now|currently|today|at the moment|there|please)\b\s*$/i, "");
  const place = /\b(?:in|at|for|between|of)\s+(?:the\s+)?(.+)$/i.exec(tidy.replace(/\btime zone\b/i, "time"))?.[1] ?? /^(.+?)\s+(?:local )?time$/i.exec(tidy)?.[1];
  if (place && !/^(?:what|the|local|current|what'?s?( is)?)/i.test(place)) return clockWish(words, place);
  return toolWish("clock", words, "that asks for the time here", {});
}

/** @param {string} words @param {string} place */
function clockWish(words, place) {
  return toolWish("clock", words, `that asks for the time in ${place.trim()}`, { place: place.trim() });
}

/** @param {string} words @returns {ToolWish | undefined} */
function calculation(words) {
  const leading = /^(?:(?:what(?:'s| is) )?(?:that )?)?(plus|minus|times|multiplied by|divided by|modulo|to the power of|[-+*/^%])\s+(.+)$/i.exec(words);
  const text = leading && !/^-?\s*\d+(?:\.\d+)?\s*$/.test(words) ? `that ${sign(leading[1] ?? "")} ${leading[2]}` : words;
  const expression = longestExpression(text) ?? /^(?:calculate|compute|evaluate|work out|what(?:'s| is) the value of)\s+(?!the\b)(.*[\d()].*)$/i.exec(text)?.[1];
  if (!expression) return undefined;
  if (!/\bthat\b/.test(expression)) return toolWish("calculator", words, "that is arithmetic", { expression: unwrapped(expression) });
  return {
    ...toolWish("calculator", words, "that is arithmetic with an earlier result", {}),
    refers: true,
    fill: (earlier) => {
      if (earlier?.value === undefined) return "the earlier result is no number";
      const value = earlier.value < 0 ? `(${earlier.value})` : String(earlier.value);
      return { expression: unwrapped(expression.replace(/\bthat\b/g, value)) };
    },
  };
}

/** `(5+7)` is `5+7`, `(5+7)*(1+2)` stays. @param {string} expression */
function unwrapped(expression) {
  return /^\((?:[^()]|\([^()]*\))*\)$/.test(expression) && !/^\(-[\d.]+\)$/.test(expression) ? expression.slice(1, -1) : expression;
}

const FUNCTION = String.raw`(?:sqrt|cbrt|abs|sign|round|floor|ceil|trunc|a?sin|a?cos|a?tan|exp|ln|log(?:2|10)?|pow|hypot|fact|min|max|sum|avg)`;

/** @param {string} text */
function longestExpression(text) {
  const token = String.raw`(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+|${FUNCTION}(?=\()|\bthat\b|\bpi\b|\btau\b|\be\b|[-+*/%^!(),×÷·−–]|\s)`;
  const runs = [...text.matchAll(new RegExp(`${token}+`, "gi"))].map(([run]) => run.trim().replace(/^[*/%^!,×÷·)\s]+/, "").replace(/[-+*/%^,(\s]+$/, ""));
  const sums = runs.filter((run) => /[\dπ]|that|pi|tau|\be\b/i.test(run) && (/[\w)!]\s*[-+*/%^×÷·−–]\s*[-+(\w.]|!/.test(run) || new RegExp(FUNCTION + String.raw`\(`, "i").test(run)));
  const best = sums.sort((a, b) => b.length - a.length)[0];
  return best && !/^\d{4}-\d{2}-\d{2}$/.test(best) ? best : undefined;
}

/**
 * `And in Tokyo?`, `and in feet`, `and below 1000`: an earlier wish with one thing changed.
 * @param {string} words @param {PartContext} context @returns {ToolWish | undefined}
 */
function continued(words, { earlierWishes, isContinuation }) {
  const lastOf = (/** @type {string} */ toolName) => earlierWishes.filter((wish) => wish.toolName === toolName).at(-1);
  const about = words.replace(/^(?:what about|how about|or|the same for|same for)\s+/i, "");
  const bare = about.replace(/^(?:in|at|to|for|into|below|under|up to)\s+/i, "").trim();

  const conversion = lastOf("convert_units");
  const converted = conversion && continuedConversion(words, bare, conversion);
  if (converted) return converted;
  if (earlierWishes.at(-1)?.toolName === "count_primes" && /^\d+$/.test(bare)) return toolWish("count_primes", words, "the same count with another limit", { below: Number(bare) });
  if (!lastOf("clock")) return undefined;
  const short = bare.split(/\s+/).length <= 4;
  const startsWithIn = short && /^(?:in|at|for)\s/i.test(about) && earlierWishes.at(-1)?.toolName === "clock";
  const looksLikeName = short && isContinuation && /^\p{Lu}/u.test(bare) && !/^(?:what|why|how|who|when|where|which|tell|is|are|do|does|can|i)\b/i.test(bare);
  return placeNamed(bare) || startsWithIn || looksLikeName ? clockWish(words, bare) : undefined;
}

/** @param {string} words @param {string} bare @param {ToolWish} last @returns {ToolWish | undefined} */
function continuedConversion(words, bare, last) {
  const [, value, from] = new RegExp(`^(${NUMBER})\\s*(\\D.*)$`, "i").exec(bare) ?? [];
  const otherValue = value !== undefined && from !== undefined && unitNamed(from);
  if (!otherValue && !unitNamed(bare)) return undefined;
  return {
    ...last,
    words,
    why: "the same conversion with one thing changed",
    fill: (earlier) => {
      const before = last.fill(earlier);
      if (typeof before === "string") return before;
      return otherValue ? { ...before, value: Number(value), from } : { ...before, to: bare };
    },
  };
}

const SEARCH = /^(?:search(?: the (?:library|articles|collection|texts?))?(?: for)?|look up|find(?: (?:me )?(?:something|an article|articles|a text|texts))?(?: (?:on|about|for))?|what does the (?:library|collection|text) say (?:about|on)|(?:is there )?anything (?:on|about)|read (?:me )?(?:something )?(?:about|on)|tell me (?:something |more )?(?:about|how|why|what)|explain(?: to me)?)\s+(.+)$/i;

const QUESTION_WORD = /^(?:what|how|why|when|who|where|which)\b/i;

/** @param {string} words @param {PartContext} context @returns {ToolWish | "joined" | undefined} */
function search(words, { tools, previous }) {
  const explicitTopic = SEARCH.exec(words)?.[1];
  const description = tools.find(({ name }) => name === "search_library")?.description ?? "";
  const topics = new Set(wordsOf(description.slice(description.lastIndexOf("Topics:"))));
  if (!explicitTopic && !wordsOf(words).some((word) => topics.has(word))) return undefined;
  const topic = explicitTopic ?? words.replace(/^(?:what|how|why|when|who|where|which)(?:'s|\s+(?:is|are|do|does|did|can|should))?\s+/i, "");
  const query = topic.replace(/^(?:an?|the)\s+/i, "").replace(/\s+in the library$/i, "");
  // "steering and follow-ups" is one search; "how does steering work and what is tea" are two.
  if (!explicitTopic && !QUESTION_WORD.test(words) && previous?.kind === "tool" && previous.toolName === "search_library") {
    const given = previous.fill();
    if (typeof given !== "string") previous.fill = () => ({ ...given, query: `${given["query"]} ${query}` });
    return "joined";
  }
  return toolWish("search_library", words, explicitTopic ? "that asks for a search" : "the library has that among its topics", { query });
}

/** @param {string} toolName @param {string} words @param {string} why @param {Arguments} given @returns {ToolWish} */
function toolWish(toolName, words, why, given) {
  return { kind: "tool", toolName, words, why, refers: false, fill: () => given };
}

const SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split(" ");
const TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
const SCALES = new Map([["hundred", 1e2], ["thousand", 1e3], ["million", 1e6], ["billion", 1e9]]);
const BEFORE_NUMBER = String.raw`(?:plus|minus|times|by|of|add|subtract|multiply|divide|power|than|below|under|[-+*/^%])\s*`;
const AFTER_NUMBER = String.raw`\s*(?:plus|minus|times|multiplied|divided|over|squared|cubed|factorial|hundred|thousand|million|billion|to the|[-+*/^%])`;

/** Rewrites arithmetic in words as symbols: `the sum of 5 and 7` becomes `(5+7)`. @param {string} text */
export function arithmetic(text) {
  let result = text
    .replace(/(?<![\d(,.])\d{1,3}(?:,\d{3})+(?![\d,])/g, (digits) => digits.replaceAll(",", ""))
    .replace(/(\d)\s*[x×]\s*(?=[\d(])/gi, "$1*");
  result = numberWords(result);
  result = result.replace(/(?<![\d.])(\d+(?:\.\d+)?)\s+(hundred|thousand|million|billion)\b/gi, (_, digits, scale) => String(Number(digits) * (SCALES.get(scale.toLowerCase()) ?? 1)));
  for (let round = 0; round < 4; round += 1) {
    const before = result;
    for (const [pattern, replacement] of PHRASES) result = result.replace(pattern, /** @type {any} */ (replacement));
    if (result === before) break;
  }
  return result;
}

/** @param {string} text */
function numberWords(text) {
  const word = `(?:(?:${TENS.join("|")})[- ](?:${SMALL.slice(1, 10).join("|")})|${TENS.join("|")}|${SMALL.join("|")}|an?(?=\\s+(?:hundred|thousand|million|billion)))`;
  const pattern = new RegExp(`(?<=\\b${BEFORE_NUMBER})${word}\\b|\\b${word}(?=${AFTER_NUMBER})`, "gi");
  return text.replace(pattern, (found) => String(wordValue(found.toLowerCase())));
}

/** @param {string} word @returns {number} */
function wordValue(word) {
  const small = SMALL.indexOf(word);
  if (small >= 0) return small;
  const [ten = "", one] = word.split(/[- ]/);
  const tens = TENS.indexOf(ten);
  return tens < 0 ? 1 : (tens + 2) * 10 + (one ? wordValue(one) : 0);
}

const ATOM = String.raw`(?:${FUNCTION}?\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|${NUMBER}|\bpi\b|\b${THAT}\b)`;
const LIST = String.raw`${ATOM}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)${ATOM})+`;

/** @type {[RegExp, string | ((...found: string[]) => string)][]} */
const PHRASES = [
  phrase(String.raw`(${ATOM})\s*(?:%|percent)\s+of\s+(${ATOM})`, (_, a, b) => `(${atom(a)}/100*${atom(b)})`),
  phrase(String.raw`(?:the\s+)?(sum|product|average|mean|largest|maximum|greatest|smallest|minimum) of\s+(${LIST})`, (_, name, list) => listed(name, list)),
  phrase(String.raw`\badd(?:ing)?\s+(${LIST})`, (_, list) => listed("sum", list)),
  phrase(String.raw`(?:the\s+)?difference (?:between|of)\s+(${ATOM})\s+and\s+(${ATOM})`, (_, a, b) => `(${atom(a)}-${atom(b)})`),
  phrase(String.raw`(?:the\s+)?remainder of\s+(${ATOM})\s+divided by\s+(${ATOM})`, (_, a, b) => `(${atom(a)}%${atom(b)})`),
  phrase(String.raw`\badd(?:ing)?\s+(${ATOM})\s+to\s+(${ATOM})`, (_, a, b) => `(${atom(b)}+${atom(a)})`),
  phrase(String.raw`\b(?:subtract|take)(?:ing)?\s+(${ATOM})\s+(?:away\s+)?from\s+(${ATOM})`, (_, a, b) => `(${atom(b)}-${atom(a)})`),
  phrase(String.raw`\bmultiply(?:ing)?\s+(${ATOM})\s+(?:by|with|and)\s+(${ATOM})`, (_, a, b) => `(${atom(a)}*${atom(b)})`),
  phrase(String.raw`\bdivid(?:e|ing)\s+(${ATOM})\s+by\s+(${ATOM})`, (_, a, b) => `(${atom(a)}/${atom(b)})`),
  phrase(String.raw`\b(?:add|then add)\s+(${ATOM})(?!\s+(?:and|to|,))`, (_, a) => `(that+${atom(a)})`),
  phrase(String.raw`\bsubtract\s+(${ATOM})(?!\s+from)`, (_, a) => `(that-${atom(a)})`),
  phrase(String.raw`\bmultipl(?:y|ied) by\s+(${ATOM})`, (found, a, offset, whole) => (before(whole, offset) ? found : `(that*${atom(a)})`)),
  phrase(String.raw`\bdivide by\s+(${ATOM})`, (_, a) => `(that/${atom(a)})`),
  phrase(String.raw`(?:the\s+)?(?:square )?root of\s+(${ATOM})`, (_, a) => `sqrt(${atom(a)})`),
  phrase(String.raw`(?:the\s+)?cube sqrt\(`, () => "cbrt("),
  phrase(String.raw`\bsquare\s+(${ATOM})`, (_, a) => `(${atom(a)}^2)`),
  phrase(String.raw`(?:the\s+)?factorial of\s+(${ATOM})`, (_, a) => `fact(${atom(a)})`),
  phrase(String.raw`(${ATOM})\s+factorial\b`, (_, a) => `fact(${atom(a)})`),
  phrase(String.raw`(?:the\s+)?(?:natural )?log(?:arithm)? of\s+(${ATOM})`, (found, a) => `${/natural/i.test(found) ? "ln" : "log"}(${atom(a)})`),
  phrase(String.raw`(?:the\s+)?(sine|cosine|tangent) of\s+(${ATOM})`, (_, name, a) => `${(name ?? "").slice(0, 3).toLowerCase()}(${atom(a)})`),
  phrase(String.raw`(?:a\s+)?half(?: of)?\s+(${ATOM})`, (_, a) => `(${atom(a)}/2)`),
  phrase(String.raw`\bhalve\s+(${ATOM})`, (_, a) => `(${atom(a)}/2)`),
  phrase(String.raw`\b(?:a\s+)?(third|quarter|tenth) of\s+(${ATOM})`, (_, name, a) => `(${atom(a)}/${{ third: 3, quarter: 4, tenth: 10 }[/** @type {"third"} */ ((name ?? "").toLowerCase())]})`),
  phrase(String.raw`\b(?:double|twice)\s+(${ATOM})`, (_, a) => `(${atom(a)}*2)`),
  phrase(String.raw`\b(?:triple)\s+(${ATOM})`, (_, a) => `(${atom(a)}*3)`),
  phrase(String.raw`(${ATOM})\s+squared\b`, (_, a) => `(${atom(a)}^2)`),
  phrase(String.raw`(${ATOM})\s+cubed\b`, (_, a) => `(${atom(a)}^3)`),
  phrase(String.raw`(${ATOM})\s+(?:raised\s+)?to the (?:power(?: of)?\s+(${ATOM})|(\d+)(?:st|nd|rd|th)(?: power)?)`, (_, a, b, c) => `(${atom(a)}^${atom(b ?? c)})`),
  phrase(String.raw`(${ATOM})\s+(plus|minus|times|multiplied by|divided by|over|modulo|mod)\s+(?=${ATOM}|sqrt)`, (_, a, operator) => `${atom(a)}${sign(operator)}`),
];

/** @param {string} source @param {(...found: (string)[]) => string} replacement @returns {[RegExp, (...found: string[]) => string]} */
function phrase(source, replacement) {
  return [new RegExp(source, "gi"), replacement];
}

/** @param {string | undefined} text */
function atom(text = "") {
  return new RegExp(`^${THAT}$`, "i").test(text) ? "that" : text;
}

/** @param {string | undefined} name @param {string | undefined} list */
function listed(name = "", list = "") {
  const values = list.split(/\s*,\s*(?:and\s+)?|\s+and\s+/).map(atom);
  const key = name.toLowerCase();
  if (key === "sum") return `(${values.join("+")})`;
  if (key === "product") return `(${values.join("*")})`;
  const call = /av|mean/.test(key) ? "avg" : /^(?:l|ma|g)/.test(key) ? "max" : "min";
  return `${call}(${values.join(",")})`;
}

/**
 * Whether a number comes right before.
 * @param {string | undefined} whole @param {string | undefined} offset
 */
function before(whole = "", offset = "") {
  return /[\d)]\s*$/.test(whole.slice(0, Number(offset)));
}

/** @param {string | undefined} operator */
function sign(operator = "") {
  const signs = { plus: "+", minus: "-", times: "*", "multiplied by": "*", "divided by": "/", over: "/", modulo: "%", mod: "%", "to the power of": "^" };
  return signs[/** @type {keyof typeof signs} */ (operator.toLowerCase())] ?? operator;
}
