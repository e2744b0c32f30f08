// @ts-check
// A folder that `cargo xtask demo --out` has built works without a network from the second visit on.

/** @param {import("./site.js").Site} site */
export function workOffline({ offline }) {
  // Pages over plain HTTP have no service workers.
  if (!offline || !("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register("./sw.js", { type: "classic", updateViaCache: "none" }).catch((/** @type {unknown} */ error) => {
    console.info("This page will not work offline:", error);
  });
}
