/** What a server answered. */
export interface Answer<T> {
  value: T;
  /** The index that it was read at, or that a write got; 0 where there is none. */
  index: number;
  /** Where the next page begins; empty on the last one. */
  nextToken: string;
}

/** What is sent: `query` and `headers` without what is undefined. `raw`: the bytes of the answer. */
export interface Given {
  query?: Record<string, unknown>;
  headers?: Record<string, string | undefined>;
  body?: unknown;
  raw?: boolean;
  signal?: AbortSignal;
}

/** A server refused a request, or there is no server; then `status` is 0. */
export class SojournError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Seconds, where the server names them. */
    readonly retryAfter: number = 0,
  ) {
    super(status ? `${status}: ${message}` : message);
    this.name = "SojournError";
  }
}

/** A part of a path. Slashes stay: ids of jobs and paths of variables have them. */
export function quoted(part: string): string {
  return part.split("/").map(encodeURIComponent).join("/");
}
