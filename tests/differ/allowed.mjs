// @ts-check
// The differences that are wanted, each with its reason. Whoever changes on purpose what can be seen from outside adds one, in the
// commit that changes it.
//
// `lines` makes the lines of both sides alike before they are compared. `excuses` looks at the first two lines that differ (the
// fewer the better: whatever comes after them in the sequence is not compared any more). `since` is the commit that changed it, once it
// has a name: against a revision that has that commit in its past, nothing is allowed.

/** @typedef {{ name: string, why: string, since?: string, lines?(line: string): string, excuses?(old: string, current: string): boolean }} Allowed */

/** A MIME type without a slash: of a block, of one inside a text, of an address. */
const ODD_TYPE = /mimeType\\*":\\*"[^"/\\]*\\*"|data:[^/;,"]*;base64/;

/** @type {Allowed[]} */
export const ALLOWED = [
  {
    name: "odd-mime-types", since: "a46a726c",
    why: "an image or a file whose `mimeType` is empty, or no type at all, is refused where it is given, and a mention in a checkpoint; it went to the provider before",
    excuses: (old, current) => (/^\d+ \w+ (?:threw|failed|\d+ failed) /.test(current) && /`mimeType` (?:of a block )?must be a type/.test(current)) || ODD_TYPE.test(old),
  },
];
