import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path, put, useGet } from "../api";
import { mib, plural, short } from "../format";
import { Action, Ago, Choice, Facts, Find, Form, Link, Missing, Pages, Section, Status, Table, Tabs, Title, usePages } from "../parts";
import { address, at, namespace } from "../place";
import type { Alloc, TaskState } from "../types";
import { Files } from "./files";
import { History } from "./history";
import { PAGE } from "./jobs";
import { Logs } from "./logs";
import { Terminal } from "./terminal";
import { Why } from "./why";

export function AllocTable({ rows, hasJob = false }: { rows: Alloc[]; hasJob?: boolean }): JSX.Element {
  return (
    <Table
      name="Allocations"
      rows={rows}
      of={(alloc) => alloc.ID}
      columns={[
        { name: "Allocation", cell: (alloc) => <Link to={address("allocations", alloc.ID)} class="mono">{short(alloc.ID)}</Link> },
        { name: hasJob ? "Name" : "Group", cell: (alloc) => (hasJob ? alloc.Name : alloc.TaskGroup) },
        { name: "Status", cell: (alloc) => <Status of={alloc.ClientStatus} title={alloc.ClientDescription} /> },
        { name: "Wanted", isMinor: true, cell: (alloc) => <span title={alloc.DesiredDescription}>{alloc.DesiredStatus}</span> },
        { name: "Client", cell: (alloc) => <Link to={address("clients", alloc.NodeID)}>{alloc.NodeName || short(alloc.NodeID)}</Link> },
        { name: "Version", isMinor: true, isNumber: true, cell: (alloc) => alloc.JobVersion ?? alloc.Job?.Version ?? 0 },
        { name: "Health", isMinor: true, cell: health },
        { name: "Created", isMinor: true, cell: (alloc) => <Ago time={alloc.CreateTime} /> },
        { name: "Changed", isMinor: true, cell: (alloc) => <Ago time={alloc.ModifyTime} /> },
      ]}
    />
  );
}

function health(alloc: Alloc): string {
  const status = alloc.DeploymentStatus;
  const word = status?.Healthy === true ? "healthy" : status?.Healthy === false ? "unhealthy" : "";
  return status?.Canary ? `canary ${word}` : word;
}

export function Allocs(): JSX.Element {
  const [text, setText] = useState("");
  const [status, setStatus] = useState("");
  const filter = status ? `ClientStatus == "${status}"` : undefined;
  const pages = usePages(`${namespace.value} ${filter} ${at.value}`);
  const where = path(["allocations"], { namespace: namespace.value, reverse: "true", per_page: PAGE, next_token: pages.token, task_states: "false", filter });
  const { data, error, next } = useGet<Alloc[]>(where, ["Allocation"]);
  const lower = text.toLowerCase();
  const rows = (data ?? []).filter((alloc) => [alloc.ID, alloc.Name, alloc.NodeName].some((field) => field.toLowerCase().includes(lower)));
  return (
    <>
      <Title kind={namespace.value === "*" ? "All namespaces" : `Namespace ${namespace.value}`}>Allocations</Title>
      <div class="tools">
        <Find value={text} set={setText} what="allocations" />
        <Choice
          name="Status"
          value={status}
          set={setStatus}
          of={[["", "any"], ...["pending", "running", "complete", "failed", "lost", "unknown"].map((one): [string, string] => [one, one])]}
        />
        <span class="quiet">{data && `${plural(rows.length, "allocation")}${next || pages.number > 1 ? " of this page" : ""}`}</span>
      </div>
      {data ? (
        <section>
          <AllocTable rows={rows} hasJob />
          <Pages at={pages} next={next} what="allocations" />
        </section>
      ) : (
        <Missing error={error} what="allocations" />
      )}
    </>
  );
}

const PARTS: [string, string][] = [
  ["overview", "Overview"],
  ["logs", "Logs"],
  ["files", "Files"],
  ["terminal", "Terminal"],
  ["why", "Why"],
  ["history", "History"],
];

export function AllocView({ id, part }: { id: string; part: string }): JSX.Element {
  const { data: alloc, error } = useGet<Alloc>(path(["allocation", id]), ["Allocation"]);
  if (!alloc) return <Missing error={error} what="allocation" />;
  return (
    <>
      <Title kind={`Allocation ${alloc.ID}`} aside={<Actions of={alloc} />}>
        {alloc.Name} <Status of={alloc.ClientStatus} />
      </Title>
      <Tabs current={part} of={PARTS.map(([key, text]) => [key, text, address("allocations", id, ...(key === "overview" ? [] : [key]))])} />
      <Part of={alloc} part={part} />
    </>
  );
}

function Part({ of, part }: { of: Alloc; part: string }): JSX.Element {
  const tasks = Object.keys(of.TaskStates ?? {}).sort();
  const isLive = part === "logs" || part === "files" || part === "terminal";
  if (isLive && at.value) return <p class="note warn">Logs, files and terminals are on the client, which has only the present of them. Everything else here is of the moment that is shown.</p>;
  switch (part) {
    case "logs":
      return <Logs alloc={of.ID} tasks={tasks} />;
    case "files":
      return <Files alloc={of.ID} />;
    case "terminal":
      return <Terminal alloc={of.ID} tasks={tasks} />;
    case "why":
      return <Why kind="allocation" id={of.ID} />;
    case "history":
      return <History kind="allocation" id={of.ID} />;
    default:
      return <Overview of={of} />;
  }
}

function Actions({ of }: { of: Alloc }): JSX.Element | null {
  const where = (verb: string): string => path(["client", "allocation", of.ID, verb]);
  if (of.ClientStatus !== "running" && of.ClientStatus !== "pending") return null;
  return (
    <>
      <Action name="Restart" ask="All running tasks of this allocation are restarted where they are." run={() => put(where("restart"), {})} />
      <Form name="Signal" run={(fields) => put(where("signal"), { Task: String(fields.get("task")), Signal: String(fields.get("signal")) })}>
        <label class="field">
          <span>Task</span>
          <select name="task">
            <option value="">all tasks</option>
            {Object.keys(of.TaskStates ?? {}).map((task) => (
              <option value={task}>{task}</option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Signal</span>
          <input name="signal" defaultValue="SIGHUP" required />
        </label>
      </Form>
      <Action
        name="Stop"
        kind="danger"
        ask="This allocation is stopped. What the job wants is placed anew."
        run={() => put(path(["allocation", of.ID, "stop"]))}
      />
    </>
  );
}

function Overview({ of }: { of: Alloc }): JSX.Element {
  const tasks = Object.entries(of.AllocatedResources?.Tasks ?? {});
  const cpu = tasks.reduce((sum, [, task]) => sum + task.Cpu.CpuShares, 0);
  const memory = tasks.reduce((sum, [, task]) => sum + task.Memory.MemoryMB, 0);
  const ports = of.AllocatedResources?.Shared.Ports ?? [];
  const other = (id: string | undefined): JSX.Element | string =>
    id ? <Link to={address("allocations", id)} class="mono">{short(id)}</Link> : "";
  return (
    <>
      <Section title="About">
        <Facts
          of={[
            ["Job", <Link to={address("jobs", `${of.JobID}@${of.Namespace}`)}>{of.JobID}</Link>],
            ["Client", <Link to={address("clients", of.NodeID)}>{of.NodeName || short(of.NodeID)}</Link>],
            ["Wanted", of.DesiredDescription ? `${of.DesiredStatus}: ${of.DesiredDescription}` : of.DesiredStatus],
            ["Status", of.ClientDescription],
            ["Job version", of.Job?.Version ?? 0],
            ["Evaluation", <Link to={address("evaluations", of.EvalID)} class="mono">{short(of.EvalID)}</Link>],
            ["CPU", `${cpu} MHz`],
            ["Memory", mib(memory)],
            ["Created", <Ago time={of.CreateTime} />],
            ["Health", health(of)],
            ["In place of", other(of.PreviousAllocation)],
            ["Replaced by", other(of.NextAllocation)],
          ]}
        />
      </Section>
      {ports.length > 0 && (
        <Section title="Addresses">
          <Table
            name="Addresses"
            rows={ports}
            of={(port) => port.Label}
            columns={[
              { name: "Port", cell: (port) => port.Label },
              { name: "Address", cell: (port) => <span class="mono">{port.HostIP.includes(":") ? `[${port.HostIP}]` : port.HostIP}:{port.Value}</span> },
              { name: "Inside", cell: (port) => (port.To ? String(port.To) : "the same") },
            ]}
          />
        </Section>
      )}
      {Object.entries(of.TaskStates ?? {}).map(([name, state]) => (
        <Task name={name} of={state} />
      ))}
      {Object.keys(of.TaskStates ?? {}).length === 0 && <p class="empty">The client has said nothing about tasks yet.</p>}
    </>
  );
}

function Task({ name, of }: { name: string; of: TaskState }): JSX.Element {
  const state = of.State === "dead" ? (of.Failed ? "failed" : "complete") : of.State;
  return (
    <Section title={`Task ${name}`} aside={<Status of={state} />}>
      <p class="quiet">
        {of.StartedAt ? (
          <>
            started <Ago time={of.StartedAt} />
          </>
        ) : (
          "not started"
        )}
        {of.FinishedAt && (
          <>
            , ended <Ago time={of.FinishedAt} />
          </>
        )}
        , {plural(of.Restarts, "restart")}
      </p>
      <Table
        name={`Events of ${name}`}
        rows={[...(of.Events ?? [])].reverse()}
        of={(event) => `${event.Time}${event.Type}`}
        columns={[
          { name: "When", cell: (event) => <Ago time={event.Time} /> },
          { name: "Event", cell: (event) => event.Type },
          { name: "Message", cell: (event) => event.DisplayMessage },
        ]}
      />
    </Section>
  );
}
