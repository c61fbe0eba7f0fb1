// The frame: who is asked, which moment and which namespace are looked at, and which view.

import "./app.css";
import { effect, signal } from "@preact/signals";
import { type JSX, render } from "preact";
import { useEffect } from "preact/hooks";
import { type Denied, call, denied, get, isStreaming, newest, put, reached, token, trouble, useGet, useToken } from "./api";
import { Choice, Link, Said } from "./parts";
import { address, at, change, namespace, param, parts, since } from "./place";
import { Palette, isFinding } from "./palette";
import { timeOfDay } from "./format";
import { Scrubber, words } from "./scrubber";
import { SignIn, isSigningIn, returned } from "./signin";
import { follow } from "./stream";
import { Access } from "./views/access";
import { AllocView, Allocs } from "./views/alloc";
import { Compare } from "./views/compare";
import { Delivery } from "./views/delivery";
import { EvalView, Evals } from "./views/evals";
import { Events } from "./views/events";
import { JobView } from "./views/job";
import { Jobs } from "./views/jobs";
import { Lanes } from "./views/lanes";
import { NodeView, Nodes } from "./views/nodes";
import { Namespaces, Services, Volumes } from "./views/rest";
import { Run } from "./views/run";
import { Servers } from "./views/servers";
import { Topology } from "./views/topology";
import { Variables } from "./views/variables";
import { WhatIf } from "./views/whatif";

const PLACES: [string, string][] = [
  ["jobs", "Jobs"],
  ["allocations", "Allocations"],
  ["evaluations", "Evaluations"],
  ["clients", "Clients"],
  ["servers", "Servers"],
  ["", ""],
  ["events", "Events"],
  ["lanes", "Lanes"],
  ["topology", "Topology"],
  ["compare", "Compare"],
  ["whatif", "What if?"],
  ["delivery", "Sinks"],
  ["", ""],
  ["services", "Services"],
  ["variables", "Variables"],
  ["volumes", "Volumes"],
  ["namespaces", "Namespaces"],
  ["access-control", "Access control"],
];

function View(): JSX.Element {
  const [place = "jobs", name, part] = parts.value;
  switch (place) {
    case "jobs":
      if (name === "run") return <Run />;
      return name === undefined ? <Jobs /> : <JobView key={name} name={name} part={part ?? "overview"} />;
    case "allocations":
      return name === undefined ? <Allocs /> : <AllocView key={name} id={name} part={part ?? "overview"} />;
    case "evaluations": {
      // As the command line names one.
      const one = name ?? (param("currentEval") || undefined);
      return one === undefined ? <Evals /> : <EvalView key={one} id={one} />;
    }
    case "clients":
      return name === undefined ? <Nodes /> : <NodeView key={name} id={name} part={part ?? "overview"} />;
    case "servers":
      return <Servers />;
    case "events":
      return <Events />;
    case "lanes":
      return <Lanes />;
    case "topology":
      return <Topology />;
    case "services":
      return <Services name={name} />;
    case "variables":
      // A path as it is, where the command line and Nomad's page lead to.
      return <Variables name={name === "var" ? parts.value.slice(2).join("/") : name} />;
    case "volumes":
      return <Volumes />;
    case "namespaces":
      return <Namespaces />;
    case "compare":
      return <Compare />;
    case "whatif":
      return <WhatIf />;
    case "delivery":
      return <Delivery name={name} />;
    case "access-control":
      return <Access part={name ?? "tokens"} name={part} />;
    case "settings":
      // Where providers of identities send people back to, as they do for Nomad's page.
      return <Access part="tokens" />;
    default:
      return (
        <p class="empty">
          There is no view called “{place}”. <Link to={address("jobs")}>Jobs</Link> is where to begin.
        </p>
      );
  }
}

function Connection(): JSX.Element {
  const [kind, text] =
    reached.value === "no"
      ? ["bad", "no answer"]
      : reached.value === "waiting"
        ? ["warn", "connecting"]
        : isStreaming.value
          ? ["good", "live"]
          : ["warn", "every 5 s"];
  return (
    <span class={`status ${kind}`} title={`Index ${newest.value}`} role="status" aria-label={`Connection: ${text}`}>
      {text}
    </span>
  );
}

type Theme = "auto" | "dark" | "light";
const theme = signal<Theme>((localStorage.getItem("sojourn.theme") as Theme | null) ?? "auto");

function applyTheme(): void {
  const root = document.documentElement;
  if (theme.value === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
}

function nextTheme(): void {
  const isDark = theme.value === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme.value === "dark";
  theme.value = isDark ? "light" : "dark";
  localStorage.setItem("sojourn.theme", theme.value);
  applyTheme();
  // Pictures are drawn with colours that they have read.
  dispatchEvent(new Event("resize"));
}

function NamespacePicker(): JSX.Element {
  const { data } = useGet<{ Name: string }[]>("/v1/namespaces", ["Namespace"], { quiet: true });
  const names = new Set([...(data ?? []).map((one) => one.Name), namespace.value]);
  names.delete("*");
  return (
    <Choice
      name="Namespace"
      value={namespace.value}
      set={(name) => change({ namespace: name === "*" ? "" : name })}
      of={[["*", "all"], ...[...names].sort().map((name): [string, string] => [name, name])]}
    />
  );
}

function Refused({ of }: { of: Denied }): JSX.Element {
  // Over the form that somebody has filled in, which can then be sent once more.
  useEffect(() => {
    if (of.isOver && of.isWrite && token.value) isSigningIn.value = true;
  }, [of]);
  return (
    <div class="denied" role="alert">
      <strong>{of.isOver && token.value ? "Your token is not good any more." : "Not allowed."}</strong>
      <span>
        {of.text}
        {of.isOver && token.value && ". Log in again to go on from here; until then everything stays as it was."}
      </span>
      <button type="button" onClick={() => (isSigningIn.value = true)}>
        {of.isOver && token.value ? "Log in again" : "Enter a token"}
      </button>
      <button type="button" onClick={() => (denied.value = null)}>
        Close
      </button>
    </div>
  );
}

function Frame(): JSX.Element {
  const place = parts.value[0] ?? "jobs";
  useEffect(() => {
    const name = PLACES.find(([key]) => key === place)?.[1] ?? "";
    // On a narrow screen not all of them are seen at once.
    document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    document.title = [parts.value[1], name, "Sojourn"].filter(Boolean).join(" · ");
  }, [parts.value]);
  const moment = at.value;
  return (
    <div class="frame">
      <header class="top">
        <div class="row">
          <a class="skip" href="#main">
            To the content
          </a>
          <Link to={address("jobs")} class="brand">
            <img src="/ui/assets/icon.svg" alt="" /> Sojourn
          </Link>
          <Scrubber />
          <NamespacePicker />
          <button type="button" onClick={() => (isFinding.value = true)} title="Ctrl-K">
            Find
          </button>
          <button type="button" onClick={() => (isSigningIn.value = true)}>
            {token.value ? "Token set" : "Token"}
          </button>
          <button type="button" onClick={nextTheme} aria-label="Switch between dark and light">
            ◐
          </button>
          <Connection />
        </div>
        {moment && (
          <div class="past" role="status">
            <strong>The past: {words(moment)}.</strong>
            <span>Everything is shown as it was then, and nothing can be changed.</span>
            <Link to={since(moment)}>What has changed since?</Link>
            <button type="button" onClick={() => change({ at: "" })}>
              Back to now
            </button>
          </div>
        )}
        {trouble.value && (
          <div class="denied" role="alert">
            <strong>No answer since {timeOfDay(trouble.value.since)}.</strong>
            <span>What is shown is as it was then. It is asked again every few seconds: {trouble.value.text}</span>
          </div>
        )}
        {denied.value && <Refused of={denied.value} />}
      </header>
      <div class="side">
        <nav aria-label="Views">
          {PLACES.map(([key, name]) =>
            key ? (
              <Link to={address(key)} aria-current={key === place ? "page" : undefined}>
                {name}
              </Link>
            ) : (
              <hr />
            ),
          )}
        </nav>
      </div>
      <main id="main" tabIndex={-1}>
        <View />
      </main>
      {isSigningIn.value && <SignIn />}
      {isFinding.value && <Palette />}
      <Said />
    </div>
  );
}

/** A token for one use, with which the command line opens a page. It leaves the address before anything else is read. */
async function exchange(): Promise<void> {
  const once = param("ott");
  if (!once) return;
  change({ ott: "" }, false);
  try {
    const answer = await put<{ Token: { SecretID: string } }>("/v1/acl/token/onetime/exchange", { OneTimeSecretID: once });
    useToken(answer.Token.SecretID);
  } catch {
    // What was refused is said at the top; a token can still be entered.
  }
}

/** A moment that is a span before now stays the same moment while it is looked at. */
async function fixMoment(): Promise<void> {
  if (!at.value?.startsWith("-")) return;
  try {
    const response = await call("/v1/namespaces");
    change({ at: response.headers.get("X-Nomad-Index") ?? "" }, false);
  } catch {
    // The views say what is wrong with it.
  }
}

/** Longest time that a timer of browsers can wait. */
const TIMER_MAX = 2 ** 31 - 1;

/** Asks once the token has expired, so that this is said then, and not with the next thing that is done. */
function watchExpiry(): void {
  effect(() => {
    if (!token.value) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const self = "/v1/acl/token/self";
    const ask = async (): Promise<void> => {
      try {
        const { ExpirationTime } = await get<{ ExpirationTime: string | null }>(self, { now: true, signal: stop.signal });
        const left = ExpirationTime ? Date.parse(ExpirationTime) - Date.now() : 0;
        // Clocks differ by a little.
        if (ExpirationTime) timer = setTimeout(ask, Math.min(TIMER_MAX, Math.max(1000, left + 500)));
      } catch {
        // What was refused is said at the top.
      }
    };
    void ask();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  });
}

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    isFinding.value = true;
  }
});

applyTheme();
await exchange();
await returned();
await fixMoment();
follow();
watchExpiry();
void get("/v1/status/leader", { now: true, quiet: true }).catch(() => undefined);
render(<Frame />, document.getElementById("page")!);
