// The time line across the top: what happened when, and the moment that every view shows.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refusal, call, token } from "./api";
import { clock, instant, timeOfDay } from "./format";
import { at, change } from "./place";
import { onEvent } from "./stream";
import type { Transition } from "./types";
import { onLook, pageColors } from "./views/canvas";

const RANGES: [string, number][] = [
  ["15 min", 15 * 60],
  ["1 h", 3600],
  ["6 h", 6 * 3600],
  ["1 d", 86400],
  ["7 d", 7 * 86400],
];

/** The log is asked for in so many parts of the time line, and for so many facts of each: more would not be seen. */
const PARTS = 6;
const PART_FACTS = 500;
/** Marks from the stream besides. The oldest go first. */
const LIVE_MAX = 5000;
/** How often the line moves on. */
const STEP_MS = 2000;

type Kind = "event" | "deployment" | "failure";
interface Mark {
  time: number;
  kind: Kind;
}

const range = signal(Number(localStorage.getItem("sojourn.range")) || 3600);

function kindOf(type: string, text: string): Kind {
  if (/fail|lost|down|disconnect|unknown/i.test(`${type} ${text}`)) return "failure";
  return type.startsWith("Deployment") ? "deployment" : "event";
}

interface Facts {
  Lines: Transition[] | null;
}

/** Facts of the log as marks, `null` where the caller may not read it. */
async function readMarks(from: number, to: number, stop: AbortSignal): Promise<Mark[] | null> {
  const marks: Mark[] = [];
  const step = (to - from) / PARTS;
  for (let part = 0; part < PARTS; part += 1) {
    const [start, end] = [from + part * step, from + (part + 1) * step];
    const since = new Date(start).toISOString();
    try {
      const where = `/v1/history?since=${encodeURIComponent(since)}&per_page=${PART_FACTS}`;
      const facts = (await (await call(where, { signal: stop, now: true, quiet: true })).json()) as Facts;
      for (const line of facts.Lines ?? []) {
        const time = Date.parse(line.Time);
        if (time < end) marks.push({ time, kind: kindOf(line.Event ?? "", line.Description) });
      }
    } catch (error) {
      if (error instanceof Refusal && error.status === 403) return null;
      // A part that the log does not have any more has no marks.
      if (!(error instanceof Refusal)) throw error;
    }
  }
  return marks;
}

/** The moment as a time, where the address has one. */
function timeOf(moment: string): number | null {
  return /^\d+$/.test(moment) ? null : (instant(moment)?.getTime() ?? null);
}

export function Scrubber(): JSX.Element {
  const [now, setNow] = useState(Date.now());
  const [marks, setMarks] = useState<Mark[] | null>([]);
  const live = useRef<Mark[]>([]);
  const seconds = range.value;
  const moment = at.value;
  const [from, to] = [now - seconds * 1000, now];
  useEffect(() => {
    // A dragged moment stays where it is while time goes on.
    const timer = setInterval(() => !document.hidden && !at.value && setNow(Date.now()), STEP_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    const stop = new AbortController();
    const end = Date.now();
    live.current = [];
    readMarks(end - seconds * 1000, end, stop.signal).then(setMarks, () => undefined);
    return () => stop.abort();
  }, [seconds, token.value]);
  useEffect(
    () =>
      onEvent((event) => {
        live.current.push({ time: Date.parse(event.Time), kind: kindOf(event.Type, "") });
        if (live.current.length > LIVE_MAX) live.current.splice(0, live.current.length - LIVE_MAX);
      }),
    [],
  );
  const shown = moment ? timeOf(moment) : to;
  return (
    <div class="scrubber" role="group" aria-label="Time line">
      <label class="choice">
        <span class="hidden">Length of the time line</span>
        <select
          value={seconds}
          onChange={(event) => {
            range.value = Number(event.currentTarget.value);
            localStorage.setItem("sojourn.range", String(range.value));
          }}
        >
          {RANGES.map(([name, value]) => (
            <option value={value}>{name}</option>
          ))}
        </select>
      </label>
      <div class="rail">
        <Density marks={[...(marks ?? []), ...live.current]} from={from} to={to} />
        <input
          type="range"
          aria-label="The moment that is shown"
          aria-valuetext={moment ? words(moment) : "now"}
          min={from}
          max={to}
          step={seconds}
          value={shown ?? to}
          onInput={(event) => {
            const time = Number(event.currentTarget.value);
            // Its end is the present.
            const isEnd = time > to - seconds * 5;
            change({ at: isEnd ? "" : new Date(time).toISOString() }, false);
          }}
        />
        <span class="ends" aria-hidden="true">
          <span>{seconds > 43200 ? clock(new Date(from)) : timeOfDay(new Date(from))}</span>
          {marks === null && <span>marks need a management token</span>}
          <span>{timeOfDay(new Date(to))}</span>
        </span>
      </div>
      <button type="button" class={moment ? "strong" : "live"} aria-pressed={!moment} onClick={() => change({ at: "" })}>
        Live
      </button>
    </div>
  );
}

export function words(moment: string): string {
  if (/^\d+$/.test(moment)) return `index ${moment}`;
  const date = instant(moment);
  return date ? clock(date) : moment;
}

function Density({ marks, from, to }: { marks: Mark[]; from: number; to: number }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const draw = (): void => paint(canvas.current, marks, from, to);
    draw();
    return onLook(draw);
  });
  return <canvas ref={canvas} aria-hidden="true" />;
}

const BIN = 5;

function paint(canvas: HTMLCanvasElement | null, marks: Mark[], from: number, to: number): void {
  const pen = canvas?.getContext("2d");
  if (!canvas || !pen) return;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const scale = devicePixelRatio;
  canvas.width = width * scale;
  canvas.height = height * scale;
  pen.scale(scale, scale);
  const { mark, accent, bad } = pageColors();
  const colors: Record<Kind, string> = { event: mark, deployment: accent, failure: bad };
  const bins = Array.from({ length: Math.ceil(width / BIN) }, () => ({ event: 0, deployment: 0, failure: 0 }));
  for (const mark of marks) {
    const bin = bins[Math.floor((((mark.time - from) / (to - from)) * width) / BIN)];
    if (bin) bin[mark.kind] += 1;
  }
  // Few and many are told apart, and one can still be seen.
  const tall = (count: number): number => (count ? Math.min(height - 2, 3 + 4 * Math.log2(1 + count)) : 0);
  bins.forEach((bin, place) => {
    const whole = bin.event + bin.deployment + bin.failure;
    let rest = tall(whole);
    // What went wrong is seen, however little of the whole it is.
    for (const kind of ["failure", "deployment"] as const) {
      const part = bin[kind] && Math.min(rest, Math.max(4, (tall(whole) * bin[kind]) / whole));
      pen.fillStyle = colors[kind];
      pen.fillRect(place * BIN, height - rest, BIN - 1, part);
      rest -= part;
    }
    pen.fillStyle = colors.event;
    pen.fillRect(place * BIN, height - rest, BIN - 1, rest);
  });
}
