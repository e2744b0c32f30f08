// @ts-check
// A body whose connection is cut.

/**
 * Gives the first bytes of a body, and then fails as a connection does that is cut.
 * @param {ReadableStream<Uint8Array>} body @param {number} bytes
 */
export function cutAfter(body, bytes) {
  const reader = body.getReader();
  let left = bytes;
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      controller.enqueue(value.subarray(0, left));
      if ((left -= value.length) > 0) return;
      reader.cancel().catch(() => {});
      controller.error(new Error("the connection was cut"));
    },
    cancel: () => reader.cancel().catch(() => {}),
  });
}
