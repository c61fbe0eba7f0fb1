import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path, useGet } from "../api";
import { plural, short } from "../format";
import { Ago, Choice, Facts, Find, Link, Missing, Pages, Section, Status, Table, Title, usePages, useSettled } from "../parts";
import { address, at, namespace } from "../place";
import type { Alloc, Eval } from "../types";
import { AllocTable } from "./alloc";
import { History } from "./history";
import { PAGE, anyContains } from "./jobs";
import { Why } from "./why";

export function EvalTable({ rows }: { rows: Eval[] }): JSX.Element {
  return (
    <Table
      name="Evaluations"
      rows={rows}
      of={(one) => one.ID}
      columns={[
        { name: "Evaluation", cell: (one) => <Link to={address("evaluations", one.ID)} class="mono">{short(one.ID)}</Link> },
        {
          name: "Job",
          cell: (one) => (one.JobID ? <Link to={address("jobs", `${one.JobID}@${one.Namespace}`)}>{one.JobID}</Link> : "none"),
        },
        { name: "Status", cell: (one) => <Status of={one.Status} title={one.StatusDescription} /> },
        { name: "Triggered by", cell: (one) => one.TriggeredBy },
        { name: "Placed", isMinor: true, cell: (one) => (one.FailedTGAllocs ? "not everything" : one.Status === "blocked" ? "waits" : "all") },
        { name: "Priority", isMinor: true, isNumber: true, cell: (one) => one.Priority },
        { name: "Created", isMinor: true, cell: (one) => <Ago time={one.CreateTime} /> },
      ]}
    />
  );
}

export function Evals(): JSX.Element {
  const [text, setText] = useState("");
  const [status, setStatus] = useState("");
  const [isLong, setLong] = useState(false);
  const asked = useSettled(text);
  const filter = isLong ? anyContains(["ID", "JobID", "TriggeredBy"], asked) : undefined;
  // The server takes a status or a filter.
  const choice = filter ? { filter: status ? `(${filter}) and Status == "${status}"` : filter } : { status };
  const pages = usePages(`${namespace.value} ${filter} ${status} ${at.value}`);
  const where = path(["evaluations"], { namespace: namespace.value, reverse: "true", per_page: PAGE, next_token: pages.token, ...choice });
  const { data, error, next } = useGet<Eval[]>(where, ["Evaluation"]);
  if (next && !isLong) setLong(true);
  const lower = text.toLowerCase();
  const rows = (data ?? []).filter((one) =>
    [one.ID, one.JobID ?? "", one.TriggeredBy].some((field) => field.toLowerCase().includes(lower)),
  );
  return (
    <>
      <Title kind="What schedulers were asked to decide">Evaluations</Title>
      <div class="tools">
        <Find value={text} set={setText} what="evaluations" />
        <Choice
          name="Status"
          value={status}
          set={setStatus}
          of={[["", "any"], ...["pending", "blocked", "complete", "failed", "canceled"].map((one): [string, string] => [one, one])]}
        />
        <span class="quiet">{data && plural(rows.length, "evaluation")}</span>
      </div>
      {data ? (
        <section>
          <EvalTable rows={rows} />
          <Pages at={pages} next={next} what="evaluations" />
        </section>
      ) : (
        <Missing error={error} what="evaluations" />
      )}
    </>
  );
}

export function EvalView({ id }: { id: string }): JSX.Element {
  const { data, error } = useGet<Eval & { RelatedEvals?: Eval[] | null }>(path(["evaluation", id], { related: "true" }), ["Evaluation"]);
  const { data: allocs } = useGet<Alloc[]>(path(["evaluation", id, "allocations"]), ["Allocation"]);
  if (!data) return <Missing error={error} what="evaluation" />;
  const related = data.RelatedEvals ?? [];
  return (
    <>
      <Title kind={`Evaluation ${data.ID}`}>
        {data.TriggeredBy} <Status of={data.Status} />
      </Title>
      <Section title="About">
        <Facts
          of={[
            ["Job", data.JobID ? <Link to={address("jobs", `${data.JobID}@${data.Namespace}`)}>{data.JobID}</Link> : ""],
            ["Scheduler", data.Type],
            ["Priority", data.Priority],
            ["Created", <Ago time={data.CreateTime} />],
            ["Decided on index", data.SnapshotIndex],
            ["Note", data.StatusDescription],
          ]}
        />
      </Section>
      {related.length > 0 && (
        <Section title="Related evaluations">
          <EvalTable rows={related} />
        </Section>
      )}
      <Why kind="evaluation" id={id} />
      <Section title="Allocations of this evaluation">
        <AllocTable rows={allocs ?? []} />
      </Section>
      <History kind="evaluation" id={id} />
    </>
  );
}
