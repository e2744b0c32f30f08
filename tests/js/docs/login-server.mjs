// @ts-check
// A server that lets nobody in, for docs that show a login: it says where the login is, and no more.

const json = (/** @type {unknown} */ body, status = 200, headers = {}) => new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
const origin = "https://mcp.example.com";

/** In place of the page's `fetch`. @param {any} url */
export async function fetch(url) {
  switch (new URL(url).pathname) {
    case "/.well-known/oauth-protected-resource/mcp": return json({ resource: `${origin}/mcp`, authorization_servers: [origin] });
    case "/.well-known/oauth-authorization-server": return json({ issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token`, registration_endpoint: `${origin}/register`, response_types_supported: ["code"], code_challenge_methods_supported: ["S256"] });
    case "/register": return json({ client_id: "page", redirect_uris: ["https://app.example.com/"] }, 201);
    default: return json({}, 401, { "www-authenticate": `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"` });
  }
}
