import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { addCard, emptyBoard } from "../src/board.ts";
import { FileStore } from "../src/store.ts";

async function folder(context: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "board-"));
  context.after(() => rm(path, { recursive: true }));
  return path;
}

test("a file keeps the board", async (context) => {
  const file = join(await folder(context), "new", "board.json");
  assert.deepEqual(await new FileStore(file).load(), emptyBoard());
  const board = addCard(emptyBoard(), { title: "Paint the fence" }, new Date(0));
  await new FileStore(file).save(board);
  assert.deepEqual(await new FileStore(file).load(), board);
});

test("a broken file is an error, not an empty board", async (context) => {
  const file = join(await folder(context), "board.json");
  await writeFile(file, '{"cards": [');
  await assert.rejects(new FileStore(file).load(), SyntaxError);
});
