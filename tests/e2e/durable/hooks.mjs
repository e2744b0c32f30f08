// @ts-check
// Puts told.mjs in the place of `turnwheel/durable`.

/** @param {string} specifier @param {{ parentURL?: string }} context @param {(specifier: string, context: object) => Promise<{ url: string }>} next */
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  if (specifier !== "turnwheel/durable") return found;
  return { url: `${new URL("told.mjs", import.meta.url)}?real=${encodeURIComponent(found.url)}`, shortCircuit: true };
}
