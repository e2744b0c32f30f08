/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { Model } from "./index.js";

/**
 * How an on-device model is held to calls that can be run. `constrained`: the engine lets it write nothing else, by a grammar or a
 * schema. `prompted`: it is asked to, and may not. `native`: the engine reads calls of its own format, for models that were
 * trained for them.
 *
 * @example
 * const mode: ToolMode = "native";
 */
export type ToolMode = "constrained" | "native" | "prompted";

/**
 * How far loading is. `loaded` and `total` are bytes, or parts of 1.
 *
 * @example
 * const percent = ({ loaded, total = 1 }: LocalProgress) => `${Math.round((100 * loaded) / total)} %`;
 */
export interface LocalProgress { phase: "download" | "load"; loaded: number; total?: number }

/**
 * Options of an on-device model.
 *
 * @example
 * const options: LocalOptions = { maxCalls: 1, onProgress: ({ loaded, total }) => console.log(loaded, total) };
 */
export interface LocalOptions {
  /** The model's id in messages and events. Default: the name of the engine. */
  id?: string;
  /** Default `constrained`; it becomes `prompted`, with a warning, if the engine refuses the constraint. */
  tools?: ToolMode;
  /** Calls in one answer at most. Default 4; for models under 0.3 billion parameters, 1. */
  maxCalls?: number;
  /** How many tokens the model takes. Default: what the engine says, where it does. */
  contextWindow?: number;
  /** A line after the results of tools, in that request alone: small models make the same call for ever without it. "" for none. */
  afterResults?: string;
  /** Hears how far loading is. */
  onProgress?(progress: LocalProgress): void;
}

/**
 * A model that runs where your code runs. The first turn loads it, if `prepare` has not. It writes one answer at a time; others
 * wait.
 *
 * @example
 * const onClick = async (local: LocalModel) => {
 *   if ((await local.availability()) !== "unavailable") await local.prepare();
 * };
 */
export interface LocalModel extends Model {
  /** Downloads nothing, and never rejects. */
  availability(): Promise<"unavailable" | "downloadable" | "downloading" | "available">;
  /** Downloads and loads the model. Browsers allow a first download only after a click. */
  prepare(options?: { signal?: AbortSignal }): Promise<void>;
  /** Frees the memory. Needs a host with `Symbol.asyncDispose`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * The browser's own model, by the Prompt API. Needs no download of yours and no key; only windows have it, not workers.
 * `samplingMode` and `languages` are passed on; `api` replaces `LanguageModel`, for tests.
 *
 * @example
 * import { promptApi } from "turnwheel/local";
 * const agent = new Agent({ model: promptApi({ languages: ["en"] }), fallback: [openai("gpt-5-mini", { apiKey })] });
 */
export function promptApi(options?: LocalOptions & { languages?: string[]; samplingMode?: string; api?: unknown }): LocalModel;

/**
 * A model of `@wllama/wllama` (version 3.8 or newer): llama.cpp as WebAssembly, for GGUF files of up to 2 GB. `engine` is a
 * `Wllama` that has loaded a model, or a function that makes one when it is needed: it gets `onProgress` and `signal`.
 *
 * @example
 * import { wllama } from "turnwheel/local";
 * const local = (engine: { loadModelFromUrl(url: string, options: object): Promise<void> }) =>
 *   wllama(async ({ onProgress }) => {
 *     await engine.loadModelFromUrl("/model.gguf", { n_ctx: 4096, progressCallback: onProgress });
 *     return engine;
 *   });
 */
export function wllama(engine: object | ((options: { signal?: AbortSignal; onProgress(progress: { loaded: number; total?: number }): void }) => Promise<object>), options?: LocalOptions): LocalModel;
