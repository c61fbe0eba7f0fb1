// The HTTP API: the token, reads that stay fresh, and writes.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { at } from "./place";
import { onEvent, type Seen } from "./stream";

const KEPT = "sojourn.token";

/** Held for this tab alone, and sent in a header alone. */
export const token = signal(sessionStorage.getItem(KEPT) ?? "");

export function useToken(value: string): void {
  const secret = value.trim();
  if (secret) sessionStorage.setItem(KEPT, secret);
  else sessionStorage.removeItem(KEPT);
  denied.value = null;
  token.value = secret;
}

export interface Denied {
  text: string;
  /** The token has expired or was deleted, so that all is refused until somebody logs in again. */
  isOver: boolean;
  /** A change was refused, which somebody waits for. */
  isWrite: boolean;
}

/** What the server last refused for lack of rights. */
export const denied = signal<Denied | null>(null);

/** Whether a refusal is one of the token itself. */
export function isOver(status: number, text: string): boolean {
  return (status === 403 || status === 401) && /^ACL token (expired|not found)/.test(text);
}

/** How the last answer came. */
export const reached = signal<"waiting" | "yes" | "no">("waiting");

/** Since when nobody has answered, or no server that can, and what came instead. */
export const trouble = signal<{ since: Date; text: string } | null>(null);

function troubled(text: string): void {
  trouble.value = { since: trouble.peek()?.since ?? new Date(), text };
}

/** A gateway that reaches no server, or a server without a leader. */
function isOut(status: number, text: string): boolean {
  return [502, 503, 504].includes(status) || (status === 500 && text.startsWith("No cluster leader"));
}

/** The index of the newest answer about the present. */
export const newest = signal(0);

export class Refusal extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text);
  }
}

export interface Asking {
  method?: string;
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
  /** Of the present alone: `as_of` is not sent. */
  now?: boolean;
  /** What is refused is no news: the view is whole without it. */
  quiet?: boolean;
}

/** A path with parameters. Those without a value are left out. */
export function path(parts: string[], query: Record<string, string | number | undefined> = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") pairs.set(name, String(value));
  }
  const text = pairs.toString();
  return `/v1/${parts.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

export async function call(where: string, asking: Asking = {}): Promise<Response> {
  const headers: Record<string, string> = { ...asking.headers };
  const secret = token.value;
  if (secret) headers["X-Nomad-Token"] = secret;
  const method = asking.method ?? "GET";
  if (method === "GET" && !asking.now && at.value) headers["X-Sojourn-As-Of"] = at.value;
  let body: string | undefined;
  if (asking.body !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(asking.body);
  }
  let response: Response;
  try {
    response = await fetch(where, { method, headers, body, signal: asking.signal, cache: "no-store" });
  } catch (error) {
    if (!asking.signal?.aborted) {
      reached.value = "no";
      troubled((error as Error).message);
    }
    throw error;
  }
  reached.value = "yes";
  if (response.ok) trouble.value = null;
  if (!response.ok) {
    const text = (await response.text()).trim() || response.statusText;
    // What was refused to the token before says nothing about this one.
    const isCurrent = secret === token.value && !asking.signal?.aborted;
    if (isCurrent && !asking.quiet && (response.status === 403 || response.status === 401)) {
      denied.value = { text, isOver: isOver(response.status, text), isWrite: method !== "GET" };
    }
    if (isOut(response.status, text)) troubled(text);
    throw new Refusal(response.status, text);
  }
  if (!at.value) newest.value = Math.max(newest.value, Number(response.headers.get("X-Nomad-Index") ?? 0));
  return response;
}

export async function get<T>(where: string, asking: Asking = {}): Promise<T> {
  return (await (await call(where, asking)).json()) as T;
}

export async function put<T>(where: string, body?: unknown, method = "PUT", quiet = false): Promise<T> {
  const text = await (await call(where, { method, body, quiet })).text();
  // A search only reads.
  if (!quiet) for (const again of readers) again();
  return (text ? JSON.parse(text) : {}) as T;
}

/** Everything that is shown, which may be another after a write. */
const readers = new Set<() => void>();

export interface Got<T> {
  data: T | undefined;
  error: Error | undefined;
  /** Where the next page begins. */
  next: string | null;
  /** Reads once more. */
  again: () => void;
}

/** Between two reads of the same thing, so that a busy cluster does not keep a browser busy. */
const REST_MS = 1000;
/** After no answer. */
const RETRY_MS = 2000;
/** Without the stream of events. */
const POLL_MS = 5000;
/** For what others change and no event speaks of. */
const SELDOM_MS = 30000;

/** Whether the stream of events says when to read again. */
export const isStreaming = signal(false);
/** The topics that it has, `null` for all: a token may read some and not others. */
export const streamed = signal<string[] | null>(null);

/** Whether it says so of all of these. */
export function isTold(topics: string[]): boolean {
  const has = streamed.value;
  return isStreaming.value && (!has || topics.every((topic) => has.includes(topic)));
}

/**
 * What is at this path, read again when an event of one of the topics comes (or every five seconds where there is no stream),
 * while the tab is looked at. Of a moment in the past it is read once. What no event speaks of `polls`: every five seconds.
 */
export function useGet<T>(where: string, topics: string[], { now = false, quiet = false, polls = false } = {}): Got<T> {
  const [state, setState] = useState<{ where: string; data?: T; error?: Error; next: string | null }>({
    where,
    next: null,
  });
  const [round, setRound] = useState(0);
  const moment = now ? null : at.value;
  const secret = token.value;
  const streams = isTold(topics);
  useEffect(() => {
    const stop = new AbortController();
    let last = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isReading = false;
    let isStale = false;
    async function read(): Promise<void> {
      timer = undefined;
      isReading = true;
      isStale = false;
      last = performance.now();
      try {
        const response = await call(where, { signal: stop.signal, now, quiet });
        const data = (await response.json()) as T;
        setState({ where, data, next: response.headers.get("X-Nomad-NextToken") });
      } catch (error) {
        if (stop.signal.aborted) return;
        // What is gone is not shown any more; what only cannot be read at the moment, or until somebody logs in again, is.
        const isGone = error instanceof Refusal && [400, 403, 404, 410].includes(error.status) && !isOver(error.status, error.message);
        setState((old) => ({ ...(old.where === where && !isGone ? old : { next: null }), where, error: error as Error }));
        if (!moment && (!(error instanceof Refusal) || isOut(error.status, error.message))) soon(RETRY_MS);
      } finally {
        isReading = false;
      }
      if (isStale && !stop.signal.aborted) soon();
    }
    function soon(least = 150): void {
      if (document.hidden) return;
      if (isReading) isStale = true;
      else if (timer === undefined) timer = setTimeout(read, Math.max(least, REST_MS - (performance.now() - last)));
    }
    // While a moment is dragged along, only where it rests is read.
    timer = setTimeout(read, moment ? 80 : 0);
    if (moment) return () => (clearTimeout(timer), stop.abort());
    const unsubscribe = onEvent((event: Seen) => {
      if (topics.includes(event.Topic)) soon();
    });
    const shown = (): void => soon(0);
    document.addEventListener("visibilitychange", shown);
    const wrote = (): void => soon(0);
    readers.add(wrote);
    const every = streams && !polls ? SELDOM_MS : POLL_MS;
    const poll = polls || topics.length ? setInterval(soon, every) : undefined;
    return () => {
      clearTimeout(timer);
      clearInterval(poll);
      unsubscribe();
      readers.delete(wrote);
      document.removeEventListener("visibilitychange", shown);
      stop.abort();
    };
  }, [where, moment, secret, streams, round, polls, topics.join()]);
  // What was asked for before is not shown under another name.
  const isSame = state.where === where;
  return {
    data: isSame ? state.data : undefined,
    error: isSame ? state.error : undefined,
    next: isSame ? state.next : null,
    again: () => setRound((count) => count + 1),
  };
}
