// The HTTP API without HTTP: a call goes in, an answer comes out. docs/api.md describes it.

import {
  addCard,
  BoardError,
  findCard,
  labelCounts,
  moveCard,
  removeCard,
  renameCard,
  type ColumnName,
  type Fault,
} from "./board.ts";
import type { Store } from "./store.ts";

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const STATUS: Record<Fault, number> = { invalid: 400, "not-found": 404, full: 409 };

export class Api {
  #store: Store;
  #now: () => Date;

  constructor(store: Store, now: () => Date = () => new Date()) {
    this.#store = store;
    this.#now = now;
  }

  async answer(call: Call): Promise<Answer> {
    try {
      return await this.#route(call);
    } catch (error) {
      if (!(error instanceof BoardError)) throw error;
      return { status: STATUS[error.fault], body: { error: error.message } };
    }
  }

  // FIXME: two calls at the same time both load the board, and the one that saves last wins.
  async #route({ method, path, body }: Call): Promise<Answer> {
    if (path === "/api/board") {
      if (method !== "GET") return notAllowed(method);
      return { status: 200, body: await this.#store.load() };
    }
    if (path === "/api/labels") {
      if (method !== "GET") return notAllowed(method);
      return { status: 200, body: labelCounts(await this.#store.load()) };
    }
    if (path === "/api/cards") {
      if (method !== "POST") return notAllowed(method);
      const fields = asObject(body);
      if (typeof fields["title"] !== "string") throw new BoardError("invalid", "`title` must be text");
      if (fields["text"] !== undefined && typeof fields["text"] !== "string") {
        throw new BoardError("invalid", "`text` must be text");
      }
      const labels = fields["labels"] ?? [];
      if (!Array.isArray(labels) || !labels.every((label) => typeof label === "string")) {
        throw new BoardError("invalid", "`labels` must be a list of texts");
      }
      const before = await this.#store.load();
      const board = addCard(before, { title: fields["title"], text: fields["text"] ?? "", labels }, this.#now());
      await this.#store.save(board);
      return { status: 201, body: findCard(board, before.nextId) };
    }
    const match = /^\/api\/cards\/(\d+)(\/move)?$/.exec(path);
    if (match) {
      const id = Number(match[1]);
      if (match[2] !== undefined) {
        if (method !== "POST") return notAllowed(method);
        const fields = asObject(body);
        if (typeof fields["to"] !== "string") throw new BoardError("invalid", "`to` must be text");
        const board = moveCard(await this.#store.load(), id, fields["to"] as ColumnName);
        await this.#store.save(board);
        return { status: 200, body: findCard(board, id) };
      }
      if (method === "GET") {
        return { status: 200, body: findCard(await this.#store.load(), id) };
      }
      if (method === "PATCH") {
        const fields = asObject(body);
        if (typeof fields["title"] !== "string") throw new BoardError("invalid", "`title` must be text");
        const board = renameCard(await this.#store.load(), id, fields["title"]);
        await this.#store.save(board);
        return { status: 200, body: findCard(board, id) };
      }
      if (method === "DELETE") {
        await this.#store.save(removeCard(await this.#store.load(), id));
        return { status: 204, body: undefined };
      }
      return notAllowed(method);
    }
    return { status: 404, body: { error: `there is nothing at ${path}` } };
  }
}

function notAllowed(method: string): Answer {
  return { status: 405, body: { error: `${method} is not possible here` } };
}

function asObject(body: unknown): Record<string, unknown> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new BoardError("invalid", "the body must be a JSON object");
  }
  return body as Record<string, unknown>;
}
