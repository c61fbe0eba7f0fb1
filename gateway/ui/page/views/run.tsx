// A job from its text to the cluster: parsed, planned, registered.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Refusal, get, put } from "../api";
import { plural } from "../format";
import { Section, Title, say } from "../parts";
import { address, at, go, named, namespace, param } from "../place";
import type { Diff, Job } from "../types";
import { DiffView } from "./diff";

interface Plan {
  JobModifyIndex: number;
  Diff: Diff | null;
  FailedTGAllocs: Record<string, Record<string, unknown>> | null;
  Warnings: string;
}

interface Planned {
  job: Job;
  text: string;
  plan: Plan;
}

const EXAMPLE = `job "hello" {
  group "web" {
    count = 1

    task "server" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "while true; do date; sleep 1; done"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
`;

async function parsed(text: string): Promise<Job> {
  if (!text.trimStart().startsWith("{")) return put<Job>("/v1/jobs/parse", { JobHCL: text, Canonicalize: true });
  const document = JSON.parse(text) as { Job?: Job } & Job;
  return document.Job ?? document;
}

function inNamespace(job: Job): Job {
  const own = job.Namespace || (namespace.value === "*" ? "default" : namespace.value);
  return { ...job, Namespace: own };
}

export function Run(): JSX.Element {
  const edited = param("of");
  const [text, setText] = useState(edited ? "" : EXAMPLE);
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [wrong, setWrong] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (edited) void readSource(edited).then(setText, (error: Error) => setWrong(error.message));
  }, [edited]);
  const doing = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setWrong("");
    try {
      await work();
    } catch (error) {
      setWrong((error as Error).message);
    }
    setBusy(false);
  };
  const plan = (): Promise<void> =>
    doing(async () => {
      const job = inNamespace(await parsed(text));
      const where = `/v1/job/${encodeURIComponent(job.ID)}/plan?namespace=${encodeURIComponent(job.Namespace)}`;
      setPlanned({ job, text, plan: await put<Plan>(where, { Job: job, Diff: true }) });
    });
  const run = ({ job, text: source, plan: { JobModifyIndex } }: Planned): Promise<void> =>
    doing(async () => {
      const format = source.trimStart().startsWith("{") ? "json" : "hcl2";
      const body = { Job: job, EnforceIndex: true, JobModifyIndex, Submission: { Source: source, Format: format } };
      const { Warnings } = await put<{ Warnings: string }>(`/v1/jobs?namespace=${encodeURIComponent(job.Namespace)}`, body);
      say(Warnings ? `Job “${job.ID}” runs, with warnings: ${Warnings}` : `Job “${job.ID}” was registered`);
      go(address("jobs", `${job.ID}@${job.Namespace}`));
    });
  const isCurrent = planned !== null && planned.text === text;
  return (
    <>
      <Title
        kind={edited ? `Job ${named(edited).id}` : "Jobs"}
        aside={
          <>
            <button type="button" disabled={isBusy || !text || at.value !== null} class={isCurrent ? "" : "strong"} onClick={() => void plan()}>
              Plan
            </button>
            <button
              type="button"
              class={isCurrent ? "strong" : ""}
              disabled={!isCurrent || isBusy || at.value !== null}
              title={isCurrent ? undefined : "After a plan of this text"}
              onClick={() => planned && void run(planned)}
            >
              Run
            </button>
          </>
        }
      >
        {edited ? "Change the job" : "Run a job"}
      </Title>
      {wrong && (
        <div class="note bad" role="alert">
          {wrong}
        </div>
      )}
      <Section title="Definition, as HCL or JSON">
        <textarea
          aria-label="The definition of the job, as HCL or JSON"
          rows={24}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </Section>
      {planned && isCurrent && <PlanView of={planned} />}
    </>
  );
}

/** What was written when the job was registered, or the job as it is. */
async function readSource(name: string): Promise<string> {
  const { id, ns } = named(name);
  const place = `/v1/job/${encodeURIComponent(id)}`;
  const query = `namespace=${encodeURIComponent(ns)}`;
  const job = await get<Job>(`${place}?${query}`);
  try {
    const { Source } = await get<{ Source: string }>(`${place}/submission?version=${job.Version}&${query}`);
    if (Source) return Source;
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
  }
  return JSON.stringify(job, null, 2);
}

function PlanView({ of: { plan } }: { of: Planned }): JSX.Element {
  const failed = Object.entries(plan.FailedTGAllocs ?? {});
  return (
    <Section title="What would change">
      {plan.Warnings && <div class="note warn">{plan.Warnings}</div>}
      {failed.map(([group, metric]) => (
        <div class="note bad">
          <strong>Group “{group}”</strong> does not find a place for everything: {shortage(metric)}
        </div>
      ))}
      <DiffView of={plan.Diff} />
    </Section>
  );
}

/** Why a placement failed, in words. */
export function shortage(metric: Record<string, unknown>): string {
  const parts: string[] = [`${plural(Number(metric.NodesEvaluated ?? 0), "node")} looked at`];
  const lists = [
    ["ConstraintFiltered", "ruled out by"],
    ["DimensionExhausted", "out of"],
  ] as const;
  for (const [field, words] of lists) {
    for (const [what, count] of Object.entries((metric[field] as Record<string, number> | null) ?? {})) {
      parts.push(`${count} ${words} ${what}`);
    }
  }
  return parts.join("; ");
}

