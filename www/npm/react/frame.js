// @ts-check
// When to render.

/**
 * Runs work in the next frame, or after a short delay where no frame comes: a background page gets none, and
 * a page may move to the background while it waits. Returns a function that cancels it.
 * @param {() => void} work
 */
export function nextFrame(work) {
  const hasFrames = typeof requestAnimationFrame === "function";
  let frame = 0;
  const cancel = () => {
    clearTimeout(timer);
    if (hasFrames) cancelAnimationFrame(frame);
  };
  const run = () => {
    cancel();
    work();
  };
  const timer = setTimeout(run, hasFrames && !globalThis.document?.hidden ? 200 : 16);
  if (hasFrames) frame = requestAnimationFrame(run);
  return cancel;
}
