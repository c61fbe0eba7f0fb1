import { type Answer, type Given, SojournError } from "./answer.js";
import { Operations } from "./api.js";
import { type Event, type EventOptions, type Gap, Parser, Place, SILENCE_MAX_MS } from "./events.js";

export interface ClientOptions {
  /** `http://127.0.0.1:4646` unless given. */
  address?: string;
  token?: string;
  namespace?: string;
  region?: string;
  /** What sends requests, where certificates or a proxy are to be set; the platform's own unless given. */
  fetch?: typeof fetch;
}

/** A client of one cluster. */
export class Client extends Operations {
  private readonly address: string;
  private readonly own: Record<string, string>;
  private readonly headers: Record<string, string>;
  private readonly send: typeof fetch;

  constructor(options: ClientOptions = {}) {
    super();
    const set = (pairs: Record<string, string | undefined>) =>
      Object.fromEntries(Object.entries(pairs).filter((pair): pair is [string, string] => Boolean(pair[1])));
    this.address = (options.address || "http://127.0.0.1:4646").replace(/\/+$/, "");
    this.own = set({ namespace: options.namespace, region: options.region });
    this.headers = set({ "X-Nomad-Token": options.token });
    this.send = options.fetch ?? fetch;
  }

  /** With NOMAD_ADDR, NOMAD_TOKEN, NOMAD_NAMESPACE and NOMAD_REGION. Certificates: NODE_EXTRA_CA_CERTS, or `fetch`. */
  static fromEnvironment(environment: Record<string, string | undefined> = process.env): Client {
    return new Client({
      address: environment.NOMAD_ADDR,
      token: environment.NOMAD_TOKEN,
      namespace: environment.NOMAD_NAMESPACE,
      region: environment.NOMAD_REGION,
    });
  }

  /** Any route, Nomad's own too. */
  async request<T>(method: string, path: string, given: Given = {}): Promise<Answer<T>> {
    const response = await this.call(method, path, given);
    const index = Number(response.headers.get("X-Nomad-Index") ?? 0) || 0;
    const nextToken = response.headers.get("X-Nomad-NextToken") ?? "";
    if (given.raw) return { value: new Uint8Array(await response.arrayBuffer()) as T, index, nextToken };
    const text = await response.text();
    return { value: (text.trim() ? JSON.parse(text) : null) as T, index, nextToken };
  }

  /** What happens, and after a break goes on happening: nothing is missed and nothing comes twice. */
  async *events(options: EventOptions = {}): AsyncGenerator<Event | Gap, void, void> {
    const { topics, onGap, lastId, retryFor, signal, ...rest } = options;
    const query = { ...rest, topic: topics, on_gap: onGap };
    const place = new Place(lastId ?? "", retryFor);
    while (!place.ended && !signal?.aborted) {
      const silence = new Silence(signal);
      try {
        const headers = { Accept: "text/event-stream", "Last-Event-ID": place.lastId || undefined };
        const response = await this.call("GET", "/v1/event/stream", { query, headers, signal: silence.signal });
        const parser = new Parser();
        for await (const piece of response.body ?? []) {
          silence.heard();
          for (const message of parser.read(piece)) {
            const taken = place.take(message);
            if (taken) yield taken;
            if (place.ended) return;
          }
        }
        throw new TypeError("the stream ended");
      } catch (error) {
        if (signal?.aborted) return;
        await pause(place.pause(error), signal);
      } finally {
        silence.end();
      }
    }
  }

  private async call(method: string, path: string, given: Given): Promise<Response> {
    const url = new URL(this.address + path);
    for (const [name, value] of Object.entries({ ...this.own, ...given.query })) {
      for (const one of Array.isArray(value) ? value : [value]) {
        // A switch that is named is on.
        if (one || one === 0) url.searchParams.append(name, String(one));
      }
    }
    const headers = { ...this.headers };
    for (const [name, value] of Object.entries(given.headers ?? {})) if (value !== undefined) headers[name] = value;
    const body = given.body === undefined ? undefined : JSON.stringify(given.body);
    let response: Response;
    try {
      response = await this.send(url, { method, headers, body, signal: given.signal });
    } catch (error) {
      if (given.signal) throw error;
      throw new SojournError(0, `${this.address} does not answer: ${String(error)}`);
    }
    if (response.ok) return response;
    const message = (await response.text()).trim();
    throw new SojournError(response.status, message, Number(response.headers.get("Retry-After") ?? 0) || 0);
  }
}

/** Waits, or ends at once when the caller says so. */
function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    signal?.addEventListener("abort", done);
  });
}

/** Cuts a connection on which nothing comes any more, or when the caller says so; `end` stops it, connection and all. */
class Silence {
  private readonly cut = new AbortController();
  private timer: ReturnType<typeof setTimeout>;
  private readonly stop = () => this.cut.abort();

  constructor(private readonly caller: AbortSignal | undefined) {
    caller?.addEventListener("abort", this.stop);
    this.timer = setTimeout(this.stop, SILENCE_MAX_MS);
  }

  get signal(): AbortSignal {
    return this.cut.signal;
  }

  heard(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.stop, SILENCE_MAX_MS);
  }

  end(): void {
    clearTimeout(this.timer);
    this.caller?.removeEventListener("abort", this.stop);
    this.cut.abort();
  }
}
