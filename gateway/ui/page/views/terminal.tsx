// A command inside of a task: lines go in, what it writes comes out. Not a screen: programs that draw one want `sojourn alloc exec`.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { path, token } from "../api";
import { Choice, Section } from "../parts";

/** Most of the output that is kept. The oldest goes first. */
const KEPT = 200_000;
const HEARTBEAT_MS = 10000;

interface Out {
  stdout?: { data?: string };
  stderr?: { data?: string };
  exited?: boolean;
  result?: { exit_code?: number };
}

function encoded(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export function Terminal({ alloc, tasks }: { alloc: string; tasks: string[] }): JSX.Element {
  const [task, setTask] = useState(tasks[0] ?? "");
  const [command, setCommand] = useState("/bin/sh");
  const [line, setLine] = useState("");
  const [output, setOutput] = useState("");
  const [socket, setSocket] = useState<WebSocket | null>(null);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [output]);
  useEffect(() => () => socket?.close(), [socket]);
  const write = (text: string): void => setOutput((old) => (old + text).slice(-KEPT));
  const open = (): void => {
    const words = command.trim().split(/\s+/);
    const where = path(["client", "allocation", alloc, "exec"], { task, command: JSON.stringify(words), tty: "false", ws_handshake: "true" });
    const opened = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${where}`);
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    let beat: ReturnType<typeof setInterval> | undefined;
    opened.onopen = () => {
      // The token goes into the first message, not into the address.
      opened.send(JSON.stringify({ version: 1, auth_token: token.value }));
      beat = setInterval(() => opened.send("{}"), HEARTBEAT_MS);
    };
    opened.onmessage = ({ data }) => {
      const out = JSON.parse(String(data)) as Out;
      for (const stream of ["stdout", "stderr"] as const) {
        const piece = out[stream]?.data;
        if (piece) write(decoders[stream].decode(Uint8Array.from(atob(piece), (letter) => letter.charCodeAt(0)), { stream: true }));
      }
      if (out.exited) write(`\n[ended with ${out.result?.exit_code ?? 0}]\n`);
    };
    opened.onclose = ({ code, reason }) => {
      clearInterval(beat);
      if (reason || code !== 1000) write(`\n[closed: ${reason || `code ${code}`}]\n`);
      setSocket(null);
    };
    setOutput("");
    setSocket(opened);
  };
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!socket) return open();
    write(`> ${line}\n`);
    socket.send(JSON.stringify({ stdin: { data: encoded(`${line}\n`) } }));
    setLine("");
  };
  if (tasks.length === 0) return <p class="empty">The client has said nothing about tasks yet.</p>;
  return (
    <Section
      title="Terminal"
      aside={
        <span class="actions">
          <Choice name="Task" value={task} set={setTask} of={tasks.map((name) => [name, name])} />
          <input aria-label="Command" value={command} disabled={socket !== null} onInput={(event) => setCommand(event.currentTarget.value)} />
          {socket ? (
            <button type="button" onClick={() => socket.close()}>
              Close
            </button>
          ) : (
            <button type="button" class="strong" onClick={open}>
              Start
            </button>
          )}
        </span>
      }
    >
      <pre class="code log" ref={box} tabIndex={0} role="log" aria-label="Output">
        {output}
      </pre>
      <form onSubmit={send} class="tools">
        <input
          class="mono grow"
          aria-label="A line for the command"
          value={line}
          disabled={socket === null}
          autocomplete="off"
          onInput={(event) => setLine(event.currentTarget.value)}
        />
        <button type="submit" disabled={socket === null}>
          Send
        </button>
      </form>
    </Section>
  );
}
