import assert from "node:assert/strict";
import { test } from "node:test";
import { addCard, emptyBoard, moveCard } from "../src/board.ts";
import { boardHtml } from "../web/view.ts";

test("what people write is text, never markup", () => {
  const fields = { title: "<script>alert(1)</script>", text: `a "quoted" & 'odd' text`, labels: ["<b>"] };
  const html = boardHtml(addCard(emptyBoard(), fields, new Date(0)));
  assert.doesNotMatch(html, /<script>|<b>/);
  assert.match(html, /a &quot;quoted&quot; &amp; &#39;odd&#39; text/);
});

test("a column shows its count and its limit", () => {
  const board = moveCard(addCard(emptyBoard(), { title: "x" }, new Date(0)), 1, "doing");
  const html = boardHtml(board);
  assert.match(html, /todo \(0\)/);
  assert.match(html, /doing \(1 of 3\)/);
});

test("a card can go where there is a column", () => {
  const html = boardHtml(addCard(emptyBoard(), { title: "x" }, new Date(0)));
  assert.match(html, /data-move="1" data-to="doing"/);
  assert.doesNotMatch(html, /data-to="done"/);
});
