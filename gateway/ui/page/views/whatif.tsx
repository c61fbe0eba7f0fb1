// What a change would lead to: made on a fork of the state, in the words of `sojourn whatif`.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { put, useGet } from "../api";
import { plural, short } from "../format";
import { Choice, Link, Missing, Section, Status, Table, Title } from "../parts";
import { address, at, change as changePlace, namespace, param } from "../place";
import { shortage } from "./run";

interface Moved {
  ID: string;
  Name: string;
  Namespace: string;
  JobID: string;
  FromNodeID: string;
  FromNodeName: string;
  ToNodeID: string;
  ToNodeName: string;
  Cause: string;
}

interface Room {
  Nodes: number;
  CPU: number;
  FreeCPU: number;
  MemoryMB: number;
  FreeMemoryMB: number;
}

interface Group {
  Namespace: string;
  JobID: string;
  Group: string;
}

const LISTS = ["Moved", "Replaced", "Placed", "Preempted", "Stopped", "Lost"] as const;

type Lists = Record<(typeof LISTS)[number], Moved[] | null>;

interface Result extends Lists {
  Index: number;
  Quiet: boolean;
  EndedBy: string;
  VirtualTime: number;
  Steps: number;
  Evaluations: number;
  Counts: Record<string, number>;
  Unplaced: (Group & { Before: number; After: number; Failed: Record<string, unknown> })[] | null;
  Violated: (Group & { Wanted: number; Allowed: number; RunningBefore: number; Lowest: number; RunningAfter: number })[] | null;
  Deployments: { Namespace: string; JobID: string; JobVersion: number; Status: string; StatusDescription: string }[] | null;
  Free: { Datacenter: string; Before: Room; After: Room }[] | null;
  Notes: string[] | null;
  CutShort: boolean;
}

/** What can be tried, as it is written. */
const WORDS = "drain NODE, lose node=NODE, lose datacenter=NAME, add COUNT like NODE, stop JOB, or scale JOB GROUP COUNT";

function one(text: string): Record<string, unknown> {
  const [verb, ...rest] = text.trim().split(/\s+/);
  const count = (word: string | undefined): number => {
    if (!word || !/^\d+$/.test(word)) throw new Error(`“${text.trim()}”: expected a whole number where “${word ?? ""}” stands`);
    return Number(word);
  };
  if (verb === "drain" && rest.length === 1) return { drain: rest[0] };
  if (verb === "stop" && rest.length === 1) return { stop: rest[0] };
  if (verb === "scale" && rest.length === 3) return { scale: { job: rest[0], group: rest[1], count: count(rest[2]) } };
  if (verb === "add" && rest.length === 3 && rest[1] === "like") return { add: { like: rest[2], count: count(rest[0]) } };
  const lost = verb === "lose" && rest.length === 1 ? /^(node|datacenter)=(.+)$/.exec(rest[0] ?? "") : null;
  if (lost) return { down: { [lost[1] ?? ""]: lost[2] } };
  throw new Error(`“${text.trim()}”: expected ${WORDS}`);
}

/** Changes that are joined by “and”. */
function changes(text: string): Record<string, unknown>[] {
  return text.trim().split(/\s+and\s+/).map(one);
}

const UNTIL: [string, string][] = [
  ["quiet", "until nothing is left to do"],
  ["10m", "for 10 minutes"],
  ["1h", "for an hour"],
  ["24h", "for a day"],
];

export function WhatIf(): JSX.Element {
  const [text, setText] = useState(param("try"));
  const [until, setUntil] = useState("quiet");
  const [result, setResult] = useState<{ text: string; of: Result } | null>(null);
  const [wrong, setWrong] = useState("");
  const [isBusy, setBusy] = useState(false);
  const nodes = useGet<{ ID: string; Name: string }[]>("/v1/nodes", ["Node"], { quiet: true });
  const first = nodes.data?.[0]?.Name ?? "n1";
  const run = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setWrong("");
    try {
      const asked = { changes: changes(text), until, as_of: at.value ?? "" };
      const space = namespace.value === "*" ? "default" : namespace.value;
      const of = await put<Result>(`/v1/fork?namespace=${encodeURIComponent(space)}`, asked, "POST", true);
      setResult({ text, of });
      changePlace({ try: text }, false);
    } catch (error) {
      setResult(null);
      setWrong((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <>
      <Title kind="Tried out on a copy of the state. Nothing is changed">What if?</Title>
      <section>
        <form class="line" onSubmit={(event) => void run(event)}>
          <input
            class="grow"
            aria-label="What is to be tried"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            placeholder={`drain ${first}`}
            spellcheck={false}
            required
          />
          <Choice name="Run on" value={until} set={setUntil} of={UNTIL} />
          <button type="submit" class="strong" disabled={isBusy}>
            {isBusy ? "Trying…" : "Try it"}
          </button>
        </form>
        <div class="chips">
          {[`drain ${first}`, `lose node=${first}`, `add 1 like ${first} and drain ${first}`, "stop JOB", "scale JOB GROUP 5"].map((example) => (
            <button type="button" onClick={() => setText(example)}>
              {example}
            </button>
          ))}
        </div>
      </section>
      {wrong && (
        <div class="note bad" role="alert">
          {wrong}
        </div>
      )}
      {isBusy && !result && <Missing what="what comes of it" />}
      {result && <Outcome of={result.of} text={result.text} />}
    </>
  );
}

function jobLink({ JobID, Namespace }: { JobID: string; Namespace: string }): JSX.Element {
  return <Link to={address("jobs", `${JobID}@${Namespace}`)}>{JobID}</Link>;
}

const WORD: Record<string, string> = { UpdatedInPlace: "updated in place", Unplaced: "without a node" };
const BAD = ["Unplaced", "Violated", "Lost"];

function Outcome({ of, text }: { of: Result; text: string }): JSX.Element {
  const counts = Object.entries(of.Counts).filter(([name, count]) => count > 0 && name !== "UnplacedBefore");
  const isBad = counts.some(([name]) => BAD.includes(name)) || !(of.Quiet || of.EndedBy === "until");
  const unplaced = of.Unplaced ?? [];
  const violated = of.Violated ?? [];
  const deployments = of.Deployments ?? [];
  return (
    <>
      <div class={`note ${isBad ? "bad" : "good"}`} role="status">
        <strong>{text}:</strong> {counts.map(([name, count]) => `${count} ${WORD[name] ?? name.toLowerCase()}`).join(", ") || "nothing changes"}.{" "}
        <span class="quiet">
          From index {of.Index} on; {plural(of.Steps, "step")}, {plural(of.Evaluations, "evaluation")}; ended by {of.EndedBy}.
        </span>
      </div>
      {(of.Notes ?? []).map((note) => (
        <p class="quiet">{note}</p>
      ))}
      {of.CutShort && <p class="quiet">Lists name the first of their items only; the counts are of all.</p>}
      {unplaced.length > 0 && (
        <Section title="Without a node">
          <Table
            name="Groups without a node"
            rows={unplaced}
            of={(group) => `${group.Namespace}/${group.JobID}/${group.Group}`}
            columns={[
              { name: "Job", cell: jobLink },
              { name: "Group", cell: (group) => group.Group },
              { name: "Before", isNumber: true, cell: (group) => group.Before },
              { name: "After", isNumber: true, cell: (group) => group.After },
              { name: "Why", cell: (group) => shortage(group.Failed) },
            ]}
          />
        </Section>
      )}
      {violated.length > 0 && (
        <Section title="Fewer running than allowed">
          <Table
            name="Groups with fewer running than allowed"
            rows={violated}
            of={(group) => `${group.Namespace}/${group.JobID}/${group.Group}`}
            columns={[
              { name: "Job", cell: jobLink },
              { name: "Group", cell: (group) => group.Group },
              { name: "Wanted", isNumber: true, cell: (group) => group.Wanted },
              { name: "Allowed", isNumber: true, cell: (group) => group.Allowed },
              { name: "Lowest", isNumber: true, cell: (group) => group.Lowest },
              { name: "After", isNumber: true, cell: (group) => group.RunningAfter },
            ]}
          />
        </Section>
      )}
      {deployments.length > 0 && (
        <Section title="Deployments">
          <Table
            name="Deployments"
            rows={deployments}
            of={(one) => `${one.Namespace}/${one.JobID}/${one.JobVersion}`}
            columns={[
              { name: "Job", cell: jobLink },
              { name: "Version", isNumber: true, cell: (one) => one.JobVersion },
              { name: "Status", cell: (one) => <Status of={one.Status} /> },
              { name: "Description", cell: (one) => one.StatusDescription },
            ]}
          />
        </Section>
      )}
      {LISTS.filter((name) => of[name]?.length).map((name) => (
        <Section title={name}>
          <Allocations name={name} rows={of[name] ?? []} />
        </Section>
      ))}
      {of.Free && of.Free.length > 0 && <Free of={of.Free} />}
    </>
  );
}

function Node({ id, name }: { id: string; name: string }): JSX.Element {
  if (!id && !name) return <span class="quiet">none</span>;
  // A node that is added has a name alone.
  return id ? <Link to={address("clients", id)}>{name || short(id)}</Link> : <>{name}</>;
}

function Allocations({ name, rows }: { name: string; rows: Moved[] }): JSX.Element {
  return (
    <Table
      name={`${name} allocations`}
      rows={rows}
      of={(row) => `${row.ID}/${row.Namespace}/${row.Name}`}
      columns={[
        { name: "Allocation", cell: (row) => (row.ID ? <Link class="mono" to={address("allocations", row.ID)}>{short(row.ID)}</Link> : <span class="quiet">new</span>) },
        { name: "Name", cell: (row) => row.Name },
        { name: "From", cell: (row) => <Node id={row.FromNodeID} name={row.FromNodeName} /> },
        { name: "To", cell: (row) => <Node id={row.ToNodeID} name={row.ToNodeName} /> },
        { name: "Why", isMinor: true, cell: (row) => row.Cause },
      ]}
    />
  );
}

function Free({ of }: { of: NonNullable<Result["Free"]> }): JSX.Element {
  const both = (before: number, after: number): string =>
    before === after ? before.toLocaleString("en") : `${before.toLocaleString("en")} → ${after.toLocaleString("en")}`;
  return (
    <Section title="Free on clients that take work">
      <Table
        name="Free"
        rows={of}
        of={(row) => row.Datacenter}
        columns={[
          { name: "Datacenter", cell: (row) => row.Datacenter },
          { name: "Clients", isNumber: true, cell: (row) => both(row.Before.Nodes, row.After.Nodes) },
          { name: "CPU (MHz)", isNumber: true, cell: (row) => both(row.Before.FreeCPU, row.After.FreeCPU) },
          { name: "Memory (MiB)", isNumber: true, cell: (row) => both(row.Before.FreeMemoryMB, row.After.FreeMemoryMB) },
        ]}
      />
    </Section>
  );
}
