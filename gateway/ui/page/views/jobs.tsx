import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path, useGet } from "../api";
import { plural } from "../format";
import { Ago, Bar, Choice, Find, Link, Missing, Pages, Status, Table, Title, usePages, useSettled } from "../parts";
import { address, at, namespace } from "../place";
import type { Counts, JobStub } from "../types";

/** Rows that are read at once. What the filter looks for is then found by the server. */
export const PAGE = 500;

export function total(job: JobStub): Partial<Counts> {
  const sum: Partial<Counts> = {};
  for (const group of Object.values(job.JobSummary?.Summary ?? {})) {
    for (const [name, count] of Object.entries(group) as [keyof Counts, number][]) sum[name] = (sum[name] ?? 0) + count;
  }
  return sum;
}

/** A text as the language of filters has it. */
export function quoted(text: string): string {
  return JSON.stringify(text);
}

/** A filter for what has the text, as it is written, in one of the fields. */
export function anyContains(fields: string[], text: string): string | undefined {
  return text ? fields.map((field) => `${field} contains ${quoted(text)}`).join(" or ") : undefined;
}

export function Jobs(): JSX.Element {
  const [text, setText] = useState("");
  const [status, setStatus] = useState("");
  const [isLong, setLong] = useState(false);
  const asked = useSettled(text);
  const filter = isLong ? anyContains(["Name", "ID"], asked) : undefined;
  const pages = usePages(`${namespace.value} ${filter} ${at.value}`);
  const where = path(["jobs"], { namespace: namespace.value, per_page: PAGE, next_token: pages.token, filter });
  const { data, error, next } = useGet<JobStub[]>(where, ["Job", "Allocation", "Evaluation", "Deployment"]);
  if (next && !isLong) setLong(true);
  const counts = new Map<string, number>();
  for (const job of data ?? []) counts.set(job.Status, (counts.get(job.Status) ?? 0) + 1);
  const lower = text.toLowerCase();
  const rows = (data ?? []).filter(
    (job) => (!status || job.Status === status) && (job.ID.toLowerCase().includes(lower) || job.Name.toLowerCase().includes(lower)),
  );
  return (
    <>
      <Title
        kind={namespace.value === "*" ? "All namespaces" : `Namespace ${namespace.value}`}
        aside={
          at.value ? (
            <button type="button" disabled title="The past cannot be changed">
              Run a job
            </button>
          ) : (
            <Link to={address("jobs", "run")} class="button">
              Run a job
            </Link>
          )
        }
      >
        Jobs
      </Title>
      <div class="tools">
        <Find value={text} set={setText} what="jobs" />
        <Choice
          name="Status"
          value={status}
          set={setStatus}
          of={[["", "any"], ...["running", "pending", "dead"].map((one): [string, string] => [one, `${one} (${counts.get(one) ?? 0})`])]}
        />
        <span class="quiet">{data && plural(rows.length, "job")}</span>
      </div>
      {data ? (
        <section>
          <Table
            name="Jobs"
            rows={rows}
            of={(job) => `${job.Namespace}/${job.ID}`}
            empty={text || status ? "No job is like that." : at.value ? "There were no jobs." : "No jobs yet. “Run a job” takes one as HCL or JSON."}
            columns={[
              { name: "Job", cell: (job) => <Link to={address("jobs", `${job.ID}@${job.Namespace}`)}>{job.ID}</Link> },
              { name: "Status", cell: (job) => <Status of={job.Status} title={job.StatusDescription} /> },
              { name: "Allocations", cell: (job) => <JobCounts job={job} /> },
              { name: "Type", isMinor: true, cell: kind },
              { name: "Namespace", isMinor: true, cell: (job) => job.Namespace },
              { name: "Pool", isMinor: true, cell: (job) => job.NodePool },
              { name: "Priority", isMinor: true, isNumber: true, cell: (job) => job.Priority },
              { name: "Submitted", isMinor: true, cell: (job) => <Ago time={job.SubmitTime} /> },
            ]}
          />
          <Pages at={pages} next={next} what="jobs" />
        </section>
      ) : (
        <Missing error={error} what="jobs" />
      )}
    </>
  );
}

function kind(job: JobStub): string {
  if (job.ParameterizedJob) return `${job.Type}, parameterized`;
  return job.Periodic ? `${job.Type}, periodic` : job.Type;
}

function JobCounts({ job }: { job: JobStub }): JSX.Element {
  const children = job.JobSummary?.Children;
  if (children && (job.ParameterizedJob || job.Periodic)) {
    return (
      <span>
        {plural(children.Running, "child").replace("childs", "children")} running, {children.Pending} pending, {children.Dead} dead
      </span>
    );
  }
  return <Bar counts={total(job)} />;
}
