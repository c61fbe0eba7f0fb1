// Reconnect lanes: a lane for each client, a belt for each allocation, coloured by what its client said of it, over time; behind them
// what was known of the client itself.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Refusal, call, token } from "../api";
import { clock, plural, short, timeOfDay } from "../format";
import { Choice, Missing, Section, Title } from "../parts";
import { address, at, go } from "../place";
import { Messages, type Seen, onEvent, payloads } from "../stream";
import type { Alloc, NodeStub } from "../types";
import { type Colors, Picture, type Pointed, type Seen as Part } from "./canvas";

/** Most belts that are drawn, newest first, and most events that are read for them. */
const BELTS_MAX = 1000;
const EVENTS_MAX = 20_000;
/** Most clients of how things were when the picture begins, and pages of its newest allocations, which are looked through for those that live. */
const NODES_MAX = 2000;
const PAGES_MAX = 5;
/** Where more events than that happened, so much less of the time is shown, and not less than that. */
const LESS = 4;
const LEAST_MS = 15_000;

interface Change {
  time: number;
  status: string;
}

interface Belt {
  id: string;
  name: string;
  node: string;
  previous: string;
  changes: Change[];
}

interface Lane {
  id: string;
  name: string;
  changes: Change[];
  belts: Belt[];
}

class Book {
  readonly lanes = new Map<string, Lane>();
  readonly belts = new Map<string, Belt>();
  private order: Lane[] | null = null;

  /** By name, and so the belts of each. */
  sorted(): Lane[] {
    if (this.order) return this.order;
    const byName = (a: { name: string }, b: { name: string }): number => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1);
    this.order = [...this.lanes.values()].sort(byName);
    for (const lane of this.order) lane.belts.sort((a, b) => byName(a, b) || a.changes[0]!.time - b.changes[0]!.time);
    return this.order;
  }

  lane(id: string, name: string): Lane {
    let lane = this.lanes.get(id);
    if (!lane) {
      lane = { id, name: name || short(id), changes: [], belts: [] };
      this.lanes.set(id, lane);
      this.order = null;
    }
    if (name && name !== lane.name) {
      lane.name = name;
      this.order = null;
    }
    return lane;
  }

  node(node: { ID: string; Name: string; Status: string }, time: number): void {
    push(this.lane(node.ID, node.Name).changes, { time, status: node.Status });
  }

  alloc(alloc: Alloc, time: number): void {
    let belt = this.belts.get(alloc.ID);
    if (!belt) {
      if (this.belts.size >= BELTS_MAX) return;
      belt = { id: alloc.ID, name: alloc.Name, node: alloc.NodeID, previous: alloc.PreviousAllocation ?? "", changes: [] };
      this.belts.set(alloc.ID, belt);
      this.lane(alloc.NodeID, alloc.NodeName).belts.push(belt);
      this.order = null;
    }
    // What is stopped on purpose is told apart from what ended by itself.
    push(belt.changes, { time, status: alloc.ClientStatus });
  }

  /** Where the picture begins: not long before anything is known. */
  begin(from: number, to: number): number {
    const known = [...this.lanes.values(), ...this.belts.values()].map(({ changes }) => changes[0]?.time ?? to);
    const first = known.reduce((least, time) => Math.min(least, time), to);
    return Math.max(from, first - 0.03 * (to - first) - 1000);
  }

  event(event: Seen): void {
    const time = Date.parse(event.Time);
    const payload = event.Payload as { Allocation?: Alloc; Node?: NodeStub } | undefined;
    if (payload?.Allocation) this.alloc(payload.Allocation, time);
    else if (payload?.Node) this.node(payload.Node, time);
  }
}

function push(changes: Change[], change: Change): void {
  if (changes.at(-1)?.status !== change.status) changes.push(change);
}

const SPANS: [string, string][] = [
  ["900", "15 minutes"],
  ["3600", "an hour"],
  ["21600", "6 hours"],
  ["86400", "a day"],
];

interface Page<T> {
  rows: T[];
  next: string | null;
}

async function listed<T>(where: string, then: string, stop: AbortSignal): Promise<Page<T>> {
  try {
    const response = await call(where, { headers: { "X-Sojourn-As-Of": then }, signal: stop, now: true });
    return { rows: (await response.json()) as T[], next: response.headers.get("X-Nomad-NextToken") };
  } catch (error) {
    // The log begins later than the picture.
    if (error instanceof Refusal && (error.status === 410 || error.status === 400)) return { rows: [], next: null };
    throw error;
  }
}

/** How everything was at the beginning. */
async function readBefore(book: Book, from: number, stop: AbortSignal): Promise<void> {
  const then = new Date(from).toISOString();
  for (const node of (await listed<NodeStub>(`/v1/nodes?per_page=${NODES_MAX}`, then, stop)).rows) book.node(node, from);
  let next: string | null = "";
  for (let page = 0; page < PAGES_MAX && next !== null && book.belts.size < BELTS_MAX; page += 1) {
    // Without a filter, which the server would look at every allocation for.
    const where = `/v1/allocations?namespace=*&task_states=false&reverse=true&per_page=${BELTS_MAX}&next_token=${encodeURIComponent(next)}`;
    const read: Page<Alloc> = await listed<Alloc>(where, then, stop);
    for (const alloc of read.rows) if (["running", "pending", "unknown"].includes(alloc.ClientStatus)) book.alloc(alloc, from);
    next = read.next;
  }
}

/** What happened since, one event after the other. Gives false where that is too much to read. */
async function readSince(view: "full" | "key", from: number, to: number | null, stop: AbortSignal, each: (event: Seen) => void): Promise<boolean> {
  const query = new URLSearchParams({ namespace: "*", from: new Date(from).toISOString(), to: to ? new Date(to).toISOString() : "now", on_gap: "skip", view });
  query.append("topic", "Allocation");
  query.append("topic", "Node");
  const response = await call(`/v1/event/stream?${query}`, { headers: { Accept: "text/event-stream" }, signal: stop, now: true });
  let count = 0;
  const messages = new Messages(({ event, data }) => {
    if (event !== "Allocation" && event !== "Node") return;
    count += 1;
    if (view === "full") each(JSON.parse(data) as Seen);
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  while (count < EVENTS_MAX) {
    const { done, value } = await reader.read();
    if (done) return true;
    messages.take(value);
  }
  await reader.cancel();
  return false;
}

interface Found {
  book: Book;
  from: number;
  isCut: boolean;
}

/** As much of the time as can be read, up to its end: what is left out is what was before. */
async function read(from: number, to: number | null, stop: AbortSignal): Promise<Found> {
  const end = to ?? Date.now();
  for (let length = end - from; ; length /= LESS) {
    const begin = end - length;
    // Counted first, without what they hold, which is a twentieth of that.
    const fits = await readSince("key", begin, to, stop, () => undefined);
    if (!fits && length > LEAST_MS) continue;
    const book = new Book();
    await readBefore(book, begin, stop);
    const isWhole = await readSince("full", begin, to, stop, (event) => book.event(event));
    return { book, from: begin, isCut: !isWhole || begin > from || book.belts.size >= BELTS_MAX };
  }
}

export function Lanes(): JSX.Element {
  const [seconds, setSeconds] = useState("3600");
  const [found, setFound] = useState<Found | null>(null);
  const [error, setError] = useState<Error | undefined>();
  const [now, setNow] = useState(Date.now());
  const moment = at.value;
  const fixed = moment && !/^\d+$/.test(moment) ? Date.parse(moment) : null;
  const secret = token.value;
  useEffect(() => {
    const stop = new AbortController();
    const end = fixed ?? Date.now();
    const from = end - Number(seconds) * 1000;
    setError(undefined);
    // What happens while the past is read comes after it.
    const early: Seen[] = [];
    let book: Book | null = null;
    const unsubscribe = onEvent((event) => (book ? book.event(event) : early.push(event)));
    if (!fixed) payloads.value += 1;
    const timer = setTimeout(
      () =>
        read(from, fixed, stop.signal).then(
          (got) => {
            if (!fixed) for (const event of early) got.book.event(event);
            book = fixed ? null : got.book;
            setFound(got);
            setNow(fixed ?? Date.now());
          },
          (wrong: Error) => !stop.signal.aborted && setError(wrong),
        ),
      fixed ? 120 : 0,
    );
    const ticks = fixed ? undefined : setInterval(() => !document.hidden && setNow(Date.now()), 1000);
    return () => {
      clearTimeout(timer);
      clearInterval(ticks);
      unsubscribe();
      if (!fixed) payloads.value -= 1;
      stop.abort();
    };
  }, [seconds, fixed, secret]);
  return (
    <>
      <Title kind="What clients said of allocations, over time">Reconnect lanes</Title>
      <div class="tools">
        <Choice name="Show" value={seconds} set={setSeconds} of={SPANS} />
        <span class="key" aria-hidden="true">
          <span><i class="fill running" />running</span>
          <span><i class="fill starting" />pending, unknown</span>
          <span><i class="fill failed" />failed, lost</span>
          <span><i class="fill complete" />complete</span>
        </span>
      </div>
      {found?.isCut && (
        <p class="note warn">
          There is more in this time than is shown: {plural(BELTS_MAX, "allocation")}, and what happened since {clock(new Date(found.from))}.
        </p>
      )}
      {found ? <Drawn book={found.book} from={found.book.begin(fixed ? found.from : now - Number(seconds) * 1000, now)} to={now} /> : <Missing error={error} what="history" />}
    </>
  );
}

const LEFT = 108;
const TOP = 20;
const HEAD = 6;
const BELT = 11;
const BELTS_GAP = 2;
const LANE_GAP = 8;

interface Placed {
  lanes: { lane: Lane; y: number; height: number }[];
  belts: { belt: Belt; y: number }[];
  /** From what was replaced to what took its place. */
  links: { time: number; above: number; below: number; y: number; from: number }[];
  height: number;
}

function placed(book: Book, from: number): Placed {
  let y = TOP;
  const result: Placed = { lanes: [], belts: [], links: [], height: 0 };
  const rows = new Map<string, number>();
  for (const lane of book.sorted()) {
    const belts = lane.belts.filter((belt) => !hasEnded(belt) || belt.changes.at(-1)!.time > from);
    const height = Math.max(22, 2 * HEAD + belts.length * (BELT + BELTS_GAP) - BELTS_GAP);
    result.lanes.push({ lane, y, height });
    belts.forEach((belt, place) => {
      const row = y + HEAD + place * (BELT + BELTS_GAP);
      result.belts.push({ belt, y: row });
      rows.set(belt.id, row);
    });
    y += height + LANE_GAP;
  }
  for (const { belt, y: row } of result.belts) {
    const original = rows.get(belt.previous);
    const time = belt.changes[0]!.time;
    if (original === undefined || time < from) continue;
    result.links.push({ time, above: Math.min(original, row), below: Math.max(original, row) + BELT, y: row, from: original });
  }
  return { ...result, height: y };
}

function hasEnded(belt: Belt): boolean {
  return ["complete", "failed", "lost"].includes(belt.changes.at(-1)?.status ?? "");
}

function statusAt(changes: Change[], time: number): string {
  return changes.findLast((change) => change.time <= time)?.status ?? "";
}

function Drawn({ book, from, to }: { book: Book; from: number; to: number }): JSX.Element {
  const drawn = useMemo(() => {
    const layout = placed(book, from);
    const laneAt = ({ y }: Pointed): Lane | undefined => layout.lanes.find((one) => y >= one.y && y < one.y + one.height)?.lane;
    const beltAt = ({ y }: Pointed): Belt | undefined => layout.belts.find((one) => y >= one.y && y < one.y + BELT)?.belt;
    const words = layout.lanes
      .slice(0, 20)
      .map(({ lane }) => `${lane.name}: ${lane.changes.at(-1)?.status ?? ""}, ${lane.belts.map((belt) => belt.changes.at(-1)?.status).join(" ")}`);
    return {
      layout,
      name: `Allocations by client over time. ${words.join("; ")}`,
      height: () => layout.height,
      paint: (pen: CanvasRenderingContext2D, part: Part, colors: Colors) => paintLanes(pen, layout, from, to, part, colors),
      point: (place: Pointed, width: number): string => {
        if (place.x < LEFT) return "";
        const time = from + ((place.x - LEFT) / (width - LEFT)) * (to - from);
        const [lane, belt, when] = [laneAt(place), beltAt(place), clock(new Date(time))];
        if (belt) return `${when}: ${belt.name} (${short(belt.id)}) ${statusAt(belt.changes, time) || "not there yet"}; its client ${lane ? statusAt(lane.changes, time) : ""}`;
        return lane ? `${when}: client ${lane.name} ${statusAt(lane.changes, time)}` : when;
      },
      click: (place: Pointed): void => {
        const [lane, belt] = [laneAt(place), beltAt(place)];
        if (belt && place.x > LEFT) go(address("allocations", belt.id, "history"));
        else if (lane) go(address("clients", lane.id));
      },
    };
  }, [book, from, to]);
  const { layout, ...picture } = drawn;
  if (layout.lanes.length === 0) return <p class="empty">No clients and no allocations in this time.</p>;
  return (
    <Section title={`${plural(layout.lanes.length, "client")}, ${plural(layout.belts.length, "allocation")}`}>
      <Picture {...picture} />
    </Section>
  );
}

function colorOf(status: string, colors: Colors): string {
  if (status === "running") return colors.good;
  if (status === "failed" || status === "lost") return colors.bad;
  return status === "complete" ? colors.mark : colors.warn;
}

/** What is seen of it, and the times above, which stay in sight. */
function paintLanes(pen: CanvasRenderingContext2D, layout: Placed, from: number, to: number, part: Part, colors: Colors): void {
  const { width, top, bottom } = part;
  const x = (time: number): number => LEFT + Math.max(0, Math.min(1, (time - from) / (to - from))) * (width - LEFT);
  for (const { lane, y, height } of layout.lanes) {
    if (y + height < top || y > bottom) continue;
    pen.fillStyle = colors.ground;
    pen.fillRect(LEFT, y, width - LEFT, height);
    lane.changes.forEach((change, place) => {
      const end = lane.changes[place + 1]?.time ?? to;
      if (end < from || change.status === "ready") return;
      pen.globalAlpha = 0.22;
      pen.fillStyle = change.status === "down" ? colors.bad : colors.warn;
      pen.fillRect(x(change.time), y, x(end) - x(change.time), height);
      pen.globalAlpha = 1;
    });
    pen.fillStyle = colors.text;
    pen.fillText(lane.name, 0, y + 11, LEFT - 12);
  }
  const times = timesOf(from, to, width);
  pen.fillStyle = colors.line;
  for (const { left } of times) pen.fillRect(Math.round(left), top, 1, bottom - top);
  for (const { belt, y } of layout.belts) if (y + BELT >= top && y <= bottom) paintBelt(pen, belt, y, from, to, x, colors);
  paintLinks(pen, layout, part, x, colors);
  pen.fillStyle = colors.panel;
  pen.fillRect(0, top, width, TOP - 4);
  pen.fillStyle = colors.quiet;
  for (const { left, text } of times) pen.fillText(text, left + 3, top + 8);
}

function timesOf(from: number, to: number, width: number): { left: number; text: string }[] {
  const count = Math.max(2, Math.floor((width - LEFT) / 110));
  return Array.from({ length: count }, (_, place) => ({
    left: LEFT + (place / count) * (width - LEFT),
    text: timeOfDay(new Date(from + (place / count) * (to - from))),
  }));
}

function paintBelt(
  pen: CanvasRenderingContext2D,
  belt: Belt,
  y: number,
  from: number,
  to: number,
  x: (time: number) => number,
  colors: Colors,
): void {
  belt.changes.forEach((change, place) => {
    const isLast = place === belt.changes.length - 1;
    const left = x(change.time);
    if (isLast && hasEnded(belt)) {
      // How it ended, as a mark at its end.
      pen.fillStyle = colorOf(change.status, colors);
      pen.fillRect(left - 1, y - 1, 4, BELT + 2);
      return;
    }
    const end = belt.changes[place + 1]?.time ?? to;
    if (end < from) return;
    pen.fillStyle = colorOf(change.status, colors);
    pen.fillRect(left, y, Math.max(1.5, x(end) - left), BELT);
    if (change.status === "unknown") {
      pen.strokeStyle = colors.text;
      pen.strokeRect(left + 0.5, y + 0.5, Math.max(1, x(end) - left - 1), BELT - 1);
    }
  });
}

function paintLinks(pen: CanvasRenderingContext2D, layout: Placed, { top, bottom }: Part, x: (time: number) => number, colors: Colors): void {
  pen.strokeStyle = colors.text;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const link of layout.links) {
    if (link.below < top || link.above > bottom) continue;
    const left = x(link.time);
    pen.moveTo(left, link.from + BELT / 2);
    pen.bezierCurveTo(left - 14, link.from + BELT / 2, left - 14, link.y + BELT / 2, left, link.y + BELT / 2);
  }
  pen.stroke();
}
