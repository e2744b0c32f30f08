// @ts-check
// Checks that the docs are true: their code runs and prints what they say, tsc accepts it, their links lead
// somewhere, and their lists are those of the types. docs/blocks.mjs says how a block declares what it needs.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { INTERNALS, PAGES, ROOT, blocksOf, programsOf, textOfPage } from "./blocks.mjs";
import { prepare, run, write } from "./program.mjs";

const folder = prepare(join(ROOT, "tests/out/docs"));
const blocks = PAGES.flatMap((page) => blocksOf(page));
const ofLanguage = (/** @type {string} */ language) => PAGES.flatMap((page) => programsOf(blocks.filter((block) => block.page === page && block.language === language)));
const programs = ofLanguage("js");
const here = programs.filter((program) => !program.inE2e);

for (const program of here) test(`the code at ${program.name}`, { timeout: 60_000 }, () => run(folder, program));

test("a program that prints something else than its page says is noticed", async () => {
  const program = (/** @type {string} */ code) => /** @type {any} */ (programsOf(blocksOf("made-up.md", `\`\`\`js\n${code}\n\`\`\`\n`))[0]);
  await run(folder, { ...program("console.log(1 + 1); // → 2"), name: "right" });
  await run(folder, { ...program('console.log("id 17 of 99"); // → id … of 99'), name: "any" });
  await assert.rejects(run(folder, { ...program("console.log(1 + 1); // → 3"), name: "wrong" }));
  await assert.rejects(run(folder, { ...program("console.log(1); // → 1\nconsole.log(2);"), name: "more" }));
  await assert.rejects(run(folder, { ...program("// → 1"), name: "less" }));
});

test("every block is of a language that is known, and those that are not run say why", () => {
  const known = ["js", "ts", "jsx", "rust", "sh", "text", "html", "toml", "json", "jsonc"];
  for (const { page, line, language } of blocks) assert.ok(known.includes(language), `${page}:${line} is ${language}`);
  for (const { page, line, notRun } of blocks) if (notRun !== undefined) assert.ok(notRun.length > 10, `${page}:${line} has no reason`);
  assert.ok(blocks.filter((block) => block.notRun !== undefined).length <= 3);
  for (const page of PAGES) {
    const fences = textOfPage(page).match(/^\s*```/gm)?.length ?? 0;
    assert.equal(fences, blocks.filter((block) => block.page === page).length * 2, `${page}: a fence is not at the begin of its line, or has no language`);
  }
});

test("the Rust in the README is a doc test of the crate, word for word", () => {
  const docs = readFileSync(join(ROOT, "src/lib.rs"), "utf8").replace(/^\/\/! ?/gm, "");
  const rust = blocks.filter(({ page, language }) => page === "README.md" && language === "rust");
  assert.ok(rust.length > 0);
  for (const { page, line, code } of rust) assert.ok(docs.includes(code.trim()), `${page}:${line} is not in src/lib.rs`);
});

test("the Rust of the page about executors is that of their tests, word for word", () => {
  const plain = (/** @type {string} */ code) => code.replace(/^ +/gm, "").trim();
  const tests = plain(readFileSync(join(ROOT, "tests/executors_by_name.rs"), "utf8"));
  const rust = blocks.filter(({ page, language }) => page === "docs/executors.md" && language === "rust");
  assert.equal(rust.length, 5);
  for (const { page, line, code } of rust) assert.ok(tests.includes(plain(code)), `${page}:${line} is not in tests/executors_by_name.rs`);
});

test("blocks of jsx compile", async () => {
  for (const { page, line, language, code } of blocks) if (language === "jsx") await transform(code, { loader: "jsx", sourcefile: `${page}:${line}` });
});

test("tsc agrees with the code of every page", async () => {
  const config = JSON.parse(readFileSync(join(ROOT, "tests/js/types/tsconfig.json"), "utf8"));
  const paths = Object.fromEntries(Object.entries(config.compilerOptions.paths).map(([name, [linked]]) => [name, [`../../js/types/${linked}`]]));
  writeFileSync(join(folder, "ambient.d.ts"), 'declare module "node:*";\ndeclare const process: any;\ndeclare module "*.wasm";\ninterface Document { modelContext: any }\n');
  /**
   * Strict for ts; js has no way to declare what may be missing.
   * @param {string} language @param {any[]} programs @param {any} options
   */
  const check = async (language, programs, options) => {
    const files = [...programs.map((program) => write(folder, program, language)), join(folder, "ambient.d.ts"), join(ROOT, "tests/js/types/cloudflare-workers.d.ts")];
    const file = join(folder, `tsconfig.${language}.json`);
    writeFileSync(file, JSON.stringify({ extends: "../../js/types/tsconfig.json", compilerOptions: { ...options, paths, skipLibCheck: true }, files }));
    const output = await promisify(execFile)(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "--project", file]).catch((error) => error);
    assert.equal(output.stdout, "");
  };
  await check("ts", ofLanguage("ts"), {});
  // In code that is not strict, the AI SDK's own types mean something else than intended.
  const ours = here.filter(({ source }) => !/from "ai"/.test(source));
  await check("mjs", ours, { allowJs: true, checkJs: true, strict: false, exactOptionalPropertyTypes: false, noUncheckedIndexedAccess: false, noPropertyAccessFromIndexSignature: false });
});

/** The anchor that GitHub gives a heading. @param {string} heading */
const anchor = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");

test("every link leads to a file, and to a heading of it", () => {
  const read = [...PAGES, ...INTERNALS, "CONTRIBUTING.md", "CHANGELOG.md", "benches/RESULTS.md", "benches/README.md"];
  const headings = (/** @type {string} */ page) => [...textOfPage(page).replace(/^```[^]*?^```$/gm, "").matchAll(/^#+ (.*)$/gm)].map((match) => anchor(match[1] ?? ""));
  let count = 0;
  for (const page of read) {
    const text = textOfPage(page).replace(/^```[^]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");
    for (const [, target = ""] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = "", heading] = target.split("#");
      const linked = path === "" ? page : normalize(join(dirname(page), path));
      assert.ok(existsSync(join(ROOT, linked)), `${page}: nothing is at ${target}`);
      if (heading !== undefined) assert.ok(headings(linked).includes(heading), `${page}: ${target} is no heading of it; there are ${headings(linked).join(", ")}`);
      count += 1;
    }
  }
  assert.ok(count > 40, `${count} links`);
});

test("every page of docs/ can be reached from its index, and begins with what it is for", () => {
  const index = textOfPage("docs/README.md");
  for (const page of [...PAGES, ...INTERNALS].filter((page) => page.startsWith("docs/") && page !== "docs/README.md")) {
    assert.ok(index.includes(`(${page.slice("docs/".length)})`), `${page} is not in docs/README.md`);
    assert.match(textOfPage(page), /^# .+\n\n[A-Z`].+/, `${page} begins with a heading and a sentence`);
  }
});

test("every example says what it is, stands in the index, and takes the package as it is now", () => {
  const index = textOfPage("docs/README.md");
  const { version } = JSON.parse(readFileSync(join(ROOT, "pkg/package.json"), "utf8"));
  const fits = `^${version.split(".").slice(0, 2).join(".")}.0`;
  for (const name of readdirSync(join(ROOT, "www/examples"))) {
    const folder = `www/examples/${name}`;
    assert.ok(PAGES.includes(`${folder}/README.md`), `${folder} has no README.md`);
    assert.ok(index.includes(`(../${folder})`), `${folder} is not in docs/README.md`);
    if (existsSync(join(ROOT, folder, "Cargo.toml"))) {
      // It uses the crate in the repository: its lock file must know the crate's dependencies as they are now.
      execFileSync("cargo", ["update", "--workspace", "--locked"], { cwd: join(ROOT, folder), stdio: "pipe" });
      continue;
    }
    const { dependencies = {} } = JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8"));
    assert.ok([undefined, fits, "*", "latest"].includes(dependencies.turnwheel), `${folder} takes turnwheel ${dependencies.turnwheel}, not ${fits}`);
  }
});

const types = readFileSync(join(ROOT, "www/npm/index.d.ts"), "utf8");
/** The text of a type. @param {string} name */
const typeOf = (name) => new RegExp(`export type ${name}(?:<.*>)? =([^]*?);\n(?:\n|$|\/)`).exec(types)?.[1] ?? "";
const quotedNames = (/** @type {string} */ text) => [...text.matchAll(/"([\w.-]+)"/g)].map((match) => match[1]);
/**
 * The code words in the line or paragraph that begins like this.
 * @param {string} page @param {string} begin
 */
const listed = (page, begin) => {
  const text = textOfPage(page);
  const at = text.indexOf(begin);
  assert.ok(at >= 0, `${page}: ${begin}`);
  return [...text.slice(at + begin.length).split("\n\n")[0]?.matchAll(/`([\w.-]+)`/g) ?? []].map((match) => match[1]);
};

/** The events with their fields, according to the types. */
function eventsOfTypes() {
  // What depends on the known tools stands beside the other members.
  const text = typeOf("AgentEvent").replace(/\/\*\*.*?\*\//g, "").replace(/callId: string(.*?) \} & (Call|Name)Of<Calls>/g, (_, rest, kind) => `callId: string; toolName: string${kind === "Call" ? "; arguments: object" : ""}${rest} }`);
  return Object.fromEntries([...text.matchAll(/\{ type: "(\w+)"/g)].map((match) => {
    let depth = 1;
    let fields = "";
    for (const character of text.slice(match.index + match[0].length)) {
      if ("{[(".includes(character)) depth += 1;
      if ("}])".includes(character)) depth -= 1;
      if (depth === 0) break;
      if (depth === 1) fields += character;
    }
    return [match[1], [...fields.matchAll(/(\w+)\??:/g)].map((field) => field[1])];
  }));
}

test("the page on events has every event with all its fields", () => {
  const rows = [...textOfPage("docs/events.md").matchAll(/^\| `(\w+)` \|([^|]*)\| .+ \|$/gm)].filter(([, name = "", fields = ""]) => name.includes("_") || name === "custom" || (name === "budget" && fields.includes("`")));
  const shown = rows.map(([, name, fields = ""]) => [name, [...fields.matchAll(/`(\w+)`/g)].map((field) => field[1])]).filter(([name]) => !["max_turns", "policy_stop"].includes(String(name)));
  assert.deepEqual(Object.fromEntries(shown), eventsOfTypes());
});

test("the page on events has every reason and every cause", () => {
  assert.deepEqual(listed("docs/events.md", "`result.cause` is one of "), quotedNames(typeOf("ToolResultCause")));
  assert.deepEqual(listed("docs/events.md", "Its `stopReason` is ").slice(0, quotedNames(typeOf("MessageStopReason")).length), quotedNames(typeOf("MessageStopReason")));
  const ends = [...textOfPage("docs/events.md").split("## Where a run ends")[1]?.matchAll(/^\| `(\w+)` \|/gm) ?? []].map((match) => match[1]);
  assert.deepEqual(ends, quotedNames(typeOf("RunStopReason")));
});

test("the page on errors has every kind, the page on providers every server and switch", () => {
  const kinds = [...textOfPage("docs/errors.md").matchAll(/^\| `(\w+)` \| .* \| .* \|$/gm)].map((match) => match[1]);
  assert.deepEqual(kinds.toSorted(), quotedNames(typeOf("ErrorKind")).toSorted());
  assert.deepEqual(listed("docs/providers.md", "names one that is known, with its address:"), quotedNames(typeOf("ServerName")));
  const switches = [...textOfPage("docs/providers.md").split("| switch | |")[1]?.split("\n\n")[0]?.matchAll(/^\| `(\w+)`/gm) ?? []].map((match) => match[1]);
  assert.deepEqual(switches, [...typeOf("Compat").matchAll(/^ {2}(\w+)\?:/gm)].map((match) => match[1]));
});

test("the page on providers has every event that a model of one's own may yield", () => {
  const table = textOfPage("docs/providers.md").split("## A model of your own")[1]?.split("| event | |")[1]?.split("\n\n")[0] ?? "";
  const shown = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap((match) => [...(match[1] ?? "").matchAll(/`(\w+)`/g)].map((name) => name[1]));
  const types = [...typeOf("AssistantMessageEvent").matchAll(/type: ([^;]+);?/g)].flatMap((match) => quotedNames(match[1] ?? ""));
  assert.deepEqual(shown.toSorted(), [...new Set(types)].toSorted());
});

test("every option and every method is on some page", () => {
  const all = PAGES.filter((page) => page.startsWith("docs/")).map(textOfPage).join("\n");
  /** The members of a type, without its comments. @param {RegExp} begin */
  const members = (begin) => {
    const text = (types.split(begin)[1] ?? "").split("\n\n")[0]?.replace(/\/\*\*[^]*?\*\//g, "").replace(/\(.*?\)/g, "") ?? "";
    return [...text.matchAll(/(?:^|[;{] ?)\s*(?:static |readonly )*(\w+)\??(?=[:;(<]|$)/gm)].map((match) => match[1] ?? "");
  };
  for (const begin of [/interface AgentLoopConfig \{/, /interface StreamOptions /, /interface ProviderOptions \{/, /interface ToolDefinition.* \{/, /class Agent<.*> implements Disposable \{/, /interface AgentRun<.*> extends .*\{/]) {
    const names = members(begin);
    assert.ok(names.length >= 5, `${begin} has ${names.length}`);
    assert.deepEqual(names.filter((name) => name !== "constructor" && !new RegExp(`\\b${name}\\b`).test(all)), [], String(begin));
  }
});
