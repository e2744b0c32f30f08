// @ts-check
// An MCP server that lets nobody in without a login, and the server of that login: one handler of requests, for tests in
// the process and behind a port.

import { createHash, randomUUID } from "node:crypto";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const ALLOW = { "access-control-allow-origin": "*", "access-control-allow-headers": "*, authorization, mcp-protocol-version, mcp-session-id", "access-control-allow-methods": "*", "access-control-expose-headers": "mcp-session-id, www-authenticate" };
/** @param {unknown} body @param {number} [status] @param {Record<string, string>} [headers] */
const json = (body, status = 200, headers = {}) => new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...ALLOW, ...headers } });

/** What it was asked: a line for each request. `tokens` are those that it takes; `expire` makes all of them worthless. */
export function loginServer() {
  /** @type {string[]} */
  const log = [];
  /** @type {Map<string, string>} the challenges by the codes */
  const codes = new Map();
  const tokens = new Set();
  const refresh = new Set();
  const issue = () => {
    const issued = { access_token: randomUUID(), refresh_token: randomUUID(), token_type: "Bearer", expires_in: 3600 };
    tokens.add(issued.access_token);
    refresh.add(issued.refresh_token);
    return issued;
  };

  /** @param {Request} request */
  async function handle(request) {
    const { origin, pathname, searchParams } = new URL(request.url);
    log.push(`${request.method} ${pathname}`);
    if (request.method === "OPTIONS") return new Response(null, { status: 204, headers: ALLOW });
    switch (pathname) {
      case "/.well-known/oauth-protected-resource/mcp":
        return json({ resource: `${origin}/mcp`, authorization_servers: [origin] });
      case "/.well-known/oauth-authorization-server":
        return json({ issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token`, registration_endpoint: `${origin}/register`, response_types_supported: ["code"], grant_types_supported: ["authorization_code", "refresh_token"], code_challenge_methods_supported: ["S256"], token_endpoint_auth_methods_supported: ["none"] });
      case "/register":
        return json({ ...(await request.json()), client_id: "page" }, 201);
      case "/authorize": {
        const code = randomUUID();
        codes.set(code, searchParams.get("code_challenge") ?? "");
        const back = new URL(searchParams.get("redirect_uri") ?? "");
        back.search = String(new URLSearchParams({ code, state: searchParams.get("state") ?? "" }));
        return new Response(`<!doctype html><a href="${String(back).replaceAll("&", "&amp;")}">Let it in</a>`, { headers: { "content-type": "text/html" } });
      }
      case "/token":
        return token(new URLSearchParams(await request.text()));
      case "/mcp":
        if (!tokens.has(request.headers.get("authorization")?.replace("Bearer ", ""))) return json({}, 401, { "www-authenticate": `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"` });
        return answer(request);
      default:
        return json({}, 404);
    }
  }

  /** @param {URLSearchParams} params */
  function token(params) {
    if (params.get("grant_type") === "refresh_token") return refresh.has(params.get("refresh_token")) ? json(issue()) : json({ error: "invalid_grant" }, 400);
    const challenge = codes.get(params.get("code") ?? "");
    codes.delete(params.get("code") ?? "");
    const isRight = challenge !== undefined && createHash("sha256").update(params.get("code_verifier") ?? "").digest("base64url") === challenge;
    return isRight ? json(issue()) : json({ error: "invalid_grant" }, 400);
  }

  return { handle, log, issue, expire: () => tokens.clear(), expireAll: () => (tokens.clear(), refresh.clear()) };
}

/** The MCP server itself, which remembers nothing. @param {Request} request */
async function answer(request) {
  const server = new Server({ name: "private", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: "secret", description: "", inputSchema: { type: "object" } }] }));
  server.setRequestHandler(CallToolRequestSchema, () => ({ content: [{ type: "text", text: `the secret, asked as ${request.headers.get("x-tenant")}` }] }));
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  const response = await transport.handleRequest(request);
  for (const [name, value] of Object.entries(ALLOW)) response.headers.set(name, value);
  return response;
}
