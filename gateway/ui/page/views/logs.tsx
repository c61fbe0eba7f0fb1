// What a task writes, as it writes it.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refusal, call, path, token } from "../api";
import { Choice, Find, Section } from "../parts";

/** Most that is kept of a log. The oldest lines go first. */
const LINES_MAX = 5000;
/** Longest line that is shown. */
const LINE_MAX = 8192;
/** How much of what was written before is read. */
const BEFORE = 64 * 1024;
const RETRY_MS = 2000;

/** Frames follow each other without anything in between: an object ends where its brace is closed. */
export class Frames {
  private rest = "";
  private scanned = 0;
  private depth = 0;
  private isText = false;
  private isEscaped = false;

  take(piece: string): { Data?: string; FileEvent?: string }[] {
    this.rest += piece;
    const found: { Data?: string; FileEvent?: string }[] = [];
    while (this.scanned < this.rest.length) {
      const letter = this.rest[this.scanned];
      this.scanned += 1;
      if (this.isText) {
        if (this.isEscaped) this.isEscaped = false;
        else if (letter === "\\") this.isEscaped = true;
        else if (letter === '"') this.isText = false;
      } else if (letter === '"') this.isText = true;
      else if (letter === "{") this.depth += 1;
      else if (letter === "}" && (this.depth -= 1) === 0) {
        found.push(JSON.parse(this.rest.slice(0, this.scanned)) as { Data?: string });
        this.rest = this.rest.slice(this.scanned);
        this.scanned = 0;
      }
    }
    return found;
  }
}

function bytesOf(data: string): Uint8Array {
  return Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
}

async function followLog(where: string, each: (text: string) => void, stop: AbortSignal): Promise<void> {
  const response = await call(where, { signal: stop, now: true });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const [frames, decoder] = [new Frames(), new TextDecoder()];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const frame of frames.take(value)) {
      if (frame.FileEvent) each(`\n[${frame.FileEvent}]\n`);
      if (frame.Data) each(decoder.decode(bytesOf(frame.Data), { stream: true }));
    }
  }
}

export function Logs({ alloc, tasks }: { alloc: string; tasks: string[] }): JSX.Element {
  const [task, setTask] = useState(tasks[0] ?? "");
  const [type, setType] = useState("stdout");
  const [text, setText] = useState("");
  const [isStill, setStill] = useState(false);
  const { lines, state } = useLog(alloc, task, type);
  const box = useRef<HTMLPreElement>(null);
  const lower = text.toLowerCase();
  const shown = lower ? lines.filter((line) => line.toLowerCase().includes(lower)) : lines;
  useEffect(() => {
    if (!isStill && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, isStill, text]);
  if (tasks.length === 0) return <p class="empty">The client has said nothing about tasks yet.</p>;
  return (
    <Section
      title="Logs"
      aside={
        <span class="actions">
          <Choice name="Task" value={task} set={setTask} of={tasks.map((name) => [name, name])} />
          <Choice name="Stream" value={type} set={setType} of={[["stdout", "stdout"], ["stderr", "stderr"]]} />
          <Find value={text} set={setText} what="lines" />
          <button type="button" aria-pressed={!isStill} onClick={() => setStill(!isStill)}>
            {isStill ? "Go to the end" : "Stay here"}
          </button>
        </span>
      }
    >
      <pre
        class="code log"
        ref={box}
        tabIndex={0}
        role="log"
        aria-label={`${type} of ${task}`}
        onWheel={(event) => event.deltaY < 0 && setStill(true)}
      >
        {shown.join("\n")}
      </pre>
      <p class="quiet">
        {state}
        {lines.length >= LINES_MAX ? ` The newest ${LINES_MAX} lines are kept.` : ""}
      </p>
    </Section>
  );
}

/** The newest lines, and how reading goes. It stops while the tab is hidden. */
function useLog(alloc: string, task: string, type: string): { lines: string[]; state: string } {
  const [lines, setLines] = useState<string[]>([]);
  const [state, setState] = useState("");
  const [isHidden, setHidden] = useState(document.hidden);
  useEffect(() => {
    const changed = (): void => setHidden(document.hidden);
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, []);
  const secret = token.value;
  useEffect(() => {
    if (isHidden || !task) return;
    const stop = new AbortController();
    let kept: string[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        setLines([...kept]);
      }, 60);
    };
    const take = (text: string): void => {
      const parts = text.split("\n");
      const whole = [(kept.pop() ?? "") + parts[0], ...parts.slice(1)];
      kept.push(...whole.map((line) => line.slice(0, LINE_MAX)));
      if (kept.length > LINES_MAX) kept = kept.slice(-LINES_MAX);
      show();
    };
    const where = path(["client", "fs", "logs", alloc], { task, type, follow: "true", origin: "end", offset: BEFORE });
    const run = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        kept = [];
        setState("Follows.");
        try {
          await followLog(where, take, stop.signal);
          setState("The log has ended.");
          return;
        } catch (error) {
          if (stop.signal.aborted) return;
          const isWaiting = error instanceof Refusal && error.status === 404;
          setState(`${(error as Error).message}${isWaiting || !(error instanceof Refusal) ? " Asked again soon." : ""}`);
          if (error instanceof Refusal && !isWaiting) return;
        }
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    };
    setLines([]);
    void run();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [alloc, task, type, isHidden, secret]);
  return { lines, state };
}
