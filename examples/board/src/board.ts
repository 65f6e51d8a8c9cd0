// The board: columns of cards. Pure: no clock, no files, no network. Every change gives a new board.

export type ColumnName = "todo" | "doing" | "done";

export interface Column {
  readonly name: ColumnName;
  /** How many cards it takes; none means as many as you like. */
  readonly limit?: number;
}

// TODO: due dates. A card does not say until when it must be done.
export interface Card {
  readonly id: number;
  readonly title: string;
  readonly text: string;
  readonly labels: readonly string[];
  readonly column: ColumnName;
  readonly createdAt: string;
}

export interface Board {
  readonly columns: readonly Column[];
  /** In the order in which they are shown. */
  readonly cards: readonly Card[];
  readonly nextId: number;
}

export type Fault = "invalid" | "not-found" | "full";

export class BoardError extends Error {
  readonly fault: Fault;

  constructor(fault: Fault, message: string) {
    super(message);
    this.name = "BoardError";
    this.fault = fault;
  }
}

export const MAX_TITLE = 120;

export function emptyBoard(): Board {
  return {
    columns: [{ name: "todo" }, { name: "doing", limit: 3 }, { name: "done" }],
    cards: [],
    nextId: 1,
  };
}

export function findCard(board: Board, id: number): Card {
  const card = board.cards.find((card) => card.id === id);
  if (!card) throw new BoardError("not-found", `there is no card ${id}`);
  return card;
}

export function addCard(
  board: Board,
  fields: { title: string; text?: string; labels?: readonly string[] },
  now: Date,
): Board {
  const title = fields.title.trim();
  if (title === "") throw new BoardError("invalid", "a card needs a title");
  if (title.length > MAX_TITLE) throw new BoardError("invalid", `a title has at most ${MAX_TITLE} characters`);
  const card: Card = {
    id: board.nextId,
    title,
    text: fields.text ?? "",
    labels: fields.labels ?? [],
    column: "todo",
    createdAt: now.toISOString(),
  };
  return { ...board, cards: [...board.cards, card], nextId: board.nextId + 1 };
}

export function renameCard(board: Board, id: number, newTitle: string): Board {
  findCard(board, id);
  const title = newTitle.trim();
  if (title === "") throw new BoardError("invalid", "a card needs a title");
  if (title.length > MAX_TITLE) throw new BoardError("invalid", `a title has at most ${MAX_TITLE} characters`);
  return { ...board, cards: board.cards.map((card) => (card.id === id ? { ...card, title } : card)) };
}

/** The card becomes the last one of that column. */
// TODO: audit trail. Who moved a card, and when, is not kept.
export function moveCard(board: Board, id: number, to: ColumnName): Board {
  const card = findCard(board, id);
  const column = board.columns.find((column) => column.name === to);
  if (!column) throw new BoardError("invalid", `there is no column ${to}`);
  const others = board.cards.filter((other) => other.id !== id);
  const there = others.filter((other) => other.column === to).length;
  if (column.limit !== undefined && there >= column.limit) {
    throw new BoardError("full", `${to} takes at most ${column.limit} cards`);
  }
  return { ...board, cards: [...others, { ...card, column: to }] };
}

export function removeCard(board: Board, id: number): Board {
  findCard(board, id);
  return { ...board, cards: board.cards.filter((card) => card.id !== id) };
}

/** Each label with the number of its cards, the most used first. */
export function labelCounts(board: Board): { label: string; count: number }[] {
  const counts: { label: string; count: number }[] = [];
  for (const card of board.cards) {
    for (const label of card.labels) {
      if (counts.some((entry) => entry.label === label)) continue;
      const count = board.cards.filter((other) => other.labels.includes(label)).length;
      counts.push({ label, count });
    }
  }
  return counts.sort((a, b) => b.count - a.count || a.label.localeCompare(b.label));
}
