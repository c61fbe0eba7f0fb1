// All clients with what is given away of each: read once, page by page, and then changed by what the stream of events says, so that
// a cluster of 10,000 clients and 100,000 allocations is not read again with each of its events.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, isTold, path, token } from "../api";
import { at } from "../place";
import { type Seen, missed, onEvent, payloads } from "../stream";
import type { Alloc, NodeStub } from "../types";
import { state, used } from "./nodes";

/** Rows of a page: to take one apart takes less time than two frames. */
const NODES_PAGE = 1000;
const ALLOCS_PAGE = 3000;
/** Most of either that are read. */
const NODES_MAX = 100_000;
const ALLOCS_MAX = 500_000;
/** How often at most what has changed is shown. */
const SHOW_MS = 250;
/** Without a stream all is read again: so much longer after it was read than reading it takes, and not sooner than that. */
const REST_FACTOR = 10;
const REST_MS = 5000;
/** Most events that wait until all is read. With more it is read again. */
const EARLY_MAX = 50_000;

export interface Taken {
  allocs: number;
  cpu: number;
  memory: number;
}

export interface Client {
  id: string;
  name: string;
  pool: string;
  state: string;
  isReady: boolean;
  isEligible: boolean;
  /** What it has. */
  cpu: number;
  memory: number;
  taken: Taken;
}

interface Share {
  of: Taken;
  cpu: number;
  memory: number;
}

const LIVE = new Set(["running", "pending", "unknown"]);

export class Fleet {
  private readonly clients = new Map<string, Client>();
  /** By client, also those that are not known yet. */
  private readonly taken = new Map<string, Taken>();
  private readonly shares = new Map<string, Share>();
  private order: Client[] | null = null;
  isCut = false;

  /** Allocations that live. */
  get live(): number {
    return this.shares.size;
  }

  /** By pool and name. */
  sorted(): Client[] {
    const before = (a: Client, b: Client): boolean => (a.pool === b.pool ? a.name < b.name : a.pool < b.pool);
    this.order ??= [...this.clients.values()].sort((a, b) => (before(a, b) ? -1 : 1));
    return this.order;
  }

  node(node: NodeStub): void {
    const known = this.clients.get(node.ID);
    if (!known || known.name !== node.Name || known.pool !== node.NodePool) this.order = null;
    const client = {
      id: node.ID,
      name: node.Name,
      pool: node.NodePool,
      state: state(node),
      isReady: node.Status === "ready",
      isEligible: node.SchedulingEligibility === "eligible",
      cpu: node.NodeResources?.Cpu.CpuShares ?? 0,
      memory: node.NodeResources?.Memory.MemoryMB ?? 0,
      taken: this.takenOf(node.ID),
    };
    // The sorted list holds the same objects.
    if (known) Object.assign(known, client);
    else this.clients.set(node.ID, client);
  }

  gone(id: string): void {
    if (this.clients.delete(id)) this.order = null;
  }

  alloc(alloc: Alloc): void {
    const old = this.shares.get(alloc.ID);
    if (old) {
      this.shares.delete(alloc.ID);
      add(old.of, -1, -old.cpu, -old.memory);
    }
    if (!LIVE.has(alloc.ClientStatus)) return;
    const share = { of: this.takenOf(alloc.NodeID), ...used([alloc]) };
    this.shares.set(alloc.ID, share);
    add(share.of, 1, share.cpu, share.memory);
  }

  event(event: Seen): void {
    const payload = event.Payload as { Allocation?: Alloc; Node?: NodeStub } | undefined;
    if (payload?.Allocation) this.alloc(payload.Allocation);
    else if (payload?.Node && event.Type === "NodeDeregistration") this.gone(payload.Node.ID);
    else if (payload?.Node) this.node(payload.Node);
  }

  private takenOf(node: string): Taken {
    let taken = this.taken.get(node);
    if (!taken) {
      taken = { allocs: 0, cpu: 0, memory: 0 };
      this.taken.set(node, taken);
    }
    return taken;
  }
}

function add(to: Taken, allocs: number, cpu: number, memory: number): void {
  to.allocs += allocs;
  to.cpu += cpu;
  to.memory += memory;
}

/** Each page of a list, one after the other. The next one is asked for before this one is taken apart. Says whether there is more. */
async function pages<T>(parts: string[], query: Record<string, string | number>, most: number, stop: AbortSignal, each: (rows: T[]) => void): Promise<boolean> {
  const ask = (next: string): Promise<Response> => call(path(parts, { ...query, next_token: next }), { signal: stop });
  let waiting: Promise<Response> | null = ask("");
  let count = 0;
  while (waiting) {
    const response: Response = await waiting;
    const next = response.headers.get("X-Nomad-NextToken");
    count += Number(query.per_page);
    waiting = next && count < most ? ask(next) : null;
    // A page that is given up leaves nobody waiting for the next one.
    waiting?.catch(() => undefined);
    each((await response.json()) as T[]);
    if (next && !waiting) return true;
  }
  return false;
}

async function read(fleet: Fleet, stop: AbortSignal, shown: () => void): Promise<void> {
  const more = await pages<NodeStub>(["nodes"], { resources: "true", per_page: NODES_PAGE }, NODES_MAX, stop, (rows) => {
    for (const node of rows) fleet.node(node);
    shown();
  });
  // Without a filter, which the server would look at every allocation for; the newest first, of which most live.
  const query = { namespace: "*", resources: "true", task_states: "false", reverse: "true", per_page: ALLOCS_PAGE };
  const others = await pages<Alloc>(["allocations"], query, ALLOCS_MAX, stop, (rows) => {
    for (const alloc of rows) fleet.alloc(alloc);
    shown();
  });
  fleet.isCut = more || others;
}

export interface Following {
  fleet: Fleet | null;
  /** While it is read, what is there already is shown. */
  isReading: boolean;
  error: Error | undefined;
  /** Another number when something has changed. */
  version: number;
}

/** The clients of the moment that is shown; those of the present change as the stream says. */
export function useFleet(): Following {
  const following = useSignal<Following>({ fleet: null, isReading: true, error: undefined, version: 0 });
  const last = useRef<{ moment: string | null; secret: string } | null>(null);
  const [moment, secret] = [at.value, token.value];
  const [streams, gaps] = [isTold(["Node", "Allocation"]), missed.value];
  useEffect(() => {
    if (moment) return;
    payloads.value += 1;
    return () => {
      payloads.value -= 1;
    };
  }, [moment === null]);
  useEffect(() => {
    const stop = new AbortController();
    let fleet = new Fleet();
    let isSame = last.current?.moment === moment && last.current.secret === secret;
    last.current = { moment, secret };
    let timer: ReturnType<typeof setTimeout> | undefined;
    let showing: ReturnType<typeof setTimeout> | undefined;
    let isDone = false;
    // What happens while pages are read comes after them.
    const early: Seen[] = [];
    const show = (change: Partial<Following> = {}): void => {
      clearTimeout(showing);
      showing = undefined;
      const before = following.peek();
      following.value = { ...before, ...change, version: before.version + 1 };
    };
    const soon = (): void => {
      showing ??= setTimeout(show, SHOW_MS);
    };
    const begin = async (): Promise<void> => {
      const began = performance.now();
      // Anew, so that what is gone leaves.
      fleet = new Fleet();
      isDone = false;
      try {
        await read(fleet, stop.signal, () => {
          // What is shown already stays until all of it can be shown anew.
          if (following.peek().fleet !== fleet && !isSame) show({ fleet, isReading: true, error: undefined });
          else soon();
        });
        for (const event of early.splice(0)) fleet.event(event);
        isDone = true;
        isSame = true;
        show({ fleet, isReading: false, error: undefined });
      } catch (error) {
        if (stop.signal.aborted) return;
        show({ isReading: false, error: error as Error, ...(isSame ? {} : { fleet: null }) });
      }
      const rest = Math.max(REST_MS, REST_FACTOR * (performance.now() - began));
      if (!moment && !(streams && isDone) && !stop.signal.aborted) timer = setTimeout(begin, rest);
    };
    // While a moment is dragged along, only where it rests is read.
    timer = setTimeout(begin, moment ? 80 : 0);
    const unsubscribe = onEvent((event) => {
      if (moment || (event.Topic !== "Node" && event.Topic !== "Allocation")) return;
      if (!isDone) {
        early.push(event);
        if (early.length > EARLY_MAX) missed.value += 1;
        return;
      }
      fleet.event(event);
      soon();
    });
    return () => {
      clearTimeout(timer);
      clearTimeout(showing);
      unsubscribe();
      stop.abort();
    };
  }, [moment, secret, streams, gaps]);
  return following.value;
}
