import type { JSX } from "preact";
import { useGet } from "../api";
import { Ago, Facts, Missing, Section, Status, Table, Title } from "../parts";
import { at } from "../place";

interface Member {
  Name: string;
  Addr: string;
  Port: number;
  Status: string;
  Tags: Record<string, string>;
}

interface Health {
  Healthy: boolean;
  FailureTolerance: number;
  Servers: {
    ID: string;
    Name: string;
    Address: string;
    Version: string;
    Leader: boolean;
    Voter: boolean;
    Healthy: boolean;
    LastContact: string;
    LastTerm: number;
    LastIndex: number;
    StableSince: string;
  }[];
}

export function Servers(): JSX.Element {
  const { data: members, error } = useGet<{ Members: Member[] | null }>("/v1/agent/members", ["Node", "Operator"], { now: true });
  const { data: health } = useGet<Health>("/v1/operator/autopilot/health", ["Node", "Job", "Allocation", "Evaluation"], { now: true, quiet: true });
  if (!members) return <Missing error={error} what="servers" />;
  const servers = health?.Servers ?? [];
  const last = Math.max(0, ...servers.map((server) => server.LastIndex));
  return (
    <>
      <Title kind="Who keeps the log">Servers</Title>
      {at.value && <p class="note warn">Servers are shown as they are now: of them there is no past.</p>}
      {health && (
        <Section title="Cluster" aside={<Status of={health.Healthy ? "healthy" : "unhealthy"} />}>
          <Facts
            of={[
              ["Servers", servers.length],
              ["Voters", servers.filter((server) => server.Voter).length],
              ["May fail at once", health.FailureTolerance],
              ["Newest index", last],
            ]}
          />
        </Section>
      )}
      {health && (
        <Section title="Raft">
          <Table
            name="Servers in the raft cluster"
            rows={servers}
            of={(server) => server.ID}
            columns={[
              { name: "Server", cell: (server) => server.Name },
              { name: "Role", cell: (server) => <Status of={server.Leader ? "leader" : server.Voter ? "follower" : "not voting"} /> },
              { name: "Health", cell: (server) => <Status of={server.Healthy ? "healthy" : "unhealthy"} /> },
              { name: "Behind", isNumber: true, cell: (server) => last - server.LastIndex },
              { name: "Last contact", isMinor: true, isNumber: true, cell: (server) => server.LastContact },
              { name: "Term", isMinor: true, isNumber: true, cell: (server) => server.LastTerm },
              { name: "Stable", isMinor: true, cell: (server) => <Ago time={server.StableSince} /> },
              { name: "Address", isMinor: true, cell: (server) => <span class="mono">{server.Address}</span> },
            ]}
          />
        </Section>
      )}
      <Section title="Members">
        <Table
          name="Members"
          rows={members.Members ?? []}
          of={(member) => member.Name}
          columns={[
            { name: "Name", cell: (member) => member.Name },
            { name: "Status", cell: (member) => <Status of={member.Status} /> },
            { name: "Region", cell: (member) => member.Tags.region ?? "" },
            { name: "Datacenter", isMinor: true, cell: (member) => member.Tags.dc ?? "" },
            { name: "Release", isMinor: true, cell: (member) => member.Tags.sojourn ?? "" },
            { name: "Address", isMinor: true, cell: (member) => <span class="mono">{member.Addr}:{member.Port}</span> },
          ]}
        />
      </Section>
    </>
  );
}
