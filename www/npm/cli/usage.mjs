// @ts-check
// How the commands are called.

/** How a command is called, and what its options mean. @type {Record<string, [call: string, meaning: string]>} */
const COMMANDS = {
  tape: ["npx turnwheel tape FILE [--json | --test]",
    `Shows what happened in the runs on a tape, by replaying them: no model, no tools, no network.
  --json   everything as JSON, a line each: events, effects, replies, answers of rules, notes
  --test   writes FILE.test.mjs beside the tape: a test for node:test that replays it`],
  "tape diff": ["npx turnwheel tape diff A B [--exact]",
    `Names the first input, effect, reply or event in which two tapes differ. The exit code is 0 if they are the same, 1 if they differ,
2 if they cannot be compared. Times and random ids are not compared, nor how the text of an answer was cut into pieces.
  --exact  compares these too`],
  inspect: ["npx turnwheel inspect FILE",
    `Serves the inspector with a tape on 127.0.0.1 and prints the address. Nothing is sent elsewhere. Ctrl-C ends it.`],
  chat: [`npx turnwheel chat [--server NAME] [--model ID] [--base-url URL] [--key-env NAME] [--system TEXT] [--files] [--save FILE]
                          [--resume FILE] [--tape FILE] [--scripted]`,
    `A conversation in the terminal. The key is read from the environment. Ctrl-C stops an answer, a second one leaves.
  --server    as for smoke; without it the model's name says it, or the key in the environment, or it is ollama
  --model     the id of the model; may be left out where the server has only one
  --base-url, --key-env  as for smoke
  --system    the system prompt
  --files     the model may list and read files in this folder; you are asked each time
  --save      the file for the conversation, a checkpoint, written after each event
  --resume    goes on with the conversation in this file, and saves there
  --tape      the file for a tape, which tape and inspect show
  --scripted  a script in place of a model: no key, no network`],
  smoke: [`npx turnwheel smoke --server NAME [--model ID] [--base-url URL] [--key-env NAME] [--only CHECKS] [--skip CHECKS]
                           [--timeout SECONDS] [--out FILE]`,
    `Asks a server eight small things: text, tools, parallel, thinking, abort, overflow, image, structured. The key is read from the
environment. The exit code is 0 if no check failed.
  --server    openai, openai-responses, anthropic, gemini, ollama, llama.cpp, openrouter, …: an unknown name shows all
  --model     the id of the model; may be left out where the server has only one
  --base-url  the address, if it is not the usual one of the server
  --key-env   the variable of the environment that holds the key, if it is not the usual one (OPENAI_API_KEY, …)
  --only      names of checks with commas between them; no others are made
  --skip      names of checks that are left out; overflow sends most
  --timeout   seconds that a check may take, 60 unless you say otherwise
  --out       the file for the results, turnwheel-smoke-SERVER-MODEL-DATE.json unless you say otherwise`],
  verify: ["npx turnwheel verify [--sums FILE]",
    `Compares the sha-256 of each wasm file of the package with its manifest, SHA256SUMS, and lists what each imports. The exit code is 1
if one differs.
  --sums      another manifest, such as that of a release`],
};

const ALL = Object.entries(COMMANDS);

/** All commands. */
export const USAGE = `Usage: ${ALL.map(([, [call]]) => call).join("\n       ")}

${ALL.map(([name, [, meaning]]) => `npx turnwheel ${name}\n${meaning}`).join("\n\n")}`;

/** One of them. @param {string} name */
export function usageOf(name) {
  const [call, meaning] = /** @type {[string, string]} */ (COMMANDS[name]);
  return `Usage: ${call}\n\n${meaning}`;
}
