// How far readers of the event stream have come: cursors that they keep here, and sinks that the leader sends to.

import type { ComponentChildren, JSX } from "preact";
import { path, put, useGet } from "../api";
import { bytes, plural, span } from "../format";
import { Action, Ago, Facts, Form, Link, Missing, Section, Status, Table, Title } from "../parts";
import { address, go } from "../place";

interface Place {
  Name: string;
  Topics: string[] | null;
  Namespace: string;
  Filter: string;
  Position: string;
  LagBatches: number;
  LagSeconds: number;
}

interface Cursor extends Place {
  Reader: string;
  Gap: boolean;
  OldestIndex: number;
  AckedAt: string | null;
  AckedBy: string;
  Expires: string | null;
}

interface Sink extends Place {
  Kind: string;
  URL: string;
  Signal: string;
  Address: string;
  Subject: string;
  TLS: boolean;
  Transport: string;
  Facility: string;
  AppName: string;
  MaxBytes: number;
  MaxFiles: number;
  SecretVariable: string;
  SecretNamespace: string;
  MaxAttempts: number;
  Timeout: string;
  Status: string;
  ParkedEvent: string;
  ParkedAttempts: number;
  ParkedReason: string;
  ParkedAt: string | null;
  Cursor: string;
  AckedAt: string | null;
  Reported: boolean;
  Sent: number;
  Failures: number;
  FailedAttempts: number;
  NextAttemptAt: string | null;
  LastFailureEvent: string;
  LastFailureReason: string;
  LastFailureAt: string | null;
}

/** No topic speaks of them, and how far they are behind changes with whatever happens. */
const POLLS = { now: true, polls: true };

export function Delivery({ name }: { name?: string }): JSX.Element {
  return name ? <SinkView key={name} name={name} /> : <Both />;
}

const gives = (one: Place): string => [(one.Topics ?? []).join(", ") || "everything", `in ${one.Namespace === "*" ? "all namespaces" : one.Namespace}`, one.Filter && `where ${one.Filter}`].filter(Boolean).join(" ");

function Lag({ of }: { of: Place }): JSX.Element {
  if (of.LagBatches === 0) return <span class="quiet">nothing</span>;
  return <>{`${of.LagBatches.toLocaleString("en")} ${of.LagBatches === 1 ? "batch" : "batches"}, ${span(of.LagSeconds * 1000)}`}</>;
}

const target = (one: Sink): string => [one.URL || one.Address, one.Subject].filter(Boolean).join(" ");

/** What it sends, where a kind has several. */
const kindOf = (one: Sink): string => (one.Signal ? `${one.Kind}, ${one.Signal}` : one.Kind);

function Both(): JSX.Element {
  const sinks = useGet<Sink[]>("/v1/event/sinks", [], POLLS);
  const cursors = useGet<Cursor[]>("/v1/event/cursors", [], POLLS);
  return (
    <>
      <Title kind="Who is sent events, and how far they have come">Sinks and cursors</Title>
      <Section title="Sinks">
        {sinks.data ? (
          <Table
            name="Sinks"
            rows={sinks.data}
            of={(one) => one.Name}
            empty="No sinks. sojourn sink apply sends the events to a webhook, NATS, Kafka, syslog, OpenTelemetry or a file."
            columns={[
              { name: "Sink", cell: (one) => <Link to={address("delivery", one.Name)}>{one.Name}</Link> },
              { name: "Status", cell: (one) => <Status of={one.Status} title={one.ParkedReason || undefined} /> },
              { name: "Kind", isMinor: true, cell: kindOf },
              { name: "To", isMinor: true, cell: target },
              { name: "Behind", cell: (one) => <Lag of={one} /> },
              { name: "Gives", isMinor: true, cell: gives },
            ]}
          />
        ) : (
          <Missing error={sinks.error} what="sinks" />
        )}
      </Section>
      <Section title="Cursors">
        {cursors.data ? (
          <Table
            name="Cursors"
            rows={cursors.data.filter((one) => !one.Name.startsWith("sink."))}
            of={(one) => one.Name}
            empty="No cursors. sojourn cursor create keeps the place of a reader of the stream."
            columns={[
              { name: "Cursor", cell: (one) => one.Name },
              { name: "Place", isMinor: true, cell: (one) => <span class="mono">{one.Position.split("@")[0]}</span> },
              { name: "Behind", cell: (one) => (one.Gap ? <Status of="gap" title={`What follows is kept from index ${one.OldestIndex} on only`} /> : <Lag of={one} />) },
              { name: "Acknowledged", isMinor: true, cell: (one) => <Ago time={one.AckedAt} /> },
              { name: "By", isMinor: true, cell: (one) => one.AckedBy },
              { name: "Gives", isMinor: true, cell: gives },
              { name: "Actions", cell: (one) => <CursorActions of={one} /> },
            ]}
          />
        ) : (
          <Missing error={cursors.error} what="cursors" />
        )}
      </Section>
    </>
  );
}

function CursorActions({ of }: { of: Cursor }): JSX.Element {
  const where = (...rest: string[]): string => path(["event", "cursor", of.Name, ...rest]);
  return (
    <span class="actions">
      <Form name={`Move ${of.Name}`} run={(fields) => put(where("reset"), { To: String(fields.get("to")).trim() })}>
        <label class="field">
          <span>To: oldest, now, a time, a span like -2h, an index, or an event's id</span>
          <input name="to" required />
        </label>
      </Form>
      <Action
        name={`Delete ${of.Name}`}
        kind="danger"
        ask={`Cursor “${of.Name}” is deleted, and with it the place of its reader.`}
        run={() => put(where(), undefined, "DELETE")}
      />
    </span>
  );
}

function SinkView({ name }: { name: string }): JSX.Element {
  const { data, error } = useGet<Sink>(path(["event", "sink", name]), [], POLLS);
  if (!data) return <Missing error={error} what="sink" />;
  const turn = (how: string): Promise<unknown> => put(path(["event", "sink", name, how]));
  return (
    <>
      <Title
        kind={`Sink of kind ${kindOf(data)}`}
        aside={
          <>
            {data.Status === "running" && <Action name="Pause" run={() => turn("pause")} />}
            {data.Status === "paused" && <Action name="Resume" kind="strong" run={() => turn("resume")} />}
            {data.Status === "parked" && (
              <>
                <Action name="Retry" kind="strong" run={() => turn("retry")} />
                <Action name="Skip" kind="danger" ask={`Event ${data.ParkedEvent} is never sent, and what follows it is.`} run={() => turn("skip")} />
              </>
            )}
            <Action
              name="Delete"
              kind="danger"
              ask={`Sink “${name}” is deleted, and with it how far it has come.`}
              run={async () => {
                await put(path(["event", "sink", name]), undefined, "DELETE");
                go(address("delivery"));
              }}
            />
          </>
        }
      >
        {name} <Status of={data.Status} />
      </Title>
      {data.Status === "parked" && (
        <div class="note bad" role="status">
          <strong>Parked <Ago time={data.ParkedAt} />.</strong> Event {data.ParkedEvent} did not get through in {plural(data.ParkedAttempts, "attempt")}: {data.ParkedReason}
        </div>
      )}
      <section>
        <Facts
          of={[
            ["To", target(data)],
            ["Gives", gives(data)],
            ["Behind", <Lag of={data} />],
            ["Place", <span class="mono">{data.Position.split("@")[0]}</span>],
            ["Arrived", <Ago time={data.AckedAt} />],
            ["Sent since the server leads", data.Reported ? String(data.Sent) : "known to the leader"],
            ["Attempts that failed", data.Reported ? String(data.Failures) : "known to the leader"],
          ]}
        />
      </section>
      <Section title="Settings">
        <Facts of={settings(data)} />
      </Section>
      {data.LastFailureReason && (
        <Section title="Last failure" aside={<span class="quiet"><Ago time={data.LastFailureAt} /></span>}>
          <p>
            Event {data.LastFailureEvent}: {data.LastFailureReason}
          </p>
        </Section>
      )}
    </>
  );
}

/** What else it was made with: of its kind, and then of all kinds. */
function settings(of: Sink): [string, ComponentChildren][] {
  const own: Record<string, [string, ComponentChildren][]> = {
    otlp: [["Signal", of.Signal]],
    nats: [["TLS", of.TLS ? "required" : "as the server wants"]],
    kafka: [["TLS", of.TLS ? "yes" : "no"]],
    syslog: [["Transport", of.Transport], ["Facility", of.Facility], ["App name", of.AppName]],
    file: [["A file holds", bytes(of.MaxBytes)], ["Files", of.MaxFiles]],
  };
  return [
    ...(own[of.Kind] ?? []),
    ["Secrets", of.SecretVariable && <Link to={address("variables", `${of.SecretVariable}@${of.SecretNamespace}`)}>{of.SecretVariable}</Link>],
    ["Attempts for one event", of.MaxAttempts],
    ["An attempt may take", of.Timeout],
  ];
}
