// The directory of an allocation.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, path, useGet } from "../api";
import { bytes } from "../format";
import { Ago, Link, Missing, Section, Table } from "../parts";
import { address, change, param } from "../place";

interface File {
  Name: string;
  IsDir: boolean;
  Size: number;
  FileMode: string;
  ModTime: string;
}

/** Most of a file that is shown. */
const SHOWN = 64 * 1024;

export function Files({ alloc }: { alloc: string }): JSX.Element {
  const folder = param("path") || "/";
  const file = param("file");
  const { data, error } = useGet<File[]>(path(["client", "fs", "ls", alloc], { path: folder }), [], { now: true });
  const steps = folder.split("/").filter(Boolean);
  const inside = (name: string): string => `${folder.replace(/\/$/, "")}/${name}`;
  const open = (one: File): void => change(one.IsDir ? { path: inside(one.Name), file: "" } : { file: inside(one.Name) });
  const crumbs = (
    <nav aria-label="Folders" class="mono">
      <Link to={address("allocations", alloc, "files")}>root</Link>
      {steps.map((step, place) => (
        <>
          {" / "}
          <button type="button" class="plain" onClick={() => change({ path: `/${steps.slice(0, place + 1).join("/")}`, file: "" })}>
            {step}
          </button>
        </>
      ))}
    </nav>
  );
  return (
    <>
      <Section title="Files" aside={crumbs}>
        {data ? (
          <Table
            name="Files"
            empty="The folder is empty."
            rows={[...data].sort((a, b) => Number(b.IsDir) - Number(a.IsDir) || a.Name.localeCompare(b.Name))}
            of={(one) => one.Name}
            columns={[
              {
                name: "Name",
                cell: (one) => (
                  <button type="button" class="plain mono" onClick={() => open(one)}>
                    {one.Name}
                    {one.IsDir ? "/" : ""}
                  </button>
                ),
              },
              { name: "Size", isNumber: true, cell: (one) => (one.IsDir ? "" : bytes(one.Size)) },
              { name: "Mode", isMinor: true, cell: (one) => <span class="mono">{one.FileMode}</span> },
              { name: "Changed", isMinor: true, cell: (one) => <Ago time={one.ModTime} /> },
            ]}
          />
        ) : (
          <Missing error={error} what="files" />
        )}
      </Section>
      {file && <Content alloc={alloc} file={file} />}
    </>
  );
}

function Content({ alloc, file }: { alloc: string; file: string }): JSX.Element {
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<Error | undefined>();
  useEffect(() => {
    const stop = new AbortController();
    setText(null);
    setError(undefined);
    const where = path(["client", "fs", "readat", alloc], { path: file, offset: 0, limit: SHOWN });
    call(where, { signal: stop.signal, now: true })
      .then((response) => response.text())
      .then(setText, (wrong: Error) => !stop.signal.aborted && setError(wrong));
    return () => stop.abort();
  }, [alloc, file]);
  return (
    <Section
      title={file}
      aside={
        <button type="button" onClick={() => change({ file: "" })}>
          Close
        </button>
      }
    >
      {text === null ? (
        <Missing error={error} what="content" />
      ) : (
        <pre class="code" tabIndex={0} role="region" aria-label={`Content of ${file}`}>
          {text || "The file is empty."}
        </pre>
      )}
      {text !== null && text.length >= SHOWN && <p class="quiet">The first {bytes(SHOWN)} are shown.</p>}
    </Section>
  );
}
