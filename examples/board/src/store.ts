// Where the board is kept. The API knows only `Store`.

import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { emptyBoard, type Board } from "./board.ts";

export interface Store {
  load(): Promise<Board>;
  save(board: Board): Promise<void>;
}

export class MemoryStore implements Store {
  #board: Board = emptyBoard();

  async load(): Promise<Board> {
    return this.#board;
  }

  async save(board: Board): Promise<void> {
    this.#board = board;
  }
}

/** A JSON file. A save replaces it as a whole, so that a reader never sees half of it. */
export class FileStore implements Store {
  #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async load(): Promise<Board> {
    let text: string;
    try {
      text = await readFile(this.#path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return emptyBoard();
      throw error;
    }
    // TODO: the shape is not checked; a file that was edited by hand can break the page.
    return JSON.parse(text) as Board;
  }

  async save(board: Board): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true });
    const draft = `${this.#path}.new`;
    await writeFile(draft, JSON.stringify(board, null, 2) + "\n");
    await rename(draft, this.#path);
  }
}
