// @ts-check

/** The version of turnwheel, which a journal begins with. */
export const VERSION = "0.1.0";
