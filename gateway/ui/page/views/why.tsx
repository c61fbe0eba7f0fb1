// Why something is as it is: what the scheduler saw, what came closest, what would help.

import type { JSX } from "preact";
import { path, useGet } from "../api";
import { Ago, Link, Missing, Section } from "../parts";
import { address, trying } from "../place";
import { shortage } from "./run";

interface Wait {
  What: string;
  EvalID: string;
  Until: string | null;
}

interface Lack {
  What: string;
  Unit: string;
  Asked: number;
  Free: number;
  Short: number;
}

interface Reasons {
  Missing: number;
  MissingNames: string[] | null;
  Nodes: number;
  Failed: Record<string, unknown> | null;
  Placed: Record<string, unknown> | null;
  Nearest: { NodeID: string; NodeName: string; Lacks: Lack[] | null }[] | null;
  WouldFitIf: string[] | null;
  Tried: number;
  HintsCutShort: boolean;
}

interface Decision {
  EvalID: string;
  Snapshot: number;
  Time: string;
  Recomputed: boolean;
  AsLogged: boolean | null;
  Note: string;
}

interface EvalWhy {
  ID: string;
  Status: string;
  TriggeredBy: string;
  StatusDescription: string;
  Decision: Decision;
  Groups: Record<string, Reasons> | null;
  WaitsFor: Wait[] | null;
}

interface Placed {
  ScoreMetaData?: { NodeID: string; Scores: Record<string, number> | null; NormScore: number }[] | null;
}

interface Answer extends Partial<EvalWhy> {
  /** Why it is only approximate. */
  Approximate?: string;
  Evaluation?: EvalWhy | null;
  Placed?: Placed | null;
  NodeNames?: Record<string, string> | null;
}

const TOPICS = ["Job", "Allocation", "Evaluation", "Deployment", "Node"];

/** The explanation of a job, an evaluation, an allocation, a deployment or a node. */
export function Why({ kind, id, ns }: { kind: string; id: string; ns?: string }): JSX.Element {
  const { data, error } = useGet<Answer>(path([kind, id, "explain"], { namespace: ns }), TOPICS);
  if (!data) return <Missing error={error} what="reasons" />;
  const one = data.Evaluation ?? (data.Groups && data.Decision ? (data as EvalWhy) : null);
  return (
    <>
      {data.Approximate && (
        <div class="note warn">
          <strong>Approximate.</strong> {data.Approximate}
        </div>
      )}
      {data.WaitsFor && data.WaitsFor.length > 0 && (
        <Section title="Waits for">
          <ul class="plain">
            {data.WaitsFor.map((wait) => (
              <li>
                {wait.What}
                {wait.Until && (
                  <>
                    , until <Ago time={wait.Until} />
                  </>
                )}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {one && <EvalReasons of={one} />}
      {!one && data.Decision && <DecisionLine of={data.Decision} />}
      {data.Placed?.ScoreMetaData && data.Placed.ScoreMetaData.length > 0 && (
        <Section title="Why on this node">
          <Scores of={data.Placed} names={data.NodeNames ?? {}} />
        </Section>
      )}
      {!one && !data.WaitsFor?.length && !data.Placed && <p class="empty">Nothing stands in the way.</p>}
    </>
  );
}

function Scores({ of, names }: { of: Placed; names: Record<string, string> }): JSX.Element {
  return (
    <ul class="plain">
      {(of.ScoreMetaData ?? []).map((node) => (
        <li>
          <Link to={address("clients", node.NodeID)}>{names[node.NodeID] ?? node.NodeID.slice(0, 8)}</Link>:{" "}
          {node.NormScore.toFixed(3)}{" "}
          <span class="quiet">
            (
            {Object.entries(node.Scores ?? {})
              .map(([name, score]) => `${name} ${score.toFixed(3)}`)
              .join(", ")}
            )
          </span>
        </li>
      ))}
    </ul>
  );
}

function DecisionLine({ of }: { of: Decision }): JSX.Element {
  const same = of.AsLogged === null ? "" : of.AsLogged ? "; made again, it comes out as it was logged" : "; made again, it comes out otherwise";
  return (
    <p class="quiet">
      Decided <Ago time={of.Time} /> on the state of index {of.Snapshot}
      {of.Recomputed ? same : "; not made again"}. {of.Note}
    </p>
  );
}

function EvalReasons({ of }: { of: EvalWhy }): JSX.Element {
  return (
    <Section title="What the scheduler decided" aside={<Link to={address("evaluations", of.ID)}>evaluation {of.ID.slice(0, 8)}</Link>}>
      <p>
        {of.TriggeredBy}, {of.Status}
        {of.StatusDescription && `: ${of.StatusDescription}`}
      </p>
      <DecisionLine of={of.Decision} />
      {Object.entries(of.Groups ?? {}).map(([name, group]) => (
        <Group name={name} of={group} />
      ))}
    </Section>
  );
}

function Group({ name, of }: { name: string; of: Reasons }): JSX.Element {
  const nearest = of.Nearest ?? [];
  const helps = of.WouldFitIf ?? [];
  return (
    <>
      <h3>
        Group “{name}”: {of.Missing ? `no place for ${of.Missing}` : "everything has its place"}
      </h3>
      {of.MissingNames && of.MissingNames.length > 0 && <p class="quiet">{of.MissingNames.join(", ")}</p>}
      {of.Failed && <p>{shortage(of.Failed)}.</p>}
      {nearest.length > 0 && <Nearest of={nearest} />}
      {of.Missing > 0 && (
        <div class={`note ${helps.length ? "good" : "warn"}`}>
          {helps.length ? (
            <>
              Would fit if (each one tried out):
              <ul class="plain">
                {helps.map((help) => (
                  <li>{help}</li>
                ))}
              </ul>
            </>
          ) : (
            `None of ${of.Tried} changes that were tried would help.`
          )}
          {of.HintsCutShort && <span class="quiet"> Not all were tried.</span>}
          {nearest[0] && (
            <p>
              <Link to={trying(`add 1 like ${nearest[0].NodeName}`)}>Try one more client like {nearest[0].NodeName}</Link>
            </p>
          )}
        </div>
      )}
    </>
  );
}

/** Nodes by what stands in the way there: a square for each reason, the nearest node on top. */
function Nearest({ of }: { of: NonNullable<Reasons["Nearest"]> }): JSX.Element {
  const reasons = [...new Set(of.flatMap((node) => (node.Lacks ?? []).map((lack) => lack.What)))];
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Nearest nodes">
      <table class="heat">
        <thead>
          <tr>
            <th scope="col">Nearest nodes</th>
            {reasons.map((reason) => (
              <th scope="col">{reason}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {of.map((node) => (
            <tr>
              <td>
                <Link to={address("clients", node.NodeID)}>{node.NodeName}</Link>
              </td>
              {reasons.map((reason) => {
                const lack = (node.Lacks ?? []).find((one) => one.What === reason);
                return <td class={lack ? "lacks" : "has"}>{lack ? amount(lack) : "fine"}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function amount(lack: Lack): string {
  if (!lack.Asked && !lack.Short) return "no";
  return `${lack.Short.toLocaleString("en")} ${lack.Unit} short (asked ${lack.Asked.toLocaleString("en")}, free ${lack.Free.toLocaleString("en")})`;
}
