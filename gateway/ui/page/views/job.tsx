import type { JSX } from "preact";
import { path, put, useGet } from "../api";
import { plural, short } from "../format";
import { Action, Ago, Bar, Facts, Form, Json, Link, Missing, Section, Status, Table, Tabs, Title, say } from "../parts";
import { address, at, change, go, named } from "../place";
import type { Alloc, Counts, Deployment, Diff, Eval, Job } from "../types";
import { AllocTable } from "./alloc";
import { DiffView } from "./diff";
import { EvalTable } from "./evals";
import { History } from "./history";
import { Why } from "./why";

interface Of {
  id: string;
  ns: string;
}

interface WithJob extends Of {
  job: Job;
}

const PARTS: [string, string][] = [
  ["overview", "Overview"],
  ["allocations", "Allocations"],
  ["evaluations", "Evaluations"],
  ["deployments", "Deployments"],
  ["versions", "Versions"],
  ["definition", "Definition"],
  ["why", "Why"],
  ["history", "History"],
];

export function JobView({ name, part }: { name: string; part: string }): JSX.Element {
  const { id, ns } = named(name);
  const { data: job, error } = useGet<Job>(path(["job", id], { namespace: ns }), ["Job", "Evaluation", "Allocation", "Deployment"]);
  if (!job) return <Missing error={error} what={`job “${id}”`} />;
  const of = { id, ns, job };
  return (
    <>
      <Title kind={`Job in ${ns}, version ${job.Version}`} aside={<Actions {...of} />}>
        {id} <Status of={job.Stop && job.Status === "dead" ? "stopped" : job.Status} />
      </Title>
      <Tabs current={part} of={PARTS.map(([key, text]) => [key, text, address("jobs", `${id}@${ns}`, ...(key === "overview" ? [] : [key]))])} />
      <Part {...of} part={part} />
    </>
  );
}

function Part({ part, ...of }: WithJob & { part: string }): JSX.Element {
  switch (part) {
    case "allocations":
      return <JobAllocs {...of} />;
    case "evaluations":
      return <JobEvals {...of} />;
    case "deployments":
      return <Deployments {...of} />;
    case "versions":
      return <Versions {...of} />;
    case "definition":
      return <Definition {...of} />;
    case "why":
      return <Why kind="job" id={of.id} ns={of.ns} />;
    case "history":
      return <History kind="job" id={of.id} ns={of.ns} />;
    default:
      return <Overview {...of} />;
  }
}

function Actions({ id, ns, job }: WithJob): JSX.Element {
  const where = path(["job", id], { namespace: ns });
  return (
    <>
      {job.ParameterizedJob && <Dispatch id={id} ns={ns} job={job} />}
      {job.Periodic && (
        <Action name="Launch now" run={() => put(path(["job", id, "periodic", "force"], { namespace: ns }))} />
      )}
      <button
        type="button"
        disabled={at.value !== null}
        title={at.value ? "The past cannot be changed" : undefined}
        onClick={() => {
          go(address("jobs", "run"));
          change({ of: `${id}@${ns}` }, false);
        }}
      >
        Change
      </button>
      {job.Stop ? (
        <Action
          name="Start"
          kind="strong"
          ask={`Job “${id}” is registered again as version ${job.Version} has it.`}
          run={() => put(`/v1/jobs?namespace=${encodeURIComponent(ns)}`, { Job: { ...job, Stop: false } })}
        />
      ) : (
        <Action name="Stop" kind="danger" ask={`All allocations of “${id}” are stopped. The job stays known and can be started again.`} run={() => put(where, undefined, "DELETE")} />
      )}
    </>
  );
}

function Dispatch({ id, ns, job }: WithJob): JSX.Element {
  const takes = job.ParameterizedJob!;
  const required = takes.MetaRequired ?? [];
  const run = async (fields: FormData): Promise<void> => {
    const meta: Record<string, string> = {};
    for (const key of [...required, ...(takes.MetaOptional ?? [])]) {
      const value = String(fields.get(`meta.${key}`) ?? "");
      if (value) meta[key] = value;
    }
    const payload = String(fields.get("payload") ?? "");
    const bytes = new TextEncoder().encode(payload);
    const body = { Meta: meta, Payload: payload ? btoa(String.fromCharCode(...bytes)) : undefined };
    const { DispatchedJobID } = await put<{ DispatchedJobID: string }>(path(["job", id, "dispatch"], { namespace: ns }), body);
    say(`Dispatched as ${DispatchedJobID}`);
    go(address("jobs", `${DispatchedJobID}@${ns}`));
  };
  return (
    <Form name="Dispatch" kind="strong" run={run}>
      {[...required, ...(takes.MetaOptional ?? [])].map((key) => (
        <label class="field">
          <span>
            {key}
            {required.includes(key) ? "" : " (optional)"}
          </span>
          <input name={`meta.${key}`} required={required.includes(key)} />
        </label>
      ))}
      {takes.Payload !== "forbidden" && (
        <label class="field">
          <span>Payload{takes.Payload === "required" ? "" : " (optional)"}</span>
          <textarea name="payload" rows={5} required={takes.Payload === "required"} maxLength={16384} />
        </label>
      )}
    </Form>
  );
}

function Overview({ id, ns, job }: WithJob): JSX.Element {
  const { data: summary } = useGet<{ Summary: Record<string, Counts> | null }>(path(["job", id, "summary"], { namespace: ns }), [
    "Job",
    "Allocation",
    "Evaluation",
  ]);
  const isTemplate = job.ParameterizedJob !== null && !job.Dispatched;
  return (
    <>
      <Section title="About">
        <Facts
          of={[
            ["Type", job.Type],
            ["Priority", job.Priority],
            ["Node pool", job.NodePool],
            ["Datacenters", (job.Datacenters ?? []).join(", ")],
            ["Submitted", <Ago time={job.SubmitTime} />],
            ...(job.Periodic ? [["Launched", job.Periodic.Spec] as [string, string]] : []),
            ...(job.ParentID ? [["Parent", <Link to={address("jobs", `${job.ParentID}@${ns}`)}>{job.ParentID}</Link>] as [string, JSX.Element]] : []),
          ]}
        />
      </Section>
      <Section title="Task groups">
        <Table
          name="Task groups"
          rows={job.TaskGroups ?? []}
          of={(group) => group.Name}
          columns={[
            { name: "Group", cell: (group) => group.Name },
            { name: "Wanted", isNumber: true, cell: (group) => group.Count },
            { name: "Allocations", cell: (group) => <Bar counts={summary?.Summary?.[group.Name] ?? {}} /> },
            { name: "Tasks", isMinor: true, cell: (group) => group.Tasks.map((task) => `${task.Name} (${task.Driver})`).join(", ") },
            {
              name: "Actions",
              cell: (group) =>
                (job.Type === "service" || job.Type === "batch") && !job.Stop && !isTemplate ? (
                  <Form
                    name="Scale"
                    run={(fields) =>
                      put(path(["job", id, "scale"], { namespace: ns }), {
                        Count: Number(fields.get("count")),
                        Target: { Group: group.Name },
                        Message: "from the web page",
                      })
                    }
                  >
                    <label class="field">
                      <span>Allocations of “{group.Name}”</span>
                      <input type="number" name="count" min={0} defaultValue={String(group.Count)} required />
                    </label>
                  </Form>
                ) : null,
            },
          ]}
        />
      </Section>
      {isTemplate || job.Periodic ? <Children id={id} ns={ns} /> : <JobAllocs id={id} ns={ns} />}
    </>
  );
}

function Children({ id, ns }: Of): JSX.Element {
  const { data, error } = useGet<{ ID: string; Status: string; ParentID: string; SubmitTime: number }[]>(
    path(["jobs"], { prefix: `${id}/`, namespace: ns, per_page: 200 }),
    ["Job", "Allocation"],
  );
  if (!data) return <Missing error={error} what="children" />;
  const rows = data.filter((child) => child.ParentID === id).sort((a, b) => b.SubmitTime - a.SubmitTime);
  return (
    <Section title="Children">
      <Table
        name="Children"
        rows={rows}
        of={(child) => child.ID}
        columns={[
          { name: "Job", cell: (child) => <Link to={address("jobs", `${child.ID}@${ns}`)}>{child.ID.slice(id.length + 1)}</Link> },
          { name: "Status", cell: (child) => <Status of={child.Status} /> },
          { name: "Submitted", cell: (child) => <Ago time={child.SubmitTime} /> },
        ]}
      />
    </Section>
  );
}

function JobAllocs({ id, ns }: Of): JSX.Element {
  const { data, error } = useGet<Alloc[]>(path(["job", id, "allocations"], { namespace: ns }), ["Allocation"]);
  if (!data) return <Missing error={error} what="allocations" />;
  const rows = [...data].sort((a, b) => b.CreateIndex - a.CreateIndex);
  return (
    <Section title="Allocations" aside={<span class="quiet">{plural(rows.length, "allocation")}</span>}>
      <AllocTable rows={rows} />
    </Section>
  );
}

function JobEvals({ id, ns }: Of): JSX.Element {
  const { data, error } = useGet<Eval[]>(path(["job", id, "evaluations"], { namespace: ns }), ["Evaluation"]);
  if (!data) return <Missing error={error} what="evaluations" />;
  return (
    <Section title="Evaluations">
      <EvalTable rows={[...data].sort((a, b) => b.CreateTime - a.CreateTime)} />
    </Section>
  );
}

function Deployments({ id, ns }: Of): JSX.Element {
  const { data, error } = useGet<Deployment[]>(path(["job", id, "deployments"], { namespace: ns }), ["Deployment", "Allocation"]);
  if (!data) return <Missing error={error} what="deployments" />;
  if (data.length === 0) return <p class="empty">No deployments: batch and system jobs have none.</p>;
  return (
    <>
      {[...data]
        .sort((a, b) => b.CreateTime - a.CreateTime)
        .map((deployment) => (
          <DeploymentCard key={deployment.ID} of={deployment} />
        ))}
    </>
  );
}

function DeploymentCard({ of }: { of: Deployment }): JSX.Element {
  const isOpen = ["running", "paused", "pending", "blocked", "unblocking"].includes(of.Status);
  const groups = Object.entries(of.TaskGroups ?? {});
  const hasCanaries = groups.some(([, group]) => group.DesiredCanaries > 0 && !group.Promoted);
  const send = (verb: string, body?: object): Promise<unknown> => put(path(["deployment", verb, of.ID]), body);
  const actions = isOpen && (
    <span class="actions">
      {hasCanaries && (
        <Action
          name="Promote"
          kind="strong"
          ask={`The canaries of version ${of.JobVersion} replace what runs now.`}
          run={() => send("promote", { DeploymentID: of.ID, All: true })}
        />
      )}
      <Action
        name={of.Status === "paused" ? "Resume" : "Pause"}
        run={() => send("pause", { DeploymentID: of.ID, Pause: of.Status !== "paused" })}
      />
      <Action name="Fail" kind="danger" ask="The deployment ends here. Where the job says so, the last stable version comes back." run={() => send("fail")} />
    </span>
  );
  return (
    <Section title={`Version ${of.JobVersion}, deployment ${short(of.ID)}`} aside={actions}>
      <p>
        <Status of={of.Status} /> <span class="quiet">{of.StatusDescription}</span>, began <Ago time={of.CreateTime} />
      </p>
      <Table
        name={`Groups of deployment ${short(of.ID)}`}
        rows={groups}
        of={([name]) => name}
        columns={[
          { name: "Group", cell: ([name]) => name },
          { name: "Healthy", isNumber: true, cell: ([, group]) => `${group.HealthyAllocs} of ${group.DesiredTotal}` },
          { name: "Placed", isNumber: true, cell: ([, group]) => group.PlacedAllocs },
          { name: "Unhealthy", isNumber: true, cell: ([, group]) => group.UnhealthyAllocs },
          {
            name: "Canaries",
            isNumber: true,
            cell: ([, group]) =>
              group.DesiredCanaries ? `${group.PlacedCanaries?.length ?? 0} of ${group.DesiredCanaries}${group.Promoted ? ", promoted" : ""}` : "none",
          },
        ]}
      />
    </Section>
  );
}

function Versions({ id, ns, job }: WithJob): JSX.Element {
  const where = path(["job", id, "versions"], { namespace: ns, diffs: "true" });
  const { data, error } = useGet<{ Versions: Job[]; Diffs: Diff[] | null }>(where, ["Job", "Deployment"]);
  if (!data) return <Missing error={error} what="versions" />;
  return (
    <>
      {data.Versions.map((version, place) => (
        <Section
          key={version.Version}
          title={`Version ${version.Version}`}
          aside={
            version.Version !== job.Version ? (
              <Action
                name={`Revert to ${version.Version}`}
                ask={`Job “${id}” is registered again as version ${version.Version} has it.`}
                run={() =>
                  put(path(["job", id, "revert"], { namespace: ns }), {
                    JobID: id,
                    JobVersion: version.Version,
                    EnforcePriorVersion: job.Version,
                  })
                }
              />
            ) : (
              <span class="quiet">current</span>
            )
          }
        >
          <p class="quiet">
            {version.Stable ? "stable, " : ""}submitted <Ago time={version.SubmitTime} />
          </p>
          {data.Diffs?.[place] ? <DiffView of={data.Diffs[place]} /> : <p class="empty">The oldest version that is kept.</p>}
        </Section>
      ))}
    </>
  );
}

function Definition({ id, ns, job }: WithJob): JSX.Element {
  const where = path(["job", id, "submission"], { namespace: ns, version: job.Version });
  const { data } = useGet<{ Source: string; Format: string }>(where, []);
  return (
    <>
      {data?.Source && (
        <Section title="As it was written">
          <pre class="code" tabIndex={0} role="region" aria-label="As it was written">
            {data.Source}
          </pre>
        </Section>
      )}
      <Section title="As it is understood">
        <Json name="The job as JSON" value={job} />
      </Section>
    </>
  );
}
