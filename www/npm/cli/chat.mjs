// @ts-check
// npx turnwheel chat: a conversation with a model in the terminal.

import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { Agent } from "../entry/node.js";
import { addressOf, checkServer, checkThere, isLocal, keyOf, modelAt, onlyModel, shownAddress } from "../smoke.js";
import { clock, fileTools, rehearsed } from "./chat-tools.mjs";
import { Keyboard } from "./keyboard.mjs";
import { complain, harmless, parsed, refuse, say, short, textOf } from "./terminal.mjs";
import { usageOf } from "./usage.mjs";

/** @import { AgentEvent, AgentOptions, AgentRun, Model } from "../index.js" */
/** @typedef {{ model: Model, place: string, variable?: string }} Chosen */

const TEXTS = ["server", "model", "base-url", "key-env", "system", "save", "resume", "tape"];
const HELP = `/help   this
/quit   leaves; Ctrl-D does, too
Ctrl-C  stops the answer; a second one leaves
What you type while an answer comes is read next, in the same run.`;

/** Whose models have these names. A model is found by its name alone only where no other server has it. @type {[RegExp, string][]} */
const BY_MODEL = [[/^(gpt-(?!oss)|chatgpt-|o\d)/, "openai"], [/^claude-/, "anthropic"], [/^gemini-/, "gemini"]];
/** @type {[string, string][]} */
const BY_KEY = [["OPENAI_API_KEY", "openai"], ["ANTHROPIC_API_KEY", "anthropic"], ["GEMINI_API_KEY", "gemini"]];

/** @param {string[]} args @returns {Promise<number>} the exit code */
export async function chat(args) {
  let given;
  try {
    given = parsed(args, TEXTS, ["files", "scripted"]);
  } catch (error) {
    return refuse(`${textOf(error)}\n\n${usageOf("chat")}`);
  }
  const { values, positionals } = given;
  if (values.help) return say(usageOf("chat"));
  // Not repeated: it may be a key that somebody meant to pass.
  if (positionals.length > 0) return refuse(`chat takes nothing but options; a key is read from the environment\n\n${usageOf("chat")}`);
  try {
    const chosen = await modelOf(values);
    const talk = new Talk(values, chosen);
    await talk.open();
    say(`${chosen.place}. /help says what there is.`);
    return await talk.run();
  } catch (error) {
    return complain(textOf(error));
  }
}

/** @param {Record<string, any>} values @returns {Promise<Chosen>} */
async function modelOf(values) {
  if (values["scripted"]) {
    if (values["server"] || values["model"]) throw new Error("--scripted plays a script in place of a model: leave it out, or leave out --server and --model");
    return { model: rehearsed(), place: "A script in place of a model" };
  }
  const server = checkServer(values["server"] ?? guessed(values));
  const baseUrl = addressOf(server, values["base-url"]);
  const key = keyOf(server, values["key-env"], process.env);
  if (values["model"] && isLocal(server, baseUrl)) await checkThere(server, baseUrl, key);
  const id = values["model"] || (await onlyModel(server, baseUrl, key));
  return { model: modelAt(server, id, { baseUrl, ...(key && { apiKey: key }) }, values["base-url"] !== undefined), place: `${server}, ${id}, at ${shownAddress(baseUrl)}` };
}

/** The server, where none is named. @param {Record<string, any>} values */
function guessed({ model, "base-url": baseUrl }) {
  if (baseUrl !== undefined) return "openai-compatible";
  const [, named] = BY_MODEL.find(([names]) => names.test(model ?? "")) ?? [];
  const [, keyed] = (model === undefined && BY_KEY.find(([name]) => process.env[name])) || [];
  return named ?? keyed ?? "ollama";
}

/** One conversation. */
class Talk {
  /** @type {Agent} */
  #agent;
  /** @type {AgentOptions} */
  #options;
  /** @type {string | undefined} */
  #file;
  #keyboard = new Keyboard({ steer: (line) => this.#steer(line), stop: () => this.#stop() });
  #values;
  #place;
  /** Whether another Ctrl-C leaves. */
  #isLeaving = false;
  #isSaid = false;
  #isFull = false;
  #code = 0;
  /** @type {import("../tape.js").Recorder | undefined} */
  #recorder;

  /** @param {Record<string, any>} values @param {Chosen} chosen */
  constructor(values, { model, place }) {
    this.#values = values;
    this.#place = place;
    const isScripted = Boolean(values["scripted"]);
    this.#options = {
      model,
      tools: [...(isScripted ? [clock] : []), ...(isScripted || values["files"] ? fileTools : [])],
      ...(values["system"] && { systemPrompt: values["system"] }),
      approveTool: async ({ toolName, arguments: args }, { signal }) => {
        const answer = await this.#keyboard.ask(`\nMay it ${harmless(`${toolName} ${JSON.stringify(args)}`)}? [y/N] `, signal);
        return /^\s*y/i.test(answer) ? "approve" : { action: "reject", reason: "the user said no" };
      },
    };
    this.#agent = new Agent(this.#options);
  }

  /** Reads what was saved, and finds out whether something can be saved. */
  async open() {
    const { resume, save, tape } = this.#values;
    if (resume !== undefined) this.#agent = await resumed(resume, this.#options);
    if (save !== undefined && save !== resume && existsSync(save)) throw new Error(`${save} is there already: go on with it (--resume ${save}), or name another file with --save`);
    if (tape !== undefined && existsSync(tape)) throw new Error(`${tape} is there already: name another file with --tape`);
    this.#file = save ?? resume;
    if (tape !== undefined) this.#recorder = await (await import("../tape.js")).record(this.#agent);
    this.#save();
    this.#record();
    // There are many updates, and an answer that was interrupted is asked for again anyway.
    this.#agent.subscribe((event) => { if (event.type !== "message_update") this.#kept(() => this.#save()); });
    this.#agent.subscribe((event) => this.#show(event));
  }

  /** @returns {Promise<number>} the exit code */
  async run() {
    const { length } = this.#agent.messages;
    if (length > 0) say(`The conversation has ${length} messages.`);
    if (this.#agent.canContinue) await this.#follow(this.#agent.continue());
    for (let line; (line = await this.#keyboard.next("> ")) !== undefined; ) {
      this.#isLeaving = false;
      const text = line.trim();
      if (text === "/quit" || text === "/exit") break;
      if (text === "/help") say(HELP);
      else if (/^\/\w+$/.test(text)) say(`There is no ${text}; /help says what there is.`);
      else if (text !== "") await this.#follow(this.#agent.prompt(line));
    }
    this.#leave(process.stdin.isTTY ? 0 : this.#code);
    return this.#code;
  }

  /** @param {AgentRun} run */
  async #follow(run) {
    this.#keyboard.isBusy = true;
    const { stopReason, error, usage } = await run;
    this.#keyboard.isBusy = false;
    this.#code = error ? 1 : 0;
    this.#kept(() => this.#record());
    const end = error ? `[${error.code}: ${error.message}]${this.#wayOut(error.code)}` : `[${usage.input + usage.cacheRead + usage.cacheWrite} tokens in, ${usage.output} out]`;
    this.#write(`\n${stopReason === "aborted" ? "[stopped]" : end}\n`);
  }

  /** What to do about an error. @param {string} code */
  #wayOut(code) {
    if (code === "network") return `\n${this.#place}: nothing answers there. Start it, or leave and name another with --server or --base-url.`;
    if (code === "auth") return `\n${this.#place}: the key is refused. Set another in the environment, or name its variable with --key-env NAME.`;
    return "";
  }

  /** @param {AgentEvent} event */
  #show(event) {
    if (event.type === "message_start") this.#isSaid = false;
    if (event.type === "message_update" && event.delta.type === "text") this.#write(event.delta.delta);
    if (event.type === "message_update" && event.delta.type === "thinking" && !this.#isSaid) {
      this.#isSaid = true;
      this.#write("[it thinks]\n");
    }
    if (event.type === "tool_execution_start") this.#write(`\n[${event.toolName} ${short(JSON.stringify(event.arguments))}]\n`);
    if (event.type === "tool_execution_end") {
      const said = event.result.content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
      this.#write(`[${event.toolName} ${event.isError ? "fails" : "ends"}: ${short(said)}]\n`);
    }
    if (event.type === "retry_attempt") this.#write(`\n[attempt ${event.attempt} failed: ${short(event.error.message)}; next in ${event.delayMs} ms]\n`);
  }

  /** Models and tools have written it. @param {string} text */
  #write(text) {
    process.stdout.write(harmless(text.replaceAll("\t", "  ").replaceAll("\r\n", "\n")));
  }

  /** @param {string} line */
  #steer(line) {
    if (line.trim() === "") return;
    this.#agent.steer(line);
    this.#write("[it reads that next]\n");
  }

  /** Ctrl-C: the answer stops; a second one leaves. */
  #stop() {
    if (this.#isLeaving) return this.#leave(130);
    this.#isLeaving = true;
    if (this.#keyboard.isBusy) this.#agent.abort();
    else this.#write("\n[Ctrl-C again, or /quit, leaves]\n");
  }

  /** @param {number} code */
  #leave(code) {
    this.#recorder?.stop();
    const isKept = this.#kept(() => (this.#save(), this.#record()));
    this.#keyboard.close();
    if (isKept && this.#file !== undefined) this.#write(`${this.#file} has the conversation; go on with --resume ${this.#file}\n`);
    process.exit(code);
  }

  /** A full disk does not end the conversation. @param {() => void} write @returns {boolean} whether it is written */
  #kept(write) {
    try {
      write();
      this.#isFull = false;
      return true;
    } catch (error) {
      if (!this.#isFull) this.#write(`\n[${textOf(error)}]\n`);
      this.#isFull = true;
      return false;
    }
  }

  #save() {
    if (this.#file === undefined) return;
    written(this.#file, JSON.stringify(this.#agent.checkpoint()), "--save");
  }

  #record() {
    if (this.#recorder) written(this.#values["tape"], this.#recorder.toText(), "--tape");
  }
}

/** @param {string} file @param {AgentOptions} options */
async function resumed(file, options) {
  try {
    return await Agent.restore(readFileSync(file, "utf8"), options);
  } catch (error) {
    throw new Error(`${file} cannot be resumed: ${textOf(error)}; --resume takes a file that --save has written`);
  }
}

/** A file is whole at every moment; nobody else reads it. @param {string} file @param {string} text @param {string} option */
function written(file, text, option) {
  try {
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch (error) {
    throw new Error(`${file} cannot be written (${/** @type {any} */ (error)?.code ?? error}); name another file with ${option}`);
  }
}
