// @ts-check
// The set `stream` is about the crate's `assemble_parts`, for hosts whose providers number the parts of an answer.

export const unreachable = () => "a model of one's own yields whole events of numbered blocks: the package puts no loose parts together";

export const play = () => undefined;
