// From a board to HTML. No document is needed, so that tests can look at it.

import type { Board, Card, Column } from "../src/board.ts";

const MARKS: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Everything that a person wrote goes through here. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (mark) => MARKS[mark] ?? mark);
}

export function boardHtml(board: Board): string {
  return board.columns.map((column) => columnHtml(board, column)).join("\n");
}

function columnHtml(board: Board, column: Column): string {
  const cards = board.cards.filter((card) => card.column === column.name);
  const limit = column.limit === undefined ? "" : ` of ${column.limit}`;
  return `<section class="column" data-column="${column.name}">
<h2>${column.name} (${cards.length}${limit})</h2>
${cards.map((card) => cardHtml(board, card)).join("\n")}
</section>`;
}

function cardHtml(board: Board, card: Card): string {
  const labels = card.labels.map((label) => `<span class="label">${escapeHtml(label)}</span>`).join("");
  const at = board.columns.findIndex((column) => column.name === card.column);
  const back = board.columns[at - 1];
  const next = board.columns[at + 1];
  const button = (column: Column | undefined, sign: string) =>
    column ? `<button data-move="${card.id}" data-to="${column.name}">${sign}</button>` : "";
  return `<article class="card" data-card="${card.id}">
<h3>${escapeHtml(card.title)}</h3>
<p>${escapeHtml(card.text)}</p>
${labels}
${button(back, "←")}${button(next, "→")}<button data-remove="${card.id}">×</button>
</article>`;
}
