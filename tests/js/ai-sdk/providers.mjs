// @ts-check
// The providers of the AI SDK in two versions, each as npm installs it, by the wires that they speak.

import * as anthropic4 from "@ai-sdk/anthropic";
import * as google4 from "@ai-sdk/google";
import * as openai4 from "@ai-sdk/openai";
import * as anthropic3 from "ai-sdk-anthropic-3";
import * as google3 from "ai-sdk-google-3";
import * as openai3 from "ai-sdk-openai-3";

/** @typedef {"v3" | "v4"} Version */
/** @typedef {"openai-chat" | "openai-responses" | "anthropic" | "gemini"} Wire */

/** @type {Record<Version, { openai: any, anthropic: any, google: any }>} */
const PACKAGES = {
  v3: { openai: openai3, anthropic: anthropic3, google: google3 },
  v4: { openai: openai4, anthropic: anthropic4, google: google4 },
};

export const VERSIONS = /** @type {Version[]} */ (Object.keys(PACKAGES));

/** A language model of a version on a wire. @param {Version} version @param {Wire} wire @param {string} id @param {typeof fetch} fetch */
export function languageModel(version, wire, id, fetch) {
  const { openai, anthropic, google } = PACKAGES[version];
  const options = { apiKey: "not-a-secret", fetch };
  if (wire === "anthropic") return anthropic.createAnthropic(options)(id);
  if (wire === "gemini") return google.createGoogleGenerativeAI(options)(id);
  const { chat, responses } = openai.createOpenAI(options);
  return wire === "openai-chat" ? chat(id) : responses(id);
}
