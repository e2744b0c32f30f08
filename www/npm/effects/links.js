// @ts-check
// Images and files that are elsewhere. Where the server fetches them itself, their addresses are passed on; where it does
// not, their contents are fetched here and put into the request. Loaded with the first request that refers to one.

import { isLocal } from "../host/address.js";
import { fetchFile } from "./files.js";

/** @import { AgentError } from "../shared.js" */
/** @import { Core } from "../agent/core.js" */
/** @import { Setup } from "../models/setup.js" */
/** @import { Fetched } from "./files.js" */
/** @import { ModelRequest } from "./request.js" */
/**
 * A place in the body of a request that refers to something elsewhere.
 * @typedef {object} Link
 * @property {URL} address
 * @property {boolean} isImage whether only an image may be there
 * @property {boolean} isTaken whether the server fetches it
 * @property {(file: Fetched) => void} put puts the content in its place
 */
/** @typedef {Record<string, any>} Part */

/** How many bytes are fetched for one request, unless `limits.files` says otherwise. */
const MAX_BYTES = 20 << 20;

/** What each agent has fetched, by its address: a conversation is sent again in every turn. @type {WeakMap<Core, Map<string, Fetched>>} */
const fetched = new WeakMap();

/**
 * Puts the contents of what the server does not fetch into the request.
 * @param {ModelRequest} request @param {Setup} setup of the model @param {Core} core @param {AbortSignal} signal
 * @param {typeof AgentError} ErrorClass passed in: imported here, it would become a file of its own that every page loads
 */
export async function putInFiles(request, { wire, limits }, core, signal, ErrorClass) {
  const body = JSON.parse(new TextDecoder().decode(request.body));
  /** @param {string} message */
  const refused = (message) => new ErrorClass({ code: "invalid_request", message, retryable: false, phase: "model" });
  const links = [...LINKS[/** @type {string} */ (wire)](body, new URL(request.url))].filter(({ address, isTaken }) => {
    if (!(address instanceof URL)) throw refused(`the conversation refers to an image or a file at \`${String(address).slice(0, 200)}\`, which is no address`);
    return !isTaken || isLocal(address);
  });
  if (links.length === 0) return;
  const known = fetched.get(core) ?? new Map();
  fetched.set(core, known);
  const limit = limits?.files ?? MAX_BYTES;
  const files = new Map();
  let room = limit;
  for (const { address, isImage } of links) {
    const { href } = address;
    if (files.has(href)) continue;
    const file = known.get(href) ?? (await fetchFile(address, { room, limit, isImage, signal, ErrorClass }));
    room -= file.bytes.length;
    if (room < 0) throw refused(`the images and files of the conversation have more than ${limit} bytes together; see \`limits.files\` of the model`);
    files.set(href, file);
  }
  // What the conversation no longer refers to is forgotten.
  fetched.set(core, files);
  for (const { address, put } of links) put(files.get(address.href));
  request.body = new TextEncoder().encode(JSON.stringify(body));
}

/** An address; one that is none is refused where the links are counted. @param {unknown} url @returns {URL | undefined} */
function addressOf(url) {
  if (typeof url !== "string" || !/^https?:\/\//.test(url)) return;
  try {
    return new URL(url);
  } catch {
    return /** @type {any} */ (url);
  }
}

/** @param {Fetched} file */
const dataUrl = ({ type, base64 }) => `data:${type};base64,${base64()}`;

/** Puts a part in the place of another. @param {Part} part @param {Part} other */
function replace(part, other) {
  for (const key of Object.keys(part)) delete part[key];
  Object.assign(part, other);
}

/** The servers that fetch images themselves. */
const FETCHING = /(^|\.)(openai\.com|openai\.azure\.com|openrouter\.ai|groq\.com|mistral\.ai|x\.ai|together\.(xyz|ai))$/;

/**
 * The links in a request, by its wire. Only what the user and tools have shown is looked at: what a model writes makes
 * nobody fetch anything.
 * @type {Record<string, (body: Part, server: URL) => Generator<Link>>}
 */
const LINKS = { "openai-chat": inChat, "openai-responses": inResponses, anthropic: inMessages, gemini: inContents };

/** @param {Part} body @param {URL} server @returns {Generator<Link>} */
function* inChat({ messages }, { hostname }) {
  for (const { role, content } of messages) {
    if (role !== "user" || !Array.isArray(content)) continue;
    for (const part of content) {
      const image = addressOf(part.image_url?.url);
      if (image) yield { address: image, isImage: true, isTaken: FETCHING.test(hostname), put: (file) => (part.image_url.url = dataUrl(file)) };
      const url = part.file?.file_data ?? part.document_url ?? part.input_audio?.data;
      const name = part.file?.filename ?? part.document_name ?? "file";
      const address = addressOf(url);
      if (!address) continue;
      const isTaken = part.document_url !== undefined || (part.file !== undefined && /(^|\.)openrouter\.ai$/.test(hostname));
      yield {
        address, isImage: false, isTaken,
        put(file) {
          const format = { "audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3" }[file.type];
          if (file.text !== undefined) replace(part, { type: "text", text: `${name}:\n\n${file.text}` });
          else if (file.type.startsWith("image/")) replace(part, { type: "image_url", image_url: { url: dataUrl(file) } });
          else if (format) replace(part, { type: "input_audio", input_audio: { data: file.base64(), format } });
          else replace(part, { type: "file", file: { filename: name, file_data: dataUrl(file) } });
        },
      };
    }
  }
}

/** @param {Part} body @param {URL} server @returns {Generator<Link>} */
function* inResponses({ input }, { hostname }) {
  const fetches = /(^|\.)(openai\.com|openai\.azure\.com|x\.ai)$/.test(hostname);
  for (const { role, content, output } of input) {
    const parts = role === "user" ? content : output;
    for (const part of Array.isArray(parts) ? parts : []) {
      const image = addressOf(part.image_url);
      if (image) yield { address: image, isImage: true, isTaken: fetches, put: (file) => (part.image_url = dataUrl(file)) };
      const address = addressOf(part.file_url);
      if (!address) continue;
      yield {
        address, isImage: false, isTaken: fetches,
        put(file) {
          const name = nameIn(address);
          if (file.text !== undefined) replace(part, { type: "input_text", text: `${name}:\n\n${file.text}` });
          else if (file.type.startsWith("image/")) replace(part, { type: "input_image", image_url: dataUrl(file), detail: "auto" });
          else replace(part, { type: "input_file", filename: name, file_data: dataUrl(file) });
        },
      };
    }
  }
}

/** @param {Part} body @param {URL} server @returns {Generator<Link>} */
function* inMessages({ messages }, { hostname }) {
  const fetches = /(^|\.)anthropic\.com$/.test(hostname);
  for (const { role, content } of messages) {
    if (role !== "user") continue;
    for (const part of content.flatMap((/** @type {Part} */ block) => (block.type === "tool_result" && Array.isArray(block.content) ? block.content : [block]))) {
      const address = part.source?.type === "url" ? addressOf(part.source.url) : undefined;
      if (!address) continue;
      const isImage = part.type === "image";
      yield {
        // Of documents, the provider fetches PDF only.
        address, isImage, isTaken: fetches && (isImage || /\.pdf$/i.test(address.pathname)),
        put(file) {
          if (file.text !== undefined) part.source = { type: "text", media_type: "text/plain", data: file.text };
          else part.source = { type: "base64", media_type: file.type, data: file.base64() };
          if (file.type.startsWith("image/")) {
            part.type = "image";
            delete part.title;
          }
        },
      };
    }
  }
}

/** @param {Part} body @param {URL} server @returns {Generator<Link>} */
function* inContents({ contents }, { hostname, pathname }) {
  // The third generation fetches; those before it know only files that were uploaded.
  const [, version = "0", latest] = /gemini-(?:(\d+)|[a-z-]*(latest))/.exec(pathname) ?? [];
  const fetches = hostname === "generativelanguage.googleapis.com" && (latest !== undefined || Number(version) >= 3);
  for (const { role, parts } of contents) {
    if (role !== "user") continue;
    for (const part of parts.flatMap((/** @type {Part} */ part) => part.functionResponse?.parts ?? [part])) {
      const address = addressOf(part.fileData?.fileUri);
      if (!address) continue;
      yield {
        address, isImage: false, isTaken: fetches,
        put(file) {
          if (file.text !== undefined) replace(part, { text: `${nameIn(address)}:\n\n${file.text}` });
          else replace(part, { inlineData: { mimeType: file.type, data: file.base64() } });
        },
      };
    }
  }
}

/** @param {URL} address */
function nameIn({ pathname }) {
  const name = pathname.split("/").pop() || "file";
  try {
    return decodeURIComponent(name);
  } catch {
    // `%zz` stands for no letter.
    return name;
  }
}
