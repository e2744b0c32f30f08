// @ts-check
// Images and files by their addresses: passed on where the server fetches them, fetched here where it does not.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Agent, anthropic, gemini, imageAt, misused, openai, openaiCompatible, openaiResponses, testTool } from "../kit.mjs";

const PNG = Buffer.from("\x89PNG\r\n\x1a\n1234", "latin1");
/** What stands at each path of the server on this machine. @type {Record<string, (response: import("node:http").ServerResponse) => void>} */
const PAGES = {
  "/cat.png": (response) => response.writeHead(200, { "content-type": "image/png" }).end(PNG),
  "/untyped": (response) => response.writeHead(200, { "content-type": "application/octet-stream" }).end(PNG),
  "/notes.txt": (response) => response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end("Größe"),
  "/report.pdf": (response) => response.writeHead(200, { "content-type": "application/pdf" }).end("%PDF-1"),
  "/beep.mp3": (response) => response.writeHead(200, { "content-type": "audio/mpeg" }).end("ID3"),
  "/page": (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>"),
  "/long": (response) => response.writeHead(200, { "content-type": "image/png" }).end(Buffer.alloc(3_000)),
  "/moved": (response) => response.writeHead(302, { location: "/cat.png" }).end(),
  "/round": (response) => response.writeHead(302, { location: "/round" }).end(),
  "/inward": (response) => response.writeHead(302, { location: "http://10.0.0.1/secret" }).end(),
  "/outward": (response) => response.writeHead(302, { location: "http://example.com/a.png" }).end(),
};
/** @type {string[]} */
const asked = [];
const server = createServer((request, response) => {
  asked.push(String(request.url));
  assert.equal(request.headers.cookie ?? request.headers.authorization ?? request.headers.referer, undefined);
  (PAGES[String(request.url)] ?? ((page) => page.writeHead(404).end()))(response);
});
let here = "";
before(async () => {
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(undefined)));
  here = `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
});
after(() => server.close());

const base64 = PNG.toString("base64");
const dataUrl = `data:image/png;base64,${base64}`;

/**
 * The bodies that a model is sent for some inputs, one after the other.
 * @param {(id: string, options: any) => any} make @param {any[]} inputs @param {any} [options] of the model @param {string} [id]
 */
async function bodies(make, inputs, options = {}, id = "m") {
  /** @type {any[]} */
  const sent = [];
  const fetch = async (/** @type {any} */ _, /** @type {any} */ init) => (sent.push(JSON.parse(new TextDecoder().decode(init.body))), new Response(JSON.stringify({ error: { message: "enough" } }), { status: 400 }));
  const agent = new Agent({ model: make(id, { apiKey: "k", fetch, ...options }) });
  const errors = [];
  for (const input of inputs) errors.push((await agent.prompt(input)).error?.message);
  return { sent, errors, agent };
}

const ollama = (/** @type {string} */ id, /** @type {any} */ options) => openaiCompatible(id, { server: "ollama", ...options });

test("a server that fetches gets the address, and nobody else is asked", async () => {
  asked.length = 0;
  const image = { type: "image", url: "https://example.com/cat.png" };
  const pdf = { type: "file", mimeType: "application/pdf", url: "https://example.com/report.pdf" };
  const chat = await bodies(openai, [[image]]);
  assert.deepEqual(chat.sent[0].messages[0].content, [{ type: "image_url", image_url: { url: image.url } }]);
  const responses = await bodies(openaiResponses, [[image, pdf]]);
  assert.deepEqual(responses.sent[0].input[0].content, [{ type: "input_image", image_url: image.url, detail: "auto" }, { type: "input_file", file_url: pdf.url }]);
  const messages = await bodies(anthropic, [[image, pdf]], {}, "claude-sonnet-4-5");
  assert.deepEqual(messages.sent[0].messages[0].content.map((/** @type {any} */ { type, source }) => [type, source]), [["image", { type: "url", url: image.url }], ["document", { type: "url", url: pdf.url }]]);
  const contents = await bodies(gemini, [[image, pdf]], {}, "gemini-3-flash-preview");
  assert.deepEqual(contents.sent[0].contents[0].parts, [{ fileData: { fileUri: image.url } }, { fileData: { mimeType: "application/pdf", fileUri: pdf.url } }]);
  assert.deepEqual(chat.agent.messages[0]?.content, [image], "the history keeps the address");
  assert.deepEqual(asked, []);
});

test("what a server cannot fetch is put into the request, on every wire, and asked for once", async () => {
  asked.length = 0;
  const input = [{ type: "text", text: "Look." }, { type: "image", url: `${here}/cat.png` }, ...["notes.txt", "report.pdf"].map((name) => ({ type: "file", mimeType: "application/pdf", url: `${here}/${name}`, name }))];
  const pdf = Buffer.from("%PDF-1").toString("base64");
  const chat = await bodies(ollama, [[...input, { type: "file", mimeType: "audio/mpeg", url: `${here}/beep.mp3` }], "And now?"]);
  assert.deepEqual(chat.errors, ["enough", "enough"]);
  assert.deepEqual(chat.sent[0].messages[0].content, [
    { type: "text", text: "Look." }, { type: "image_url", image_url: { url: dataUrl } }, { type: "text", text: "notes.txt:\n\nGröße" },
    { type: "file", file: { filename: "report.pdf", file_data: `data:application/pdf;base64,${pdf}` } }, { type: "input_audio", input_audio: { data: "SUQz", format: "mp3" } },
  ]);
  assert.deepEqual(chat.sent[1].messages[0], chat.sent[0].messages[0]);
  assert.deepEqual(asked, ["/cat.png", "/notes.txt", "/report.pdf", "/beep.mp3"]);
  // An address of this machine is of no use to a server elsewhere.
  const responses = await bodies(openaiResponses, [input]);
  assert.deepEqual(responses.sent[0].input[0].content, [
    { type: "input_text", text: "Look." }, { type: "input_image", image_url: dataUrl, detail: "auto" }, { type: "input_text", text: "notes.txt:\n\nGröße" },
    { type: "input_file", filename: "report.pdf", file_data: `data:application/pdf;base64,${pdf}` },
  ]);
  const messages = await bodies(anthropic, [input], {}, "claude-sonnet-4-5");
  assert.deepEqual(messages.sent[0].messages[0].content.slice(1).map((/** @type {any} */ { type, source }) => [type, source]), [
    ["image", { type: "base64", media_type: "image/png", data: base64 }], ["document", { type: "text", media_type: "text/plain", data: "Größe" }], ["document", { type: "base64", media_type: "application/pdf", data: pdf }],
  ]);
  const contents = await bodies(gemini, [input], {}, "gemini-2.5-flash");
  assert.deepEqual(contents.sent[0].contents[0].parts.slice(1), [{ inlineData: { mimeType: "image/png", data: base64 } }, { text: "notes.txt:\n\nGröße" }, { inlineData: { mimeType: "application/pdf", data: pdf } }]);
});

test("a type that the server does not tell is read from the contents; a redirect on the same machine is followed", async () => {
  for (const path of ["/untyped", "/moved"]) {
    const { sent } = await bodies(ollama, [[{ type: "image", url: here + path }]]);
    assert.equal(sent[0].messages[0].content[0].image_url.url, dataUrl, path);
  }
});

test("an image that a tool has shown is fetched too", async () => {
  /** @type {any[]} */
  const sent = [];
  const answers = [{ tool_calls: [{ index: 0, id: "c1", function: { name: "draw", arguments: "{}" } }] }, { content: "done" }];
  const fetch = async (/** @type {any} */ _, /** @type {any} */ init) => (sent.push(JSON.parse(new TextDecoder().decode(init.body))), new Response(`data: ${JSON.stringify({ choices: [{ delta: answers.shift(), finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`));
  const draw = testTool("draw", () => ({ content: [imageAt(`${here}/cat.png`)] }));
  const { text } = await new Agent({ model: ollama("m", { fetch }), tools: [draw] }).prompt("Draw");
  assert.equal(text, "done");
  assert.equal(sent[1].messages.at(-1).content.at(-1).image_url.url, dataUrl);
});

test("what must not be fetched, or cannot be, ends the turn with the reason", async () => {
  /** @type {[string, RegExp, any?][]} */
  const cases = [
    ["/none", /\/none cannot be fetched for the model: it answered 404/],
    ["/page", /\/page is no image, but text\/html/],
    ["/round", /\/round redirects more than 5 times/],
    ["/inward", /\/inward redirects to http:\/\/10.0.0.1, which is not encrypted/],
    ["/outward", /\/outward redirects to http:\/\/example.com, which is not encrypted; an image or a file must be at an address that begins with https/],
    ["/long", /\/long is too long: the images and files of a request may have 2000 bytes together; see `limits.files`/, { limits: { files: 2_000 } }],
  ];
  for (const [path, text, options] of cases) {
    const { sent, agent } = await bodies(ollama, [], options);
    const { error, stopReason } = await agent.prompt([{ type: "image", url: here + path }]);
    assert.equal(stopReason, "error");
    assert.match(String(error?.message), text);
    assert.deepEqual([error?.code, error?.info.retryable, error?.phase], ["invalid_request", false, "model"]);
    assert.deepEqual(sent, []);
  }
  // The limit holds for all of them together.
  const { errors } = await bodies(ollama, [[{ type: "image", url: `${here}/cat.png` }, { type: "image", url: `${here}/long` }]], { limits: { files: 3_005 } });
  assert.match(String(errors[0]), /\/long is too long/);
});

test("what a redirect of a public address may lead to is looked at as well", async () => {
  const { fetch } = globalThis;
  const leads = { "https://a.example/x": "https://b.example/x", "https://a.example/y": "http://localhost/x", "https://a.example/z": "https://192.168.1.1/x" };
  const inward = ["localhost.", "app.localhost.", "100.64.0.1", "100.127.255.254", "192.0.0.1", "198.18.0.1", "[64:ff9b::a00:1]", "[::ffff:10.0.0.1]", "10.0.0.1.", "0x0a.1", "[fd00::1]", "0"];
  inward.forEach((host, i) => Object.assign(leads, { [`https://a.example/in${i}`]: `https://${host}/x` }));
  Object.assign(leads, { "https://a.example/out": "https://100.128.0.1/x" });
  try {
    globalThis.fetch = /** @type {any} */ (async (/** @type {URL} */ url) => {
      const location = leads[/** @type {keyof typeof leads} */ (String(url))];
      return location ? new Response(null, { status: 302, headers: { location } }) : new Response(PNG, { headers: { "content-type": "image/png" } });
    });
    const elsewhere = (/** @type {string} */ path) => bodies(ollama, [[{ type: "image", url: `https://a.example/${path}` }]]);
    for (const path of ["x", "out"]) assert.equal((await elsewhere(path)).sent[0].messages[0].content[0].image_url.url, dataUrl);
    for (const path of ["y", "z", ...inward.map((_, i) => `in${i}`)]) assert.match(String((await elsewhere(path)).errors[0]), /is an address of a private network; it is not followed there/);
  } finally {
    globalThis.fetch = fetch;
  }
});

test("an address that is none is told at the call", () => {
  const agent = new Agent({ model: ollama("m", {}) });
  for (const url of ["http://example.com/a.png", "ftp://example.com/a.png", "data:image/png;base64,AAAA", "/a.png", ""]) {
    misused(() => agent.prompt([{ type: "image", url }]), /input\[0\]: the `url` of a block must begin with https:\/\/ .*; base64 goes into `data`/);
  }
  misused(() => agent.prompt(/** @type {any} */ ([{ type: "image", url: "https://a.example/a.png", data: "AAAA", mimeType: "image/png" }])), /an address that begins with https/);
  misused(() => agent.prompt(/** @type {any} */ ([{ type: "file", url: "https://a.example/a.pdf" }])), /a block of type file needs a text `mimeType`, got nothing/);
  misused(() => agent.prompt(/** @type {any} */ ([{ type: "image", url: new URL("https://a.example/a.png") }])), /a block of type image needs a text `url`/);
});

test("a name with a `%` that stands for no letter is a name; an address that cannot be read is named, and nobody is asked", async () => {
  asked.length = 0;
  PAGES["/100%.txt"] = PAGES["/%zz"] = /** @type {any} */ (PAGES["/notes.txt"]);
  for (const make of [openai, openaiResponses, anthropic, gemini, ollama]) {
    for (const path of ["/100%.txt", "/%zz"]) {
      const { sent } = await bodies(make, [[{ type: "file", mimeType: "text/plain", url: here + path }]]);
      assert.match(JSON.stringify(sent[0]), /Größe/);
    }
    for (const url of ["https://[", "https://a b/", "https://%zz/", "http://127.0.0.1:99999/"]) {
      const { sent, errors } = await bodies(make, [[{ type: "file", mimeType: "text/plain", url }]]);
      assert.deepEqual(sent, []);
      assert.equal(errors[0], `the conversation refers to an image or a file at \`${url}\`, which is no address`);
    }
  }
  assert.equal(asked.length, 10);
});

test("a checkpoint keeps the address", async () => {
  const { agent } = await bodies(openai, [[{ type: "image", url: "https://example.com/cat.png" }, { type: "file", mimeType: "application/pdf", url: "https://example.com/a.pdf", name: "a.pdf" }]]);
  const saved = JSON.stringify(agent.checkpoint());
  assert.deepEqual((await Agent.restore(saved, { model: openai("m", { apiKey: "k" }) })).messages[0], agent.messages[0]);
});

test("no redirect leads from a public address to a name of this machine or a private network", async (t) => {
  for (const inside of ["https://vault.internal/secret", "https://metadata/", "https://printer.local/", "https://localhost.localdomain/", "https://10.0.0.1/", "https://localhost/", "https://[fd00::1]/"]) {
    /** @type {string[]} */
    const fetched = [];
    const mock = t.mock.method(globalThis, "fetch", async (/** @type {any} */ url) => {
      fetched.push(String(url));
      return fetched.length === 1 ? new Response(null, { status: 302, headers: { location: "https://b.example/y" } }) : fetched.length === 2 ? new Response(null, { status: 302, headers: { location: inside } }) : new Response("secret");
    });
    const { sent, agent } = await bodies(ollama, []);
    const { error } = await agent.prompt([{ type: "file", mimeType: "text/plain", url: "https://a.example/x" }]);
    assert.match(String(error?.message), /redirects to .*private network|redirects to .*not encrypted/);
    assert.deepEqual([fetched, sent], [["https://a.example/x", "https://b.example/y"], []]);
    mock.mock.restore();
  }
});
