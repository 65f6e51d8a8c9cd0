// HTTP around the API, and the files of the web page. `npm start` runs it.

import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import * as nodeModule from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Api } from "./api.ts";
import { FileStore, type Store } from "./store.ts";

const WEB = new URL("../web/", import.meta.url);

/** What the page may ask for. Nothing else is read from the disk. */
const FILES: Record<string, { file: string; type: string }> = {
  "/": { file: "index.html", type: "text/html; charset=utf-8" },
  "/main.ts": { file: "main.ts", type: "text/javascript; charset=utf-8" },
  "/view.ts": { file: "view.ts", type: "text/javascript; charset=utf-8" },
};

// TODO: authentication. Everybody who reaches the port can change the board.
export function createBoardServer(store: Store, now?: () => Date): Server {
  const api = new Api(store, now);
  return createServer((request, response) => {
    respond(api, request, response).catch((error: unknown) => {
      console.error(error);
      send(response, 500, "application/json", JSON.stringify({ error: "something went wrong here" }));
    });
  });
}

async function respond(api: Api, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const method = request.method ?? "GET";
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  const page = FILES[path];
  if (page && method === "GET") {
    const text = await readFile(new URL(page.file, WEB), "utf8");
    send(response, 200, page.type, page.file.endsWith(".ts") ? withoutTypes(text) : text);
    return;
  }
  let body: unknown;
  try {
    body = await readJson(request);
  } catch {
    send(response, 400, "application/json", JSON.stringify({ error: "the body is no JSON" }));
    return;
  }
  const answer = await api.answer({ method, path, body });
  send(response, answer.status, "application/json", answer.body === undefined ? "" : JSON.stringify(answer.body));
}

/** Browsers know no types. Node takes them out; versions before 22.13 cannot. */
function withoutTypes(text: string): string {
  if (!("stripTypeScriptTypes" in nodeModule)) throw new Error("the web page needs Node 22.13 or newer");
  return nodeModule.stripTypeScriptTypes(text);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  // TODO: no limit; a client can fill the memory.
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? undefined : JSON.parse(text);
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" });
  response.end(text);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const port = Number(process.env["PORT"] ?? 8080);
  const file = process.env["BOARD_FILE"] ?? fileURLToPath(new URL("../data/board.json", import.meta.url));
  createBoardServer(new FileStore(file)).listen(port, "127.0.0.1", () => {
    console.log(`the board is at http://127.0.0.1:${port}`);
  });
}
