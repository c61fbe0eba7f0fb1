// Services, variables, volumes and namespaces.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path, put, useGet } from "../api";
import { bytes, short } from "../format";
import { Action, Ago, Find, Form, Link, Missing, Section, Status, Table, Title } from "../parts";
import { address, go, named, namespace } from "../place";

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

interface VariableStub {
  Namespace: string;
  Path: string;
  CreateTime: number;
  ModifyTime: number;
  ModifyIndex: number;
}

interface Variable extends VariableStub {
  Items: Record<string, string> | null;
}

export function Variables({ name }: { name?: string }): JSX.Element {
  return name ? <VariableView name={name} /> : <VariableList />;
}

/** Lines of NAME=VALUE. */
function items(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const cut = line.indexOf("=");
    if (cut < 1) throw new Error(`“${line}”: expected NAME=VALUE`);
    found[line.slice(0, cut).trim()] = line.slice(cut + 1);
  }
  return found;
}

function VariableList(): JSX.Element {
  const [text, setText] = useState("");
  const { data, error } = useGet<VariableStub[]>(path(["vars"], { namespace: namespace.value, per_page: 1000 }), ["Variable"]);
  const create = async (fields: FormData): Promise<void> => {
    const [place, ns] = [String(fields.get("path")).trim(), namespace.value === "*" ? "default" : namespace.value];
    await put(path(["var", place], { namespace: ns, cas: 0 }), { Path: place, Namespace: ns, Items: items(String(fields.get("items"))) });
    go(address("variables", `${place}@${ns}`));
  };
  return (
    <>
      <Title
        kind="What jobs are given, and secrets"
        aside={
          <Form name="New variable" run={create}>
            <label class="field">
              <span>Path</span>
              <input name="path" required placeholder="nomad/jobs/web" />
            </label>
            <label class="field">
              <span>Items, a line each: NAME=VALUE</span>
              <textarea name="items" rows={6} required />
            </label>
          </Form>
        }
      >
        Variables
      </Title>
      <div class="tools">
        <Find value={text} set={setText} what="variables" />
      </div>
      {data ? (
        <section>
          <Table
            name="Variables"
            rows={data.filter((one) => matches(text, one.Path))}
            of={(one) => `${one.Namespace}/${one.Path}`}
            columns={[
              { name: "Path", cell: (one) => <Link to={address("variables", `${one.Path}@${one.Namespace}`)}>{one.Path}</Link> },
              { name: "Namespace", cell: (one) => one.Namespace },
              { name: "Changed", cell: (one) => <Ago time={one.ModifyTime} /> },
            ]}
          />
        </section>
      ) : (
        <Missing error={error} what="variables" />
      )}
    </>
  );
}

function VariableView({ name }: { name: string }): JSX.Element {
  const { id, ns } = named(name);
  const [isShown, setShown] = useState(false);
  const { data, error } = useGet<Variable>(path(["var", id], { namespace: ns }), ["Variable"]);
  if (!data) return <Missing error={error} what="variable" />;
  const pairs = Object.entries(data.Items ?? {});
  const where = path(["var", id], { namespace: ns, cas: data.ModifyIndex });
  return (
    <>
      <Title
        kind={`Variable in ${ns}`}
        aside={
          <>
            <button type="button" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
              {isShown ? "Hide values" : "Show values"}
            </button>
            <Form
              name="Change"
              run={(fields) => put(where, { Path: id, Namespace: ns, Items: items(String(fields.get("items"))) })}
            >
              <label class="field">
                <span>Items, a line each: NAME=VALUE</span>
                <textarea name="items" rows={10} required defaultValue={pairs.map(([key, value]) => `${key}=${value}`).join("\n")} />
              </label>
            </Form>
            <Action
              name="Delete"
              kind="danger"
              ask={`Variable “${id}” is deleted.`}
              run={async () => {
                await put(where, undefined, "DELETE");
                go(address("variables"));
              }}
            />
          </>
        }
      >
        {id}
      </Title>
      <Section title="Items" aside={<span class="quiet">changed <Ago time={data.ModifyTime} /></span>}>
        <Table
          name="Items"
          rows={pairs}
          of={([key]) => key}
          columns={[
            { name: "Name", cell: ([key]) => <span class="mono">{key}</span> },
            { name: "Value", cell: ([, value]) => <span class="mono">{isShown ? value : "••••••••"}</span> },
          ]}
        />
      </Section>
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

