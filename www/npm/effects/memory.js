// @ts-check
// What the effects of one run share.

import { EffectNames } from "./names.js";

/** @import { Turn } from "../events/fold.js" */
/** @import { HttpEffect } from "./http.js" */
/** @import { HostQueues } from "../rules/host-queue.js" */

export class EffectMemory {
  constructor() {
    /** @type {HostQueues | undefined} */
    this.queues = undefined;
    this.names = new EffectNames();
    /** The turn whose API keys are known. @type {Turn | undefined | null} */
    this.keysTurn = null;
    /** The API keys of the turn, by provider. @type {Map<string, string | undefined>} */
    this.keys = new Map();
    /** The last HTTP request, and the JSON it was parsed from. */
    this.requestJson = "";
    /** @type {HttpEffect | undefined} */
    this.request = undefined;
  }

  /** The keys of a turn: asked for once, however many models of a provider are tried. @param {Turn | undefined} turn */
  keysOf(turn) {
    if (this.keysTurn !== turn) {
      this.keysTurn = turn;
      this.keys = new Map();
    }
    return this.keys;
  }

  /** Parses a request. Usually it is the same as the last one. @param {string} json @returns {HttpEffect} */
  requestOf(json) {
    if (json !== this.requestJson || !this.request) {
      this.requestJson = json;
      this.request = /** @type {HttpEffect} */ (JSON.parse(json));
    }
    return this.request;
  }
}
