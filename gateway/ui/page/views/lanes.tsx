// Reconnect lanes: a lane for each client, a belt for each allocation, coloured by what its client said of it, over time; behind them
// what was known of the client itself.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Refusal, call, get, token } from "../api";
import { clock, plural, short, timeOfDay } from "../format";
import { Choice, Missing, Section, Title } from "../parts";
import { address, at, go } from "../place";
import { Messages, type Seen, onEvent, payloads } from "../stream";
import type { Alloc, NodeStub } from "../types";
import { type Colors, Picture, type Pointed } from "./canvas";

/** Most belts that are drawn, newest first, and most events that are read for them. */
const BELTS_MAX = 1000;
const EVENTS_MAX = 20_000;
/** Most of each list of how things were when the picture begins. */
const LIST_MAX = 2000;

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

  lane(id: string, name: string): Lane {
    let lane = this.lanes.get(id);
    if (!lane) {
      lane = { id, name: name || short(id), changes: [], belts: [] };
      this.lanes.set(id, lane);
    }
    if (name) lane.name = name;
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

async function listed<T>(where: string, then: string, stop: AbortSignal): Promise<T[]> {
  try {
    return await get<T[]>(where, { headers: { "X-Sojourn-As-Of": then }, signal: stop, now: true });
  } catch (error) {
    // The log begins later than the picture.
    if (error instanceof Refusal && (error.status === 410 || error.status === 400)) return [];
    throw error;
  }
}

/** How everything was at the beginning, and what happened since. */
async function read(from: number, to: number | null, stop: AbortSignal): Promise<{ book: Book; isCut: boolean }> {
  const book = new Book();
  const then = new Date(from).toISOString();
  for (const node of await listed<NodeStub>(`/v1/nodes?per_page=${LIST_MAX}`, then, stop)) book.node(node, from);
  const live = encodeURIComponent(`ClientStatus == "running" or ClientStatus == "pending" or ClientStatus == "unknown"`);
  const where = `/v1/allocations?namespace=*&task_states=false&reverse=true&per_page=${BELTS_MAX}&filter=${live}`;
  for (const alloc of await listed<Alloc>(where, then, stop)) book.alloc(alloc, from);
  const query = new URLSearchParams({ namespace: "*", from: then, to: to ? new Date(to).toISOString() : "now", on_gap: "skip" });
  query.append("topic", "Allocation");
  query.append("topic", "Node");
  const response = await call(`/v1/event/stream?${query}`, { headers: { Accept: "text/event-stream" }, signal: stop, now: true });
  let count = 0;
  const messages = new Messages(({ event, data }) => {
    if (event !== "Allocation" && event !== "Node") return;
    count += 1;
    book.event(JSON.parse(data) as Seen);
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  while (count < EVENTS_MAX) {
    const { done, value } = await reader.read();
    if (done) return { book, isCut: book.belts.size >= BELTS_MAX };
    messages.take(value);
  }
  await reader.cancel();
  return { book, isCut: true };
}

export function Lanes(): JSX.Element {
  const [seconds, setSeconds] = useState("3600");
  const [found, setFound] = useState<{ book: Book; isCut: boolean; from: number } | null>(null);
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
            setFound({ ...got, from });
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
      {found?.isCut && <p class="note warn">There is more than the newest {BELTS_MAX} allocations and {EVENTS_MAX} events of this time, which are shown.</p>}
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
  height: number;
}

function placed(book: Book, from: number): Placed {
  let y = TOP;
  const result: Placed = { lanes: [], belts: [], height: 0 };
  const lanes = [...book.lanes.values()].sort((a, b) => a.name.localeCompare(b.name));
  for (const lane of lanes) {
    const belts = lane.belts.filter((belt) => !hasEnded(belt) || belt.changes.at(-1)!.time > from);
    belts.sort((a, b) => a.name.localeCompare(b.name) || a.changes[0]!.time - b.changes[0]!.time);
    const height = Math.max(22, 2 * HEAD + belts.length * (BELT + BELTS_GAP) - BELTS_GAP);
    result.lanes.push({ lane, y, height });
    belts.forEach((belt, place) => result.belts.push({ belt, y: y + HEAD + place * (BELT + BELTS_GAP) }));
    y += height + LANE_GAP;
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
  const layout = useMemo(() => placed(book, from), [book, from, to]);
  const at = ({ y }: Pointed): Belt | undefined => layout.belts.find((one) => y >= one.y && y < one.y + BELT)?.belt;
  const timeAt = (x: number, width: number): number => from + ((x - LEFT) / (width - LEFT)) * (to - from);
  const point = (place: Pointed, width: number): string => {
    if (place.x < LEFT) return "";
    const time = timeAt(place.x, width);
    const lane = layout.lanes.find((one) => place.y >= one.y && place.y < one.y + one.height)?.lane;
    const belt = at(place);
    const when = clock(new Date(time));
    if (belt) return `${when}: ${belt.name} (${short(belt.id)}) ${statusAt(belt.changes, time) || "not there yet"}; its client ${lane ? statusAt(lane.changes, time) : ""}`;
    return lane ? `${when}: client ${lane.name} ${statusAt(lane.changes, time)}` : when;
  };
  const click = (place: Pointed): void => {
    const belt = at(place);
    const lane = layout.lanes.find((one) => place.y >= one.y && place.y < one.y + one.height)?.lane;
    if (belt && place.x > LEFT) go(address("allocations", belt.id, "history"));
    else if (lane) go(address("clients", lane.id));
  };
  if (layout.lanes.length === 0) return <p class="empty">No clients and no allocations in this time.</p>;
  const words = layout.lanes
    .slice(0, 20)
    .map(({ lane }) => `${lane.name}: ${lane.changes.at(-1)?.status ?? ""}, ${lane.belts.map((belt) => belt.changes.at(-1)?.status).join(" ")}`);
  return (
    <Section title={`${plural(layout.lanes.length, "client")}, ${plural(layout.belts.length, "allocation")}`}>
      <Picture
        name={`Allocations by client over time. ${words.join("; ")}`}
        height={() => layout.height}
        paint={(pen, width, _, colors) => paintLanes(pen, layout, from, to, width, colors)}
        point={point}
        click={click}
      />
    </Section>
  );
}

function colorOf(status: string, colors: Colors): string {
  if (status === "running") return colors.good;
  if (status === "failed" || status === "lost") return colors.bad;
  return status === "complete" ? colors.mark : colors.warn;
}

function paintLanes(pen: CanvasRenderingContext2D, layout: Placed, from: number, to: number, width: number, colors: Colors): void {
  const x = (time: number): number => LEFT + Math.max(0, Math.min(1, (time - from) / (to - from))) * (width - LEFT);
  for (const { lane, y, height } of layout.lanes) {
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
  paintTimes(pen, layout.height, from, to, width, colors);
  for (const { belt, y } of layout.belts) paintBelt(pen, belt, y, from, to, x, colors);
  paintLinks(pen, layout, from, x, colors);
}

function paintTimes(pen: CanvasRenderingContext2D, height: number, from: number, to: number, width: number, colors: Colors): void {
  const count = Math.max(2, Math.floor((width - LEFT) / 110));
  for (let place = 0; place < count; place += 1) {
    const left = LEFT + (place / count) * (width - LEFT);
    pen.fillStyle = colors.line;
    pen.fillRect(Math.round(left), TOP - 4, 1, height);
    pen.fillStyle = colors.quiet;
    pen.fillText(timeOfDay(new Date(from + (place / count) * (to - from))), left + 3, 8);
  }
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

/** From what was replaced to what took its place. */
function paintLinks(pen: CanvasRenderingContext2D, layout: Placed, from: number, x: (time: number) => number, colors: Colors): void {
  const at = new Map(layout.belts.map((one) => [one.belt.id, one]));
  pen.strokeStyle = colors.text;
  pen.lineWidth = 1;
  for (const { belt, y } of layout.belts) {
    const original = at.get(belt.previous);
    const start = belt.changes[0]!.time;
    if (!original || start < from) continue;
    const left = x(start);
    pen.beginPath();
    pen.moveTo(left, original.y + BELT / 2);
    pen.bezierCurveTo(left - 14, original.y + BELT / 2, left - 14, y + BELT / 2, left, y + BELT / 2);
    pen.stroke();
  }
}
