// @ts-check
// The content of images and files. The engine checks the same (src/words/message/media.rs); here the errors name the place.

/** `type/subtype`, with or without parameters such as `;charset=utf-8`; it becomes part of `data:` addresses. */
export const MIME_TYPE = /^(?=.{3,255}$)[a-z\d][\w!#$&^.+-]*\/[a-z\d][\w!#$&^.+-]*(?:; *[a-z\d][\w!#$&^.+-]*=[a-z\d][\w!#$&^.+-]*)*$/i;

/** Whether a text is base64, with or without padding, in either alphabet. One search for what is not: 50 MB must not need a stack. @param {unknown} text */
export function isBase64(text) {
  if (typeof text !== "string") return false;
  const length = text.length - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
  return length % 4 !== 1 && (length > 0 || text === "") && !/[^\w+/-]/.test(text.slice(0, length));
}
