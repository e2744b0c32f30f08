// @ts-check
// The rehearsal model: a small rule-based stand-in, not a language model. It reads the conversation as far as the
// rules of question.js go, asks for tools, and answers from their results and from nothing else.

import { pause } from "./pause.js";
import { isToolWish, readMessage } from "./question.js";

/** @typedef {import("../npm/index.js").ModelRequest} ModelRequest */
/** @typedef {import("../npm/index.js").AssistantMessageEvent} AssistantMessageEvent */
/** @typedef {import("../npm/index.js").LlmMessage} LlmMessage */
/** @typedef {import("../npm/index.js").ToolCallBlock} ToolCallBlock */
/** @typedef {import("./question.js").Wish} Wish */
/** @typedef {import("./question.js").ToolWish} ToolWish */
/** @typedef {import("./question.js").Arguments} Arguments */
/** @typedef {import("./question.js").Earlier} Earlier */

/** How the demo describes it wherever it appears. */
export const LABEL = "a small rule-based stand-in, not a language model";

/**
 * @typedef {object} RehearsalOptions
 * @property {import("./pause.js").Pause} [sleep] how it waits between words
 * @property {() => number} [pace] 1 writes about as fast as a hosted model, 0 as fast as it can
 */

/**
 * A model that needs no key and no network; pass it to the package's `custom(id, streamFn)`.
 *
 * It streams a short thinking block, text, and tool calls with their arguments in pieces. One answer asks for
 * everything that can run at once. When the signal aborts, it throws the signal's reason, as `fetch` does.
 *
 * @param {RehearsalOptions} [options]
 * @returns {(request: ModelRequest, context: { signal: AbortSignal }) => AsyncGenerator<AssistantMessageEvent>}
 */
export function rehearsal({ sleep = pause, pace = () => 1 } = {}) {
  return async function* stream(request, { signal }) {
    const wait = async (/** @type {number} */ ms) => {
      await sleep(ms * pace(), signal);
      signal.throwIfAborted();
    };
    const plan = planOf(request);
    yield { type: "start" };
    await wait(280);
    let contentIndex = 0;
    if (plan.thinking) {
      yield { type: "thinking_start", contentIndex };
      yield* pieces(plan.thinking, /\S+\s*/g, (delta) => ({ type: "thinking_delta", contentIndex, delta }), (delta) => wait(14 + delta.length));
      yield { type: "thinking_end", contentIndex };
      contentIndex += 1;
    }
    if (plan.text) {
      yield { type: "text_start", contentIndex };
      yield* pieces(plan.text, /\S+\s*/g, (delta) => ({ type: "text_delta", contentIndex, delta }), (delta) => wait(18 + 3 * delta.length));
      yield { type: "text_end", contentIndex };
      contentIndex += 1;
    }
    for (const { callId, toolName, arguments: given } of plan.calls) {
      yield { type: "tool_call_start", contentIndex, callId, toolName };
      yield* pieces(JSON.stringify(given), /[\s\S]{1,6}/g, (delta) => ({ type: "tool_call_delta", contentIndex, delta }), () => wait(30));
      yield { type: "tool_call_end", contentIndex };
      contentIndex += 1;
    }
    yield { type: "done", stopReason: plan.calls.length > 0 ? "tool_use" : "stop", usage: usageOf(request, plan) };
  };
}

/**
 * @param {string} text
 * @param {RegExp} pattern
 * @param {(delta: string) => AssistantMessageEvent} event
 * @param {(delta: string) => Promise<void>} wait
 * @returns {AsyncGenerator<AssistantMessageEvent>}
 */
async function* pieces(text, pattern, event, wait) {
  for (const [delta] of text.matchAll(pattern)) {
    await wait(delta);
    yield event(delta);
  }
}

/**
 * What one answer says and which calls it makes.
 * @typedef {{ thinking: string, text: string, calls: { callId: string, toolName: string, arguments: Arguments }[] }} Plan
 */

/**
 * Plans the answer to a request: a pure function of the conversation.
 *
 * @param {ModelRequest} request
 * @returns {Plan}
 */
export function planOf(request) {
  const tools = request.options?.toolChoice === "none" ? [] : request.tools;
  const conversation = readConversation(request.messages, tools);
  const { tasks } = conversation.now;
  const offered = new Set(tools.map(({ name }) => name));
  for (const task of tasks) if (task.state === "open" && !offered.has(task.wish.toolName)) task.state = "lacking";
  settleReferences(conversation);

  let ready = tasks.filter((task) => task.state === "open" && argumentsOf(task, conversation) !== undefined);
  if (request.options?.parallelToolCalls === false) ready = ready.slice(0, 1);
  // A run that has asked for tools ten times is going in circles; an honest answer is better.
  if (conversation.now.answers > 10) ready = [];

  const plan = ready.length > 0 ? askForTools(ready, conversation) : finalAnswer(conversation, request);
  if (request.options?.reasoning === "off") plan.thinking = "";
  return plan;
}

/**
 * A wish for a tool, and its progress.
 *
 * @typedef {object} Task
 * @property {ToolWish} wish
 * @property {"open" | "called" | "done" | "failed" | "cut" | "dropped" | "blocked" | "lacking"} state
 * @property {Arguments} [given] what it was called with
 * @property {string} [result] the text of its result, or of its error
 */

/**
 * What was asked since the last complete answer.
 *
 * @typedef {object} Exchange
 * @property {Wish[]} wishes in the order they were said
 * @property {Task[]} tasks the wishes for tools among them
 * @property {number} userMessages how many user messages
 * @property {number} answers how many model answers
 * @property {boolean} drops
 * @property {boolean} resumes
 * @property {boolean} brief
 */

/**
 * @typedef {object} Conversation
 * @property {Exchange} now
 * @property {Exchange | undefined} before the exchange before this one
 * @property {ToolWish[]} toolWishes all wishes for tools, oldest first
 * @property {string[]} questions all messages of the user
 * @property {{ toolName: string, text: string }[]} earlier successful results of finished exchanges, oldest first
 * @property {number} calls how many calls so far
 */

/** @returns {Exchange} */
function emptyExchange() {
  return { wishes: [], tasks: [], userMessages: 0, answers: 0, drops: false, resumes: false, brief: false };
}

/** @param {readonly LlmMessage[]} messages @param {readonly { name: string, description: string }[]} tools @returns {Conversation} */
function readConversation(messages, tools) {
  /** @type {Conversation} */
  const conversation = { now: emptyExchange(), before: undefined, toolWishes: [], questions: [], earlier: [], calls: 0 };
  /** @type {Map<string, Task>} */
  const called = new Map();
  for (const message of messages) {
    if (message.role === "user") {
      for (const block of message.content) if (block.type === "text" && block.text.trim()) readUserMessage(block.text, conversation, tools);
    } else if (message.role === "assistant") {
      readAnswer(message, conversation, called);
    } else {
      readToolResult(message, conversation, called);
    }
  }
  return conversation;
}

/**
 * Reads a message of the user: new wishes, and perhaps a word about the old ones.
 * @param {string} text @param {Conversation} conversation
 * @param {readonly { name: string, description: string }[]} tools
 */
function readUserMessage(text, conversation, tools) {
  const { now, before } = conversation;
  const reading = readMessage(text, tools, conversation.toolWishes);
  const unfinished = now.tasks.filter(({ state }) => state === "cut" || state === "open" || state === "blocked");
  if (reading.drops) {
    for (const task of unfinished) task.state = "dropped";
    now.drops = true;
  }
  if (reading.resumes) {
    now.resumes = true;
    const wanted = unfinished.length > 0 ? unfinished : (before?.tasks ?? []).filter(({ state }) => state !== "done");
    reopenTasks(wanted, now, conversation);
  } else if (reading.adds && !reading.drops) {
    reopenTasks(unfinished.filter(({ state }) => state === "cut"), now, conversation);
  }
  now.brief ||= reading.brief;
  now.userMessages += 1;
  now.wishes.push(...reading.wishes);
  for (const wish of reading.wishes.filter(isToolWish)) now.tasks.push({ wish, state: "open" });
  conversation.toolWishes.push(...reading.wishes.filter(isToolWish));
  conversation.questions.push(text.trim());
}

/**
 * Resumes what was cut short.
 * @param {Task[]} tasks @param {Exchange} now @param {Conversation} conversation
 */
function reopenTasks(tasks, now, conversation) {
  for (const { wish, given } of tasks) {
    const reopened = given ? { ...wish, refers: false, fill: () => given } : wish;
    now.wishes.push(reopened);
    now.tasks.push({ wish: reopened, state: "open" });
    conversation.toolWishes.push(reopened);
  }
  now.tasks = now.tasks.filter((task) => !tasks.includes(task));
  now.wishes = now.wishes.filter((wish) => !tasks.some((task) => task.wish === wish));
}

/**
 * Reads an answer of the model: its calls belong to wishes. An answer without calls, or one
 * cut off, ends the exchange.
 * @param {import("../npm/index.js").AssistantMessage} message @param {Conversation} conversation
 * @param {Map<string, Task>} called
 */
function readAnswer(message, conversation, called) {
  const calls = message.content.filter((block) => block.type === "tool_call");
  conversation.calls += calls.length;
  conversation.now.answers += 1;
  for (const call of calls) {
    const task = taskOf(call, conversation);
    if (!task) continue;
    task.state = "called";
    task.given = call.arguments;
    called.set(call.callId, task);
  }
  const cut = message.stopReason === "aborted" || message.stopReason === "error";
  if (calls.length > 0 && !cut) return;
  // The results of an aborted answer come after it: they reach their tasks through `called`.
  conversation.before = conversation.now;
  for (const task of conversation.before.tasks) if (task.state === "done") addEarlierResult(task, conversation);
  conversation.now = emptyExchange();
}

/**
 * Finds the task with the same tool and arguments; failing that, one with the same tool.
 * @param {ToolCallBlock} call @param {Conversation} conversation
 */
function taskOf(call, conversation) {
  const open = conversation.now.tasks.filter(({ state, wish }) => state === "open" && wish.toolName === call.toolName);
  const wanted = canonicalJson(call.arguments);
  return open.find((task) => canonicalJson(argumentsOf(task, conversation)) === wanted) ?? open[0];
}

/** @param {import("../npm/index.js").JsonValue | undefined} value */
function canonicalJson(value) {
  return JSON.stringify(value, (_, part) => (part && typeof part === "object" && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part));
}

/** @param {import("../npm/index.js").ToolResultMessage} message @param {Conversation} conversation @param {Map<string, Task>} called */
function readToolResult(message, conversation, called) {
  const task = called.get(message.callId);
  if (!task) return;
  task.result = message.content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");
  task.state = !message.isError ? "done" : wasCut(message, task.result) ? "cut" : "failed";
  if (task.state === "done" && !conversation.now.tasks.includes(task)) addEarlierResult(task, conversation);
}

/** @param {import("../npm/index.js").ToolResultMessage} message @param {string} text */
function wasCut(message, text) {
  if (message.cause) return ["steering", "aborted", "skipped", "interrupted", "policy_stop"].includes(message.cause);
  return /\b(?:cancell?ed|aborted|interrupted|skipped)\b/i.test(text);
}

/** @param {Task} task @param {Conversation} conversation */
function addEarlierResult(task, conversation) {
  conversation.earlier.push({ toolName: task.wish.toolName, text: task.result ?? "" });
}

/**
 * Gives up a wish that refers to a result which will never come, with the reason.
 * @param {Conversation} conversation
 */
function settleReferences(conversation) {
  for (const task of conversation.now.tasks) {
    if (task.state !== "open" || !task.wish.refers) continue;
    const source = sourceOf(task, conversation);
    if (source === "waiting") continue;
    const filled = source === undefined ? "there is no earlier result to refer to" : source === "failed" ? "it needs a result that did not come" : task.wish.fill(source);
    if (typeof filled === "string") {
      task.state = "blocked";
      task.result = filled;
    }
  }
}

/**
 * The result that "that" refers to: of the task before it, or of the exchange before.
 * @param {Task} task @param {Conversation} conversation @returns {Earlier | "waiting" | "failed" | undefined}
 */
function sourceOf(task, { now, earlier }) {
  const before = now.tasks.slice(0, now.tasks.indexOf(task)).filter(({ state }) => state !== "dropped").at(-1);
  if (before?.state === "open") return "waiting";
  if (before && before.state !== "done") return "failed";
  if (before) return valueOf(before.wish.toolName, before.result ?? "");
  const last = earlier.at(-1);
  return last && valueOf(last.toolName, last.text);
}

/** @param {Task} task @param {Conversation} conversation @returns {Arguments | undefined} */
function argumentsOf(task, conversation) {
  if (!task.wish.refers) return /** @type {Arguments} */ (task.wish.fill());
  const source = sourceOf(task, conversation);
  if (typeof source !== "object") return undefined;
  const filled = task.wish.fill(source);
  return typeof filled === "string" ? undefined : filled;
}

/**
 * The number in a result, in the form that its tool writes.
 * @param {string} toolName @param {string} text @returns {Earlier}
 */
function valueOf(toolName, text) {
  if (toolName === "clock" || toolName === "search_library") return { text };
  const afterSign = /[=≈]\s*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(\D*)$/i.exec(text);
  const found = afterSign ?? /(-?\d+(?:\.\d+)?)()/.exec(text);
  if (!found) return { text };
  return { text, value: Number(found[1]), ...(found[2] ? { unit: found[2].trim() } : {}) };
}

/** @param {Task[]} ready @param {Conversation} conversation @returns {Plan} */
function askForTools(ready, conversation) {
  const { now } = conversation;
  const calls = ready.map((task, index) => ({
    callId: `call_${conversation.calls + index + 1}`,
    toolName: task.wish.toolName,
    arguments: argumentsOf(task, conversation) ?? {},
  }));
  const waiting = now.tasks.filter(({ state }) => state === "open").length - ready.length;
  const thoughts = ready.map(({ wish }) => `${quoted(wish.words)}: ${wish.why}, so \`${wish.toolName}\`.`);
  if (ready.length === 2) thoughts.push("Neither needs the other's result, so I ask for both at once.");
  if (ready.length > 2) thoughts.push("None needs another's result, so I ask for all at once.");
  if (waiting > 0) thoughts.push(`${waiting === 1 ? "One more thing needs" : `${waiting} more things need`} a result first.`);
  return { thinking: thoughts.join(" "), text: announcement(ready, now), calls };
}

/** @param {Task[]} ready @param {Exchange} now */
function announcement(ready, now) {
  const names = [...new Set(ready.map(({ wish }) => wish.toolName))].map((name) => `\`${name}\``);
  const which = ready.length === 1 ? names[0] : names.length === 1 ? `${names[0]}, ${numberWord(ready.length)} times at once` : `${listed(names)} at the same time`;
  if (now.drops && now.userMessages > 1) return `Understood, I leave that. I ask ${which}.`;
  if (now.userMessages > 1) return `Noted. I ask ${which}.`;
  if (now.resumes) return `Once more: I ask ${which}.`;
  if (now.answers > 0) return `With that result I ask ${which}.`;
  return `I ask ${which}.`;
}

/** @param {Conversation} conversation @param {ModelRequest} request @returns {Plan} */
function finalAnswer(conversation, request) {
  const { now } = conversation;
  const brief = now.brief || /\bbe brief\b/i.test(request.systemPrompt ?? "");
  const lines = now.wishes.map((wish) => lineFor(wish, conversation, request, brief)).filter(Boolean);
  const opening = openingOf(now, lines.length);
  const body = lines.length > 1 && !lines.some((line) => line.includes("\n")) && now.tasks.length > 1 ? lines.map((line) => `- ${line}`).join("\n") : lines.join("\n\n");
  const text = [opening, body].filter(Boolean).join("\n\n");
  return { thinking: thoughtOn(now), text: text || nothingToDo(now, request), calls: [] };
}

/** @param {Exchange} now @param {number} lines */
function openingOf(now, lines) {
  const tools = now.tasks.filter(({ state }) => state === "done" || state === "failed" || state === "cut").length;
  if (now.brief) return "";
  if (tools > 1 && lines > 1) return "Here is what came back:";
  return "";
}

/** @param {Exchange} now */
function thoughtOn(now) {
  if (now.tasks.length === 0) return now.wishes.some(({ kind }) => kind === "unknown") ? "No rule of mine fits this, and no tool I was offered." : "This needs no tool.";
  const count = (/** @type {Task["state"]} */ state) => now.tasks.filter((task) => task.state === state).length;
  const parts = [
    [count("done"), "came back"], [count("failed"), "failed"], [count("cut"), "cut short"], [count("dropped"), "given up"],
    [count("blocked"), "cannot be asked"], [count("lacking"), "without a tool"],
  ].filter(([number]) => Number(number) > 0).map(([number, what]) => `${number} ${what}`);
  return `Results: ${parts.join(", ")}. I answer from what is there.`;
}

/** @param {Wish} wish @param {Conversation} conversation @param {ModelRequest} request @param {boolean} brief @returns {string} */
function lineFor(wish, conversation, request, brief) {
  if (wish.kind === "talk") return talkAbout(wish.topic, conversation, request);
  if (wish.kind === "unknown") return notUnderstood(wish.words, request);
  const task = conversation.now.tasks.find((candidate) => candidate.wish === wish);
  switch (task?.state) {
    case "done": return brief ? briefResult(wish.toolName, task.result ?? "") : result(wish.toolName, task.result ?? "");
    case "failed": return `${quoted(wish.words)} did not work: \`${wish.toolName}\` says “${(task.result ?? "").replace(/^error: /i, "")}”.`;
    case "cut": return `${quoted(wish.words)} was cut short, so I have no result for it. Say “go on” and I ask again.`;
    case "dropped": return `${quoted(wish.words)} I dropped, as you asked.`;
    case "blocked": return `${quoted(wish.words)} I could not ask for: ${task.result}.`;
    case "lacking": return `${quoted(wish.words)} would need the tool \`${wish.toolName}\`, which I was not offered.`;
    default: return `${quoted(wish.words)} is still open; I have no result for it.`;
  }
}

/**
 * Turns a result into a sentence, or quotes it if that is not possible.
 * @param {string} toolName @param {string} text
 */
function result(toolName, text) {
  if (toolName === "calculator" || toolName === "convert_units") {
    const sides = /^(.*?)\s*([=≈])\s*([^=≈]+)$/s.exec(text);
    if (sides) return `\`${sides[1]}\` ${sides[2] === "≈" ? "is about" : "is"} **${sides[3]}**.`;
  }
  if (toolName === "clock") {
    const parts = /^(.+?): (\S+) on (.+?) \((.+)\)$/.exec(text);
    if (parts) return `${parts[1] === "Here" ? "Here" : `In ${parts[1]}`} it is **${parts[2]}** on ${parts[3]} (${parts[4]}).`;
  }
  if (toolName === "search_library") return passages(text);
  if (toolName === "count_primes") return text.replace(/\d{4,}/g, grouped).replace(/^(There are )([\d,]+)/, "$1**$2**");
  if (toolName === "rename_page") return text;
  return `\`${toolName}\` answered: ${text || "nothing"}`;
}

/** @param {string} text */
function passages(text) {
  const hits = [...text.matchAll(/^\d+\. (.+?): (.+)$/gm)];
  if (hits.length === 0) return `The library has nothing on that: “${text}”`;
  const [first, ...related] = hits;
  const also = related.length > 0 ? `\n\nRelated: ${listed(related.map(([, title]) => `*${title}*`))}.` : "";
  return `From *${first?.[1]}* in the library: ${first?.[2]}${also}`;
}

/** @param {string} toolName @param {string} text */
function briefResult(toolName, text) {
  if (toolName === "clock") return /: (\S+) on/.exec(text)?.[1] ?? text;
  if (toolName === "search_library") return /^\d+\. .+?: ([^.]*\.)/.exec(text)?.[1] ?? text;
  const { value, unit } = valueOf(toolName, text);
  return value === undefined ? text : [value, unit].filter(Boolean).join(" ");
}

/** @param {import("./question.js").Topic} topic @param {Conversation} conversation @param {ModelRequest} request */
function talkAbout(topic, conversation, request) {
  switch (topic) {
    case "hello": return conversation.now.tasks.length > 0 ? "" : `Hello. I am the rehearsal model, ${LABEL}. ${abilities(request)}`;
    case "thanks": return conversation.now.tasks.length > 0 ? "" : "You are welcome.";
    case "who": return `I am the rehearsal model: ${LABEL}. I match your words against rules, ask real tools and repeat what they say. For real understanding choose another model above.`;
    case "help": return abilities(request);
    case "questions": return questionList(conversation.questions.slice(0, -1));
    case "results": return resultList(conversation);
  }
}

/** @param {string[]} questions */
function questionList(questions) {
  if (questions.length === 0) return "This is your first message.";
  return `You asked:\n\n${questions.map((question) => `- ${question.replace(/\s+/g, " ")}`).join("\n")}`;
}

/** @param {Conversation} conversation */
function resultList({ earlier }) {
  if (earlier.length === 0) return "There are no results yet.";
  return `The results so far:\n\n${earlier.map(({ toolName, text }) => `- \`${toolName}\`: ${text.split("\n")[0]}`).join("\n")}`;
}

/** @param {string} words @param {ModelRequest} request */
function notUnderstood(words, request) {
  return `I can make nothing of ${quoted(words)}: I am a rehearsal, ${LABEL}, and I do not guess. ${abilities(request)}`;
}

/** Lists the tools that were offered, so that it promises nothing else. @param {ModelRequest} request */
function abilities({ tools, options }) {
  if (tools.length === 0 || options?.toolChoice === "none") return "I was offered no tools, so there is little I can do.";
  const known = { calculator: "calculate (17*23)", clock: "tell the time in a city (time in Oslo)", convert_units: "convert units (26.2 miles to km)", search_library: "search a small library (how does streaming work?)", count_primes: "count primes, slowly (primes below 5 million)", rename_page: "rename this page, if you allow it (rename this page to Turning)" };
  const can = tools.map(({ name }) => known[/** @type {keyof typeof known} */ (name)]).filter(Boolean);
  const other = tools.filter(({ name }) => !(name in known)).map(({ name }) => `\`${name}\``);
  if (other.length > 0) can.push(`call ${listed(other)} if you write \`call NAME {"argument": "value"}\``);
  return `I can ${listed(can)}. Several at once is fine.`;
}

/** @param {Exchange} now @param {ModelRequest} request */
function nothingToDo(now, request) {
  if (now.drops) return "Understood, I leave it at that.";
  if (now.resumes) return "There is nothing left to go on with: everything so far has its result.";
  if (now.userMessages === 0) return `There is no question to answer. ${abilities(request)}`;
  return `There is nothing in that for me to do. ${abilities(request)}`;
}

/** Repeats the user's words, with the digits of large numbers in groups again. @param {string} words */
function quoted(words) {
  return `“${words.replace(/(?<![\w.])\d{5,}(?![\w.])/g, grouped)}”`;
}

/** @param {string} digits */
function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** @param {string[]} names */
function listed(names) {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** @param {number} count */
function numberWord(count) {
  return ["no", "one", "two", "three", "four", "five", "six"][count] ?? String(count);
}

/**
 * Counts four characters as a token: the usual rule of thumb.
 * @param {ModelRequest} request @param {Plan} plan
 */
function usageOf(request, plan) {
  const tokens = (/** @type {string} */ text) => Math.ceil(text.length / 4);
  const read = request.messages.map(({ role, content }) => ({ role, content }));
  const input = tokens(request.systemPrompt ?? "") + tokens(JSON.stringify(read)) + tokens(JSON.stringify(request.tools));
  const reasoning = tokens(plan.thinking);
  const output = reasoning + tokens(plan.text) + plan.calls.reduce((sum, call) => sum + tokens(call.toolName + JSON.stringify(call.arguments)), 0);
  return { input, output, reasoning, total: input + output };
}
