// @ts-check
// A login that a page keeps in its storage, as docs/mcp.md shows it.

export class LocalLogin {
  /** @param {string} key @param {string} redirectUrl where the login comes back to */
  constructor(key, redirectUrl) {
    this.key = key;
    this.redirectUrl = redirectUrl;
    this.clientMetadata = { client_name: "My page", redirect_uris: [redirectUrl], grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], token_endpoint_auth_method: "none" };
  }
  /** @param {string} name @returns {any} */
  read = (name) => JSON.parse(localStorage.getItem(`${this.key}.${name}`) ?? "null") ?? undefined;
  /** @param {string} name @param {unknown} value */
  write = (name, value) => localStorage.setItem(`${this.key}.${name}`, JSON.stringify(value));
  state() {
    const state = crypto.randomUUID();
    this.write("state", state);
    return state;
  }
  clientInformation() { return this.read("client"); }
  /** @param {unknown} client */
  saveClientInformation(client) { this.write("client", client); }
  tokens() { return this.read("tokens"); }
  /** @param {unknown} tokens */
  saveTokens(tokens) { this.write("tokens", tokens); }
  /** What the server does not take any more. @param {string} scope */
  invalidateCredentials(scope) { for (const name of scope === "all" ? ["client", "tokens", "verifier"] : [scope]) this.write(name, null); }
  codeVerifier() { return this.read("verifier"); }
  /** @param {string} verifier */
  saveCodeVerifier(verifier) { this.write("verifier", verifier); }
  /** @param {URL} url */
  redirectToAuthorization(url) { location.assign(url); }
}
