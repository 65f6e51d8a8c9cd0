// The page: shows the board, sends what people do to the API, and looks for changes of others.

import type { Board } from "../src/board.ts";
import { boardHtml } from "./view.ts";

const REFRESH_MS = 5_000;

const boardElement = document.querySelector<HTMLElement>("#board")!;
const messageElement = document.querySelector<HTMLElement>("#message")!;
const form = document.querySelector<HTMLFormElement>("#new")!;

async function call(method: string, path: string, body?: unknown): Promise<unknown> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  const response = await fetch(path, init);
  const answer: unknown = response.status === 204 ? undefined : await response.json();
  if (!response.ok) throw new Error((answer as { error: string }).error);
  return answer;
}

async function show(): Promise<void> {
  boardElement.innerHTML = boardHtml((await call("GET", "/api/board")) as Board);
}

async function change(method: string, path: string, body?: unknown): Promise<void> {
  try {
    await call(method, path, body);
    messageElement.textContent = "";
    await show();
  } catch (error) {
    messageElement.textContent = error instanceof Error ? error.message : String(error);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const title = new FormData(form).get("title");
  form.reset();
  void change("POST", "/api/cards", { title });
});

boardElement.addEventListener("click", (event) => {
  const button = (event.target as HTMLElement).closest("button");
  if (!button) return;
  const { move, to, remove } = button.dataset;
  if (move) void change("POST", `/api/cards/${move}/move`, { to });
  if (remove) void change("DELETE", `/api/cards/${remove}`);
});

async function refresh(): Promise<void> {
  try {
    await show();
  } catch {
    // The next round may work.
  }
}

await refresh();
setInterval(() => void refresh(), REFRESH_MS);
