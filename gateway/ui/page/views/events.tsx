// What happens, as it happens.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { timeOfDay } from "../format";
import { Find, Json, Title, copy } from "../parts";
import { at } from "../place";
import { Messages, type Seen, onEvent, payloads } from "../stream";
import { call, streamed, token } from "../api";

/** Most events that are kept. The oldest go first. */
const KEPT = 1000;
/** Most rows that are drawn. */
const ROWS = 300;
/** What is read when the view opens: so many seconds before, and fewer where that is more than so many bytes. */
const BEFORE = [3600, 600, 60, 5];
const BEFORE_BYTES = 8 * 1024 * 1024;
/** The same for a moment that is an index. */
const BEFORE_INDEXES = 500;

/** What happened before, so that the view does not open empty. */
async function readBefore(until: string | null, stop: AbortSignal): Promise<Seen[]> {
  if (until && /^\d+$/.test(until)) {
    const { found } = await readSpan(String(Math.max(1, Number(until) - BEFORE_INDEXES)), until, stop);
    return found;
  }
  let found: Seen[] = [];
  for (const seconds of BEFORE) {
    const end = until ? Date.parse(until) : Date.now();
    const read = await readSpan(new Date(end - seconds * 1000).toISOString(), until ?? "now", stop);
    ({ found } = read);
    if (!read.isCut) break;
  }
  return found;
}

async function readSpan(from: string, to: string, stop: AbortSignal): Promise<{ found: Seen[]; isCut: boolean }> {
  const query = new URLSearchParams({ namespace: "*", from, to, on_gap: "skip" });
  for (const topic of streamed.peek() ?? []) query.append("topic", topic);
  const response = await call(`/v1/event/stream?${query}`, { headers: { Accept: "text/event-stream" }, signal: stop, now: true, quiet: true });
  const found: Seen[] = [];
  const messages = new Messages(({ event, data }) => {
    if (!data || ["checkpoint", "gap", "end"].includes(event)) return;
    found.push(JSON.parse(data) as Seen);
    if (found.length > 2 * KEPT) found.splice(0, KEPT);
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let size = 0; size < BEFORE_BYTES; ) {
    const { done, value } = await reader.read();
    if (done) return { found: found.slice(-KEPT), isCut: false };
    size += value.length;
    messages.take(value);
  }
  await reader.cancel();
  return { found: found.slice(-KEPT), isCut: true };
}

export function Events(): JSX.Element {
  const [events, setEvents] = useState<Seen[]>([]);
  const [topics, setTopics] = useState<Set<string>>(new Set());
  const [text, setText] = useState("");
  const [isPaused, setPaused] = useState(false);
  const [wrong, setWrong] = useState("");
  const waiting = useRef<Seen[]>([]);
  const moment = at.value;
  useEffect(() => {
    const stop = new AbortController();
    setEvents([]);
    setWrong("");
    readBefore(moment, stop.signal).then(
      (found) => setEvents((newer) => merged(found, newer)),
      (error: Error) => !stop.signal.aborted && setWrong(error.message),
    );
    return () => stop.abort();
    // What this token may read is known once the stream is there.
  }, [moment, token.value, streamed.value]);
  useEffect(() => {
    if (moment) return;
    payloads.value += 1;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onEvent((event) => {
      waiting.current.push(event);
      if (waiting.current.length > KEPT) waiting.current.shift();
      if (isPaused) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        const newer = waiting.current.splice(0);
        setEvents((older) => merged(older, newer));
      }, 120);
    });
    if (!isPaused && waiting.current.length) {
      const newer = waiting.current.splice(0);
      setEvents((older) => merged(older, newer));
    }
    return () => {
      clearTimeout(timer);
      payloads.value -= 1;
      stop();
    };
  }, [moment, isPaused]);
  const counts = new Map<string, number>();
  for (const event of events) counts.set(event.Topic, (counts.get(event.Topic) ?? 0) + 1);
  const lower = text.toLowerCase();
  const shown = events.filter(
    (event) =>
      (topics.size === 0 || topics.has(event.Topic)) &&
      (!lower || `${event.Topic} ${event.Type} ${event.Key} ${event.Namespace} ${event.Actor}`.toLowerCase().includes(lower)),
  );
  const rows = shown.slice(-ROWS).reverse();
  const toggle = (topic: string): void => {
    const next = new Set(topics);
    if (!next.delete(topic)) next.add(topic);
    setTopics(next);
  };
  return (
    <>
      <Title
        kind={moment ? "The hour before the moment that is shown" : "The last hour, and what happens now"}
        aside={
          <>
            <button type="button" disabled={moment !== null} aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
              {isPaused ? "Go on" : "Pause"}
            </button>
            <button type="button" onClick={() => void copy(curl([...topics]))}>
              Copy as curl
            </button>
          </>
        }
      >
        Events
      </Title>
      <div class="tools">
        <Find value={text} set={setText} what="events" />
        <div class="chips" role="group" aria-label="Topics">
          {[...counts].sort().map(([topic, count]) => (
            <button type="button" aria-pressed={topics.has(topic)} onClick={() => toggle(topic)}>
              {topic} {count}
            </button>
          ))}
        </div>
      </div>
      {wrong && (
        <p class="note bad" role="alert">
          {wrong}
        </p>
      )}
      <section>
        {rows.map((event) => (
          <Row key={event.ID} of={event} />
        ))}
        {rows.length === 0 && <p class="empty">No event is like that.</p>}
      </section>
      <p class="quiet">
        {shown.length > ROWS ? `The newest ${ROWS} of ${shown.length} are shown. ` : ""}The newest {KEPT} are kept.
      </p>
    </>
  );
}

function merged(older: Seen[], newer: Seen[]): Seen[] {
  const known = new Set(older.map((event) => event.ID));
  return [...older, ...newer.filter((event) => !known.has(event.ID))].slice(-KEPT);
}

/** The same stream for a terminal. The token is named and not written. */
function curl(topics: string[]): string {
  const query = new URLSearchParams({ namespace: "*", from: "-1h" });
  for (const topic of topics) query.append("topic", topic);
  return `curl -N -H "X-Nomad-Token: $NOMAD_TOKEN" -H 'Accept: text/event-stream' '${location.origin}/v1/event/stream?${query}'`;
}

function Row({ of }: { of: Seen }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="event" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <time dateTime={of.Time}>{timeOfDay(new Date(of.Time))}</time>
        <span class="minor quiet">{of.Topic}</span>
        <span>{of.Type}</span>
        <span class="mono">{of.Key}</span>
        <span class="minor quiet">{of.Actor}</span>
      </summary>
      {isOpen && (
        <>
          <p class="actions">
            <button type="button" onClick={() => void copy(JSON.stringify(of, null, 2))}>
              Copy the JSON
            </button>
            <button
              type="button"
              onClick={() => void copy(`curl -H "X-Nomad-Token: $NOMAD_TOKEN" '${location.origin}/v1/event/stream?namespace=*&from=${of.Index}&to=${of.Index}'`)}
            >
              Copy as curl
            </button>
          </p>
          <Json name={`Event ${of.ID}`} value={of} />
        </>
      )}
    </details>
  );
}
