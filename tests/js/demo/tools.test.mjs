// @ts-check
// The tools of the demo on their own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ARTICLES, searchLibrary } from "../../../www/demo/library.js";
import { demoTools } from "../../../www/demo/tools.js";

const WINTER = Date.UTC(2026, 0, 15, 12, 0);
const SUMMER = Date.UTC(2026, 6, 15, 12, 0);

/** @param {object} [options] */
function toolbox(options) {
  const tools = demoTools({ sleep: async () => {}, now: () => WINTER, ...options });
  /** @param {string} name @param {object} given @param {object} [context] @returns {Promise<string>} */
  return async (name, given, context = {}) => {
    const tool = tools.find((candidate) => candidate.name === name);
    const output = /** @type {any} */ (await tool?.execute(given, /** @type {any} */ ({ signal: new AbortController().signal, update: () => {}, ...context })));
    return output.content[0].text;
  };
}

const run = toolbox();
const calculated = (/** @type {string} */ expression) => run("calculator", { expression });

test("the calculator knows precedence, powers, functions and decimals", async () => {
  const sums = {
    "17*23": "391", "2+3*4": "14", "(2+3)*4": "20", "-2^2": "-4", "2^3^2": "512", "2^-1": "0.5", "--3": "3", "10 % 3": "1", "10 % -3": "1", "-7 % 3": "-1",
    "0.1 + 0.2": "0.3", "1/4": "0.25", "1.5e3 + .5": "1500.5", "sqrt(16) + max(1, 2, 3)": "7", "round(2.345, 2)": "2.35", "round(-2.5)": "-2", "log(1000)": "3", "ln(e)": "1",
    "2 × 3 ÷ 4 − 1": "0.5", "2**10": "1024", "5!": "120", "avg(1, 2, 6)": "3", "hypot(3, 4)": "5", "0": "0", "-0": "0", "9007199254740991": "9007199254740991",
  };
  for (const [expression, value] of Object.entries(sums)) assert.equal(await calculated(expression), `${expression} = ${value}`);
});

test("a value that is rounded is shown as rounded", async () => {
  assert.equal(await calculated("2/3"), "2/3 ≈ 0.666666666666667");
  assert.equal(await calculated("2^100"), "2^100 ≈ 1.26765060022823e+30");
});

test("what the calculator cannot do it says in words that help", async () => {
  const errors = {
    "1/0": /division by zero/, "5 % 0": /division by zero/, "0^-1": /division by zero/, "sqrt(-1)": /no real value/, "(-8)^0.5": /no real value/, "ln(0)": /above zero/, "asin(2)": /from -1 to 1/,
    "": /empty/, "2 +": /at the end/, "(1": /missing at the end/, "1)": /no `\(`/, "2(3)": /operator before `\(`/, "2 3": /operator before `3` at character 3/,
    "15%": /15\/100\*200/, "1,000": /write 1000/, "foo(2)": /no function or constant named `foo`; known: sqrt/, "sqrt": /sqrt\(2\)/, "sqrt(1, 2)": /takes 1 argument, got 2/, "max()": /got 0/,
    "2 $ 3": /cannot read `\$` at character 3/, "1e400": /too large/, "171!": /at most 170/, "(-1)!": /whole numbers/, "constructor": /no function or constant/, "__proto__": /cannot read `_`/, "globalThis": /no function/,
  };
  for (const [expression, message] of Object.entries(errors)) await assert.rejects(calculated(expression), { message }, expression);
});

test("a hostile expression ends in an error, not in a full stack", async () => {
  await assert.rejects(calculated("(".repeat(400)), /nested/);
  await assert.rejects(calculated("2^".repeat(200) + "2"), /nested|too large/);
  await assert.rejects(calculated("1+".repeat(1000) + "1"), /at most 500/);
});

test("the clock tells time and date in a zone, summer and winter", async () => {
  assert.equal(await run("clock", { place: "Oslo" }), "Oslo: 13:00 on Thursday, 15 January 2026 (Europe/Oslo, UTC+01:00)");
  assert.equal(await toolbox({ now: () => SUMMER })("clock", { place: "Oslo" }), "Oslo: 14:00 on Wednesday, 15 July 2026 (Europe/Oslo, UTC+02:00)");
  assert.equal(await run("clock", { place: "Kathmandu" }), "Kathmandu: 17:45 on Thursday, 15 January 2026 (Asia/Kathmandu, UTC+05:45)");
  assert.equal(await toolbox({ now: () => Date.UTC(2026, 0, 15, 23, 30) })("clock", { place: "Berlin" }), "Berlin: 00:30 on Friday, 16 January 2026 (Europe/Berlin, UTC+01:00)");
});

test("the clock knows cities, countries, zones and offsets, in any case and spelling", async () => {
  const places = { "new york": "America/New_York", "São Paulo": "America/Sao_Paulo", "Zürich": "Europe/Zurich", japan: "Asia/Tokyo", "europe/berlin": "Europe/Berlin", "Paris, France": "Europe/Paris", "UTC+2": "Etc/GMT-2", utc: "UTC", "america/argentina/ushuaia": "America/Argentina/Ushuaia", Vladivostok: "Asia/Vladivostok" };
  for (const [place, zone] of Object.entries(places)) assert.ok((await run("clock", { place })).includes(`(${zone},`), `${place} is ${await run("clock", { place })}`);
});

test("a hundred cities are known", async () => {
  const cities = "Oslo Stockholm Copenhagen Helsinki Reykjavik London Edinburgh Dublin Paris Lyon Berlin Hamburg Munich Frankfurt Amsterdam Brussels Luxembourg Zurich Geneva Vienna Rome Milan Naples Venice Madrid Barcelona Seville Lisbon Porto Athens Prague Warsaw Krakow Budapest Bucharest Sofia Belgrade Zagreb Ljubljana Bratislava Vilnius Riga Tallinn Kyiv Moscow Istanbul Ankara Cairo Lagos Nairobi Johannesburg Casablanca Accra Algiers Tunis Dakar Jerusalem Beirut Riyadh Baghdad Tehran Dubai Doha Karachi Mumbai Delhi Bangalore Chennai Kathmandu Dhaka Colombo Tashkent Yangon Bangkok Hanoi Jakarta Singapore Manila Shanghai Beijing Shenzhen Taipei Seoul Busan Tokyo Osaka Kyoto Sydney Melbourne Brisbane Perth Adelaide Auckland Wellington Honolulu Anchorage Seattle Vancouver Denver Phoenix Chicago Dallas Houston Boston Washington Miami Toronto Montreal Havana Bogota Lima Quito Caracas Santiago Montevideo".split(" ");
  assert.ok(cities.length >= 100);
  for (const place of cities) assert.match(await run("clock", { place }), /^\p{L}+: \d\d:\d\d on \w+, \d+ \w+ 2026 \(\w+\/[\w/]+, UTC[+-]\d\d:\d\d\)$/u, place);
});

test("an unknown place is an error that names the way out, and a misspelt one gets a suggestion", async () => {
  await assert.rejects(run("clock", { place: "Olso" }), /no time zone known for `Olso`; did you mean Oslo\?/);
  await assert.rejects(run("clock", { place: "Middle-earth" }), /IANA zone such as Europe\/Oslo/);
  await assert.rejects(run("clock", { place: "Mars/Base" }), /no time zone/);
});

test("without a place the clock tells the time of this machine", async () => {
  assert.match(await run("clock", {}), /^Here: \d\d:\d\d on /);
});

test("units of every kind convert", async () => {
  /** @type {[number, string, string, string][]} */
  const conversions = [
    [26.2, "miles", "km", "26.2 mi ≈ 42.164813 km"], [1, "inch", "cm", "1 in = 2.54 cm"], [100, "F", "celsius", "100 °F ≈ 37.777778 °C"], [-40, "°C", "fahrenheit", "-40 °C = -40 °F"],
    [0, "degrees celsius", "kelvin", "0 °C = 273.15 K"], [2, "pounds", "kg", "2 lb = 0.90718474 kg"], [1, "US gallon", "litres", "1 gal ≈ 3.7854118 l"], [3, "cups", "ml", "3 cup ≈ 709.76471 ml"],
    [36, "km/h", "m/s", "36 km/h = 10 m/s"], [60, "miles per hour", "km/h", "60 mph = 96.56064 km/h"], [1, "GB", "MiB", "1 GB ≈ 953.67432 MiB"], [8, "Mb", "MB", "8 Mbit = 1 MB"],
    [90, "minutes", "hours", "90 min = 1.5 h"], [1, "week", "days", "1 week = 7 d"], [1, "hectare", "square metres", "1 ha = 10000 m²"], [5, "sq ft", "m2", "5 ft² = 0.4645152 m²"], [6, "feet", "m", "6 ft = 1.8288 m"],
  ];
  for (const [value, from, to, text] of conversions) assert.equal(await run("convert_units", { value, from, to }), text);
});

test("units that do not convert are refused in words", async () => {
  await assert.rejects(run("convert_units", { value: 1, from: "parsec", to: "km" }), /no unit named `parsec`; known are .*length/);
  await assert.rejects(run("convert_units", { value: 1, from: "kg", to: "m" }), /`kg` is a unit of mass and `m` one of length/);
  await assert.rejects(run("convert_units", { value: -300, from: "C", to: "K" }), /absolute zero/);
});

test("the library finds the article that a question is about", async () => {
  const questions = { "how does steering work": "Steering a run", "brew filter coffee": "Filter coffee", "streams and server-sent events": "Why answers arrive in pieces", "rust wasm": "WebAssembly in one paragraph", "run survives a restart checkpoint": "Checkpoints", "why does the browser refuse CORS": "CORS, or why the browser refuses", tokens: "Tokens and what they cost", "prime numbers": "Prime numbers" };
  for (const [query, title] of Object.entries(questions)) assert.equal(searchLibrary(query)[0]?.article.title, title, query);
});

test("every article is found by its own title, and a passage is part of its text", () => {
  for (const article of ARTICLES) {
    const hits = searchLibrary(article.title, 5);
    assert.equal(hits[0]?.article.id, article.id);
    for (const hit of hits) assert.ok(hit.article.text.includes(hit.passage.split(". ")[0] ?? "?"));
  }
});

test("a search without a hit says so, and gives no more than was asked for", async () => {
  assert.equal(await run("search_library", { query: "quantum chromodynamics" }), "No article mentions “quantum chromodynamics”.");
  assert.equal((await run("search_library", { query: "coffee tea tokens", limit: 2 })).split("\n").length, 2);
});

test("the slow tool counts right and reports progress up to the end", async () => {
  /** @type {any[]} */
  const updates = [];
  assert.equal(await run("count_primes", { below: 1_000_000 }, { update: (/** @type {any} */ update) => updates.push(update) }), "There are 78498 primes below 1000000; the largest is 999983.");
  assert.ok(updates.length >= 20);
  const progress = updates.map(({ details }) => details.progress);
  assert.deepEqual(progress, [...progress].sort((a, b) => a - b));
  assert.equal(progress.at(-1), 1);
  assert.match(updates.at(-1).content[0].text, /100 %, 78,498 primes so far/);
});

test("the slow tool counts small limits right too", async () => {
  for (const [below, count] of /** @type {const} */ ([[10, 4], [11, 4], [12, 5], [30, 10], [100, 25], [101, 25], [102, 26], [1000, 168]])) {
    assert.match(await run("count_primes", { below }), new RegExp(`^There are ${count} primes below ${below};`));
  }
});

test("a cancelled tool stops where it is, with the signal's reason", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  let waits = 0;
  let updates = 0;
  const slow = toolbox({
    sleep: async (/** @type {number} */ _, /** @type {AbortSignal} */ signal) => {
      waits += 1;
      if (waits === 5) controller.abort(reason);
      signal.throwIfAborted();
    },
  });
  await assert.rejects(slow("count_primes", { below: 1_000_000 }, { signal: controller.signal, update: () => void (updates += 1) }), (error) => error === reason);
  assert.equal(updates, 4);
});

test("every tool waits only through the sleep it was given, at the pace it was given", async () => {
  /** @type {number[]} */
  const waits = [];
  const paced = toolbox({ sleep: async (/** @type {number} */ ms) => void waits.push(ms), pace: () => 0 });
  await paced("calculator", { expression: "1" });
  await paced("clock", { place: "Oslo" });
  await paced("convert_units", { value: 1, from: "m", to: "km" });
  await paced("search_library", { query: "tea" });
  await paced("count_primes", { below: 10 });
  assert.ok(waits.length > 4);
  assert.ok(waits.every((ms) => ms === 0));
});

test("every tool is made with the `tool` it was given and carries a closed JSON Schema", () => {
  /** @type {any[]} */
  const made = [];
  const tools = demoTools({ tool: (definition) => (made.push(definition), definition) });
  assert.deepEqual(made, tools);
  for (const { name, description, parameters } of /** @type {any[]} */ (tools)) {
    assert.match(name, /^[a-z_]+$/);
    assert.ok(description.length > 20);
    assert.equal(parameters.type, "object");
    assert.equal(parameters.additionalProperties, false);
    assert.ok(parameters.required.every((/** @type {string} */ key) => key in parameters.properties));
    assert.deepEqual(parameters, JSON.parse(JSON.stringify(parameters)));
  }
});
