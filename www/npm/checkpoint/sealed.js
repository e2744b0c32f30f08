// @ts-check
// How a sealed checkpoint is told from an open one. It is sealed and unsealed by turnwheel/stores.

/** The `format` of a sealed checkpoint. */
export const SEALED = "turnwheel_sealed_checkpoint";

/** @param {any} value @returns {boolean} */
export const isSealed = (value) => value?.format === SEALED;
