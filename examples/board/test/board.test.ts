import assert from "node:assert/strict";
import { test } from "node:test";
import { addCard, BoardError, emptyBoard, moveCard, removeCard, renameCard, type Board } from "../src/board.ts";

const NOW = new Date("2025-03-01T09:00:00Z");

function boardWith(count: number): Board {
  let board = emptyBoard();
  for (let i = 1; i <= count; i++) board = addCard(board, { title: `card ${i}` }, NOW);
  return board;
}

test("a new card waits in todo", () => {
  const board = addCard(emptyBoard(), { title: "  Paint the fence " }, NOW);
  assert.deepEqual(board.cards[0], {
    id: 1,
    title: "Paint the fence",
    text: "",
    labels: [],
    column: "todo",
    createdAt: "2025-03-01T09:00:00.000Z",
  });
});

test("a title has at least one and at most 120 characters", () => {
  for (const title of ["", "   ", "x".repeat(121)]) {
    assert.throws(() => addCard(emptyBoard(), { title }, NOW), BoardError);
    assert.throws(() => renameCard(boardWith(1), 1, title), BoardError);
  }
  assert.equal(renameCard(boardWith(1), 1, "x".repeat(120)).cards[0]?.title.length, 120);
});

test("a column that is full takes no more", () => {
  let board = boardWith(4);
  for (const id of [1, 2, 3]) board = moveCard(board, id, "doing");
  assert.throws(() => moveCard(board, 4, "doing"), { fault: "full" });
  // A card that is there already needs no place.
  assert.deepEqual(moveCard(board, 1, "doing").cards.map((card) => card.id), [4, 2, 3, 1]);
});

test("a removed card is gone, and its number is not used again", () => {
  const board = addCard(removeCard(boardWith(2), 2), { title: "another" }, NOW);
  assert.deepEqual(board.cards.map((card) => card.id), [1, 3]);
  assert.throws(() => removeCard(board, 2), { fault: "not-found" });
});
