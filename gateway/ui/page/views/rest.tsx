// Services, volumes and namespaces.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path, put, useGet } from "../api";
import { bytes, short } from "../format";
import { Action, Find, Form, Link, Missing, Section, Status, Table, Title } from "../parts";
import { address, named, namespace } from "../place";

const matches = (text: string, ...fields: string[]): boolean => fields.some((field) => field.toLowerCase().includes(text.toLowerCase()));

export function Services({ name }: { name?: string }): JSX.Element {
  return name ? <Service name={name} /> : <ServiceList />;
}

function ServiceList(): JSX.Element {
  const [text, setText] = useState("");
  const { data, error } = useGet<{ Namespace: string; Services: { ServiceName: string; Tags: string[] | null }[] | null }[]>(
    path(["services"], { namespace: namespace.value }),
    ["Service"],
  );
  const rows = (data ?? [])
    .flatMap((space) => (space.Services ?? []).map((service) => ({ ...service, Namespace: space.Namespace })))
    .filter((service) => matches(text, service.ServiceName));
  return (
    <>
      <Title kind="What allocations offer">Services</Title>
      <div class="tools">
        <Find value={text} set={setText} what="services" />
      </div>
      {data ? (
        <section>
          <Table
            name="Services"
            rows={rows}
            of={(one) => `${one.Namespace}/${one.ServiceName}`}
            columns={[
              { name: "Service", cell: (one) => <Link to={address("services", `${one.ServiceName}@${one.Namespace}`)}>{one.ServiceName}</Link> },
              { name: "Namespace", cell: (one) => one.Namespace },
              { name: "Tags", cell: (one) => (one.Tags ?? []).join(", ") },
            ]}
          />
        </section>
      ) : (
        <Missing error={error} what="services" />
      )}
    </>
  );
}

interface Instance {
  ID: string;
  JobID: string;
  AllocID: string;
  NodeID: string;
  Datacenter: string;
  Address: string;
  Port: number;
  Tags: string[] | null;
}

function Service({ name }: { name: string }): JSX.Element {
  const { id, ns } = named(name);
  const { data, error } = useGet<Instance[]>(path(["service", id], { namespace: ns }), ["Service"]);
  if (!data) return <Missing error={error} what="service" />;
  return (
    <>
      <Title kind={`Service in ${ns}`}>{id}</Title>
      <section>
        <Table
          name="Instances"
          rows={data}
          of={(one) => one.ID}
          columns={[
            { name: "Address", cell: (one) => <span class="mono">{one.Address}:{one.Port}</span> },
            { name: "Allocation", cell: (one) => <Link to={address("allocations", one.AllocID)} class="mono">{short(one.AllocID)}</Link> },
            { name: "Job", cell: (one) => <Link to={address("jobs", `${one.JobID}@${ns}`)}>{one.JobID}</Link> },
            { name: "Client", isMinor: true, cell: (one) => <Link to={address("clients", one.NodeID)} class="mono">{short(one.NodeID)}</Link> },
            { name: "Tags", isMinor: true, cell: (one) => (one.Tags ?? []).join(", ") },
          ]}
        />
      </section>
    </>
  );
}

interface HostVolume {
  ID: string;
  Name: string;
  Namespace: string;
  NodeID: string;
  NodePool: string;
  State: string;
  PluginID: string;
  CapacityBytes: number;
}

interface CsiVolume {
  ID: string;
  Name: string;
  Namespace: string;
  PluginID: string;
  Schedulable: boolean;
  CurrentReaders: number;
  CurrentWriters: number;
}

export function Volumes(): JSX.Element {
  const host = useGet<HostVolume[]>(path(["volumes"], { type: "host", namespace: namespace.value }), ["HostVolume", "Volume"]);
  const csi = useGet<CsiVolume[]>(path(["volumes"], { type: "csi", namespace: namespace.value }), ["CSIVolume", "Volume"]);
  return (
    <>
      <Title kind="Storage">Volumes</Title>
      <Section title="Host volumes">
        {host.data ? (
          <Table
            name="Host volumes"
            rows={host.data}
            of={(one) => one.ID}
            columns={[
              { name: "Volume", cell: (one) => one.Name },
              { name: "State", cell: (one) => <Status of={one.State} /> },
              { name: "Namespace", isMinor: true, cell: (one) => one.Namespace },
              { name: "Client", cell: (one) => <Link to={address("clients", one.NodeID)} class="mono">{short(one.NodeID)}</Link> },
              { name: "Plugin", isMinor: true, cell: (one) => one.PluginID },
              { name: "Size", isNumber: true, cell: (one) => bytes(one.CapacityBytes) },
            ]}
          />
        ) : (
          <Missing error={host.error} what="host volumes" />
        )}
      </Section>
      <Section title="CSI volumes">
        {csi.data ? (
          <Table
            name="CSI volumes"
            rows={csi.data}
            empty="No CSI volumes."
            of={(one) => one.ID}
            columns={[
              { name: "Volume", cell: (one) => one.Name || one.ID },
              { name: "Schedulable", cell: (one) => <Status of={one.Schedulable ? "healthy" : "unhealthy"} /> },
              { name: "Namespace", isMinor: true, cell: (one) => one.Namespace },
              { name: "Plugin", cell: (one) => one.PluginID },
              { name: "Readers", isNumber: true, cell: (one) => one.CurrentReaders },
              { name: "Writers", isNumber: true, cell: (one) => one.CurrentWriters },
            ]}
          />
        ) : (
          <Missing error={csi.error} what="CSI volumes" />
        )}
      </Section>
    </>
  );
}

export function Namespaces(): JSX.Element {
  const { data, error } = useGet<{ Name: string; Description: string; Quota: string }[]>("/v1/namespaces", ["Namespace"]);
  const pools = useGet<{ Name: string; Description: string }[]>("/v1/node/pools", ["NodePool"]);
  if (!data) return <Missing error={error} what="namespaces" />;
  return (
    <>
      <Title
        kind="Whose jobs are whose"
        aside={
          <Form
            name="New namespace"
            run={(fields) => put(path(["namespace", String(fields.get("name"))]), { Name: fields.get("name"), Description: fields.get("description") })}
          >
            <label class="field">
              <span>Name</span>
              <input name="name" required maxLength={128} />
            </label>
            <label class="field">
              <span>Description</span>
              <input name="description" maxLength={256} />
            </label>
          </Form>
        }
      >
        Namespaces
      </Title>
      <Section title="Namespaces">
        <Table
          name="Namespaces"
          rows={data}
          of={(one) => one.Name}
          columns={[
            { name: "Name", cell: (one) => one.Name },
            { name: "Description", cell: (one) => one.Description },
            {
              name: "Actions",
              cell: (one) =>
                one.Name === "default" ? null : (
                  <Action
                    name={`Delete ${one.Name}`}
                    kind="danger"
                    ask={`Namespace “${one.Name}” is deleted. It has to be empty.`}
                    run={() => put(path(["namespace", one.Name]), undefined, "DELETE")}
                  />
                ),
            },
          ]}
        />
      </Section>
      <Section title="Node pools">
        {pools.data ? (
          <Table
            name="Node pools"
            rows={pools.data}
            of={(one) => one.Name}
            columns={[
              { name: "Name", cell: (one) => one.Name },
              { name: "Description", cell: (one) => one.Description },
            ]}
          />
        ) : (
          <Missing error={pools.error} what="node pools" />
        )}
      </Section>
    </>
  );
}

