// Types of code mode. Sage writes this file; editors and `tsc` read it.

declare module "sage" {
  export interface FoundTool {
    /** What to import it from: "servers/github". */
    module: string;
    name: string;
    text: string;
  }

  /** The functions of "servers/.." call this. */
  export function callTool(server: string, tool: string, input?: object): Promise<unknown>;
  export const tools: {
    search(query: string, detail?: "names" | "signatures" | "full", limit?: number): Promise<FoundTool[]>;
  };
  /** Values that earlier code returned and that were too big to be shown. */
  export const handles: { get<T = any>(name: string): Promise<T> };
  export const input: any;
}

/** What the code was given. */
declare const input: any;
