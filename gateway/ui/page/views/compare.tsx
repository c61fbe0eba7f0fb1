// Two moments beside each other: which jobs, allocations and clients came, went, or are another way.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Refusal, call, path, token } from "../api";
import { plural, short } from "../format";
import { Link, Missing, Section, Status, Table, Title } from "../parts";
import { address, at, change, namespace, param } from "../place";
import type { Alloc, JobStub, NodeStub } from "../types";
import { total } from "./jobs";

/** Objects of a kind that are read of each moment: the newest of them. */
const LIST_MAX = 2000;

interface Moment {
  index: string;
  jobs: JobStub[];
  allocs: Alloc[];
  nodes: NodeStub[];
  isCut: boolean;
}

/** What differs, as it was and as it is; null where it was not there. */
interface Difference<T> {
  key: string;
  before: T | null;
  after: T | null;
  fields: [name: string, before: string, after: string][];
}

type Fields<T> = [name: string, of: (one: T) => string][];

/** Objects that are in only one of two lists, or in both with other fields. */
function differences<T>(before: T[], after: T[], key: (one: T) => string, fields: Fields<T>): Difference<T>[] {
  const old = new Map(before.map((one) => [key(one), one]));
  const found: Difference<T>[] = [];
  for (const one of after) {
    const was = old.get(key(one)) ?? null;
    old.delete(key(one));
    const changed = was ? fields.map(([name, of]): [string, string, string] => [name, of(was), of(one)]).filter(([, a, b]) => a !== b) : [];
    if (!was || changed.length) found.push({ key: key(one), before: was, after: one, fields: changed });
  }
  for (const [name, was] of old) found.push({ key: name, before: was, after: null, fields: [] });
  return found.sort((a, b) => (a.key < b.key ? -1 : 1));
}

const JOB: Fields<JobStub> = [
  ["status", (one) => one.Status],
  ["stopped", (one) => (one.Stop ? "yes" : "no")],
  ["priority", (one) => String(one.Priority)],
  ["pool", (one) => one.NodePool],
  ["definition", (one) => `of ${new Date(one.SubmitTime / 1e6).toISOString()}`],
  ["running", (one) => String(total(one).Running ?? 0)],
  ["failed", (one) => String(total(one).Failed ?? 0)],
  ["lost", (one) => String(total(one).Lost ?? 0)],
  ["queued", (one) => String(total(one).Queued ?? 0)],
];
const ALLOC: Fields<Alloc> = [
  ["status", (one) => one.ClientStatus],
  ["wanted", (one) => one.DesiredStatus],
  ["replaced by", (one) => short(one.NextAllocation)],
];
const NODE: Fields<NodeStub> = [
  ["status", (one) => one.Status],
  ["eligibility", (one) => one.SchedulingEligibility],
  ["draining", (one) => (one.Drain ? "yes" : "no")],
  ["address", (one) => one.Address],
  ["version", (one) => one.Version],
];

/** The index of a moment; now is one too, so that all lists are of the same state. */
async function indexOf(moment: string, stop: AbortSignal): Promise<string> {
  const response = await call("/v1/namespaces", { now: true, signal: stop, headers: { "X-Sojourn-As-Of": moment || "-0s" } });
  return response.headers.get("X-Nomad-Index") ?? "";
}

async function read(moment: string, stop: AbortSignal): Promise<Moment> {
  const index = await indexOf(moment, stop);
  let isCut = false;
  const list = async <T,>(where: string): Promise<T[]> => {
    const response = await call(where, { now: true, signal: stop, headers: { "X-Sojourn-As-Of": index } });
    isCut ||= response.headers.has("X-Nomad-NextToken");
    return (await response.json()) as T[];
  };
  const space = namespace.value;
  const jobs = await list<JobStub>(path(["jobs"], { namespace: space, per_page: LIST_MAX }));
  const allocs = await list<Alloc>(path(["allocations"], { namespace: space, per_page: LIST_MAX, reverse: "true", task_states: "false" }));
  const nodes = await list<NodeStub>(path(["nodes"], { per_page: LIST_MAX }));
  return { index, jobs, allocs, nodes, isCut };
}

export function Compare(): JSX.Element {
  const from = param("from") || "-15m";
  const to = at.value ?? "";
  const [both, setBoth] = useState<[Moment, Moment] | null>(null);
  const [error, setError] = useState<Error | undefined>();
  const secret = token.value;
  const space = namespace.value;
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    setBoth(null);
    setError(undefined);
    Promise.all([read(from, stop.signal), read(to, stop.signal)]).then(setBoth, (failed: Error) => {
      if (!stop.signal.aborted) setError(failed);
    });
    return () => stop.abort();
  }, [from, to, secret, space, round]);
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    change({ from: String(new FormData(event.target as HTMLFormElement).get("from") ?? "").trim() });
    setRound(round + 1);
  };
  return (
    <>
      <Title kind="Two moments beside each other">Compare</Title>
      <section>
        <form class="line" onSubmit={send}>
          <label class="choice">
            <span>From</span>
            <input key={from} name="from" defaultValue={from} required title="An index, a time, or a span like -15m" spellcheck={false} />
          </label>
          <span>
            to <strong>{to || "now"}</strong>
            <span class="quiet">: the moment of the time line</span>
          </span>
          <button type="submit" class="strong">
            Compare
          </button>
        </form>
      </section>
      {both ? <Both of={both} /> : <Missing error={error && explained(error)} what="both moments" />}
    </>
  );
}

/** Which of the two is wrong is not to be guessed by who reads it. */
function explained(error: Error): Error {
  return error instanceof Refusal && error.status === 400 ? new Refusal(400, `${error.message}. Expected an index, a time or a span like -15m.`) : error;
}

function Both({ of: [before, after] }: { of: [Moment, Moment] }): JSX.Element {
  const jobs = differences(before.jobs, after.jobs, (one) => `${one.Namespace}/${one.ID}`, JOB);
  const allocs = differences(before.allocs, after.allocs, (one) => one.ID, ALLOC);
  const nodes = differences(before.nodes, after.nodes, (one) => one.ID, NODE);
  const sum = jobs.length + allocs.length + nodes.length;
  return (
    <>
      <p class="quiet" role="status">
        From index {before.index} to {after.index}: {sum ? `${plural(jobs.length, "job")}, ${plural(allocs.length, "allocation")} and ${plural(nodes.length, "client")} differ` : "nothing differs"}.
        {(before.isCut || after.isCut) && ` Of lists that are longer than ${LIST_MAX.toLocaleString("en")} only a part was compared.`}
      </p>
      <Differences name="Jobs" rows={jobs} label={(one) => <Link to={address("jobs", `${one.ID}@${one.Namespace}`)}>{one.ID}</Link>} />
      <Differences
        name="Allocations"
        rows={allocs}
        label={(one) => (
          <>
            <Link to={address("allocations", one.ID)} class="mono">
              {short(one.ID)}
            </Link>{" "}
            {one.Name} <span class="quiet">on {one.NodeName}</span>
          </>
        )}
        state={(one) => `${one.ClientStatus}${one.PreviousAllocation ? `, in place of ${short(one.PreviousAllocation)}` : ""}`}
      />
      <Differences name="Clients" rows={nodes} label={(one) => <Link to={address("clients", one.ID)}>{one.Name}</Link>} />
    </>
  );
}

function Differences<T extends JobStub | Alloc | NodeStub>({
  name,
  rows,
  label,
  state = (one) => (one as { Status: string }).Status,
}: {
  name: string;
  rows: Difference<T>[];
  label: (one: T) => ComponentChildren;
  state?: (one: T) => string;
}): JSX.Element | null {
  if (rows.length === 0) return null;
  return (
    <Section title={name}>
      <Table
        name={name}
        rows={rows}
        of={(row) => row.key}
        columns={[
          { name: "What", cell: (row) => label((row.after ?? row.before)!) },
          { name: "Change", cell: (row) => <Status of={row.before ? (row.after ? "changed" : "gone") : "new"} /> },
          {
            name: "Fields",
            cell: (row) =>
              row.fields.length
                ? row.fields.map(([field, a, b]) => (
                    <div>
                      <span class="quiet">{field}</span> {a || "none"} → {b || "none"}
                    </div>
                  ))
                : state((row.after ?? row.before)!),
          },
        ]}
      />
    </Section>
  );
}
