// @ts-check
// What is known of the locks of tabs without holding one.

/** Where a store keeps its claims, for `shared` of turnwheel/tabs. */
export const CLAIMS = Symbol.for("turnwheel.claims");

/** The database that is used if none is named. */
export const DATABASE = "turnwheel";

/** The lock of an agent, and the name of its channel. @param {string} scope names the store among all of this origin @param {string} id */
export const lockOf = (scope, id) => `turnwheel:${JSON.stringify([scope, id])}`;

/** Whether tabs can agree here who has what. Pages over plain HTTP cannot. */
export const hasLocks = () => typeof navigator !== "undefined" && typeof navigator.locks?.request === "function";

/** What a page hears when it goes, perhaps to come back. @param {() => void} leave @returns {() => void} stops listening */
export function onLeave(leave) {
  const { document } = globalThis;
  globalThis.addEventListener?.("pagehide", leave);
  document?.addEventListener?.("freeze", leave);
  return () => {
    globalThis.removeEventListener?.("pagehide", leave);
    document?.removeEventListener?.("freeze", leave);
  };
}
