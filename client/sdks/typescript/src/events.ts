// The event stream: server-sent events, read so that a break costs nothing.
import { SojournError } from "./answer.js";

/** Servers say something every 15 seconds; a stream that is silent for three times as long is dead. */
export const SILENCE_MAX_MS = 45_000;
/** The longest line: one index may carry a whole placement of a large job. */
const LINE_MAX = 256 << 20;
/** Before the first attempt after a break, and at most before each. */
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 10_000;

/** Something that happened. */
export interface Event {
  /** The same for ever, on every server. */
  id: string;
  topic: string;
  type: string;
  key: string;
  namespace: string;
  index: number;
  payload: Record<string, unknown>;
  /** All of it, with `Time`, `Actor`, `Requester`, `RequestID`, `Command`, `Fact` and `Cause`. */
  body: Record<string, unknown>;
}

/** With `onGap: "skip"`: what was asked for is no longer kept, and events go on at `oldest`. */
export interface Gap {
  id: string;
  gap: { from: number; oldest: number };
}

/** What of the stream is asked for. */
export interface EventOptions {
  topics?: string[];
  from?: string;
  to?: string;
  filter?: string;
  namespace?: string;
  cursor?: string;
  /** Of a cursor that is split: which of its readers this is. */
  member?: number;
  view?: string;
  onGap?: "fail" | "skip";
  /** Goes on after this event. */
  lastId?: string;
  /** Milliseconds for which to try again while no server answers; for ever unless given. */
  retryFor?: number;
  /** Ends the iteration. */
  signal?: AbortSignal;
}

interface Message {
  id: string;
  event: string;
  data: string;
}

/** Pieces of a body into messages. A message that a break cut off is dropped: it comes again, whole. */
export class Parser {
  private rest = "";
  private decoder = new TextDecoder();
  private id = "";
  private event = "";
  private data: string[] = [];

  *read(piece: Uint8Array): Generator<Message> {
    const lines = (this.rest + this.decoder.decode(piece, { stream: true })).split("\n");
    this.rest = lines.pop() ?? "";
    if (this.rest.length > LINE_MAX) {
      throw new SojournError(0, `a line of the event stream is longer than ${LINE_MAX} characters`);
    }
    for (const line of lines) {
      const message = this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (message) yield message;
    }
  }

  private line(line: string): Message | null {
    if (line === "") {
      const message = { id: this.id, event: this.event, data: this.data.join("\n") };
      this.event = "";
      this.data = [];
      return message.id || message.data ? message : null;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") this.id = value;
    else if (name === "event") this.event = value;
    else if (name === "data") this.data.push(value);
    return null;
  }
}

/** Where a stream is, and how long to wait before the next attempt. */
export class Place {
  ended = false;
  private attempts = 0;
  private brokenSince = 0;

  constructor(
    public lastId: string,
    private retryFor: number | undefined,
  ) {}

  /** What to hand on of a message. Only then has the stream come this far. */
  take({ id, event, data }: Message): Event | Gap | null {
    this.attempts = 0;
    if (event === "end") {
      this.ended = true;
      return null;
    }
    this.lastId = id || this.lastId;
    // The first message only says where the stream begins.
    if (data === "" || event === "checkpoint") return null;
    const body = JSON.parse(data) as Record<string, unknown>;
    if (event === "gap") return { id, gap: { from: Number(body.From), oldest: Number(body.Oldest) } };
    const text = (name: string) => String(body[name] ?? "");
    return {
      id,
      topic: text("Topic"),
      type: text("Type"),
      key: text("Key"),
      namespace: text("Namespace"),
      index: Number(body.Index ?? 0),
      payload: (body.Payload ?? {}) as Record<string, unknown>,
      body,
    };
  }

  /** Milliseconds to wait. Throws what another attempt cannot mend, and what lasts for too long. */
  pause(error: unknown): number {
    const refused = error instanceof SojournError ? error : null;
    if (refused && refused.status < 500 && refused.status !== 429) throw refused;
    const now = performance.now();
    if (this.attempts === 0) this.brokenSince = now;
    this.attempts += 1;
    if (this.retryFor !== undefined && now - this.brokenSince >= this.retryFor) {
      throw refused ?? new SojournError(0, `no server answers: ${String(error)}`);
    }
    const wait = Math.min(RETRY_FIRST_MS * 2 ** Math.min(this.attempts - 1, 16), RETRY_MAX_MS);
    return Math.max(wait * (0.5 + Math.random() / 2), (refused?.retryAfter ?? 0) * 1_000);
  }
}
