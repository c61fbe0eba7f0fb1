// All clients at once, by how much of each is given away.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { mib, plural } from "../format";
import { Choice, Missing, Section, Title } from "../parts";
import { address, go } from "../place";
import { type Colors, Picture, type Pointed, type Seen } from "./canvas";
import { type Client, useFleet } from "./fleet";

interface Size {
  width: number;
  height: number;
  gap: number;
}

/** From where all are seen to where all of one can be read. */
const SIZES: Size[] = [
  { width: 4, height: 4, gap: 1 },
  { width: 8, height: 8, gap: 1 },
  { width: 14, height: 14, gap: 2 },
  { width: 28, height: 20, gap: 3 },
  { width: 64, height: 34, gap: 4 },
  { width: 168, height: 64, gap: 8 },
];
const NAMES = ["dots", "tiny", "small", "middling", "with names", "with all"];

/** How large a box is, so that many still fit. */
function sizeFor(count: number): number {
  if (count <= 60) return 5;
  return count <= 600 ? 4 : 2;
}

const perRow = (size: Size, width: number): number => Math.max(1, Math.floor((width + size.gap) / (size.width + size.gap)));

type By = "memory" | "cpu";

function part(of: Client, by: By): number {
  return of[by] ? Math.min(1, of.taken[by] / of[by]) : 0;
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

function words(of: Client): string {
  const { allocs, memory, cpu } = of.taken;
  return `${of.name} in ${of.pool}: ${of.state}, ${plural(allocs, "allocation")}, memory ${mib(memory)} (${percent(part(of, "memory"))}), CPU ${cpu} MHz (${percent(part(of, "cpu"))})`;
}

export function Topology(): JSX.Element {
  const [by, setBy] = useState<By>("memory");
  const [chosen, setChosen] = useState<number | null>(null);
  const { fleet, isReading, error, version } = useFleet();
  const all = fleet?.sorted() ?? [];
  const step = chosen ?? sizeFor(all.length);
  const drawn = useMemo(() => {
    const size = SIZES[step]!;
    const found = ({ x, y }: Pointed, width: number, of = size): number => {
      const column = Math.min(perRow(of, width) - 1, Math.floor(x / (of.width + of.gap)));
      return Math.floor(y / (of.height + of.gap)) * perRow(of, width) + column;
    };
    return {
      name: `Clients by ${by}: ${all.slice(0, 20).map(words).join("; ")}`,
      height: (width: number) => Math.max(40, Math.ceil(all.length / perRow(size, width)) * (size.height + size.gap)),
      paint: (pen: CanvasRenderingContext2D, seen: Seen, colors: Colors) => paintBoxes(pen, all, by, size, seen, colors),
      point: (place: Pointed, width: number) => {
        const client = all[found(place, width)];
        return client ? words(client) : "";
      },
      click: (place: Pointed, width: number) => {
        const client = all[found(place, width)];
        if (client) go(address("clients", client.id));
      },
      zoom: (by: 1 | -1, place: Pointed, width: number) => {
        const next = SIZES[step + by];
        if (!next) return null;
        setChosen(step + by);
        return (Math.floor(found(place, width) / perRow(next, width)) + 0.5) * (next.height + next.gap);
      },
    };
  }, [all, by, step, version]);
  if (!fleet) return <Missing error={error} what="clients" />;
  return (
    <>
      <Title kind={`${plural(all.length, "client")}, ${plural(fleet.live, "live allocation")}`}>Topology</Title>
      <div class="tools">
        <Choice name="Colour by" value={by} set={(value) => setBy(value as By)} of={[["memory", "memory given away"], ["cpu", "CPU given away"]]} />
        <Choice name="Size" value={String(step)} set={(value) => setChosen(Number(value))} of={NAMES.map((name, place) => [String(place), name])} />
        <span class="key" aria-hidden="true">
          <span><i class="fill running" />below 70 %</span>
          <span><i class="fill starting" />below 90 %</span>
          <span><i class="fill failed" />more, or not ready</span>
        </span>
        <span class="quiet" role="status">
          {isReading && "Not all allocations are read yet."}
        </span>
      </div>
      {error && <Missing error={error} what="newer state" />}
      {fleet.isCut && <p class="note warn">There are more than are shown.</p>}
      <Section title="Clients">
        <Picture {...drawn} />
      </Section>
    </>
  );
}

/** The clients that are seen, by colour: to change that costs more than a box. */
function paintBoxes(pen: CanvasRenderingContext2D, all: Client[], by: By, size: Size, seen: Seen, colors: Colors): void {
  const columns = perRow(size, seen.width);
  const tall = size.height + size.gap;
  const first = Math.max(0, Math.floor(seen.top / tall)) * columns;
  const end = Math.min(all.length, Math.ceil(seen.bottom / tall) * columns);
  const x = (place: number): number => (place % columns) * (size.width + size.gap);
  const y = (place: number): number => Math.floor(place / columns) * tall;
  const edge = size.height > 8 ? 1 : 0;
  if (edge) {
    for (const isEligible of [true, false]) {
      pen.fillStyle = isEligible ? colors.line : colors.warn;
      for (let place = first; place < end; place += 1) {
        if (all[place]!.isEligible === isEligible) pen.fillRect(x(place), y(place), size.width, size.height);
      }
    }
  }
  pen.fillStyle = colors.raised;
  for (let place = first; place < end; place += 1) pen.fillRect(x(place) + edge, y(place) + edge, size.width - 2 * edge, size.height - 2 * edge);
  const kinds: Record<"good" | "warn" | "bad", number[]> = { good: [], warn: [], bad: [] };
  for (let place = first; place < end; place += 1) {
    const level = part(all[place]!, by);
    kinds[!all[place]!.isReady || level >= 0.9 ? "bad" : level >= 0.7 ? "warn" : "good"].push(place);
  }
  for (const kind of ["good", "warn", "bad"] as const) {
    pen.fillStyle = colors[kind];
    for (const place of kinds[kind]) paintLevel(pen, x(place), y(place), size, all[place]!.isReady ? part(all[place]!, by) : 1);
  }
  if (size.height >= 30) paintNames(pen, all, first, end, size, x, y, colors);
}

/** A bar below the name where there is room for one, and how full the box is where not. */
function paintLevel(pen: CanvasRenderingContext2D, x: number, y: number, size: Size, level: number): void {
  if (size.height >= 30) pen.fillRect(x, y + size.height - 5, size.width * level, 5);
  else {
    const tall = Math.max(2, size.height * level);
    pen.fillRect(x, y + size.height - tall, size.width, tall);
  }
}

function paintNames(
  pen: CanvasRenderingContext2D,
  all: Client[],
  first: number,
  end: number,
  size: Size,
  x: (place: number) => number,
  y: (place: number) => number,
  colors: Colors,
): void {
  pen.fillStyle = colors.text;
  for (let place = first; place < end; place += 1) pen.fillText(all[place]!.name, x(place) + 6, y(place) + 13, size.width - 12);
  if (size.height < 60) return;
  pen.fillStyle = colors.quiet;
  for (let place = first; place < end; place += 1) {
    const client = all[place]!;
    pen.fillText(`${client.state} · ${client.taken.allocs} allocs`, x(place) + 6, y(place) + 30, size.width - 12);
    pen.fillText(`mem ${percent(part(client, "memory"))} · cpu ${percent(part(client, "cpu"))}`, x(place) + 6, y(place) + 47, size.width - 12);
  }
}
