// Variables: what they hold, and what they held.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, path, put, useGet } from "../api";
import { Action, Ago, Find, Form, Link, Missing, Section, Table, Title } from "../parts";
import { address, go, named, namespace } from "../place";

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
            rows={data.filter((one) => one.Path.toLowerCase().includes(text.toLowerCase()))}
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
        <Items name="Items" of={data} isShown={isShown} />
      </Section>
      <Versions id={id} ns={ns} index={data.ModifyIndex} isShown={isShown} />
    </>
  );
}

function Items({ name, of, isShown }: { name: string; of: Variable; isShown: boolean }): JSX.Element {
  return (
    <Table
      name={name}
      rows={Object.entries(of.Items ?? {})}
      of={([key]) => key}
      columns={[
        { name: "Name", cell: ([key]) => <span class="mono">{key}</span> },
        { name: "Value", cell: ([, value]) => <span class="mono">{isShown ? value : "••••••••"}</span> },
      ]}
    />
  );
}

interface VariableVersion {
  Version: number;
  ModifyIndex: number;
  ModifyTime: number;
  AccessorID: string;
  Author: string;
}

interface OfVariable {
  id: string;
  ns: string;
  /** What it holds now came with it. */
  index: number;
  isShown: boolean;
}

function Versions({ id, ns, index, isShown }: OfVariable): JSX.Element {
  const [opened, setOpened] = useState<number>();
  const { data, error } = useGet<VariableVersion[]>(path(["var", id], { namespace: ns, versions: "true" }), ["Variable"]);
  if (!data) return <Missing error={error} what="versions" />;
  const of = (version: number): string => path(["var", id], { namespace: ns, version });
  const revert = async (version: number): Promise<unknown> => {
    const { Items } = await get<Variable>(of(version));
    return put(path(["var", id], { namespace: ns, cas: index }), { Path: id, Namespace: ns, Items });
  };
  return (
    <Section title="Versions">
      <Table
        name="Versions"
        rows={[...data].sort((one, other) => other.Version - one.Version)}
        of={(one) => String(one.Version)}
        columns={[
          { name: "Version", isNumber: true, cell: (one) => one.Version },
          { name: "Set", cell: (one) => <Ago time={one.ModifyTime} /> },
          { name: "By", cell: (one) => one.Author || one.AccessorID || <span class="quiet">without a token</span> },
          {
            name: "What it held",
            cell: (one) =>
              one.ModifyIndex === index ? (
                <span class="quiet">current</span>
              ) : (
                <span class="actions">
                  <button
                    type="button"
                    aria-expanded={one.Version === opened}
                    onClick={() => setOpened(one.Version === opened ? undefined : one.Version)}
                  >
                    Version {one.Version}
                  </button>
                  <Action
                    name={`Revert to ${one.Version}`}
                    ask={`Variable “${id}” is set to the items of version ${one.Version}.`}
                    run={() => revert(one.Version)}
                  />
                </span>
              ),
          },
        ]}
      />
      {opened !== undefined && <Held where={of(opened)} version={opened} isShown={isShown} />}
    </Section>
  );
}

function Held({ where, version, isShown }: { where: string; version: number; isShown: boolean }): JSX.Element {
  const { data, error } = useGet<Variable>(where, []);
  const name = `Items of version ${version}`;
  return (
    <Section title={name}>
      {data ? <Items name={name} of={data} isShown={isShown} /> : <Missing error={error} what="version" />}
    </Section>
  );
}
