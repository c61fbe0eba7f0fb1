// Jumping to anything by a part of its name.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { put } from "./api";
import { Dialog } from "./parts";
import { address, go, namespace } from "./place";

export const isFinding = signal(false);

interface Found {
  kind: string;
  name: string;
  to: string;
}

const VIEWS = ["jobs", "allocations", "evaluations", "clients", "servers", "events", "lanes", "topology", "services", "variables", "volumes", "namespaces", "compare", "whatif", "delivery", "access-control"];

interface Match {
  ID: string;
  Scope: string[] | null;
}

/** The view of what the search has found; none for what has no view. */
function placed(kind: string, { ID, Scope }: Match): Found | null {
  const scope = Scope ?? [];
  switch (kind) {
    case "jobs":
      return { kind: "job", name: ID, to: address("jobs", `${scope[1] ?? ID}@${scope[0] ?? "default"}`) };
    case "groups":
    case "tasks":
      return scope[1] ? { kind, name: `${ID} of ${scope[1]}`, to: address("jobs", `${scope[1]}@${scope[0]}`) } : null;
    case "allocs":
      return { kind: "allocation", name: ID, to: address("allocations", scope[1] ?? ID) };
    case "nodes":
      return { kind: "client", name: ID, to: address("clients", scope[0] ?? ID) };
    case "evals":
      return { kind: "evaluation", name: ID, to: address("evaluations", scope[1] ?? ID) };
    case "services":
      return { kind: "service", name: ID, to: address("services", `${ID}@${scope[0] ?? "default"}`) };
    case "vars":
      return { kind: "variable", name: ID, to: address("variables", `${ID}@${scope[0] ?? "default"}`) };
    default:
      return null;
  }
}

const MOST = 40;

export function Palette(): JSX.Element {
  const [text, setText] = useState("");
  const [found, setFound] = useState<Found[]>([]);
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    const lower = text.toLowerCase();
    const views = [...VIEWS, "run a job"].filter((view) => view.includes(lower));
    const own = views.map((view) => ({
      kind: "view",
      name: view,
      to: view === "run a job" ? address("jobs", "run") : address(view),
    }));
    setFound(own);
    setChosen(0);
    // The server looks for two letters at least.
    if (text.length < 2) return;
    let isOld = false;
    const timer = setTimeout(async () => {
      try {
        const where = `/v1/search/fuzzy?namespace=${encodeURIComponent(namespace.value)}`;
        const { Matches } = await put<{ Matches: Record<string, Match[] | null> | null }>(where, { Text: text, Context: "all" }, "PUT", true);
        if (isOld) return;
        const all = Object.entries(Matches ?? {}).flatMap(([kind, list]) => (list ?? []).map((match) => placed(kind, match)));
        setFound([...all.filter((one) => one !== null), ...own].slice(0, MOST));
      } catch {
        // Views can still be jumped to.
      }
    }, 120);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [text]);
  const close = (): void => {
    isFinding.value = false;
  };
  const open = (one: Found | undefined): void => {
    if (!one) return;
    close();
    go(one.to);
  };
  const key = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) {
      event.preventDefault();
      setChosen((place) => Math.max(0, Math.min(found.length - 1, place + step)));
    } else if (event.key === "Enter") {
      event.preventDefault();
      open(found[chosen]);
    }
  };
  return (
    <Dialog title="Find" close={close} kind="palette">
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={found.length ? `found-${chosen}` : undefined}
        aria-label="Find a job, an allocation, a client or a view"
        placeholder="Job, allocation, client, variable, view…"
        value={text}
        autofocus
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={key}
      />
      <ul id="found" role="listbox" aria-label="What was found">
        {found.map((one, place) => (
          <li id={`found-${place}`} role="option" aria-selected={place === chosen} onClick={() => open(one)}>
            <span>{one.kind}</span>
            <span>{one.name}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
