// @ts-check
// npx turnwheel smoke: eight checks against a real server, and the servers by name, which `chat` knows too. Only cli/ loads it.

export { smoke } from "./smoke/command.js";
export { addressOf, checkServer, checkThere, isLocal, keyOf, masked, modelAt, onlyModel, shownAddress } from "./smoke/servers.js";
