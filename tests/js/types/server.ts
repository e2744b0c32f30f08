// What a server's project has is enough: no page, but what @types/node declares of the web, and the declarations are checked too.

import { Agent, scripted } from "turnwheel";
import { fromResponse, RemoteAgent } from "turnwheel/remote";
import { agentHandler } from "turnwheel/server";
import { use } from "turnwheel/slim";
import { durableObjectStore } from "turnwheel/stores";

use(async () => new Uint8Array(8));
const handler = agentHandler(new Agent({ model: scripted(["hi"]) }));
export const asked: Promise<Response> = handler(new Request("http://localhost/state"));
export const agent = new RemoteAgent({ url: new URL("http://localhost/"), headers: async () => ({ authorization: "Bearer x" }) });
export const text: Promise<string> = fromResponse(fetch("http://localhost/run")).then((result) => result.text) as Promise<string>;
export const store = durableObjectStore;

// As @types/node has them; it has neither HeadersInit nor BufferSource nor WebAssembly.
declare global {
  interface AbortSignal { readonly aborted: boolean; readonly reason: any; addEventListener(type: "abort", listener: () => void): void }
  interface Headers { get(name: string): string | null }
  interface RequestInit { headers?: string[][] | Record<string, string> | Headers; method?: string; body?: any; signal?: AbortSignal | null }
  interface ResponseInit { readonly headers?: RequestInit["headers"]; readonly status?: number; readonly statusText?: string }
  interface Request { readonly headers: Headers; readonly url: string; text(): Promise<string> }
  interface Response { readonly ok: boolean; text(): Promise<string> }
  class URL { constructor(url: string) }
  var Request: new (input: string, init?: RequestInit) => Request;
  function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
}
