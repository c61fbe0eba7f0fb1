// What views are made of.

import { signal } from "@preact/signals";
import type { ComponentChildren, ComponentProps, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refusal } from "./api";
import { clock, instant, span } from "./format";
import { at, go } from "./place";

type Children = { children?: ComponentChildren };

/** A way to another view, within the page where the browser is asked for nothing else. */
export function Link({ to, children, ...rest }: { to: string } & Omit<ComponentProps<"a">, "role" | "href">): JSX.Element {
  const follow = (event: MouseEvent): void => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={to} onClick={follow} {...rest}>
      {children}
    </a>
  );
}

const GOOD = ["running", "ready", "successful", "alive", "eligible", "passing", "healthy", "complete", "leader"];
const BAD = ["failed", "lost", "down", "cancelled", "canceled", "left", "evict", "unhealthy", "parked", "gap"];
const WARN = ["pending", "blocked", "unknown", "disconnected", "initializing", "ineligible", "paused", "draining", "starting"];

/** The word a status is, with a mark of its kind besides the colour. */
export function Status({ of, title }: { of: string; title?: string }): JSX.Element {
  const kind = GOOD.includes(of) ? "good" : BAD.includes(of) ? "bad" : WARN.includes(of) ? "warn" : "idle";
  return (
    <span class={`status ${kind}`} title={title}>
      {of || "none"}
    </span>
  );
}

/** How long ago, with the time itself when pointed at. */
export function Ago({ time }: { time: number | string | null | undefined }): JSX.Element {
  const date = instant(time);
  if (!date) return <span class="quiet">never</span>;
  return (
    <time dateTime={date.toISOString()} title={clock(date)}>
      {at.value ? clock(date) : `${span(Date.now() - date.getTime())} ago`}
    </time>
  );
}

const ORDER = [
  ["Running", "running"],
  ["Starting", "starting"],
  ["Queued", "queued"],
  ["Unknown", "unknown"],
  ["Failed", "failed"],
  ["Lost", "lost"],
  ["Complete", "complete"],
] as const;

type Total = Partial<Record<(typeof ORDER)[number][0], number>>;

/** Allocations by status: a bar and the same in words. */
export function Bar({ counts }: { counts: Total }): JSX.Element {
  const there = ORDER.filter(([name]) => counts[name]);
  const sum = there.reduce((total, [name]) => total + (counts[name] ?? 0), 0);
  const words = there.map(([name, word]) => `${counts[name]} ${word}`).join(", ");
  return (
    <span class="bar">
      <span class="track" aria-hidden="true">
        {there.map(([name, word]) => (
          <i class={`fill ${word}`} style={{ width: `${(100 * (counts[name] ?? 0)) / sum}%` }} />
        ))}
      </span>
      <span class="words">{words || "none"}</span>
    </span>
  );
}

export function Meter({ used, of, text }: { used: number; of: number; text: string }): JSX.Element {
  const part = of > 0 ? Math.min(1, used / of) : 0;
  return (
    <span class="bar">
      <span class="track" aria-hidden="true">
        <i class={`fill ${part > 0.9 ? "failed" : part > 0.7 ? "starting" : "running"}`} style={{ width: `${100 * part}%` }} />
      </span>
      <span class="words">{text}</span>
    </span>
  );
}

export interface Column<R> {
  name: string;
  /** Left out on narrow screens. */
  isMinor?: boolean;
  isNumber?: boolean;
  cell: (row: R) => ComponentChildren;
}

/** Rows that are drawn together, when they are in sight or nearly. */
const CHUNK = 50;
/** How far above and below of what is seen rows are drawn, and how tall a row is taken for that was never drawn. */
const NEAR_PX = 600;
const ROW_PX = 28;

export function Table<R>({
  rows,
  columns,
  name,
  of,
  empty,
}: {
  rows: R[];
  columns: Column<R>[];
  /** What the table is called. */
  name: string;
  /** What a row is known by. */
  of: (row: R) => string;
  empty?: ComponentChildren;
}): JSX.Element {
  if (rows.length === 0) return <p class="empty">{empty ?? `No ${name.toLowerCase()}.`}</p>;
  const chunks = Array.from({ length: Math.ceil(rows.length / CHUNK) }, (_, place) => rows.slice(place * CHUNK, (place + 1) * CHUNK));
  return (
    <div class="wide" tabIndex={0} role="region" aria-label={name}>
      <table aria-rowcount={rows.length > CHUNK ? rows.length + 1 : undefined}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th scope="col" class={kind(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        {chunks.map((chunk, place) => (
          <Chunk key={place} rows={chunk} columns={columns} of={of} first={chunks.length > 1 ? place * CHUNK + 2 : undefined} />
        ))}
      </table>
    </div>
  );
}

function kind<R>(column: Column<R>): string {
  return `${column.isMinor ? "minor" : ""} ${column.isNumber ? "number" : ""}`.trim();
}

/** A part of a table. Where it is out of sight one empty row is as tall as its rows. */
function Chunk<R>({ rows, columns, of, first }: { rows: R[]; columns: Column<R>[]; of: (row: R) => string; first: number | undefined }): JSX.Element {
  const body = useRef<HTMLTableSectionElement>(null);
  const tall = useRef(0);
  const isAlone = first === undefined;
  const [isNear, setNear] = useState(isAlone || first === 2);
  useEffect(() => {
    if (isAlone) return;
    const sight = new IntersectionObserver(
      (seen) => {
        const isSeen = seen.at(-1)!.isIntersecting;
        // What somebody is at with the keyboard stays.
        if (!isSeen && body.current?.contains(document.activeElement)) return;
        if (!isSeen) tall.current = body.current?.offsetHeight ?? 0;
        setNear(isSeen);
      },
      { rootMargin: `${NEAR_PX}px` },
    );
    sight.observe(body.current!);
    return () => sight.disconnect();
  }, [isAlone]);
  if (!isNear && !isAlone) {
    return (
      <tbody ref={body} aria-hidden="true">
        <tr>
          <td colSpan={columns.length} style={{ height: `${tall.current || rows.length * ROW_PX}px` }} />
        </tr>
      </tbody>
    );
  }
  return (
    <tbody ref={body}>
      {rows.map((row, place) => (
        <tr key={of(row)} aria-rowindex={isAlone ? undefined : first + place}>
          {columns.map((column) => (
            <td class={kind(column)}>{column.cell(row)}</td>
          ))}
        </tr>
      ))}
    </tbody>
  );
}

/** Which page of a list is read. What it is asked for otherwise has other pages. */
export interface Paging {
  /** Where the page begins, for the server. */
  token: string;
  number: number;
  forward: (next: string) => void;
  back: () => void;
}

export function usePages(of: string): Paging {
  const [tokens, setTokens] = useState<{ of: string; list: string[] }>({ of, list: [] });
  const list = tokens.of === of ? tokens.list : [];
  return {
    token: list.at(-1) ?? "",
    number: list.length + 1,
    forward: (next) => setTokens({ of, list: [...list, next] }),
    back: () => setTokens({ of, list: list.slice(0, -1) }),
  };
}

/** Under a list of which there is more. */
export function Pages({ at, next, what }: { at: Paging; next: string | null; what: string }): JSX.Element | null {
  if (!next && at.number === 1) return null;
  const turn = (how: () => void): void => {
    how();
    scrollTo(0, 0);
  };
  return (
    <nav class="actions" aria-label={`Pages of ${what}`}>
      <button type="button" disabled={at.number === 1} onClick={() => turn(at.back)}>
        Previous page
      </button>
      <span class="quiet">Page {at.number}</span>
      <button type="button" disabled={!next} onClick={() => next && turn(() => at.forward(next))}>
        Next page
      </button>
    </nav>
  );
}

/** A text that is asked for once nobody types any more. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), text ? TYPING_MS : 0);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

const TYPING_MS = 300;

/** What stands in place of what is not there. */
export function Missing({ error, what }: { error?: Error; what: string }): JSX.Element {
  if (!error) return <p class="empty">Reading {what}…</p>;
  const isPast = error instanceof Refusal && error.status === 410;
  return (
    <div class="note bad" role="alert">
      <strong>
        {isPast ? "The log does not lead there any more." : `No ${what} to show.`}
      </strong>{" "}
      {error.message}
    </div>
  );
}

export function Section({ title, aside, children }: { title: string; aside?: ComponentChildren } & Children): JSX.Element {
  return (
    <section>
      <header class="line">
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

export function Title({ kind, children, aside }: { kind: string; aside?: ComponentChildren } & Children): JSX.Element {
  return (
    <header class="title">
      <p class="kind">{kind}</p>
      <h1>{children}</h1>
      <div class="actions">{aside}</div>
    </header>
  );
}

/** Names and what they are. */
export function Facts({ of }: { of: [string, ComponentChildren][] }): JSX.Element {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value === "" || value === undefined || value === null ? "none" : value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Tabs({ of, current }: { of: [string, string, string][]; current: string }): JSX.Element {
  return (
    <nav class="tabs" aria-label="Parts of this view">
      {of.map(([key, name, to]) => (
        <Link to={to} aria-current={key === current ? "page" : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

/** The newest of what happened to what was asked for, for those who see and those who listen. */
const said = signal<{ text: string; isBad: boolean } | null>(null);
let forget: ReturnType<typeof setTimeout> | undefined;

export function say(text: string, isBad = false): void {
  said.value = { text, isBad };
  clearTimeout(forget);
  forget = setTimeout(() => (said.value = null), isBad ? 12000 : 5000);
}

export function Said(): JSX.Element {
  const now = said.value;
  return (
    <div class="said" role="status" aria-live="polite">
      {now && (
        <p class={now.isBad ? "bad" : ""}>
          {now.text}
          <button type="button" aria-label="Close the message" onClick={() => (said.value = null)}>
            ×
          </button>
        </p>
      )}
    </div>
  );
}

/** Does something, and says how it went. */
export async function attempt(what: string, doing: () => Promise<unknown>): Promise<boolean> {
  try {
    await doing();
    say(`${what}: done`);
    return true;
  } catch (error) {
    say(`${what}: ${(error as Error).message}`, true);
    return false;
  }
}

/** A button that changes something: not in the past, and after a question where one is given. */
export function Action({
  name,
  ask,
  run,
  kind = "",
}: {
  name: string;
  /** What will happen. */
  ask?: string;
  run: () => Promise<unknown>;
  kind?: "" | "strong" | "danger";
}): JSX.Element {
  const [isAsking, setAsking] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const doIt = async (): Promise<void> => {
    setAsking(false);
    setBusy(true);
    await attempt(name, run);
    setBusy(false);
  };
  const isPast = at.value !== null;
  return (
    <>
      <button
        type="button"
        class={kind}
        disabled={isPast || isBusy}
        title={isPast ? "The past cannot be changed" : undefined}
        onClick={() => (ask ? setAsking(true) : void doIt())}
      >
        {name}
      </button>
      {isAsking && (
        <Dialog title={name} close={() => setAsking(false)}>
          <p>{ask}</p>
          <p class="actions">
            <button type="button" onClick={() => setAsking(false)}>
              Leave it
            </button>
            <button type="button" class={kind || "strong"} onClick={() => void doIt()}>
              {name}
            </button>
          </p>
        </Dialog>
      )}
    </>
  );
}

/** A button that opens a form, which says what it will do when it is sent. */
export function Form({
  name,
  kind = "",
  children,
  run,
}: {
  name: string;
  kind?: "" | "strong" | "danger";
  /** Gives what is sent. */
  run: (fields: FormData) => Promise<unknown>;
} & Children): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const send = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const fields = new FormData(event.target as HTMLFormElement);
    if (await attempt(name, () => run(fields))) setOpen(false);
  };
  const isPast = at.value !== null;
  return (
    <>
      <button
        type="button"
        class={kind}
        disabled={isPast}
        title={isPast ? "The past cannot be changed" : undefined}
        onClick={() => setOpen(true)}
      >
        {name}…
      </button>
      {isOpen && (
        <Dialog title={name} close={() => setOpen(false)}>
          <form onSubmit={(event) => void send(event)}>
            {children}
            <p class="actions">
              <button type="button" onClick={() => setOpen(false)}>
                Leave it
              </button>
              <button type="submit" class={kind || "strong"}>
                {name}
              </button>
            </p>
          </form>
        </Dialog>
      )}
    </>
  );
}

export function Dialog({
  title,
  close,
  kind,
  children,
}: { title: string; close: () => void; kind?: string } & Children): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} class={kind} aria-label={title} onClose={close}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

export function Find({ value, set, what }: { value: string; set: (text: string) => void; what: string }): JSX.Element {
  return (
    <input
      type="search"
      class="find"
      value={value}
      placeholder={`Filter ${what}`}
      aria-label={`Filter ${what}`}
      onInput={(event) => set(event.currentTarget.value)}
    />
  );
}

/** One of a few. */
export function Choice({
  name,
  of,
  value,
  set,
}: {
  name: string;
  of: [string, string][];
  value: string;
  set: (value: string) => void;
}): JSX.Element {
  return (
    <label class="choice">
      <span>{name}</span>
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {of.map(([key, text]) => (
          <option value={key}>{text}</option>
        ))}
      </select>
    </label>
  );
}

export function Json({ value, name }: { value: unknown; name: string }): JSX.Element {
  return (
    <pre class="code" tabIndex={0} role="region" aria-label={name}>
      {JSON.stringify(value, null, 2)}
    </pre>
  );
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    // Browsers keep the clipboard from pages that came without encryption.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    say(isDone ? "Copied" : "The browser does not let this page copy", !isDone);
  }
}
