// Who may do what: tokens, policies, roles, and how people log in.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { path, put, useGet } from "../api";
import { clock, short } from "../format";
import { Action, Ago, Facts, Find, Form, Link, Missing, Section, Table, Tabs, Title, copy } from "../parts";
import { address, go } from "../place";

interface TokenStub {
  AccessorID: string;
  Name: string;
  Type: string;
  Policies: string[] | null;
  Roles: { ID: string; Name: string }[] | null;
  CreateTime: string;
  ExpirationTime?: string | null;
}

interface Token extends TokenStub {
  SecretID: string;
}

interface Policy {
  Name: string;
  Description: string;
}

interface PolicyRead extends Policy {
  Rules: string;
  JobACL?: { Namespace: string; JobID: string; Group: string; Task: string } | null;
  ModifyIndex: number;
}

interface Role {
  ID: string;
  Name: string;
  Description: string;
  Policies: { Name: string }[] | null;
}

interface Method {
  Name: string;
  Type: string;
  Default: boolean;
}

interface Rule {
  ID: string;
  Description: string;
  AuthMethod: string;
}

const PARTS = [
  ["tokens", "Tokens"],
  ["policies", "Policies"],
  ["roles", "Roles"],
  ["login", "Login"],
] as const;

const text = (fields: FormData, name: string): string => String(fields.get(name) ?? "").trim();

export function Access({ part, name }: { part: string; name?: string }): JSX.Element {
  if (part === "policies" && name !== undefined) return <PolicyView key={name} name={name} />;
  return (
    <>
      <Title kind="Who may do what">Access control</Title>
      <Tabs current={part} of={PARTS.map(([key, title]) => [key, title, address("access-control", key)])} />
      {part === "policies" ? <Policies /> : part === "roles" ? <Roles /> : part === "login" ? <Methods /> : <Tokens />}
    </>
  );
}

/** Links to policies, in the order given. */
function Named({ policies }: { policies: string[] }): JSX.Element {
  return (
    <>
      {policies.map((one, place) => (
        <>
          {place > 0 && ", "}
          <Link to={address("access-control", "policies", one)}>{one}</Link>
        </>
      ))}
    </>
  );
}

function Ticks({ name, title, of }: { name: string; title: string; of: [string, string][] }): JSX.Element | null {
  if (of.length === 0) return null;
  return (
    <fieldset>
      <legend>{title}</legend>
      {of.map(([value, word]) => (
        <label class="check">
          <input type="checkbox" name={name} value={value} />
          {word}
        </label>
      ))}
    </fieldset>
  );
}

function Tokens(): JSX.Element {
  const [find, setFind] = useState("");
  const [made, setMade] = useState<Token | null>(null);
  const { data, error } = useGet<TokenStub[]>("/v1/acl/tokens", ["ACLToken", "ACLRole"]);
  const policies = useGet<Policy[]>("/v1/acl/policies", ["ACLPolicy"], { quiet: true });
  const roles = useGet<Role[]>("/v1/acl/roles", ["ACLRole"], { quiet: true });
  if (!data) return <Missing error={error} what="tokens" />;
  const create = async (fields: FormData): Promise<void> => {
    const wanted = {
      Name: text(fields, "name"),
      Type: text(fields, "type"),
      Policies: fields.getAll("policy"),
      Roles: fields.getAll("role").map((id) => ({ ID: id })),
      ExpirationTTL: text(fields, "ttl") || undefined,
    };
    setMade(await put<Token>("/v1/acl/token", wanted));
  };
  const shown = data.filter((one) => `${one.Name} ${one.AccessorID}`.toLowerCase().includes(find.toLowerCase()));
  return (
    <>
      <div class="tools">
        <Find value={find} set={setFind} what="tokens" />
        <Form name="New token" run={create}>
          <label class="field">
            <span>Name</span>
            <input name="name" required maxLength={256} />
          </label>
          <label class="field">
            <span>Type: a client has the rights of its policies and roles, management has all</span>
            <select name="type">
              <option value="client">client</option>
              <option value="management">management</option>
            </select>
          </label>
          <Ticks name="policy" title="Policies" of={(policies.data ?? []).map((one) => [one.Name, one.Name])} />
          <Ticks name="role" title="Roles" of={(roles.data ?? []).map((one) => [one.ID, one.Name])} />
          <label class="field">
            <span>Expires after, as 8h; never if left empty</span>
            <input name="ttl" placeholder="never" />
          </label>
        </Form>
      </div>
      {made && (
        <div class="note good" role="status">
          <strong>Token “{made.Name}” was made.</strong> Its secret is shown here once: <span class="mono">{made.SecretID}</span>
          <p class="actions">
            <button type="button" onClick={() => void copy(made.SecretID)}>
              Copy the secret
            </button>
            <button type="button" onClick={() => setMade(null)}>
              Hide it
            </button>
          </p>
        </div>
      )}
      <section>
        <Table
          name="Tokens"
          rows={shown}
          of={(one) => one.AccessorID}
          columns={[
            { name: "Name", cell: (one) => one.Name || <span class="quiet">none</span> },
            { name: "Accessor", isMinor: true, cell: (one) => <span class="mono" title={one.AccessorID}>{short(one.AccessorID)}</span> },
            { name: "Type", cell: (one) => one.Type },
            { name: "Policies", cell: (one) => <Named policies={one.Policies ?? []} /> },
            { name: "Roles", cell: (one) => (one.Roles ?? []).map((role) => role.Name).join(", ") },
            { name: "Made", isMinor: true, cell: (one) => <Ago time={one.CreateTime} /> },
            { name: "Expires", cell: (one) => <Expiry time={one.ExpirationTime} /> },
            {
              name: "Actions",
              cell: (one) => (
                <Removal
                  what={`Delete ${one.Name || short(one.AccessorID)}`}
                  ask={`Token “${one.Name || one.AccessorID}” is deleted. Whoever uses it is refused from then on.`}
                  where={path(["acl", "token", one.AccessorID])}
                />
              ),
            },
          ]}
        />
      </section>
    </>
  );
}

function Expiry({ time }: { time?: string | null }): JSX.Element {
  if (!time) return <span class="quiet">never</span>;
  const date = new Date(time);
  return (
    <time dateTime={date.toISOString()}>
      {clock(date)}
      {date.getTime() < Date.now() && " (over)"}
    </time>
  );
}

function Removal({ what, ask, where, then }: { what: string; ask: string; where: string; then?: () => void }): JSX.Element {
  const run = async (): Promise<void> => {
    await put(where, undefined, "DELETE");
    then?.();
  };
  return <Action name={what} kind="danger" ask={ask} run={run} />;
}

const RULES = 'namespace "default" {\n  policy = "read"\n}\n';

function PolicyFields({ of, children }: { of?: PolicyRead; children?: ComponentChildren }): JSX.Element {
  return (
    <>
      {children}
      <label class="field">
        <span>Description</span>
        <input name="description" maxLength={256} defaultValue={of?.Description} />
      </label>
      <label class="field">
        <span>Rules</span>
        <textarea name="rules" class="mono" rows={14} required spellcheck={false} defaultValue={of?.Rules ?? RULES} />
      </label>
    </>
  );
}

const savePolicy = (name: string, fields: FormData, of?: PolicyRead): Promise<unknown> =>
  put(path(["acl", "policy", name]), {
    Name: name,
    Description: text(fields, "description"),
    Rules: String(fields.get("rules")),
    JobACL: of?.JobACL ?? undefined,
  });

function Policies(): JSX.Element {
  const { data, error } = useGet<Policy[]>("/v1/acl/policies", ["ACLPolicy"]);
  if (!data) return <Missing error={error} what="policies" />;
  return (
    <Section
      title="Policies"
      aside={
        <Form
          name="New policy"
          run={async (fields) => {
            const name = text(fields, "name");
            // What is there already is changed on its own page, where it is seen first.
            if (data.some((one) => one.Name === name)) throw new Error(`there is a policy “${name}” already`);
            await savePolicy(name, fields);
            go(address("access-control", "policies", name));
          }}
        >
          <PolicyFields>
            <label class="field">
              <span>Name</span>
              <input name="name" required maxLength={128} pattern="[a-zA-Z0-9\-]+" title="Letters, digits and dashes" />
            </label>
          </PolicyFields>
        </Form>
      }
    >
      <Table
        name="Policies"
        rows={data}
        of={(one) => one.Name}
        columns={[
          { name: "Name", cell: (one) => <Named policies={[one.Name]} /> },
          { name: "Description", cell: (one) => one.Description },
        ]}
      />
    </Section>
  );
}

function PolicyView({ name }: { name: string }): JSX.Element {
  const { data, error } = useGet<PolicyRead>(path(["acl", "policy", name]), ["ACLPolicy"]);
  const tokens = useGet<TokenStub[]>("/v1/acl/tokens", ["ACLToken"], { quiet: true });
  if (!data) return <Missing error={error} what="policy" />;
  const holders = (tokens.data ?? []).filter((one) => one.Policies?.includes(name));
  const job = data.JobACL;
  return (
    <>
      <Title
        kind="Policy"
        aside={
          <>
            <Form name="Change" run={(fields) => savePolicy(name, fields, data)}>
              <PolicyFields of={data} />
            </Form>
            <Removal
              what="Delete"
              ask={`Policy “${name}” is deleted. Tokens and roles that name it lose what it allows.`}
              where={path(["acl", "policy", name])}
              then={() => go(address("access-control", "policies"))}
            />
          </>
        }
      >
        {name}
      </Title>
      <section>
        <Facts
          of={[
            ["Description", data.Description],
            ["Holds for the workload", job ? [job.Namespace, job.JobID, job.Group, job.Task].filter(Boolean).join(" / ") : ""],
            ["Tokens that name it", tokens.data ? String(holders.length) : "not to be seen"],
          ]}
        />
      </section>
      <Section title="Rules">
        <pre class="code" tabIndex={0} role="region" aria-label="Rules">
          {data.Rules}
        </pre>
      </Section>
    </>
  );
}

function Roles(): JSX.Element {
  const { data, error } = useGet<Role[]>("/v1/acl/roles", ["ACLRole"]);
  const policies = useGet<Policy[]>("/v1/acl/policies", ["ACLPolicy"], { quiet: true });
  if (!data) return <Missing error={error} what="roles" />;
  const create = (fields: FormData): Promise<unknown> =>
    put("/v1/acl/role", {
      Name: text(fields, "name"),
      Description: text(fields, "description"),
      Policies: fields.getAll("policy").map((one) => ({ Name: one })),
    });
  return (
    <Section
      title="Roles"
      aside={
        <Form name="New role" run={create}>
          <label class="field">
            <span>Name</span>
            <input name="name" required maxLength={128} />
          </label>
          <label class="field">
            <span>Description</span>
            <input name="description" maxLength={256} />
          </label>
          <Ticks name="policy" title="Policies" of={(policies.data ?? []).map((one) => [one.Name, one.Name])} />
        </Form>
      }
    >
      <Table
        name="Roles"
        rows={data}
        of={(one) => one.ID}
        columns={[
          { name: "Name", cell: (one) => one.Name },
          { name: "Description", isMinor: true, cell: (one) => one.Description },
          { name: "Policies", cell: (one) => <Named policies={(one.Policies ?? []).map((policy) => policy.Name)} /> },
          {
            name: "Actions",
            cell: (one) => (
              <Removal
                what={`Delete ${one.Name}`}
                ask={`Role “${one.Name}” is deleted. Tokens that hold it lose what its policies allow.`}
                where={path(["acl", "role", one.ID])}
              />
            ),
          },
        ]}
      />
    </Section>
  );
}

function Methods(): JSX.Element {
  const { data, error } = useGet<Method[]>("/v1/acl/auth-methods", ["ACLAuthMethod"]);
  const rules = useGet<Rule[]>("/v1/acl/binding-rules", ["ACLBindingRule"], { quiet: true });
  if (!data) return <Missing error={error} what="auth methods" />;
  return (
    <>
      <Section title="Auth methods">
        <Table
          name="Auth methods"
          rows={data}
          of={(one) => one.Name}
          empty="People log in with tokens alone. sojourn acl auth-method create makes a method."
          columns={[
            { name: "Name", cell: (one) => one.Name },
            { name: "Type", cell: (one) => one.Type },
            { name: "Used when none is named", cell: (one) => (one.Default ? "yes" : "") },
          ]}
        />
      </Section>
      <Section title="Binding rules">
        {rules.data ? (
          <Table
            name="Binding rules"
            rows={rules.data}
            of={(one) => one.ID}
            columns={[
              { name: "Rule", cell: (one) => <span class="mono">{short(one.ID)}</span> },
              { name: "Auth method", cell: (one) => one.AuthMethod },
              { name: "Description", cell: (one) => one.Description },
            ]}
          />
        ) : (
          <Missing error={rules.error} what="binding rules" />
        )}
      </Section>
    </>
  );
}
