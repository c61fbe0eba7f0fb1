// What happened to an object, from the log.

import type { JSX } from "preact";
import { path, useGet } from "../api";
import { Ago, Missing, Section, Table } from "../parts";
import type { Transition } from "../types";

export function History({ kind, id, ns }: { kind: string; id: string; ns?: string }): JSX.Element {
  const where = path([kind, id, "history"], { namespace: ns });
  const { data, error } = useGet<{ Lines?: Transition[] | null; Transitions?: Transition[] | null; CutShort: boolean }>(where, [
    "Job",
    "Allocation",
    "Evaluation",
    "Deployment",
    "Node",
  ]);
  if (!data) return <Missing error={error} what="history" />;
  const lines = [...(data.Transitions ?? data.Lines ?? [])].reverse();
  return (
    <Section title="History" aside={data.CutShort ? <span class="quiet">older facts are left out</span> : undefined}>
      <Table
        name="History"
        rows={lines}
        of={(line) => `${line.Index}.${line.Ordinal}`}
        columns={[
          { name: "When", cell: (line) => <Ago time={line.Time} /> },
          { name: "Index", isMinor: true, isNumber: true, cell: (line) => line.Index },
          { name: "What", cell: (line) => line.Event ?? change(line) },
          { name: "Details", cell: (line) => shortened(line.Description) },
          { name: "Decided by", isMinor: true, cell: (line) => shortened(line.Actor) },
          { name: "Because of", isMinor: true, cell: (line) => shortened(line.Cause ?? "") },
        ]}
      />
    </Section>
  );
}

/** Ids as commands show them. */
function shortened(text: string): string {
  return text.replace(/([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{22}/g, "$1");
}

function change(line: Transition): string {
  if (line.OldClient === line.NewClient && !line.Description) return line.Cause ?? "";
  return line.OldClient && line.OldClient !== line.NewClient ? `${line.OldClient} → ${line.NewClient}` : (line.NewClient ?? "");
}
