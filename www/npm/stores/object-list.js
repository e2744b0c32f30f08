// @ts-check
// The store of a Durable Object, with a list of what is in it.

import { objectStore } from "./durable-object.js";
import { titleOf } from "./title.js";

/** @import { Storage } from "./durable-object.js" */

const LIST = "SELECT id, title, updated_at FROM turnwheel_list WHERE id >= ? AND id < ? AND (updated_at, id) < (?, ?) ORDER BY updated_at DESC, id DESC LIMIT ?";

/** Stores checkpoints in the SQLite database of a Durable Object; pass `ctx.storage`. @param {Storage} storage */
export function durableObjectStore(storage) {
  /** @param {string} statement @param {(string | number)[]} values */
  const sql = (statement, ...values) => {
    storage.sql.exec("CREATE TABLE IF NOT EXISTS turnwheel_list (id TEXT PRIMARY KEY, title TEXT NOT NULL, updated_at INTEGER NOT NULL)");
    return storage.sql.exec(statement, ...values).toArray();
  };
  return objectStore(storage, {
    write: (id, checkpoint) => void sql("INSERT OR REPLACE INTO turnwheel_list VALUES (?, ?, ?)", id, titleOf(checkpoint), Date.now()),
    remove: (id) => void sql("DELETE FROM turnwheel_list WHERE id = ?", id),
    lister: (queue) => queue.lister(({ limit, prefix, before: { updatedAt, id } }) => sql(LIST, prefix, `${prefix}\u{10ffff}`, updatedAt, id, limit)
      .map(({ id, title, updated_at }) => ({ id, title, updatedAt: updated_at }))),
  });
}
