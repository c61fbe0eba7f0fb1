import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path, put, useGet } from "../api";
import { mib, plural } from "../format";
import { Action, Ago, Choice, Facts, Find, Form, Link, Meter, Missing, Pages, Section, Status, Table, Tabs, Title, usePages, useSettled } from "../parts";
import { address, at, trying } from "../place";
import type { Alloc, Node, NodeStub } from "../types";
import { AllocTable } from "./alloc";
import { History } from "./history";
import { PAGE, anyContains } from "./jobs";
import { Why } from "./why";

export function state(node: NodeStub): string {
  if (node.Drain) return "draining";
  return node.Status === "ready" && node.SchedulingEligibility === "ineligible" ? "ineligible" : node.Status;
}

/** What has a state, as the language of filters has it: of a list that is longer than a page the server chooses. */
const STATES: Record<string, string> = {
  ready: 'Status == "ready" and SchedulingEligibility == "eligible" and Drain == false',
  ineligible: 'Status == "ready" and SchedulingEligibility == "ineligible" and Drain == false',
  draining: "Drain == true",
  disconnected: 'Status == "disconnected" and Drain == false',
  down: 'Status == "down" and Drain == false',
  initializing: 'Status == "initializing" and Drain == false',
};

function filtered(...parts: (string | undefined)[]): string | undefined {
  const there = parts.filter(Boolean);
  return there.length ? there.map((part) => `(${part})`).join(" and ") : undefined;
}

export function Nodes(): JSX.Element {
  const [text, setText] = useState("");
  const [status, setStatus] = useState("");
  const [isLong, setLong] = useState(false);
  const asked = useSettled(text);
  const filter = isLong ? filtered(anyContains(["ID", "Name", "NodePool", "NodeClass"], asked), STATES[status]) : undefined;
  const pages = usePages(`${filter} ${at.value}`);
  const where = path(["nodes"], { resources: "true", per_page: PAGE, next_token: pages.token, filter });
  const { data, error, next } = useGet<NodeStub[]>(where, ["Node"]);
  if (next && !isLong) setLong(true);
  const lower = text.toLowerCase();
  const rows = (data ?? []).filter(
    (node) => (!status || state(node) === status) && [node.ID, node.Name, node.NodePool, node.NodeClass].some((field) => field.toLowerCase().includes(lower)),
  );
  return (
    <>
      <Title kind="Where allocations run">Clients</Title>
      <div class="tools">
        <Find value={text} set={setText} what="clients" />
        <Choice
          name="Status"
          value={status}
          set={setStatus}
          of={[["", "any"], ...["ready", "ineligible", "draining", "disconnected", "down", "initializing"].map((one): [string, string] => [one, one])]}
        />
        <span class="quiet">{data && plural(rows.length, "client")}</span>
      </div>
      {data ? (
        <section>
          <Table
            name="Clients"
            rows={rows}
            of={(node) => node.ID}
            columns={[
              { name: "Client", cell: (node) => <Link to={address("clients", node.ID)}>{node.Name}</Link> },
              { name: "Status", cell: (node) => <Status of={state(node)} title={node.StatusDescription} /> },
              { name: "Pool", cell: (node) => node.NodePool },
              { name: "Datacenter", isMinor: true, cell: (node) => node.Datacenter },
              { name: "Class", isMinor: true, cell: (node) => node.NodeClass },
              { name: "CPU", isMinor: true, isNumber: true, cell: (node) => `${(node.NodeResources?.Cpu.CpuShares ?? 0).toLocaleString("en")} MHz` },
              { name: "Memory", isMinor: true, isNumber: true, cell: (node) => mib(node.NodeResources?.Memory.MemoryMB ?? 0) },
              { name: "Address", isMinor: true, cell: (node) => <span class="mono">{node.Address}</span> },
            ]}
          />
          <Pages at={pages} next={next} what="clients" />
        </section>
      ) : (
        <Missing error={error} what="clients" />
      )}
    </>
  );
}

const PARTS: [string, string][] = [
  ["overview", "Overview"],
  ["drivers", "Drivers"],
  ["attributes", "Attributes"],
  ["why", "Why"],
  ["history", "History"],
];

export function NodeView({ id, part }: { id: string; part: string }): JSX.Element {
  const { data: node, error } = useGet<Node>(path(["node", id]), ["Node"]);
  if (!node) return <Missing error={error} what="client" />;
  return (
    <>
      <Title kind={`Client ${node.ID}`} aside={<Actions of={node} />}>
        {node.Name} <Status of={state(node)} />
      </Title>
      <Tabs current={part} of={PARTS.map(([key, text]) => [key, text, address("clients", id, ...(key === "overview" ? [] : [key]))])} />
      <Part of={node} part={part} />
    </>
  );
}

function Part({ of, part }: { of: Node; part: string }): JSX.Element {
  switch (part) {
    case "drivers":
      return <Drivers of={of} />;
    case "attributes":
      return (
        <>
          <Pairs title="Metadata" of={of.Meta} />
          <Pairs title="Attributes" of={of.Attributes} />
        </>
      );
    case "why":
      return <Why kind="node" id={of.ID} />;
    case "history":
      return <History kind="node" id={of.ID} />;
    default:
      return <Overview of={of} />;
  }
}

function Actions({ of }: { of: Node }): JSX.Element {
  const where = (verb: string): string => path(["node", of.ID, verb]);
  const isEligible = of.SchedulingEligibility === "eligible";
  return (
    <>
      {!of.Drain && (
        <Link to={trying(`drain ${of.Name}`)}>
          What if it is drained?
        </Link>
      )}
      {!of.Drain && (
        <Action
          name={isEligible ? "Make ineligible" : "Make eligible"}
          run={() => put(where("eligibility"), { NodeID: of.ID, Eligibility: isEligible ? "ineligible" : "eligible" })}
        />
      )}
      {of.Drain ? (
        <Action
          name="Stop draining"
          ask="What was moved away stays where it is. The client takes work again."
          run={() => put(where("drain"), { NodeID: of.ID, DrainSpec: null, MarkEligible: true })}
        />
      ) : (
        <Form
          name="Drain"
          kind="danger"
          run={(fields) =>
            put(where("drain"), {
              NodeID: of.ID,
              DrainSpec: { Deadline: Number(fields.get("minutes")) * 60e9, IgnoreSystemJobs: fields.get("system") === "on" },
            })
          }
        >
          <p>All allocations are moved to other clients, and nothing new is placed here.</p>
          <label class="field">
            <span>Minutes until what is left is stopped; 0 for no limit</span>
            <input type="number" name="minutes" min={0} defaultValue="60" required />
          </label>
          <label class="check">
            <input type="checkbox" name="system" /> Leave system jobs running
          </label>
        </Form>
      )}
    </>
  );
}

function Overview({ of }: { of: Node }): JSX.Element {
  const { data: allocs, error } = useGet<Alloc[]>(path(["node", of.ID, "allocations"]), ["Allocation"]);
  const live = (allocs ?? []).filter((alloc) => ["running", "pending", "unknown"].includes(alloc.ClientStatus));
  const { cpu, memory } = used(live);
  const size = { cpu: of.NodeResources?.Cpu.CpuShares ?? 0, memory: of.NodeResources?.Memory.MemoryMB ?? 0 };
  const healthy = Object.entries(of.Drivers ?? {}).filter(([, driver]) => driver.Healthy);
  const rows = [...(allocs ?? [])].sort((a, b) => b.CreateIndex - a.CreateIndex);
  return (
    <>
      <Section title="About">
        <Facts
          of={[
            ["Pool", of.NodePool],
            ["Datacenter", of.Datacenter],
            ["Class", of.NodeClass],
            ["Eligibility", of.SchedulingEligibility],
            ["Address", <span class="mono">{of.HTTPAddr}</span>],
            ["Drivers", healthy.map(([name]) => name).join(", ")],
            ["CPU that is given away", <Meter used={cpu} of={size.cpu} text={`${cpu.toLocaleString("en")} of ${size.cpu.toLocaleString("en")} MHz`} />],
            ["Memory that is given away", <Meter used={memory} of={size.memory} text={`${mib(memory)} of ${mib(size.memory)}`} />],
          ]}
        />
      </Section>
      <Section title="Allocations" aside={<span class="quiet">{plural(live.length, "live one")}</span>}>
        {allocs ? <AllocTable rows={rows} hasJob /> : <Missing error={error} what="allocations" />}
      </Section>
      <Section title="Events">
        <Table
          name="Events of the client"
          rows={[...(of.Events ?? [])].reverse()}
          of={(event) => `${event.Timestamp}${event.Message}`}
          columns={[
            { name: "When", cell: (event) => <Ago time={event.Timestamp} /> },
            { name: "About", cell: (event) => event.Subsystem },
            { name: "Message", cell: (event) => event.Message },
          ]}
        />
      </Section>
    </>
  );
}

/** What allocations were given of a client. */
export function used(allocs: Alloc[]): { cpu: number; memory: number } {
  const sum = { cpu: 0, memory: 0 };
  for (const alloc of allocs) {
    for (const task of Object.values(alloc.AllocatedResources?.Tasks ?? {})) {
      sum.cpu += task.Cpu.CpuShares;
      sum.memory += task.Memory.MemoryMB;
    }
  }
  return sum;
}

function Drivers({ of }: { of: Node }): JSX.Element {
  return (
    <Section title="Drivers">
      <Table
        name="Drivers"
        rows={Object.entries(of.Drivers ?? {}).sort(([a], [b]) => a.localeCompare(b))}
        of={([name]) => name}
        columns={[
          { name: "Driver", cell: ([name]) => name },
          { name: "State", cell: ([, driver]) => <Status of={driver.Healthy ? "healthy" : driver.Detected ? "unhealthy" : "not there"} /> },
          { name: "Details", cell: ([, driver]) => driver.HealthDescription },
        ]}
      />
    </Section>
  );
}

function Pairs({ title, of }: { title: string; of: Record<string, string> | null }): JSX.Element {
  return (
    <Section title={title}>
      <Table
        name={title}
        rows={Object.entries(of ?? {}).sort(([a], [b]) => a.localeCompare(b))}
        of={([name]) => name}
        columns={[
          { name: "Name", cell: ([name]) => <span class="mono">{name}</span> },
          { name: "Value", cell: ([, value]) => <span class="mono">{value}</span> },
        ]}
      />
    </Section>
  );
}
