import { durableObjectStore, indexedDBStore } from "turnwheel/stores";
import { AgentError } from "turnwheel";
const error = await indexedDBStore().load("a").catch((error) => error);
console.log(typeof durableObjectStore, AgentError.isInstance(error), error.message);
