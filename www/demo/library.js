// @ts-check
// A small text collection, written for this demo, and a ranked search over it.

/** @typedef {{ id: string, title: string, topics: string, text: string }} Article */

/** @type {readonly Article[]} */
export const ARTICLES = [
  {
    id: "agent-loop", title: "The agent loop", topics: "agents, loop, language models",
    text: "An agent is a language model in a loop. The model reads the conversation and either answers or asks for tools. The host runs the tools and appends their results, and the model reads again. The loop ends when an answer asks for nothing more. Everything else, such as retries, approval or steering, decides what happens between two readings.",
  },
  {
    id: "turns", title: "Runs, turns and messages", topics: "turn, run, message, events",
    text: "A run begins with a prompt and ends with exactly one closing event. It consists of turns. One turn is one answer of the model together with the tools that this answer asked for. Inside the turn stands one message, which arrives in pieces. A picture of these three levels is the quickest way to see why a run took as long as it did.",
  },
  {
    id: "tool-calls", title: "What a tool call is", topics: "tool, function calling, JSON Schema, arguments",
    text: "A tool call is a request in words: the name of a tool and its arguments as JSON. The model never runs anything itself. The host checks the arguments against the tool's JSON Schema, runs the function and writes the result back with the same call id. A result that says what went wrong is worth more than an exception, because the model can read it and mend its call.",
  },
  {
    id: "parallel-tools", title: "Tools in parallel", topics: "parallel, concurrency, order of results",
    text: "When one answer asks for several tools that do not need each other, they can run at the same time. The batch then takes as long as its slowest tool and not as long as all of them together. Results may arrive in any order, but they enter the history in the order of the calls, so that the same conversation always reads the same.",
  },
  {
    id: "steering", title: "Steering a run", topics: "steering, interrupt, change of mind",
    text: "Steering is a message that reaches an agent while it works. Tools that have not started are dropped, tools in flight are cancelled or allowed to finish, and the message enters the conversation before the next reading. It is the difference between tapping somebody on the shoulder and sending them home: the work so far is kept, only the direction changes.",
  },
  {
    id: "follow-up", title: "Follow-up messages", topics: "follow-up, queue",
    text: "A follow-up waits its turn. It is delivered only when the agent would otherwise stop, after the last answer and with nothing else pending. Use it for the next task in a list. Use steering for a change of mind. After an error or an abort no follow-up is delivered, since nobody knows whether it still makes sense.",
  },
  {
    id: "abort", title: "Stopping at once", topics: "abort, cancel, AbortSignal",
    text: "Stopping a run must work in every phase: before the first word, between two words, while a tool runs and while a retry waits. The partial answer is kept and marked as aborted. Every call that was made gets a result, real or not, because many servers refuse a history in which a call is left open. In JavaScript an AbortSignal carries the wish to stop to whatever is waiting.",
  },
  {
    id: "streaming", title: "Why answers arrive in pieces", topics: "streaming, server-sent events, SSE, deltas",
    text: "A model writes one token after another, so its server can send each as soon as it exists. Most servers use server-sent events: lines of text that begin with `data:` and a blank line after each event. A network cuts this stream wherever it likes, even inside a letter of two bytes. A good decoder therefore keeps what is incomplete and waits for the rest.",
  },
  {
    id: "tokens", title: "Tokens and what they cost", topics: "tokens, usage, price, prompt cache",
    text: "Models read and write tokens, pieces of words of about four English letters each. Input and output are priced apart, output several times higher. The whole conversation is sent again with every turn, so the input grows with each one. A prompt cache softens this: a prefix that has not changed since the last call is read at a fraction of the price.",
  },
  {
    id: "context", title: "When the context is full", topics: "context window, compaction, summary",
    text: "A model reads only so much at once. When a conversation outgrows this window, something must go: the oldest messages, the longest tool results, or everything but a summary. Whatever is cut, a call and its result must stay or go together. It pays to do this before the server refuses the request, and to be able to do it after.",
  },
  {
    id: "retry", title: "Trying again, politely", topics: "retry, back-off, jitter, rate limit",
    text: "Servers fail for a moment more often than for good. A throttled or overloaded server is asked again after a delay that doubles each time, with a random share so that a thousand clients do not return in the same instant. If the server names a delay, that one counts. A wrong key or an invalid request is never repeated: it would fail the same way.",
  },
  {
    id: "approval", title: "Asking before acting", topics: "approval, safety, human in the loop",
    text: "Some tools should not run without a person's consent: those that write, pay, send or delete. The loop then waits for a decision on each call. A decision may also change the arguments or give the result itself. Waiting may take a second or a weekend, so it must survive a closed laptop.",
  },
  {
    id: "checkpoints", title: "Checkpoints", topics: "checkpoint, restore, persistence",
    text: "A checkpoint is the state of a run as plain data. Stored anywhere and read back in another process, it lets the run go on where it was. Functions and keys are never part of it. The honest part is what to do about a tool that was running: run it again only if that does no harm, otherwise say that its outcome is unknown.",
  },
  {
    id: "webassembly", title: "WebAssembly in one paragraph", topics: "WebAssembly, wasm, Rust, sandbox",
    text: "WebAssembly is a compact instruction format that browsers and servers compile to machine code. A module sees its own block of memory and the functions it was given, nothing else. Languages such as Rust, C and Zig compile to it. Numbers cross the border to JavaScript for free, texts and objects have to be copied, so a good interface crosses seldom and in bulk.",
  },
  {
    id: "csp", title: "Content Security Policy and wasm", topics: "CSP, security, browser",
    text: "A page can tell the browser which code it trusts, by a Content-Security-Policy. Compiling WebAssembly needs the word `wasm-unsafe-eval` in `script-src`. In spite of its name it allows neither eval nor inline scripts. This page is served with such a policy: its scripts and its style come from its own address only.",
  },
  {
    id: "cors", title: "CORS, or why the browser refuses", topics: "CORS, origin, browser, network error",
    text: "A page may read an answer from another address only if that address allows it, with the header `Access-Control-Allow-Origin`. If it does not, the page learns nothing but that the request failed, which looks exactly like a server that is switched off. Local model servers have a setting for it. For Ollama it is the environment variable `OLLAMA_ORIGINS`.",
  },
  {
    id: "local-models", title: "A model on your own machine", topics: "Ollama, llama.cpp, LM Studio, local models",
    text: "Ollama, llama.cpp and LM Studio run open models on your own computer and speak the Chat Completions wire. Small models of a few billion parameters answer quickly and make simple tool calls. Smaller ones talk fluently but call tools badly. Nothing that you type leaves the machine, and nothing costs but electricity.",
  },
  {
    id: "coffee", title: "Filter coffee", topics: "coffee, brewing, filter",
    text: "For filter coffee take about 60 grams of coffee to a litre of water, ground like coarse sand. Water just off the boil, at 92 to 96 degrees Celsius, is right. Pour a little first and wait half a minute while the grounds swell and gas escapes, then pour the rest in slow circles. If it tastes sour grind finer, if it tastes bitter grind coarser.",
  },
  {
    id: "espresso", title: "Espresso", topics: "espresso, coffee, pressure",
    text: "An espresso is coffee made in a hurry under pressure. Water at about nine bar goes through 18 grams of very finely ground coffee and gives some 36 grams in the cup within half a minute. A shot that runs too fast tastes thin and sour, one that drips too slowly tastes burnt. The grinder matters more than the machine.",
  },
  {
    id: "tea", title: "Green tea", topics: "tea, brewing",
    text: "Green tea turns bitter in boiling water. At 70 to 80 degrees Celsius and for two minutes it stays sweet. Good leaves can be brewed three times, each time a little longer. The pot should be small and the leaves free to move, since they grow to several times their size.",
  },
  {
    id: "time-zones", title: "Time zones", topics: "time zones, clock, daylight saving time",
    text: "The world keeps more than 24 times. Nepal is 5 hours and 45 minutes ahead of UTC, and China uses one time across a width of five zones. Many countries move their clocks in spring and autumn, not on the same day. Programs therefore ask a database of names such as Europe/Oslo, kept up to date by volunteers, and never count hours on their fingers.",
  },
  {
    id: "primes", title: "Prime numbers", topics: "primes, sieve of Eratosthenes",
    text: "A prime number has no divisor but one and itself. The sieve of Eratosthenes finds them by crossing out: all multiples of two, then of three, of five, and so on up to the square root of the limit. What is left is prime. There are 78,498 of them below a million. They grow rarer, roughly as one in ln(n), and never end.",
  },
];

/** @typedef {{ article: Article, score: number, passage: string }} Hit */

const STOP_WORDS = new Set("a an and are as at be by can do does for from has have how i in is it its me my of on or say so tell that the their them then there they this to was what when where which who why will with you your about".split(" "));

const INDEX = ARTICLES.map((article) => {
  const words = wordsOf(article.text);
  const heading = new Set([...wordsOf(article.title), ...wordsOf(article.topics)]);
  return { article, words, heading };
});
const AVERAGE_LENGTH = INDEX.reduce((sum, { words }) => sum + words.length, 0) / INDEX.length;

/**
 * Returns the articles that fit the query best (BM25; words in the heading weigh more),
 * each with its best passage.
 *
 * @param {string} query
 * @param {number} [limit]
 * @returns {Hit[]} best first, empty if no word of the query occurs
 */
export function searchLibrary(query, limit = 3) {
  const wanted = [...new Set(wordsOf(query))];
  return INDEX
    .map(({ article, words, heading }) => ({ article, score: score(wanted, words, heading), passage: bestPassage(article.text, wanted) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, limit);
}

/**
 * The words of a text that carry meaning, reduced to a common form: `Streams` and `streaming` are one word.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function wordsOf(text) {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !STOP_WORDS.has(word)).map(stem);
}

/** @param {string} word */
function stem(word) {
  if (word.length < 5) return word.replace(/s$/, "");
  return word.replace(/ies$/, "y").replace(/(?:ing|ed|s)$/, "").replace(/e$/, "");
}

/** @param {string[]} wanted @param {string[]} words @param {Set<string>} heading */
function score(wanted, words, heading) {
  let total = 0;
  for (const word of wanted) {
    const holders = INDEX.filter((entry) => entry.words.includes(word) || entry.heading.has(word)).length;
    if (holders === 0) continue;
    const rarity = Math.log(1 + (INDEX.length - holders + 0.5) / (holders + 0.5));
    const times = words.filter((candidate) => candidate === word).length;
    const saturation = (times * 2.2) / (times + 1.2 * (0.25 + (0.75 * words.length) / AVERAGE_LENGTH));
    total += rarity * (saturation + (heading.has(word) ? 2 : 0));
  }
  return total;
}

/**
 * Returns the two neighbouring sentences with the most wanted words.
 * @param {string} text @param {string[]} wanted
 */
function bestPassage(text, wanted) {
  const sentences = text.match(/[^.!?]+(?:[.!?](?!\s|$)[^.!?]*)*[.!?]+/g)?.map((sentence) => sentence.trim()) ?? [text];
  let best = 0;
  let most = -1;
  for (let index = 0; index < Math.max(1, sentences.length - 1); index += 1) {
    const words = new Set(wordsOf(sentences.slice(index, index + 2).join(" ")));
    const count = wanted.filter((word) => words.has(word)).length;
    if (count > most) [best, most] = [index, count];
  }
  return sentences.slice(best, best + 2).join(" ");
}
