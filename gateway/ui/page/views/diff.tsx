// What differs between two versions of a job, as the API gives it.

import type { JSX } from "preact";
import type { Diff, FieldDiff } from "../types";

const SIGN: Record<string, string> = { Added: "+", Deleted: "-", Edited: "~" };

function Field({ of }: { of: FieldDiff }): JSX.Element {
  const value = of.Type === "Added" ? of.New : of.Type === "Deleted" ? of.Old : `${of.Old} → ${of.New}`;
  return (
    <li class={of.Type.toLowerCase()}>
      {SIGN[of.Type] ?? " "} {of.Name}: {value}
    </li>
  );
}

function Part({ of, kind }: { of: Diff; kind: string }): JSX.Element {
  const updates = Object.entries(of.Updates ?? {}).map(([what, count]) => `${count} ${what}`);
  return (
    <li>
      <span class={of.Type.toLowerCase()}>
        {SIGN[of.Type] ?? " "} {kind} {of.Name ?? of.ID ?? ""}
      </span>
      {updates.length > 0 && <span class="quiet"> ({updates.join(", ")})</span>}
      <ul>
        <Inside of={of} />
      </ul>
    </li>
  );
}

const differs = (part: { Type: string }): boolean => part.Type !== "None";

function Inside({ of }: { of: Diff }): JSX.Element {
  return (
    <>
      {(of.Fields ?? []).filter(differs).map((field) => (
        <Field of={field} />
      ))}
      {(of.Objects ?? []).filter(differs).map((part) => (
        <Part of={part} kind="" />
      ))}
      {(of.TaskGroups ?? []).filter((part) => differs(part) || part.Updates).map((part) => (
        <Part of={part} kind="group" />
      ))}
      {(of.Tasks ?? []).filter(differs).map((part) => (
        <Part of={part} kind="task" />
      ))}
    </>
  );
}

export function DiffView({ of }: { of: Diff | null | undefined }): JSX.Element {
  if (!of) return <p class="empty">Nothing to compare with.</p>;
  if (of.Type === "None" && !(of.TaskGroups ?? []).some((group) => group.Updates)) return <p class="empty">Nothing differs.</p>;
  return (
    <ul class="diff">
      {of.Type !== "Edited" && of.Type !== "None" && (
        <li class={of.Type.toLowerCase()}>
          {SIGN[of.Type]} job {of.ID}
        </li>
      )}
      <Inside of={of} />
    </ul>
  );
}
