import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { createBoardServer } from "../src/server.ts";
import { MemoryStore } from "../src/store.ts";

type Send = (method: string, path: string, body?: string) => Promise<{ status: number; body: any }>;

/** A server on a free port, for the time of one test. */
async function serve(context: TestContext): Promise<Send> {
  const server = createBoardServer(new MemoryStore(), () => new Date(0));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return async (method, path, body) => {
    const init = body === undefined ? { method } : { method, body };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    const text = await response.text();
    return { status: response.status, body: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text };
  };
}

test("a card goes through the board", async (context) => {
  const send = await serve(context);
  const added = await send("POST", "/api/cards", '{"title": "Paint the fence", "labels": ["garden"]}');
  assert.equal(added.status, 201);
  assert.equal(added.body.column, "todo");
  assert.equal((await send("POST", "/api/cards/1/move", '{"to": "done"}')).body.column, "done");
  assert.equal((await send("PATCH", "/api/cards/1", '{"title": "Paint"}')).body.title, "Paint");
  assert.equal((await send("GET", "/api/board")).body.cards.length, 1);
  assert.equal((await send("DELETE", "/api/cards/1")).status, 204);
  assert.equal((await send("GET", "/api/cards/1")).status, 404);
});

test("what is wrong is said", async (context) => {
  const send = await serve(context);
  await send("POST", "/api/cards", '{"title": "Paint the fence"}');
  const cases: [string, string, string | undefined, number, string][] = [
    ["POST", "/api/cards", "{", 400, "the body is no JSON"],
    ["POST", "/api/cards", "[]", 400, "the body must be a JSON object"],
    ["POST", "/api/cards", '{"title": 1}', 400, "`title` must be text"],
    ["POST", "/api/cards", '{"title": "x", "labels": "y"}', 400, "`labels` must be a list of texts"],
    ["POST", "/api/cards/1/move", '{"to": "later"}', 400, "there is no column later"],
    ["POST", "/api/cards/7/move", '{"to": "done"}', 404, "there is no card 7"],
    ["PUT", "/api/board", undefined, 405, "PUT is not possible here"],
    ["GET", "/api/nothing", undefined, 404, "there is nothing at /api/nothing"],
  ];
  for (const [method, path, body, status, error] of cases) {
    assert.deepEqual(await send(method, path, body), { status, body: { error } });
  }
});

test("the page is served, and nothing else of the disk", async (context) => {
  const send = await serve(context);
  assert.match((await send("GET", "/")).body, /<main id="board">/);
  assert.equal((await send("GET", "/../package.json")).status, 404);
  assert.equal((await send("GET", "/api.ts")).status, 404);
});
