// The stream of events: one connection for the whole page. It says what to read again, feeds the view of events, and marks
// the time line. It stops while nobody looks at the tab.

import { effect, signal } from "@preact/signals";
import { denied, isOver, isStreaming, streamed, token } from "./api";

/** An event without what it is about, unless `payloads` asks for that. */
export interface Seen {
  Topic: string;
  Type: string;
  Key: string;
  Namespace: string;
  Index: number;
  ID: string;
  Time: string;
  Actor: string;
  Payload?: unknown;
}

/** Views that show what events hold. */
export const payloads = signal(0);

/** How often something may have been missed: a connection that begins now and not where the one before was cut, or a gap. */
export const missed = signal(0);

const listeners = new Set<(event: Seen) => void>();

export function onEvent(listener: (event: Seen) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Takes server-sent events apart: whole messages out of pieces of text. */
export class Messages {
  private rest = "";

  constructor(private readonly each: (message: { id: string; event: string; data: string }) => void) {}

  take(text: string): void {
    this.rest += text;
    for (;;) {
      const end = this.rest.indexOf("\n\n");
      if (end < 0) return;
      const message = { id: "", event: "", data: "" };
      for (const line of this.rest.slice(0, end).split("\n")) {
        const cut = line.indexOf(":");
        const name = line.slice(0, cut) as "id" | "event" | "data";
        if (cut > 0 && name in message) message[name] = line.slice(cut + 1).trimStart();
      }
      this.rest = this.rest.slice(end + 2);
      this.each(message);
    }
  }
}

const RETRY_MS = 3000;
const REFUSED_MS = 60000;
/** What a server answers to a place that it does not have. */
const UNKNOWN = [400, 404, 410];
/** What says nothing for so long is taken for dead: the server says something every 15 seconds. */
const SILENCE_MS = 40000;

/** What a token for namespaces may read, and one for them and clients; all topics take a management token. */
const OF_JOBS = ["Job", "Allocation", "Evaluation", "Deployment", "Service", "HostVolume", "CSIVolume"];
const SCOPES: [null, ...string[][]] = [null, [...OF_JOBS, "Node"], OF_JOBS, ["Node"]];
/** The widest that a token was not refused. */
let scope = { secret: "", place: 0 };

let lastId = "";
const isHidden = signal(document.hidden);
document.addEventListener("visibilitychange", () => (isHidden.value = document.hidden));

/** Follows until it is stopped. */
export function follow(): void {
  effect(() => {
    if (isHidden.value) return;
    const stop = new AbortController();
    void run(token.value, payloads.value > 0, stop.signal);
    return () => stop.abort();
  });
}

async function run(secret: string, isFull: boolean, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const silence = new AbortController();
    const end = AbortSignal.any([stop, silence.signal]);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    let wait = RETRY_MS;
    if (scope.secret !== secret) scope = { secret, place: 0 };
    const topics = SCOPES[scope.place] ?? null;
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (secret) headers["X-Nomad-Token"] = secret;
      if (lastId) headers["Last-Event-ID"] = lastId;
      const query = new URLSearchParams({ namespace: "*", from: "now", on_gap: "skip", view: isFull ? "full" : "key" });
      for (const topic of topics ?? []) query.append("topic", topic);
      heard();
      const response = await fetch(`/v1/event/stream?${query}`, { headers, signal: end, cache: "no-store" });
      if (!response.ok || !response.body) {
        const text = (await response.text()).trim();
        // A place that this server does not know is forgotten; rights that are missing do not come by asking often.
        if (UNKNOWN.includes(response.status)) lastId = "";
        if (isOver(response.status, text)) {
          if (secret === token.value) denied.value = { text, isOver: true, isWrite: false };
          wait = REFUSED_MS;
        } else if (response.status === 403) {
          const place = (scope.place + 1) % SCOPES.length;
          scope = { secret, place };
          wait = place ? 0 : REFUSED_MS;
        }
        throw new Error(text);
      }
      streamed.value = topics;
      isStreaming.value = true;
      if (!headers["Last-Event-ID"]) missed.value += 1;
      const messages = new Messages(({ id, event, data }) => {
        if (id) lastId = id;
        if (event === "gap") missed.value += 1;
        if (!data || event === "checkpoint" || event === "gap" || event === "end") return;
        const seen = JSON.parse(data) as Seen;
        for (const listener of listeners) listener(seen);
      });
      const text = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await text.read();
        if (done) break;
        heard();
        messages.take(value);
      }
    } catch {
      // Asked again below; until then views read every few seconds.
    } finally {
      clearTimeout(timer);
    }
    if (stop.aborted) return;
    isStreaming.value = false;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
